"""solve_tsp and solve_qap on one instance: any kind of input, limits, and what they hand on.

Nearly all instances have up to 16 entries, so that those of a kind share programs.
"""

import functools
import itertools

import jax.numpy as jnp
import numpy as np
import pytest

import jaxopt_search as js
from jaxopt_search.problems.qap.construction import constructed_assignment
from jaxopt_search.problems.tsp import candidates
from jaxopt_search.problems.tsp.construction import constructed_tour

SIZE = 13
POINTS = np.random.default_rng(4).random((SIZE, 2))
FLOW, DISTANCE = np.random.default_rng(4).integers(0, 30, (2, SIZE, SIZE))
SYMMETRIC = FLOW + FLOW.T
GRID = js.datasets.grid_tsp(3, 4, spacing=7, seed=0)
QUICK = {"max_steps": 40, "num_searches": 4, "devices": 1}
SOLVERS = {
    "cities": functools.partial(js.solve_tsp, POINTS),
    "one way": functools.partial(js.solve_tsp, DISTANCE),
    "tabu": functools.partial(js.solve_qap, FLOW, DISTANCE, method="tabu"),
    "annealing": functools.partial(js.solve_qap, FLOW, DISTANCE, method="annealing"),
}


def each(*names):
    return pytest.mark.parametrize("solver", [SOLVERS[name] for name in names], ids=names)


both = each("cities", "tabu")


@pytest.mark.parametrize("kind", ["instance", "problem", "coords", "list"])
def test_any_kind_of_input(kind):
    """An instance, a TSP, coordinates and nested lists; fun is a tour's exact length."""
    data = {
        "instance": GRID,
        "problem": js.tsp_from_instance(GRID),
        "coords": GRID.coordinates,
        "list": GRID.distances().tolist(),
    }[kind]
    result = js.solve_tsp(data, target=GRID.best_known, **QUICK | {"max_steps": 4000})
    assert sorted(result.x.tolist()) == list(range(12))
    assert result.fun == pytest.approx(GRID.best_known)
    if kind != "coords":
        assert isinstance(result.fun, int)


def test_any_kind_of_qap():
    """Matrices, an instance and a QAP; the planted optimum is found and fun is exact."""
    instance = js.datasets.planted_qap(2, 4, seed=1)
    matrices = instance.flow, instance.distance
    for data in (matrices, (instance,), (js.qap_from_instance(instance),)):
        result = js.solve_qap(*data, **QUICK | {"max_steps": 400})
        assert sorted(result.x.tolist()) == list(range(8))
        assert result.fun == instance.best_known == instance.cost(result.x)
        assert isinstance(result.fun, int)


def test_an_asymmetric_tour_is_annealed_to_the_optimum():
    """Of one-way streets, shortest through blocks; the constructed tour is longer."""
    rng, cities = np.random.default_rng(0), np.arange(36)
    xy = np.stack([cities // 6, cities % 6], axis=1)
    matrix = 100 * np.abs(xy[:, None] - xy).sum(axis=2) + rng.integers(0, 9, (36, 36))
    start, found = (js.solve_tsp(matrix, **QUICK | {"max_steps": n}).fun for n in (0, 4000))
    assert found < start
    assert found <= 1.01 * 3724  # as LKH finds


def test_temperatures_follow_the_scale_of_the_distances():
    """Tours are the same, bit for bit, if all distances are a million times as long."""
    scale = 2.0**30
    expected, found = (js.solve_tsp(POINTS * unit, **QUICK) for unit in (1, scale))
    np.testing.assert_array_equal(found.solutions, expected.solutions)
    assert found.fun == pytest.approx(scale * expected.fun)


def test_a_flow_without_a_distance_is_refused():
    """In one line, by name."""
    with pytest.raises(ValueError, match="distance is None, expected"):
        js.solve_qap(np.eye(3))


@each(*SOLVERS)
def test_no_result_is_worse_than_the_constructed_one(solver):
    """Also without a step; the first search starts there, and the others elsewhere."""
    problem = js.qap(FLOW, DISTANCE) if solver.func is js.solve_qap else js.tsp(DISTANCE)
    if solver is SOLVERS["cities"]:
        problem = js.tsp_from_coords(POINTS)
        built = constructed_tour(problem, candidates.neighbors(problem, 6, "spread"))
    elif solver is SOLVERS["one way"]:
        built = constructed_tour(problem, None)
    else:
        built = constructed_assignment(problem)
    none, some = (solver(**QUICK | {"max_steps": steps}) for steps in (0, 40))
    assert some.fun <= none.fun <= none.costs[0] == problem.host.cost(built)
    assert len({tuple(found) for found in none.solutions.tolist()}) >= 3


@both
def test_searches_start_where_they_are_told_to(solver):
    """One solution or several; the first search starts from the constructed one all the same."""
    ways = np.random.default_rng(1).permuted(np.tile(np.arange(SIZE), (3, 1)), axis=1)
    none = QUICK | {"max_steps": 0}
    several = solver(initial=ways, **none)
    np.testing.assert_array_equal(several.solutions[1:], ways)
    np.testing.assert_array_equal(several.solutions[0], solver(**none).solutions[0])
    one = solver(initial=ways[1].tolist(), **none)
    np.testing.assert_array_equal(one.solutions[1], ways[1])
    if solver is SOLVERS["tabu"]:
        alone = solver(initial=ways[2], **none | {"num_searches": 1})
        assert alone.x.tolist() == ways[2].tolist()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"initial": np.arange(12)}, r"initial has shape \(12,\), expected \(13,\)"),
        ({"initial": np.tile(np.arange(13), (4, 1))}, "solutions in initial is 4, expected"),
        ({"initial": [0] * 13}, r"^initial holds 0 twice"),
        ({"callback": 5}, "callback is a int, expected a function or None"),
        ({"history_size": 1}, "history_size is 1"),
    ],
)
def test_bad_options_are_refused(options, text):
    for solver in SOLVERS.values():
        with pytest.raises((ValueError, TypeError), match=text) as caught:
            solver(**QUICK | options)
        assert "\n" not in str(caught.value)


@both
def test_a_callback_sees_the_run_and_can_end_it(solver):
    """True ends it, and nothing else does; histories are as short as is asked for."""
    reports = []
    result = solver(callback=reports.append, history_size=2, **QUICK)
    assert reports[-1].step == result.nit == 40 and reports[-1].fun == result.fun
    assert sorted(reports[-1].x.tolist()) == list(range(SIZE))
    assert len(result.history) <= 3
    ended = solver(callback=lambda report: True, **QUICK)
    assert (ended.status, ended.nit) == (js.Status.CALLBACK, 0)


def test_forbidden_edges_are_avoided():
    """Without them the tour along the line is the only one that is left."""
    distances = np.full((8, 8), np.inf)
    for i in range(8):
        distances[i, (i + 1) % 8] = distances[(i + 1) % 8, i] = 10
    result = js.solve_tsp(distances, forbidden="inf", **QUICK | {"max_steps": 2000})
    assert result.feasible and result.fun == 80
    with pytest.raises(ValueError, match="forbidden is given with a TSPInstance, expected None"):
        js.solve_tsp(GRID, forbidden="inf")
    with pytest.raises(ValueError, match="forbidden 'inf' with metric 'GEO'"):
        js.solve_tsp(POINTS, metric="GEO", forbidden="inf")


@pytest.mark.parametrize("kind", ["instance", "booleans", "unsigned"])
def test_a_qap_is_maximized(kind):
    """What is found and shown is the sum itself; its highest value is known by brute force."""
    flow, distance = FLOW[:6, :6], DISTANCE[:6, :6]
    if kind == "booleans":
        flow = flow > 15
    if kind == "unsigned":
        flow = flow.astype(np.uint8)
    orders = np.array(list(itertools.permutations(range(6))))
    best = (flow * distance[orders[:, :, None], orders[:, None]]).sum(axis=(1, 2)).max()
    arguments, reports = (flow, distance), []
    if kind == "instance":
        arguments = (js.datasets.QAPInstance(name="", flow=flow, distance=distance, best_known=5),)
    options = {"target": int(best), "callback": reports.append, "maximize": True}
    result = js.solve_qap(*arguments, **QUICK | options)
    assert (result.fun, result.status, result.gap) == (best, js.Status.TARGET, None)
    assert result.costs.max() == best == result.history[-1].best == reports[-1].fun
    with pytest.raises(ValueError, match="maximize is True with a QAP, expected flows"):
        js.solve_qap(js.qap(FLOW, DISTANCE), maximize=True)


def test_inexact_costs_of_integers_that_are_too_large():
    """As the error says that refuses them; a good start that is known to be enough is returned."""
    flow = FLOW * 10**6 + 1
    with pytest.raises(ValueError, match="use dtype='float32'"):
        js.solve_qap(flow, flow, **QUICK)
    enough = {"best_known": 2**62, "is_optimal": True}
    instance = js.datasets.QAPInstance(name="", flow=flow, distance=flow, **enough)
    result = js.solve_qap(instance, dtype="float32", **QUICK)
    assert result.fun == pytest.approx((flow * flow[np.ix_(result.x, result.x)]).sum())


@pytest.mark.devices(2)
def test_searches_restart_in_a_new_round(tmp_path):
    """All but the first, which has the best tour; alike on any devices, and where a run resumes."""
    options = QUICK | {"target": None, "max_steps": 3600}
    reports, solver = {}, SOLVERS["cities"]

    def keep(report):
        reports[report.step] = (report.fun, *report.costs.tolist())

    whole = solver(**options, callback=keep)
    (before, after), *others = [
        (one, other)
        for one, other in itertools.pairwise(sorted(reports))
        if sum(reports[one]) < sum(reports[other])  # they had become better until then
    ]
    assert not others and after == before + 1 and before in (50 * SIZE, 100 * SIZE)
    assert reports[after][:2] == (reports[before][0], min(reports[before][1:]))
    assert min(reports[after][2:]) > reports[before][0]
    spread = solver(**options | {"devices": 2})
    path = tmp_path / "run.npz"
    solver(**options, checkpoint=path, callback=lambda report: report.step > 50 * SIZE)
    for found in (spread, solver(**options, checkpoint=path, resume=True)):
        assert found.nit == 3600
        np.testing.assert_array_equal(found.solutions, whole.solutions)


def test_no_search_restarts_where_int32_holds_no_random_tour():
    """Two towns far apart: a random tour goes to and fro about 20 times."""
    place = np.where(np.arange(40) % 2, 2 * 10**8, 0) + np.arange(40)
    distances = np.abs(place - place[:, None])
    result = js.solve_tsp(distances, **QUICK | {"max_steps": 5000, "target": None})
    assert result.fun == 2 * np.ptp(place)


def test_a_run_by_the_clock_continues_at_its_pace(tmp_path):
    path, reports, solver = tmp_path / "run.npz", [], SOLVERS["cities"]
    options = QUICK | {"max_steps": None, "max_seconds": 0.6, "target": None, "checkpoint": path}
    solver(**options, callback=lambda report: report.seconds > 0.5)
    result = solver(**options, resume=True, callback=reports.append)
    assert reports[0].seconds > 0.5 and reports[-1].seconds < 1.1  # not 0.6 more
    start = solver(**QUICK, target=None, callback=lambda report: True)
    now, hottest = jnp.int32(reports[0].step), float(start.search.acceptance.schedule(jnp.int32(0)))
    assert float(result.search.acceptance.schedule(now)) < 0.5 * hottest


@pytest.mark.parametrize("maximize", [False, True])
def test_a_callback_keeps_notes(maximize, tmp_path):
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

    options = QUICK | {"checkpoint": tmp_path / "run.npz", "resume": True, "target": None}
    solver = functools.partial(SOLVERS["tabu"], maximize=True) if maximize else SOLVERS["cities"]
    counters = Counter(), Counter()
    for counter in counters:
        solver(callback=counter, **options)
    assert counters[1].calls > counters[0].calls > 0


WARM = {
    "tsp": (js.solve_tsp, lambda n: (POINTS[:n],)),
    "qap": (js.solve_qap, lambda n: (SYMMETRIC[:n, :n], SYMMETRIC[:n, :n])),
}


@pytest.mark.parametrize(("solver", "instance_of"), WARM.values(), ids=WARM)
def test_later_calls_compile_nothing(solver, instance_of, compiled):
    """Of other sizes of the class, with other seeds and limits, after one of no step."""
    options = {"devices": 1, "num_searches": 5}
    solver(*instance_of(15), max_steps=0, **options)
    assert "jit(advance_by)" in compiled
    compiled.clear()
    short, long = ({"max_steps": 200}, {"max_seconds": 0.02}), ({"max_steps": 300},)
    for n, limits in zip((13, 11, 12), short + long, strict=True):
        result = solver(*instance_of(n), key=n, **limits, **options)
        assert result.solutions.shape[1] == n
        assert result.nit > 0
    assert not compiled
