"""What the one-line solvers hand on: starts, callbacks, histories, forbidden edges."""

import functools
import itertools

import jax.numpy as jnp
import numpy as np
import pytest

import jaxopt_search as js

POINTS = np.random.default_rng(4).random((13, 2))
SIZES = 13
FLOW, DISTANCE = np.random.default_rng(4).integers(0, 30, (2, SIZES, SIZES))
QUICK = {"max_steps": 40, "num_searches": 4, "devices": 1}
SOLVERS = {
    "tsp": lambda **options: js.solve_tsp(POINTS, **QUICK | options),
    "tabu": lambda **options: js.solve_qap(FLOW, DISTANCE, **QUICK | options),
    "annealing": lambda **options: js.solve_qap(
        FLOW, DISTANCE, method="annealing", **QUICK | options
    ),
}
both = pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)


@both
def test_searches_start_where_they_are_told_to(solver):
    """One solution or several; the first search starts from the constructed one all the same."""
    ways = np.random.default_rng(1).permuted(np.tile(np.arange(SIZES), (3, 1)), axis=1)
    plain = solver(max_steps=0)
    several = solver(max_steps=0, initial=ways)
    np.testing.assert_array_equal(several.solutions[1:], ways)
    np.testing.assert_array_equal(several.solutions[0], plain.solutions[0])
    one = solver(max_steps=0, initial=ways[1].tolist())
    np.testing.assert_array_equal(one.solutions[1], ways[1])
    assert solver(max_steps=0, initial=ways[2], num_searches=1).x.tolist() == ways[2].tolist()


@both
@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"initial": np.arange(12)}, r"initial has shape \(12,\), expected \(13,\) or \(B, 13\)"),
        ({"initial": np.zeros((1, 2, 13))}, r"initial has shape \(1, 2, 13\)"),
        ({"initial": np.tile(np.arange(13), (4, 1))}, "initial holds 4 solutions, expected fewer"),
        ({"initial": [0] * 13}, r"^initial holds 0 twice"),
        ({"callback": 5}, "callback is a int, expected a function or None"),
        ({"history_size": 1}, "history_size is 1"),
    ],
)
def test_bad_options_are_refused(solver, options, text):
    with pytest.raises((ValueError, TypeError), match=text) as caught:
        solver(**options)
    assert "\n" not in str(caught.value)


@both
def test_a_callback_sees_the_run_and_can_end_it(solver):
    """True ends it, and nothing else does; histories are as short as is asked for."""
    reports = []
    result = solver(callback=reports.append, history_size=2)
    assert reports[-1].step == result.nit == 40 and reports[-1].fun == result.fun
    assert sorted(reports[-1].x.tolist()) == list(range(SIZES))
    assert len(result.history) <= 3
    ended = solver(callback=lambda report: True)
    assert (ended.status, ended.nit) == (js.Status.CALLBACK, 0)


def test_forbidden_edges_are_avoided():
    """Without them the tour along the line is the only one that is left."""
    distances = np.full((8, 8), np.inf)
    for i in range(8):
        distances[i, (i + 1) % 8] = distances[(i + 1) % 8, i] = 10
    result = js.solve_tsp(distances, forbidden="inf", **QUICK | {"max_steps": 2000})
    assert result.feasible and result.fun == 80
    with pytest.raises(ValueError, match="forbidden is 'inf' with a TSPInstance, expected None"):
        js.solve_tsp(js.datasets.grid_tsp(2, 2), forbidden="inf")
    with pytest.raises(ValueError, match="forbidden 'inf' with metric 'GEO'"):
        js.solve_tsp(POINTS, metric="GEO", forbidden="inf")


def highest(flow, distance):
    orders = map(np.array, itertools.permutations(range(len(flow))))
    return max((flow * distance[np.ix_(order, order)]).sum() for order in orders)


@pytest.mark.parametrize("kind", ["matrices", "instance", "booleans", "unsigned"])
def test_a_qap_is_maximized(kind):
    """What is found and shown is the sum itself; its highest value is known by brute force."""
    flow, distance = np.abs(FLOW[:6, :6]), DISTANCE[:6, :6]
    if kind == "booleans":
        flow = flow > 15
    if kind == "unsigned":
        flow = flow.astype(np.uint8)
    best, arguments = highest(flow, distance), (flow, distance)
    if kind == "instance":
        arguments = (js.datasets.QAPInstance(name="", flow=flow, distance=distance, best_known=5),)
    reports = []
    options = {"target": int(best), "callback": reports.append}
    result = js.solve_qap(*arguments, maximize=True, **QUICK | options)
    assert (result.fun, result.status, result.gap) == (best, js.Status.TARGET, None)
    assert result.costs.max() == best == result.history[-1].best == reports[-1].fun


def test_maximizing_refuses_a_problem():
    with pytest.raises(ValueError, match="maximize is True with a QAP, expected flows"):
        js.solve_qap(js.qap(FLOW, DISTANCE), maximize=True)


@pytest.mark.parametrize("option", ["initial", "callback", "forbidden", "state", "exchange"])
def test_several_instances_have_no_such_options(option):
    given = {option: print if option == "callback" else "inf"}
    with pytest.raises(ValueError, match=f"{option} is .*, expected None for several instances"):
        js.solve_tsp([POINTS, POINTS], **given)
    if option != "forbidden":
        with pytest.raises(ValueError, match=f"{option} is .*, expected None for several"):
            js.solve_qap([FLOW], [DISTANCE], **given)


@pytest.mark.parametrize("data", ["cities", "one way", "tabu", "annealing"])
def test_a_run_is_continued(data):
    """From where its searches are, which have cooled: the best is kept, and no heat undoes them."""
    solver = {
        "cities": functools.partial(js.solve_tsp, POINTS),
        "one way": functools.partial(js.solve_tsp, np.arange(SIZES * SIZES).reshape(SIZES, -1) % 7),
        "tabu": functools.partial(js.solve_qap, FLOW, DISTANCE, method="tabu"),
        "annealing": functools.partial(js.solve_qap, FLOW, DISTANCE, method="annealing"),
    }[data]
    options = QUICK | {"num_searches": 4, "target": None, "max_steps": 200}
    first = solver(**options)
    second = solver(**options | {"max_steps": 230, "state": first.state})
    assert (second.nit, second.fun <= first.fun) == (230, True)
    if hasattr(second.search, "schedule"):
        assert float(second.search.acceptance.schedule(jnp.int32(201))) == pytest.approx(
            float(first.search.acceptance.schedule(jnp.int32(200)))
        )


@pytest.mark.parametrize("method", ["tabu", "annealing", "cities"])
def test_another_exchange(method):
    """What the user says takes the place of the solver's own."""
    exchange = js.broadcast_best(every=20)
    options = QUICK | {"num_searches": 4, "target": None, "exchange": exchange}
    if method == "cities":
        result = js.solve_tsp(POINTS, **options)
    else:
        result = js.solve_qap(FLOW, DISTANCE, method=method, **options)
    assert result.exchange is exchange
    assert len(set(result.ancestors.tolist())) == 1


def test_inexact_costs_of_integers_that_are_too_large():
    """As the error says that refuses them."""
    flow = FLOW * 10**6 + 1
    with pytest.raises(ValueError, match="use dtype='float32'"):
        js.solve_qap(flow, flow, **QUICK)
    result = js.solve_qap(flow, flow, dtype="float32", method="annealing", **QUICK)
    assert result.fun == pytest.approx((flow * flow[np.ix_(result.x, result.x)]).sum())


@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
def test_a_broken_run_continues_from_its_checkpoint(solver, tmp_path):
    """Bit for bit with max_steps; with max_seconds for what is left of them, and not heated."""
    path, options = tmp_path / "run.npz", {"max_steps": 400, "target": None}
    whole = solver(**options)
    broken = solver(**options, checkpoint=path, callback=lambda report: report.step >= 20)
    assert broken.status == js.Status.CALLBACK and 20 <= broken.nit < 400
    found = solver(**options, checkpoint=path, resume=True)
    assert (found.nit, found.fun) == (whole.nit, whole.fun)
    np.testing.assert_array_equal(found.solutions, whole.solutions)


def test_a_run_by_the_clock_continues_at_its_pace(tmp_path):
    path, reports = tmp_path / "run.npz", []
    options = QUICK | {"max_steps": None, "max_seconds": 0.6, "target": None, "checkpoint": path}
    js.solve_tsp(POINTS, **options, callback=lambda report: report.seconds > 0.5)
    result = js.solve_tsp(POINTS, **options, resume=True, callback=reports.append)
    assert reports[0].seconds > 0.5 and reports[-1].seconds < 1.1  # not 0.6 more
    start = js.solve_tsp(POINTS, **QUICK | {"target": None}, callback=lambda report: True)
    now, hottest = jnp.int32(reports[0].step), float(start.search.acceptance.schedule(jnp.int32(0)))
    assert float(result.search.acceptance.schedule(now)) < 0.5 * hottest


@pytest.mark.parametrize("solver", ["tsp", "maximize"])
def test_a_callback_keeps_notes(solver, tmp_path):
    """In addition to the solver's own, also where it is shown the opposite."""

    class Counter:
        def __init__(self):
            self.calls = 0

        def __call__(self, report):
            self.calls += 1

        def notes(self):
            return self.calls

        def recall(self, notes):
            self.calls = notes

    options = {"checkpoint": tmp_path / "run.npz", "resume": True, "target": None}
    options |= {} if solver == "tsp" else {"maximize": True}
    run, counters = SOLVERS["tsp" if solver == "tsp" else "tabu"], (Counter(), Counter())
    for counter in counters:
        run(callback=counter, **options)
    assert counters[1].calls > counters[0].calls > 0
