"""Sets of placements: all there are and no others, the same for a key, and ends of every kind."""

import functools

import jax
import numpy as np
import pytest
from probes import refuses
from queens import all_valid, assert_valid

import jaxopt_search as js
from jaxopt_search.problems.queens.symmetry import canonical
from jaxopt_search.solvers import queens_runs

AMPLE = {"max_seconds": 300.0, "devices": 1}


def as_set(placements):
    return set(map(tuple, placements.tolist()))


def test_all_placements_are_found():
    """The placements of a backtracking enumeration, each once, though some are found again."""
    n, number = 9, 352
    result = js.solve_nqueens(n, number, **AMPLE)
    assert (result.success, result.status) == (True, js.Status.TARGET)
    assert (result.solutions.shape, result.solutions.dtype) == ((number, n), np.int16)
    assert as_set(result.solutions) == set(all_valid(n))
    assert result.num_found > number
    assert f"{number} of {number} placements were found" in result.message


def test_all_classes_are_found():
    """Of the twelve classes of eight queens one placement each; a thirteenth there is not."""
    result = js.solve_nqueens(8, 13, distinct="symmetry", **AMPLE)
    assert not result.success
    found = [tuple(canonical(queens)) for queens in result.solutions]
    assert len(found) == 12
    assert set(found) == {tuple(canonical(np.array(queens))) for queens in all_valid(8)}
    assert result.message == "there are no more: 8 queens have 12 valid classes of placements"


@functools.cache
def ended(n, wanted):
    return js.solve_nqueens(n, wanted, max_seconds=3600, devices=1)


@pytest.mark.parametrize(("n", "wanted"), [(1, (1, 2)), (3, (1,)), (4, (2, 2**31 - 1))])
def test_no_more_than_there_are(n, wanted):
    """All there are come back, none for three queens, and without waiting for a limit."""
    there = all_valid(n)
    for number in wanted:
        result = ended(n, number)
        assert as_set(result.solutions) == set(there)
        assert result.solutions.shape == (len(there), n)
        is_enough = len(there) == number
        status = js.Status.TARGET if is_enough else js.Status.EXHAUSTED
        assert (result.success, result.status) == (is_enough, status)
        expected = f"there are no more: {n} queens have {len(there)} valid placements"
        assert result.success or result.message == expected


def test_the_known_numbers():
    """Of placements and of classes, as far as they are enumerated in no time."""
    for n in range(1, 10):
        there = all_valid(n)
        classes = {tuple(canonical(np.array(queens))) for queens in there}
        assert (queens_runs.ALL[n - 1], queens_runs.CLASSES[n - 1]) == (
            len(there),
            len(classes),
        )


@functools.cache
def many(key, devices=1):
    return js.solve_nqueens(20, 300, key, num_searches=16, max_seconds=300, devices=devices)


def test_many_placements():
    """They are valid, all different, and as many as were wanted."""
    result = many(0)
    assert (result.success, len(as_set(result.solutions))) == (True, 300)
    assert_valid(result.solutions)
    assert result.num_found >= 300
    assert 0 < result.elapsed < 300
    assert result.nit % 32 == 0


@pytest.mark.devices(2)
def test_a_set_is_a_function_of_its_key():
    """On any number of devices; another key gives another set."""
    again = js.solve_nqueens(20, 300, 0, num_searches=16, max_seconds=300, devices=1)
    for result in (again, many(0, 2)):
        np.testing.assert_array_equal(result.solutions, many(0).solutions)
        assert (result.num_found, result.nit) == (many(0).num_found, many(0).nit)
    assert len(as_set(many(1).solutions) & as_set(many(0).solutions)) < 100


@pytest.mark.parametrize(("first", "second"), [(20, 23), (10_000, 10_200)])
def test_other_sizes_compile_nothing(first, second, caplog):
    """Of one class; nor do other keys, limits, and numbers of placements of one class."""
    options = {"num_searches": 16, "devices": 1}
    js.solve_nqueens(first, 2, 0, max_seconds=300, **options)
    with jax.log_compiles():
        result = js.solve_nqueens(second, 3, 1, max_steps=1000, **options)
    assert not [record for record in caplog.records if "Compiling" in record.message]
    assert result.solutions.shape == (3, second)
    np.testing.assert_array_equal(np.sort(result.solutions), np.tile(np.arange(second), (3, 1)))
    assert js.attacking_pairs(result.solutions).tolist() == [0, 0, 0]


def test_few_numbers_of_searches():
    """The least that a plan has for few placements, then more by leaps, up to the most it has."""
    plan = queens_runs.plan_of(100, "cpu")
    numbers = [plan.num_searches_for(wanted) for wanted in (1, 4, 5, 32, 33, 10**9)]
    assert numbers == [4, 4, 32, 32, 256, 1024]
    sizes = [queens_runs.plan_of(n, "cpu")._replace(steps=0) for n in (97, 128)]
    assert sizes[0] == sizes[1]


def test_steps_run_out():
    """No step more is made, though a look is taken every 32 steps."""
    for max_steps in (0, 3, 33):
        result = js.solve_nqueens(20, 1000, num_searches=16, max_steps=max_steps, devices=1)
        assert (result.success, result.status) == (False, js.Status.MAX_STEPS)
        assert result.nit == max_steps
        assert len(result.solutions) < 1000
        assert f"{len(result.solutions)} of 1000 placements were found" in result.message
        assert_valid(result.solutions)


@pytest.mark.parametrize("n", [20, 10_000])
def test_time_runs_out(n):
    """At once."""
    result = js.solve_nqueens(n, 100_000, max_seconds=0, devices=1)
    assert (result.success, result.status) == (False, js.Status.MAX_SECONDS)
    assert len(result.solutions) < 100_000


def test_many_queens_are_repaired():
    """Beyond what searches are good for; the same for a key, another one for another."""
    n = 10_000
    results = [js.solve_nqueens(n, 2, key, max_seconds=300, devices=1) for key in (3, 3, 4)]
    for result in results:
        assert (result.success, result.num_found) == (True, 2)
        assert result.solutions.dtype == np.int16
        np.testing.assert_array_equal(np.sort(result.solutions), np.tile(np.arange(n), (2, 1)))
        assert js.attacking_pairs(result.solutions).tolist() == [0, 0]
    rows = np.concatenate([result.solutions for result in results])
    np.testing.assert_array_equal(rows[:2], rows[2:4])
    assert len(as_set(rows)) == 4


@pytest.mark.parametrize(("n", "dtype"), [(2**15 - 1, np.int16), (2**15, np.int32)])
def test_types_of_placements(n, dtype):
    """Columns up to 2**15 - 1 fit; here there is no time for any."""
    result = js.solve_nqueens(n, 3, max_seconds=0, devices=1)
    assert (result.solutions.shape, result.solutions.dtype) == ((0, n), dtype)


def test_rounds_of_repair_run_out():
    """Eight rounds are far too few for this many queens: none is given back."""
    for max_steps in (0, 8):
        result = js.solve_nqueens(10_000, max_steps=max_steps, devices=1)
        assert (result.status, result.nit) == (js.Status.MAX_STEPS, max_steps)
        assert (result.success, len(result.solutions)) == (False, 0)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"n": 0}, "n is 0, expected an integer from 1"),
        ({"num_solutions": 1.5}, "num_solutions is 1.5"),
        ({"distinct": "all"}, "distinct is 'all', expected one of raw, symmetry"),
        ({"max_steps": -1}, "max_steps is -1"),
        ({"max_seconds": float("nan")}, "max_seconds is nan"),
        ({"num_searches": 0, "n": 10_000}, "num_searches is 0"),
    ],
    ids=str,
)
def test_wrong_arguments_are_refused(arguments, text):
    """By name, before anything is compiled."""
    with refuses(ValueError, text):
        js.solve_nqueens(**({"n": 8, "max_steps": 1, "devices": 1} | arguments))


@pytest.mark.parametrize(("n", "wanted", "found"), [(8, 200, 92), (10_000, 2, 2)])
def test_progress(n, wanted, found, capsys):
    """A line says that it compiles, one how it ended; nothing is shown by default."""
    js.solve_nqueens(n, wanted, max_seconds=60, devices=1)
    assert capsys.readouterr().err == ""
    js.solve_nqueens(n, wanted, max_seconds=60, devices=1, show_progress=True)
    first, *_, last = capsys.readouterr().err.splitlines()
    assert first.startswith("compiling (")
    assert last.endswith(f" s  {found} of {wanted} placements")


def interrupt(*arguments, **options):
    raise KeyboardInterrupt


@pytest.mark.parametrize("n", [8, 10_000])
def test_ctrl_c_before_the_search(n, monkeypatch):
    """It is raised, as by `solve`: there is no result without a search."""
    monkeypatch.setattr(queens_runs, "Program", interrupt)
    with pytest.raises(KeyboardInterrupt):
        js.solve_nqueens(n, max_seconds=60, devices=1)


@pytest.mark.parametrize("n", [20, 10_000])
def test_ctrl_c_during_the_search(n, monkeypatch, capsys):
    """What was found is returned, and the last line tells how much that is."""
    add, calls = queens_runs.PlacementSet.add, []

    def interrupted(finds, queens, words):
        calls.append(len(queens))
        if len(calls) == 2:
            raise KeyboardInterrupt
        add(finds, queens, words)

    monkeypatch.setattr(queens_runs.PlacementSet, "add", interrupted)
    result = js.solve_nqueens(n, 10**6, max_seconds=300, devices=1, show_progress=True)
    assert (result.status, result.success) == (js.Status.INTERRUPTED, False)
    assert len(result.solutions) == result.num_found == calls[0]
    assert result.message.endswith("placements were found; interrupted")
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.endswith(f" s  {calls[0]} of 1000000 placements")
