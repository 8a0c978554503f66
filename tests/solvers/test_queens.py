"""Sets of placements: all there are and no others, the same for a key, and ends of every kind.

Boards of up to 16 queens, searched by 16 searches, share programs, and so do those of 10,000.
"""

import functools

import numpy as np
import pytest
from probes import broken_at, refuses
from queens import all_valid, assert_valid

import jaxopt_search as js
from jaxopt_search.engine import memory
from jaxopt_search.problems.queens.symmetry import canonical
from jaxopt_search.solvers import queens as runs_of_queens

MANY = 10_000


def queens(n=12, wanted=400, key=5, **options):
    limits = {"max_steps": 500} if n < MANY and "max_seconds" not in options else {}
    limits = limits or {"max_seconds": 300}
    return js.solve_nqueens(n, wanted, key, **{"num_searches": 16, "devices": 1} | limits | options)


def as_set(placements):
    return set(map(tuple, placements.tolist()))


def test_all_placements_are_found():
    """The placements of a backtracking enumeration, each once, though some are found again."""
    n, number = 8, 92
    result = queens(n, number, max_seconds=300)
    assert (result.success, result.status) == (True, js.Status.TARGET)
    assert (result.solutions.shape, result.solutions.dtype) == ((number, n), np.int16)
    assert as_set(result.solutions) == set(all_valid(n))
    assert result.num_found > number
    assert f"{number} of {number} placements were found" in result.message


def test_all_classes_are_found():
    """Of the twelve classes of eight queens one placement each; a thirteenth there is not."""
    result = queens(8, 13, distinct="symmetry", max_seconds=300)
    assert not result.success
    found = [tuple(canonical(queens)) for queens in result.solutions]
    assert len(found) == 12
    assert set(found) == {tuple(canonical(np.array(queens))) for queens in all_valid(8)}
    assert result.message == "there are no more: 8 queens have 12 valid classes of placements"


def test_no_more_than_there_are():
    """All there are come back, none for three queens, and without waiting for a limit."""
    for n, number in ((1, 1), (1, 2), (3, 1), (4, 2), (4, 2**31 - 1)):
        there = all_valid(n)
        result = queens(n, number, max_seconds=3600)
        assert as_set(result.solutions) == set(there)
        assert result.solutions.shape == (len(there), n)
        is_enough = len(there) == number
        status = js.Status.TARGET if is_enough else js.Status.EXHAUSTED
        assert (result.success, result.status) == (is_enough, status)
        expected = f"there are no more: {n} queens have {len(there)} valid placements"
        assert result.success or result.message == expected


@functools.cache
def many(key, devices=1):
    return queens(12, 300, key, max_seconds=300, devices=devices)


@pytest.mark.devices(2)
def test_a_set_is_a_function_of_its_key():
    """On any number of devices, valid and all different; another key gives another set."""
    result = many(0)
    assert (result.success, len(as_set(result.solutions))) == (True, 300)
    assert_valid(result.solutions)
    assert 0 < result.elapsed < 300 and result.nit % 32 == 0
    again = queens(12, 300, 0, max_seconds=300)
    for other in (again, many(0, 2)):
        np.testing.assert_array_equal(other.solutions, result.solutions)
        assert (other.num_found, other.nit) == (result.num_found, result.nit)
    assert len(as_set(many(1).solutions) & as_set(result.solutions)) < 100


@pytest.mark.devices(2)
@pytest.mark.parametrize(
    ("first", "second", "devices"), [(12, 15, 1), (9, 11, 2), (MANY, 10_200, 1)]
)
def test_other_sizes_compile_nothing(first, second, devices, compiled):
    """Of one class; nor do other keys, limits, and numbers of placements of one class."""
    queens(first, 2, 0, devices=devices)
    compiled.clear()
    result = queens(second, 3, 1, max_steps=1000, devices=devices)
    assert not compiled
    assert result.solutions.shape == (3, second)
    np.testing.assert_array_equal(np.sort(result.solutions), np.tile(np.arange(second), (3, 1)))
    assert js.attacking_pairs(result.solutions).tolist() == [0, 0, 0]


def test_steps_run_out():
    """No step more is made, though a look is taken every 32 steps."""
    assert queens(12, 1000, max_seconds=0).status == js.Status.MAX_SECONDS
    for max_steps in (0, 3, 33):
        result = queens(12, 1000, max_steps=max_steps)
        assert (result.success, result.status) == (False, js.Status.MAX_STEPS)
        assert result.nit == max_steps
        assert len(result.solutions) < 1000
        assert f"{len(result.solutions)} of 1000 placements were found" in result.message
        assert_valid(result.solutions)


def test_many_queens_are_repaired():
    """Beyond what searches are good for; the same for a key, another one for another."""
    results = [queens(MANY, 2, key) for key in (3, 3, 4)]
    for result in results:
        assert (result.success, result.num_found) == (True, 2)
        assert result.solutions.dtype == np.int16
        np.testing.assert_array_equal(np.sort(result.solutions), np.tile(np.arange(MANY), (2, 1)))
        assert js.attacking_pairs(result.solutions).tolist() == [0, 0]
    rows = np.concatenate([result.solutions for result in results])
    np.testing.assert_array_equal(rows[:2], rows[2:4])
    assert len(as_set(rows)) == 4


def test_rounds_of_repair_run_out():
    """Eight rounds are far too few for this many queens: none is given back."""
    for max_steps in (0, 8):
        result = js.solve_nqueens(MANY, max_steps=max_steps, devices=1)
        assert (result.status, result.nit) == (js.Status.MAX_STEPS, max_steps)
        assert (result.success, len(result.solutions)) == (False, 0)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"n": 0}, "n is 0, expected an integer from 1"),
        ({"num_solutions": 1.5}, "num_solutions is 1.5"),
        ({"distinct": "all"}, "distinct is 'all', expected one of raw, symmetry"),
        ({"max_steps": -1}, "max_steps is -1"),
    ],
    ids=str,
)
def test_wrong_arguments_are_refused(arguments, text):
    """By name, before anything is compiled."""
    with refuses(ValueError, text):
        js.solve_nqueens(**({"n": 8, "max_steps": 1, "devices": 1} | arguments))


@pytest.mark.parametrize("n", [12, MANY])
def test_ctrl_c_during_the_search(n, monkeypatch, capsys):
    """What was found is returned, and the last line tells how much that is.

    Before the search it is raised, as by `solve`: there is no result without one.
    """
    part = runs_of_queens.Searches if n < MANY else runs_of_queens.Repairs
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        broken_at(patch, part, "begin", 1)
        queens(n)
    broken_at(monkeypatch, runs_of_queens.PlacementSet, "add", 2)
    result = queens(n, 10**6, max_seconds=300, show_progress=True)
    assert (result.status, result.success) == (js.Status.INTERRUPTED, False)
    assert 0 < len(result.solutions) == result.num_found
    assert result.message.endswith("placements were found; interrupted")
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.endswith(f" s  {result.num_found} of 1000000 placements")


def assert_same(found, whole):
    """All that a set of placements tells but how long it took."""
    for name in ("solutions", "num_found", "nit", "status", "success", "message"):
        np.testing.assert_array_equal(getattr(found, name), getattr(whole, name), name)


@pytest.mark.parametrize("cut", [0, 64, 70])
def test_placements_are_found_as_if_nothing_had_been_broken(cut, tmp_path):
    """After a limit of steps, at a look or between two, where one looks once more."""
    path, whole = tmp_path / "run.npz", queens()
    first = queens(max_steps=cut, checkpoint=path)
    assert first.nit == cut and len(first.solutions) < len(whole.solutions)
    again = queens(max_steps=cut, resume=path)
    assert_same(again, first)
    assert_same(queens(checkpoint=path, resume=True), whole)


@pytest.mark.devices(2)
def test_placements_on_other_devices(tmp_path):
    """And with another number of searches given, which counts at the start only."""
    path, whole = tmp_path / "run.npz", queens()
    queens(checkpoint=path, max_steps=40, devices=2)
    queens(checkpoint=path, max_steps=100, devices=1, resume=True, num_searches=3)
    assert_same(queens(resume=path, num_searches=None, devices=2), whole)


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


@pytest.mark.parametrize(("method", "call"), [("add", 2), ("snapshot", 3)])
def test_placements_that_are_repaired(method, call, tmp_path, monkeypatch):
    """One after the other; none is left out and none comes twice."""
    path, whole = tmp_path / "run.npz", queens(MANY, 4)
    if method == "add":
        with monkeypatch.context() as patch:
            broken_at(patch, runs_of_queens.PlacementSet, "add", call)
            first = queens(MANY, 4, checkpoint=path)
        assert first.status == js.Status.INTERRUPTED
    else:
        first = queens(MANY, call, checkpoint=path)
    assert len(first.solutions) < 4
    assert_same(queens(MANY, 4, resume=path), whole)


def test_other_placements_are_refused(tmp_path):
    """Of more queens, or others that count as different, or found in another way."""
    path = tmp_path / "run.npz"
    queens(max_steps=3, checkpoint=path)
    for n, options, what in (
        (13, {}, "instance"),
        (12, {"distinct": "symmetry"}, "configuration"),
        (MANY, {}, "instance"),
    ):
        with pytest.raises(js.CheckpointError, match=f"of {what} [0-9a-f]+, expected [0-9a-f]+; "):
            queens(n, resume=path, **options)
    with pytest.raises(FileExistsError, match="resume it or remove it"):
        queens(checkpoint=path)


def test_repairs_that_do_not_fit_are_refused(monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda device: 1000)
    with refuses(MemoryError, "n is 10000", "use fewer queens"):
        queens(MANY, 1)
