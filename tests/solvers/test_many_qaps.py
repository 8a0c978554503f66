"""solve_qap on several instances at once."""

import itertools

import numpy as np
import pytest

import jaxopt_search as js
from jaxopt_search.backends import Choice
from jaxopt_search.engine import stepping
from jaxopt_search.problems.qap.build import as_qaps
from jaxopt_search.problems.qap.construction import constructed_assignment

# Three instances, of which the largest has 23 or 24 facilities, share one program.
QUICK = {"max_steps": 20, "num_searches": 2, "devices": 1}


def matrices(n, seed, kind="integers"):
    """Returns asymmetric flows and distances with diagonals, [n, n] each."""
    made = np.random.default_rng((n, seed)).integers(-3, 20, (2, n, n))
    return tuple(made * 0.3 if kind == "floats" else made)


def cost(flow, distance, assignment):
    return (flow * distance[np.ix_(assignment, assignment)]).sum()


def lowest(flow, distance):
    orders = itertools.permutations(range(len(flow)))
    return min(cost(flow, distance, np.array(order)) for order in orders)


@pytest.mark.parametrize("implementation", ["native", "interpret"])
def test_tiny_instances_are_solved_to_optimality(implementation, monkeypatch):
    """Of any sizes; three instances on two devices."""
    monkeypatch.setattr(stepping, "choose", lambda *_: Choice(implementation))
    pairs = [matrices(n, i) for i, n in enumerate((6, 1, 5))]
    flows, distances = zip(*pairs, strict=True)
    result = js.solve_qap(flows, distances, max_steps=60, num_searches=4, devices=2)
    assert result.fun.tolist() == [lowest(*pair) for pair in pairs]
    assert result.fun.dtype == np.int64
    assert [one.tolist() for one in map(np.sort, result.x)] == [list(range(n)) for n in (6, 1, 5)]
    for pair, assignment, fun in zip(pairs, result.x, result.fun, strict=True):
        assert cost(*pair, assignment) == fun
    assert (result.success, result.nit) == (True, 60)
    assert result.nfev == 60 * 4 * (15 + 0 + 10)
    assert result.env["implementation"] == implementation


def test_one_fractional_instance_makes_all_so():
    """All stand in arrays of one dtype; costs are those of the matrices as given."""
    flow, distance = matrices(5, 0)
    pairs = [(flow + 30_000, distance + 30_000), matrices(6, 1, "floats")]
    result = js.solve_qap(*map(list, zip(*pairs, strict=True)), **QUICK | {"max_steps": 60})
    assert result.fun.dtype == np.float64
    for problem, pair in zip(as_qaps(*zip(*pairs, strict=True)), pairs, strict=True):
        order = np.arange(problem.n)[::-1].astype(np.int32)
        assert problem.flow.dtype == np.float32
        in_full = problem.host.in_full(float(problem.device_cost(order)))
        assert in_full == pytest.approx(cost(*pair, order), abs=0.1)
    np.testing.assert_allclose(result.fun, [lowest(*pair) for pair in pairs], rtol=1e-6)


def test_another_list_of_the_class_compiles_nothing(compiled):
    """Nor does another limit; the result is never worse than what is constructed at first."""
    for sizes, limits in (
        ((24, 3, 4), {}),
        ((23, 1, 17), {"max_steps": None, "max_seconds": 0.02}),
    ):
        pairs = [dict(zip(("flow", "distance"), matrices(n, 0), strict=True)) for n in sizes]
        instances = [js.datasets.QAPInstance(name="", **pair) for pair in pairs]
        result = js.solve_qap(instances, key=1, **QUICK | limits)
        starts = [constructed_assignment(js.qap_from_instance(one)) for one in instances]
        floor = [one.cost(start) for one, start in zip(instances, starts, strict=True)]
        assert (result.fun <= floor).all() and result.success
        assert sizes[0] == 24 or not compiled
        compiled.clear()


def test_others_in_a_list_change_no_run():
    """Of whatever sizes, if the largest has as many facilities: these set the pace.

    Nor does the number of devices.
    """
    first, *others = [matrices(n, 1) for n in (23, 22, 24, 24, 5)]
    ways = [([first, *others[:2]], 1), ([first, *others[2:]], 1), ([first, *others[:2]], 2)]

    def solved(some, num, key=1):
        return js.solve_qap(
            *zip(*some, strict=True), key, **QUICK | {"max_steps": 60, "devices": num}
        )

    found = [solved(*way) for way in ways]
    for result in found[1:]:
        np.testing.assert_array_equal(result.x[0], found[0].x[0])
    for own, other in zip(found[0].x, found[2].x, strict=True):
        np.testing.assert_array_equal(own, other)
    another = solved(*ways[0], key=2)
    assert any((own != other).any() for own, other in zip(found[0].x, another.x, strict=True))


def test_a_list_of_one_size_is_a_stack():
    flows, distances = (
        np.stack(each) for each in zip(*(matrices(24, i) for i in range(3)), strict=True)
    )
    stacked_result = js.solve_qap(flows, distances, 5, **QUICK)
    listed = js.solve_qap(flows.tolist(), list(distances), 5, **QUICK)
    assert listed.x.shape == (3, 24)
    np.testing.assert_array_equal(stacked_result.x, listed.x)


def test_progress_shows_the_mean_cost(capsys):
    pairs = [matrices(24, i) for i in range(3)]
    result = js.solve_qap(*zip(*pairs, strict=True), show_progress=True, **QUICK)
    assert f"{result.fun.mean():.6g}" in capsys.readouterr().err


SQUARE = np.ones((2, 2))


@pytest.mark.parametrize(
    ("arguments", "options", "text"),
    [
        (([SQUARE, np.ones((3, 2))], [SQUARE, SQUARE]), {}, "instance 1: flow has shape (3, 2)"),
        (
            ([SQUARE, SQUARE], [SQUARE, np.ones((3, 3))]),
            {},
            "instance 1: distance has shape (3, 3)",
        ),
        (([SQUARE], [[[0, np.nan], [1, 0]]]), {}, "instance 0: distance[0,1] is NaN"),
        (([SQUARE, SQUARE], [SQUARE]), {}, "flow holds 2 and distance 1 matrices"),
        (([SQUARE, SQUARE], 5), {}, "flow holds 2 and distance 0 matrices"),
        (([SQUARE],), {}, "instance 0 is a ndarray, expected a QAPInstance"),
        (([js.qap(SQUARE, SQUARE)],), {}, "instance 0 is a QAP, expected a QAPInstance"),
        (([SQUARE], [SQUARE]), {"method": "annealing"}, "method is 'annealing'"),
        (([SQUARE], [SQUARE]), {"target": 3}, "target is 3"),
        (([SQUARE], [SQUARE]), {"partial_match": [[0, 0]]}, "partial_match is given"),
        (([SQUARE], [SQUARE]), {"num_searches": 0}, "num_searches is 0"),
        (([SQUARE], [SQUARE]), {"max_steps": -1}, "max_steps is -1"),
        ((np.ones((0, 3, 3)), np.ones((0, 3, 3))), {}, "flow holds 0 and distance 0 matrices"),
    ],
)
def test_bad_lists_are_refused(arguments, options, text):
    """In one line that says which instance is wrong."""
    with pytest.raises((ValueError, TypeError)) as caught:
        js.solve_qap(*arguments, **{"max_steps": 5} | options)
    assert text in str(caught.value) and "\n" not in str(caught.value)
