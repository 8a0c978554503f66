"""Checkpoints: a run continues bit for bit, whatever ended it; files are whole, or refused."""

import dataclasses
import os
import signal
import textwrap
import time
import warnings
from typing import Any

import chex
import jax.numpy as jnp
import numpy as np
import pytest
from cases import matrix_tsp, small_qap

import jaxopt_search as js
from jaxopt_search.driver import checkpoints
from jaxopt_search.engine.fingerprints import fingerprint

COOLING = js.geometric(300.0, 0.95, 20)
PROBLEM = matrix_tsp(14)
SEARCH = js.simulated_annealing(js.Relocate(), COOLING)
FAST = {"num_searches": 5, "check_every": 12, "checkpoint_every": 0}
COLORING = js.graph_coloring([[0, 1], [1, 2], [2, 3], [3, 0], [0, 2], [1, 3]], 3)  # one conflict
RARELY = {"checkpoint_every": 1000}
RUNS = {
    "annealing": (PROBLEM, SEARCH, js.broadcast_best(every=7)),
    "floats": (matrix_tsp(14, dtype=np.float64), SEARCH, js.resample(COOLING, every=9)),
    "islands": (small_qap(6), js.genetic(population_size=4), js.ring(every=5)),
    "a heuristic of successors": (
        COLORING,
        js.tabu_search(js.Guided(js.successors.ConflictsOnly()), ties="random"),
        None,
    ),
}


def solve(kind, max_steps, **options):
    problem, search, exchange = RUNS[kind]
    options = FAST | {"key": 3, "exchange": exchange, "devices": 1} | options
    return js.solve(problem, search, max_steps=max_steps, **options)


@pytest.mark.devices(3)
@pytest.mark.parametrize("kind", RUNS)
def test_a_run_continues_as_if_it_had_not_been_broken(kind, tmp_path):
    """Twice, in chunks of other sizes, on other devices, and whatever key is given."""
    path, (second, third) = tmp_path / "run.npz", (3, 2) if kind == "annealing" else (1, 1)
    whole = solve(kind, 100)
    solve(kind, 21, checkpoint=path, chunk_steps=8)
    solve(kind, 50, resume=path, checkpoint=path, devices=second, key=9, num_searches=1)
    found = solve(kind, 100, resume=path, devices=third)
    chex.assert_trees_all_equal(*(end.state._replace(info=None) for end in (whole, found)))
    for name in ("fun", "nit", "nfev", "first_hit", "gap", "status"):
        assert getattr(whole, name) == getattr(found, name), name
    for name in ("x", "costs", "solutions", "ancestors"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(found, name))
    steps = [line.step for line in found.history]
    assert steps[:3] == [0, 8, 16] and len(set(steps)) == len(steps)
    found.x[0] = 1  # it can be written to


AS_GIVEN = {
    "a path": lambda **run: js.solve_tsp(
        np.arange(18).reshape(9, 2) ** 2 % 37, start=2, end=3, initial=range(9), **run
    ),
    "fixed colors": lambda **run: js.solve_coloring(
        [[0, 1], [1, 2], [2, 0]], 2, fixed=[[0, 1]], **run
    ),
}


@pytest.mark.parametrize("kind", AS_GIVEN)
def test_a_run_continues_whose_device_has_other_solutions(kind, tmp_path):
    """They have a city more than the user's, or lack what is fixed; a start may have other ends."""
    options, path = {"num_searches": 1, "max_steps": 20}, tmp_path / "run.npz"
    solve = AS_GIVEN[kind]
    whole = solve(**options)
    solve(checkpoint=path, callback=lambda report: report.step == 0, **options)
    found = solve(checkpoint=path, resume=True, **options)
    assert (found.nit, found.fun, *found.x) == (whole.nit, whole.fun, *whole.x)


def test_a_target_is_met_at_the_same_step(tmp_path):
    """By step 20, which the test of step 24 finds out; it may be another target, too."""
    cut, path, options = 21, tmp_path / "run.npz", {"target": 2990}
    search = js.simulated_annealing(js.Relocate(), 300.0, moves_per_search=2)

    def run(**more):
        return js.solve(PROBLEM, search, 3, **FAST | options | more)

    whole = run(max_steps=100)
    assert (whole.status, whole.nit) == (js.Status.TARGET, 24)
    run(max_steps=cut, checkpoint=path)
    found = run(max_steps=100, resume=path)
    assert (found.nit, found.first_hit) == (whole.nit, whole.first_hit)
    chex.assert_trees_all_equal(*(end.state._replace(info=None) for end in (whole, found)))
    assert run(resume=path, target=10**9).nit == cut


def test_seconds_count_on(tmp_path):
    """What is left of a limit, and what was searched before."""
    path = tmp_path / "run.npz"
    solve("annealing", 10, checkpoint=path, callback=lambda report: time.sleep(0.05))
    reports = []
    result = solve("annealing", None, resume=path, max_seconds=0.04, callback=reports.append)
    assert (result.nit, result.status) == (10, js.Status.MAX_SECONDS)
    assert reports[0].seconds > 0.1


def test_other_runs_are_refused(tmp_path):
    """With both fingerprints; an instance of other numbers is another one."""
    path = tmp_path / "run.npz"
    solve("annealing", 5, checkpoint=path)

    def refused(match, problem=PROBLEM, search=SEARCH, **options):
        with pytest.raises(js.CheckpointError, match=match) as caught:
            js.solve(problem, search, max_steps=9, resume=path, **FAST | options)
        assert "\n" not in str(caught.value)

    numbers = r"[0-9a-f]{16}, expected [0-9a-f]{16}"
    exchange = {"exchange": js.broadcast_best(every=7)}
    refused(f"instance {numbers}", matrix_tsp(14, seed=5), **exchange)
    refused(
        f"configuration {numbers}", search=js.simulated_annealing(js.Relocate(), 1.0), **exchange
    )
    refused(f"configuration {numbers}", exchange=js.broadcast_best(every=8))
    refused(f"configuration {numbers}", check_every=13, **exchange)


@js.pytree
@dataclasses.dataclass(frozen=True)
class Static:
    """A pytree with a static part."""

    part: Any = dataclasses.field(metadata={"static": True})


def made(code, name="f"):
    """Returns what code, as in a file of one's own, defines."""
    own = {"__name__": "a_file_of_ones_own"}
    exec(textwrap.dedent(code), own)
    return own[name]


CHANGES = {
    "a function's code": ("def f(x): return {} * x", 1, 50),
    "a default": ("def f(x, k={}): return k", 1, 2),
    "a captured value": ("def g(k): return lambda x: k * x\nf = g({})", 1, 2),
    "a compiled function": ("import jax\nf = jax.jit(lambda x: {} * x)", 1, 2),
    "the name of a class": ("class A: pass\nclass B: pass\nf = {}()", "A", "B"),
    "what an object holds": ("class Slotted:\n __slots__ = 'a'\nf = Slotted()\nf.a = {}", 1, 2),
    "a function of the library": ("import jax\nf = jax.numpy.{}", "sin", "cos"),
    "a partial function": ("import functools\nf = functools.partial(pow, {})", 2.0, 3.0),
    "a method": ("class A(int):\n def g(self): pass\nf = A({}).g", 1, 2),
    "what holds itself": ("class A: pass\nf = A()\nf.a = f, {}", 1, 2),
}


@pytest.mark.parametrize("change", CHANGES)
def test_static_parts_are_known_by_names_code_and_values(change):
    """Wherever the code is: in other lines, with other comments."""
    code, *values = CHANGES[change]
    first, second = (fingerprint(Static(made(code.format(value)))) for value in values)
    assert first != second
    assert fingerprint(Static(made("# a comment\n\n" + code.format(values[0])))) == first
    leaves = [fingerprint((made(code.format(value)), 5)) for value in (*values, values[0])]
    assert leaves[0] == leaves[2] != leaves[1]


def test_what_nothing_tells_from_another_one_is_refused():
    """By a line that names it, before anything is searched."""
    number = (one for one in range(3))
    with pytest.raises(TypeError, match="a generator in cooling from another one"):

        def cooling(step):
            return jnp.float32(1.0) if number else step

        fingerprint(js.simulated_annealing(js.Relocate(), cooling))


def test_schedules_of_other_libraries_can_be_kept():
    """Closures with variables that have no value included."""
    optax = pytest.importorskip("optax")
    rates = [optax.exponential_decay(1.0, 10, rate) for rate in (0.5, 0.5, 0.6)]
    found = [fingerprint(js.simulated_annealing(js.Relocate(), rate)) for rate in rates]
    assert found[0] == found[1] != found[2]


def test_of_equal_numbers_on_the_device_the_units_count():
    distance = np.random.default_rng(0).integers(0, 1000, (5, 5))
    tours = [js.tsp(unit * (distance + distance.T)) for unit in (10**7, 10**8)]
    chex.assert_trees_all_equal(tours[0].matrix, tours[1].matrix)
    search = js.simulated_annealing(js.Relocate(), 1.0)
    names = [checkpoints.identity_of(one, search, None, 9).instance for one in tours]
    assert names[0] != names[1]


def steered(to, max_steps, search=None, exchange=None, **files):
    """A run in which a callback says once, after 24 steps, how it continues."""

    def once(report):
        return js.Steer(*to) if report.step == 24 else None

    search = search or js.simulated_annealing(js.Relocate(), 300.0)
    options = FAST | {"exchange": exchange, "max_steps": max_steps, "chunk_steps": 12} | files
    return js.solve(PROBLEM, search, 3, callback=once, **options)


def test_a_run_continues_as_a_callback_has_steered_it(tmp_path):
    """By numbers that the file has, or static parts that the call has to give."""
    colder = js.simulated_annealing(js.Relocate(), 20.0)
    for to in ((colder, None), (colder, js.broadcast_best(every=7))):
        path = tmp_path / f"{to[1] is None}.npz"
        whole = steered(to, 60)
        steered(to, 36, checkpoint=path)
        given = {"resume": path}
        if to[1] is not None:
            with pytest.raises(js.CheckpointError, match="of configuration"):
                steered(to, 60, **given)
            given |= {"search": to[0], "exchange": to[1]}
        found = steered(to, 60, **given)
        chex.assert_trees_all_equal(*(end.state._replace(info=None) for end in (whole, found)))


def test_what_happens_outside_a_run_ends_no_checkpoints(tmp_path, monkeypatch):
    """A process that goes elsewhere still writes to the same file; nor does its date count."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)

    def leave(report):
        if report.step == 8:
            os.chdir("elsewhere")
            os.utime(tmp_path / "run.npz", (1, 1))

    solve("annealing", 21, checkpoint="run.npz", chunk_steps=8, callback=leave)
    assert solve("annealing", 21, resume=tmp_path / "run.npz").nit == 21
    assert not list((tmp_path / "elsewhere").iterdir())


def test_the_same_line_continues_whatever_it_began_with(tmp_path):
    """Start solutions and states count at the start only; NumPy's numbers are numbers."""
    first = solve("annealing", 30)
    for number, start in enumerate(({"initial": first.x}, {"state": first.state})):
        path = tmp_path / f"{number}.npz"
        options = start | {"checkpoint": path, "resume": True, "target": np.int32(1)}
        solve("annealing", 60, **options)
        assert solve("annealing", 90, **options).nit == 90


def test_another_patience_continues(tmp_path):
    path = tmp_path / "run.npz"
    frozen = js.simulated_annealing(js.Relocate(), 1e-9)

    def run(patience, max_steps=10_000, **more):
        return js.solve(PROBLEM, frozen, patience=patience, max_steps=max_steps, **FAST, **more)

    first = run(300, checkpoint=path)
    assert first.status == js.Status.PATIENCE
    assert run(300, resume=path).nit == first.nit
    longer = run(900, resume=path)
    assert longer.status == js.Status.PATIENCE and longer.nit == run(900).nit > first.nit


def test_a_new_target_may_be_met_where_an_exchange_was():
    """At the first look, as anywhere else."""
    first = solve("annealing", 21)  # the third exchange
    again = solve("annealing", 100, state=first.state, target=first.fun)
    assert (again.nit, again.status, again.first_hit.step) == (21, js.Status.TARGET, 21)


def test_notes_that_are_no_json_are_refused_before_a_search(tmp_path):
    class Watch:
        def __call__(self, report):
            raise AssertionError("it has begun")

        def notes(self):
            return {"x": np.zeros(2)}

    with pytest.raises(TypeError, match=r"callback.notes\(\) returns what JSON cannot hold"):
        solve("annealing", 9, checkpoint=tmp_path / "run.npz", callback=Watch())


def test_a_file_that_has_come_since_is_left_alone(tmp_path):
    """Of two runs with one file, the first one keeps it, and the other one says so."""
    path = tmp_path / "run.npz"

    def another(report):
        path.write_bytes(b"of another run")

    with pytest.warns(UserWarning, match=r"another run has written .*run\.npz"):
        solve("annealing", 9, checkpoint=path, **RARELY, callback=another)
    assert path.read_bytes() == b"of another run"


def test_a_file_that_comes_while_a_run_begins(tmp_path, monkeypatch):
    """Is not taken for the one that is resumed, which was not there."""
    path, plain = tmp_path / "run.npz", checkpoints.Keeper

    def late(*args):
        path.write_bytes(b"of another run")
        return plain(*args)

    monkeypatch.setattr(checkpoints, "Keeper", late)
    with pytest.raises(FileExistsError, match="resume it or remove it"):
        solve("annealing", 9, checkpoint=path, resume=True)
    assert path.read_bytes() == b"of another run"


def test_places_where_nothing_can_be_written(tmp_path):
    """Are refused at the start, before anything is compiled; and files that are not there."""
    with pytest.raises(FileNotFoundError):
        solve("annealing", 9, checkpoint=tmp_path / "none" / "run.npz")
    with pytest.raises(FileNotFoundError):
        solve("annealing", 9, resume=tmp_path / "run.npz")
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(FileExistsError):
        solve("annealing", 9, checkpoint=tmp_path / "folder.npz")
    with pytest.raises(
        ValueError, match=r"checkpoint is 'run', expected a path that ends in \.npz"
    ):
        solve("annealing", 9, checkpoint="run")
    with pytest.raises(ValueError, match="resume is True without a checkpoint"):
        solve("annealing", 9, resume=True)


def test_a_checkpoint_is_not_overwritten_by_another_run(tmp_path):
    """It is continued, if that is asked for; then nothing is lost by asking again."""
    path, options = tmp_path / "run.npz", {"checkpoint": tmp_path / "run.npz"}
    first = solve("annealing", 30, resume=True, **options)
    with pytest.raises(FileExistsError, match=r"run\.npz is there already; resume it or remove it"):
        solve("annealing", 30, **options)
    again = solve("annealing", 30, resume=True, **options)
    assert (again.nit, again.fun, again.success) == (30, first.fun, True)
    assert solve("annealing", 60, resume=path, checkpoint=tmp_path / "more.npz").nit == 60
    assert solve("annealing", 40, resume=True, **options).nit == 40


def test_a_disk_that_becomes_full(tmp_path, monkeypatch):
    """The run goes on, warns once, and the last good file stays."""
    path = tmp_path / "run.npz"
    solve("annealing", 5, checkpoint=path)
    good = path.read_bytes()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoints.np, "savez", full)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = solve("annealing", 30, checkpoint=path, resume=True, chunk_steps=5)
    assert [str(one.message) for one in caught] == [
        "no checkpoint was written: [Errno 28] No space left on device"
    ]
    assert result.nit == 30 and path.read_bytes() == good
    assert list(tmp_path.iterdir()) == [path]


def test_signals_end_with_a_checkpoint(tmp_path):
    """And with the best so far; afterwards they do what they did."""
    path, number = tmp_path / "run.npz", signal.SIGTERM

    def kill(report):
        if report.step >= 20:
            os.kill(os.getpid(), number)

    before = signal.getsignal(number)
    result = solve("annealing", 100, checkpoint=path, **RARELY, chunk_steps=10, callback=kill)
    assert (result.status, result.nit) == (js.Status.INTERRUPTED, 20)
    assert signal.getsignal(number) is before
    found, whole = solve("annealing", 100, resume=path), solve("annealing", 100)
    chex.assert_trees_all_equal(*(end.state._replace(info=None) for end in (whole, found)))


def test_an_error_of_a_callback_loses_nothing(tmp_path):
    path = tmp_path / "run.npz"

    def fail(report):
        if report.step >= 20:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        solve("annealing", 100, checkpoint=path, **RARELY, chunk_steps=10, callback=fail)
    assert solve("annealing", 20, resume=path).nit == 20
