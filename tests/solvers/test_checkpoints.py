"""Checkpoints of what is no run of `solve`: sets of placements, and several instances at once."""

import chex
import numpy as np
import pytest
from kept_runs import arrays_of

import jaxopt_search as js
from jaxopt_search.driver import checkpoints
from jaxopt_search.solvers import queens_runs, stacked

POINTS = [np.random.default_rng(seed).random((n, 2)) for seed, n in enumerate((9, 11, 11))]
FLOWS, DISTANCES = np.random.default_rng(3).integers(0, 30, (2, 3, 7, 7))
STACKED = {"num_searches": 4, "max_steps": 300, "devices": 1}
SOLVERS = {
    "tours": lambda **options: js.solve_tsp(POINTS, 2, **STACKED | options),
    "assignments": lambda **options: js.solve_qap(FLOWS, DISTANCES, 2, **STACKED | options),
}
QUEENS = {"num_searches": 16, "devices": 1}


def queens(n=12, wanted=400, **options):
    limits = {"max_steps": 500} if n < 10_000 else {"max_seconds": 300}
    return js.solve_nqueens(n, wanted, 5, **QUEENS | limits | options)


def assert_same(found, whole):
    """All that a set of placements tells but how long it took."""
    for name in ("solutions", "num_found", "nit", "status", "success", "message"):
        np.testing.assert_array_equal(getattr(found, name), getattr(whole, name), name)


def broken_at(monkeypatch, part, name, call):
    """Lets the call of a method with this number, from 1, end with a Ctrl-C at its start."""
    plain, calls = getattr(part, name), []

    def counted(*arguments):
        calls.append(arguments)
        if len(calls) == call:
            raise KeyboardInterrupt
        return plain(*arguments)

    monkeypatch.setattr(part, name, counted)


@pytest.mark.parametrize("cut", [0, 7, 64, 70])
def test_placements_are_found_as_if_nothing_had_been_broken(cut, tmp_path):
    """After a limit of steps, at a look or between two, where one looks once more."""
    path, whole = tmp_path / "run.npz", queens()
    first = queens(max_steps=cut, checkpoint=path)
    assert first.nit == cut and len(first.solutions) < len(whole.solutions)
    again = queens(max_steps=cut, resume=path)
    assert_same(again, first)
    assert_same(queens(checkpoint=path, resume=True), whole)


@pytest.mark.parametrize("call", [1, 2, 5])
@pytest.mark.parametrize("method", ["advance", "look", "add"])
def test_placements_after_ctrl_c(method, call, tmp_path, monkeypatch):
    """Wherever it comes: before steps, before a look, before something is taken down."""
    path, whole = tmp_path / "run.npz", queens()
    with monkeypatch.context() as patch:
        part = queens_runs.PlacementSet if method == "add" else queens_runs.Searches
        later = call + (method != "add")  # the first ones compile
        broken_at(patch, part, method, later)
        first = queens(checkpoint=path)
    assert first.status == js.Status.INTERRUPTED
    assert_same(queens(resume=path), whole)


@pytest.mark.devices(3)
def test_placements_on_other_devices(tmp_path):
    """And with another number of searches given, which counts at the start only."""
    path, whole = tmp_path / "run.npz", queens()
    queens(checkpoint=path, max_steps=40, devices=2)
    queens(checkpoint=path, max_steps=100, devices=3, resume=True, num_searches=3)
    assert_same(queens(resume=path, num_searches=None), whole)


def test_more_placements_may_be_wanted(tmp_path):
    """Those found in the same look as the last one are not lost; nor is the number of tries."""
    path, whole = tmp_path / "run.npz", queens()
    few = queens(wanted=30, checkpoint=path)
    assert (few.status, len(few.solutions)) == (js.Status.TARGET, 30)
    assert_same(queens(wanted=30, resume=path), few)
    assert_same(queens(resume=path), whole)
    assert_same(
        queens(wanted=10, resume=path)._replace(message="", status=0),
        few._replace(solutions=few.solutions[:10], message="", status=0),
    )


@pytest.mark.parametrize("call", [2, 3])
@pytest.mark.parametrize("method", ["add", "snapshot"])
def test_placements_that_are_repaired(method, call, tmp_path, monkeypatch):
    """One after the other; none is left out and none comes twice."""
    path, whole = tmp_path / "run.npz", queens(10_000, 4)
    with monkeypatch.context() as patch:
        if method == "add":
            broken_at(patch, queens_runs.PlacementSet, "add", call)
            first = queens(10_000, 4, checkpoint=path)
            assert first.status == js.Status.INTERRUPTED
        else:
            first = queens(10_000, call, checkpoint=path)
        assert len(first.solutions) < 4
    assert_same(queens(10_000, 4, resume=path), whole)


def test_other_placements_are_refused(tmp_path):
    """Of more queens, or others that count as different, or found in another way."""
    path = tmp_path / "run.npz"
    queens(max_steps=3, checkpoint=path)
    for n, options, what in (
        (13, {}, "instance"),
        (12, {"distinct": "symmetry"}, "configuration"),
        (10_000, {}, "instance"),
    ):
        with pytest.raises(js.CheckpointError, match=f"of {what} [0-9a-f]+, expected [0-9a-f]+; "):
            queens(n, resume=path, **options)
    with pytest.raises(FileExistsError, match="resume it or remove it"):
        queens(checkpoint=path)


@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
@pytest.mark.parametrize("call", [2, 3])
def test_several_instances_continue(solver, call, tmp_path, monkeypatch):
    """From a chunk in the middle, with the pace that they had."""
    path, whole = tmp_path / "run.npz", solver(checkpoint=tmp_path / "whole.npz")
    with monkeypatch.context() as patch:
        broken_at(patch, stacked._Runs, "advance", call)
        first = solver(checkpoint=path)
    assert (first.status, first.nit < 300) == (js.Status.INTERRUPTED, True)
    found = solver(checkpoint=path, resume=True)
    assert (found.nit, found.nfev, found.status) == (300, whole.nfev, js.Status.MAX_STEPS)
    np.testing.assert_array_equal(found.fun, whole.fun)
    chex.assert_trees_all_equal(arrays_of(path), arrays_of(tmp_path / "whole.npz"))
    again = solver(resume=path)
    assert again.nit == 300 and again.fun.tolist() == whole.fun.tolist()


@pytest.mark.devices(2)
@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
def test_several_instances_on_other_devices(solver, tmp_path, monkeypatch):
    path, whole = tmp_path / "run.npz", tmp_path / "whole.npz"
    solver(checkpoint=whole)
    with monkeypatch.context() as patch:
        broken_at(patch, stacked._Runs, "advance", 3)
        solver(checkpoint=path, devices=2)
    solver(checkpoint=path, resume=True)
    chex.assert_trees_all_equal(arrays_of(path), arrays_of(whole))


def test_other_instances_are_refused(tmp_path):
    """And another number of steps where cooling depends on it."""
    path = tmp_path / "run.npz"
    SOLVERS["tours"](checkpoint=path, max_steps=20)
    with pytest.raises(js.CheckpointError, match="of configuration"):
        SOLVERS["tours"](resume=path, max_steps=30)
    with pytest.raises(js.CheckpointError, match="of instance"):
        js.solve_tsp(POINTS[::-1], 2, **STACKED | {"max_steps": 20}, resume=path)
    with pytest.raises(js.CheckpointError, match="of instance"):
        SOLVERS["assignments"](resume=path)


def test_several_instances_by_the_clock(tmp_path):
    """What is left of the seconds, and no hotter than before."""
    path, options = tmp_path / "run.npz", {"max_steps": None, "max_seconds": 0.4}
    first = SOLVERS["tours"](checkpoint=path, **options)
    again = SOLVERS["tours"](checkpoint=path, **options, resume=True)
    assert again.nit == first.nit  # no time is left
    longer = SOLVERS["tours"](resume=path, max_steps=None, max_seconds=0.8)
    assert longer.nit > first.nit and (longer.fun <= first.fun).all()


def test_checkpoints_are_written_after_chunks(tmp_path, monkeypatch):
    """Not only at the end, if they are due."""
    written, write = [], checkpoints.write
    monkeypatch.setattr(checkpoints, "SHARE", 1e9)
    monkeypatch.setattr(checkpoints, "write", lambda *given: written.append(write(*given)))
    for number, solver in enumerate((*SOLVERS.values(), queens)):
        written.clear()
        solver(checkpoint=tmp_path / f"{number}.npz", checkpoint_every=0)
        assert len(written) > 2
