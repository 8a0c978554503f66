"""solve_tsp and solve_qap on several instances at once.

All lists have three instances, of which the largest has 9 to 16 entries: each kind has one program.
"""

import functools

import chex
import jax
import numpy as np
import pytest
from kept_runs import arrays_of
from kernels import launches
from probes import broken_at, distances_of, shortest
from qaps import cheapest
from ways import needs_cpu

import jaxopt_search as js
from jaxopt_search.backends import Choice, obstacle, random
from jaxopt_search.engine import stepping
from jaxopt_search.problems.qap.build import as_qaps
from jaxopt_search.problems.qap.construction import constructed_assignment
from jaxopt_search.solvers import stacked
from jaxopt_search.solvers.anneal import Pace
from jaxopt_search.solvers.tsp import tsp_recipe

QUICK = {"max_steps": 300, "num_searches": 4, "devices": 1}


def cities(*sizes):
    return [np.random.default_rng((n, i)).random((n, 2)) * 10**i for i, n in enumerate(sizes)]


def matrices(*sizes):
    """Returns asymmetric flows and distances with diagonals, [n, n] each."""
    made = [np.random.default_rng(n).integers(-3, 20, (2, n, n)) for n in sizes]
    return [flow for flow, _ in made], [distance for _, distance in made]


def length(points, tour):
    return np.hypot(*(points[tour] - points[np.roll(tour, -1)]).T).sum()


def cost(flow, distance, assignment):
    return (flow * distance[np.ix_(assignment, assignment)]).sum()


def solve_tsp(points, key=2, **options):
    return js.solve_tsp(points, key, **QUICK | options)


def solve_qap(flows, distances, key=2, **options):
    return js.solve_qap(flows, distances, key, **QUICK | options)


SOLVERS = {
    "tours": functools.partial(solve_tsp, cities(9, 11, 11)),
    "assignments": functools.partial(solve_qap, *matrices(7, 9, 9)),
}


def test_tiny_tours_are_the_shortest(monkeypatch):
    """Of any sizes and scales, from a city on, in kernels; others of these tests run natively."""
    implementation = "interpret"
    monkeypatch.setattr(stepping, "choose", lambda *_: Choice(implementation))
    points = [*cities(7, 6), np.random.default_rng(0).random((9, 2))]
    result = solve_tsp(points, max_steps=600, start=5)
    assert [tour[0] for tour in result.x] == [5, 5, 5]
    assert [sorted(tour.tolist()) for tour in result.x] == [list(range(n)) for n in (7, 6, 9)]
    assert {tour.dtype for tour in result.x} == {np.dtype(np.int32)}
    np.testing.assert_allclose(result.fun, list(map(length, points, result.x)), rtol=1e-12)
    np.testing.assert_allclose(result.fun[:2], [shortest(distances_of(one)) for one in points[:2]])
    assert (result.success, result.nit) == (True, 600)
    assert result.nfev / (600 * 3 * 4) in (60, 72)  # 12 moves to each of five candidates, or six
    assert result.costs.shape == (3, 4)
    np.testing.assert_allclose(result.costs.min(axis=1), result.fun, rtol=1e-5)
    assert result.env["implementation"] == implementation


def test_tiny_assignments_are_optimal(monkeypatch):
    """Of any sizes, in kernels."""
    implementation = "interpret"
    monkeypatch.setattr(stepping, "choose", lambda *_: Choice(implementation))
    pairs = matrices(6, 1, 9)
    result = solve_qap(*pairs, max_steps=60)
    assert result.fun.dtype == np.int64
    assert result.fun[:2].tolist() == [cheapest(*pair) for pair in zip(*pairs, strict=True)][:2]
    assert result.fun.tolist() == list(map(cost, *pairs, result.x))
    assert (result.success, result.nit, result.nfev) == (True, 60, 60 * 4 * (15 + 0 + 36))
    assert result.env["implementation"] == implementation


def of_tours():
    recipe = tsp_recipe(True, "cpu", 40)._replace(num_searches=4, num_candidates=5)
    return stacked.Tours(recipe, 16), stacked.cities_of(cities(12, 7), 16)


def of_assignments():
    problems = [js.qap_from_instance(js.datasets.uniform_qap(n, seed=n)) for n in (12, 7)]
    return stacked.Assignments(4, 16), stacked.matrices_of(problems, 16)


@pytest.mark.devices(2)
@pytest.mark.parametrize("of_kind", [of_tours, of_assignments])
def test_they_run_in_kernels(of_kind):
    """The runs of several instances, exchanges included, have kernels, spread over devices."""
    kind, instances = of_kind()
    numbers = np.arange(2, dtype=np.uint32)
    start = functools.partial(stacked.start_all, kind=kind)
    runs = jax.eval_shape(start, random.as_key(0), numbers, instances)
    advance = functools.partial(stacked.advance_all, kind=kind, implementation="cuda")
    pace = Pace(0, 1.0, 0.0, np.int32(7))
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct((2, *x.shape), x.dtype), runs)
    spread = jax.pmap(advance, in_axes=(0, 0, None, None), devices=jax.devices()[:2])
    given = spread, shapes, np.ones((2, 2), bool), pace, np.int32(100)
    assert launches(*given) and obstacle(*given) == ""


def test_qaps_are_maximized():
    """What is found is the sum itself; its highest value is known by brute force."""
    flows, distances = matrices(5, 6, 9)
    result = solve_qap(flows, distances, maximize=True)
    negated = [-flow for flow in flows]
    assert result.fun[:2].tolist() == [-cheapest(negated[i], distances[i]) for i in (0, 1)]


def test_qaps_of_one_facility_each():
    """They have no swap to price, and one assignment."""
    result = solve_qap([[[3]], [[4]]], [[[5]], [[6]]])
    assert (result.fun.tolist(), np.ravel(result.x).tolist()) == ([15, 24], [0, 0])


def test_one_fractional_instance_makes_all_so():
    """All stand in arrays of one dtype; costs are those of the matrices as given."""
    flows, distances = matrices(5, 6, 3)
    flows[1] = flows[1] * 0.3
    result = solve_qap(flows, distances, max_steps=60)
    assert result.fun.dtype == np.float64
    for problem, *pair in zip(as_qaps(flows, distances), flows, distances, strict=True):
        order = np.arange(problem.n)[::-1].astype(np.int32)
        assert problem.flow.dtype == np.float32
        in_full = problem.host.in_full(float(problem.device_cost(order)))
        assert in_full == pytest.approx(cost(*pair, order), abs=0.1)
    np.testing.assert_allclose(result.fun, list(map(cheapest, flows, distances)), rtol=1e-6)


def test_another_list_of_the_class_compiles_nothing(compiled):
    """Nor does another limit; results are never worse than what is constructed at first."""
    by_clock = {"max_steps": None, "max_seconds": 0.02}
    for sizes, limits in (((9, 3, 4), {}), ((1, 16, 2), {}), ((12, 5, 9), by_clock)):
        result = solve_tsp(cities(*sizes), 1, metric="EUCLID", **limits)
        assert result.success and isinstance(result.x, list)
        assert [sorted(tour.tolist()) for tour in result.x] == [list(range(n)) for n in sizes]
        pairs = zip(*matrices(*sizes), strict=True)
        named = [js.datasets.QAPInstance(name="", flow=f, distance=d) for f, d in pairs]
        assigned = js.solve_qap(named, key=1, **QUICK | limits)
        floor = [one.cost(constructed_assignment(js.qap_from_instance(one))) for one in named]
        assert (assigned.fun <= floor).all() and assigned.success
        assert sizes[0] == 9 or not compiled
        compiled.clear()


def test_others_in_a_list_change_no_run():
    """Of whatever sizes, if the largest has as many entries: these set the pace.

    Before tours recombine it may have more or fewer, too.
    """
    first, *others = cities(10, 9, 14, 14, 3)
    for steps, lists in ((100, (others[:2], others[2:])), (4, (others[:2], cities(5, 12)))):
        found = [solve_tsp([first, *more], 1, max_steps=steps) for more in lists]
        np.testing.assert_array_equal(*(result.x[0] for result in found))
    lists = [matrices(13, *more) for more in ((11, 14), (14, 5))]
    found = [solve_qap(*pairs, 1, max_steps=60) for pairs in lists]
    np.testing.assert_array_equal(*(result.x[0] for result in found))


def test_a_list_of_one_size_is_a_stack():
    """Of lists and arrays of any kind."""
    points = np.random.default_rng(1).random((3, 13, 2), np.float32)
    listed = (points[0].tolist(), jax.device_put(points[1]), points[2])
    flows, distances = map(np.stack, matrices(13, 13, 13))
    for whole, parts in (
        (solve_tsp(points), solve_tsp(listed)),
        (solve_qap(flows, distances), solve_qap(flows.tolist(), list(distances))),
    ):
        assert isinstance(parts.x, np.ndarray) and parts.x.shape == (3, 13)
        np.testing.assert_array_equal(whole.x, parts.x)
        np.testing.assert_array_equal(whole.fun, parts.fun)


def test_copies_of_cities_make_no_tour_longer():
    """Fifteen of each, in any order, beside an instance without any: both are the shortest."""
    places, generator = np.random.default_rng(0).random((7, 2)), np.random.default_rng(1)
    points = [generator.permutation(np.repeat(places, 15, axis=0)), places, cities(9)[0]]
    result = solve_tsp(points, max_steps=2000)
    assert [len(set(tour.tolist())) for tour in result.x] == [105, 7, 9]
    np.testing.assert_allclose(result.fun[:2], shortest(distances_of(places)), rtol=1e-12)
    np.testing.assert_allclose(result.fun, list(map(length, points, result.x)), rtol=1e-12)


def test_scale_changes_no_bit_of_a_search(capsys):
    """Each instance has temperatures of its own. Progress shows the mean."""
    scales, points = np.array([2.0**-20, 2.0**20, 1.0]), np.stack(cities(13, 13, 13))
    expected = solve_tsp(points)
    result = solve_tsp(points * scales[:, None, None], show_progress=True)
    np.testing.assert_array_equal(result.x, expected.x)
    np.testing.assert_allclose(result.fun / scales, expected.fun, rtol=1e-12)
    assert f"{(result.fun / 3).sum():.3g}"[-4:] in capsys.readouterr().err
    result = SOLVERS["assignments"](show_progress=True)
    assert f"best {result.fun.mean():.6g}" in capsys.readouterr().err


def test_a_few_cities():
    """Up to three cities all tours are the same, and they are measured rightly."""
    points = np.array([[[0, 0], [3, 0], [3, 4]], [[0, 0], [1e-9, 0], [0, 0]]])
    result = solve_tsp([*points, *cities(12)], max_steps=2)
    np.testing.assert_allclose(result.fun[:2], [12, 2e-9])


def test_any_number_of_instances_shares_programs(compiled, monkeypatch):
    """They are searched in blocks: the first three end as they do among nine."""
    solver = SOLVERS["tours"]
    monkeypatch.setattr(stacked, "_BLOCK_ON_CPU", 4)
    few = solver(max_steps=40)
    compiled.clear()
    many = solver.func(*(3 * given for given in solver.args), max_steps=40)
    assert not [name for name in compiled if "all" in name]
    assert many.fun[:3].tolist() == few.fun.tolist() and many.costs.shape == (9, 4)


@needs_cpu
def test_a_longer_run_has_the_searches_of_the_first(tmp_path):
    """By the clock there would be more of them in more time; on a GPU there are always as many."""
    path, how = tmp_path / "run.npz", {"devices": 1}
    first = js.solve_tsp(cities(9, 11, 11), max_seconds=0.001, checkpoint=path, **how)
    longer = js.solve_tsp(cities(9, 11, 11), max_seconds=0.1, resume=path, **how)
    assert first.costs.shape == longer.costs.shape == (3, 1)


@pytest.mark.devices(2)
@pytest.mark.parametrize(("name", "call", "devices"), [("assignments", 2, 1), ("tours", 3, 2)])
def test_several_instances_continue(name, call, devices, tmp_path, monkeypatch):
    """From a chunk in the middle, with the pace that they had, on any number of devices.

    Another key leads to other searches.
    """
    solver, path = SOLVERS[name], tmp_path / "run.npz"
    whole = solver(checkpoint=tmp_path / "whole.npz")
    with monkeypatch.context() as patch:
        broken_at(patch, stacked.StackedRun, "advance", call)
        first = solver(checkpoint=path, devices=devices)
    assert (first.status, first.nit < 300) == (js.Status.INTERRUPTED, True)
    found = solver(checkpoint=path, resume=True)
    assert (found.nit, found.nfev, found.status) == (300, whole.nfev, js.Status.MAX_STEPS)
    np.testing.assert_array_equal(found.fun, whole.fun)
    assert found.history[0] == first.history[0]
    assert found.history[-1].best == pytest.approx(whole.fun.mean())
    chex.assert_trees_all_equal(arrays_of(path), arrays_of(tmp_path / "whole.npz"))
    again = solver(resume=path)
    assert again.nit == 300 and again.fun.tolist() == whole.fun.tolist()
    solver(checkpoint=tmp_path / "other.npz", key=3)
    other, kept = arrays_of(tmp_path / "other.npz"), arrays_of(path)
    assert any((kept[part] != other[part]).any() for part in kept if ".searches." in part)


def test_other_instances_are_refused(tmp_path):
    """And another number of steps where cooling depends on it."""
    path = tmp_path / "run.npz"
    SOLVERS["tours"](checkpoint=path, max_steps=20)
    with pytest.raises(js.CheckpointError, match="of configuration"):
        SOLVERS["tours"](resume=path, max_steps=30)
    with pytest.raises(js.CheckpointError, match="of instance"):
        solve_tsp(cities(11, 9, 11), max_steps=20, resume=path)
    with pytest.raises(js.CheckpointError, match="of instance"):
        SOLVERS["assignments"](resume=path)


def test_several_instances_by_the_clock(tmp_path):
    """What is left of the seconds, and no hotter than before."""
    path, options = tmp_path / "run.npz", {"max_steps": None, "max_seconds": 0.4}
    first = SOLVERS["tours"](checkpoint=path, **options)
    again = SOLVERS["tours"](checkpoint=path, **options, resume=True)
    assert again.nit == first.nit  # no time is left
    longer = SOLVERS["tours"](resume=path, max_steps=None, max_seconds=2)
    assert longer.nit > first.nit and (longer.fun <= first.fun * (1 + 1e-12)).all()


SQUARE, TEN = np.ones((2, 2)), np.random.default_rng(0).normal(size=(3, 7, 2))


@pytest.mark.parametrize(
    ("arguments", "options", "text"),
    [
        (([SQUARE, np.ones((3, 2))], [SQUARE, SQUARE]), {}, "instance 1: flow has shape (3, 2)"),
        (([SQUARE, SQUARE], [SQUARE]), {}, "flow holds 2 and distance 1 matrices"),
        (([SQUARE],), {}, "instance 0 is a ndarray, expected a QAPInstance"),
        (([SQUARE], [SQUARE]), {"method": "annealing"}, "method is 'annealing'"),
        (([SQUARE], [SQUARE]), {"target": 3}, "target is 3"),
        (([SQUARE], [SQUARE]), {"partial_match": [[0, 0]]}, "partial_match is given"),
    ],
)
def test_bad_lists_of_qaps_are_refused(arguments, options, text):
    """In one line that says which instance is wrong."""
    with pytest.raises((ValueError, TypeError)) as caught:
        js.solve_qap(*arguments, **{"max_steps": 5} | options)
    assert text in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        ([np.zeros((3, 3))], "coords[1] has shape (3, 3), expected (n, 2) with n >= 1"),
        ([[[0, 1], [2]]], "coords[1] is a ragged list, expected an array"),
        ([[[0, 1], [np.nan, 1]]], "coords[1][1,0] is NaN, expected a finite number"),
        ([[[0, 0], [0, 1e308]]], "distances of coords[1] reach 1e+308, expected 9.09495e-13 to"),
    ],
)
def test_bad_lists_of_tsps_are_refused(bad, text):
    """In one line that says which instance is wrong, and if it is the first one, too."""
    for number, instances in ((1, [TEN[0], *bad]), (0, [*bad[-1:], TEN[0]])):
        with pytest.raises((ValueError, TypeError)) as caught:
            js.solve_tsp(instances, **QUICK)
        expected = text if number else text.replace(f"[{len(bad)}]", "[0]")
        assert str(caught.value).startswith(expected) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("points", "options", "text"),
    [
        ([], {}, r"has shape \([0-9]*,.*\), expected \(n, n\)"),
        (np.zeros((0, 5, 2)), {}, r"coords has shape \(0, 5, 2\), expected \(B, n, 2\)"),
        (np.full((2, 5, 2), [0, 4e307]) * np.arange(5)[:, None], {}, "multiply by a constant"),
        (TEN, {"target": 1}, "target is 1, expected None"),
    ],
)
def test_bad_stacks_are_refused(points, options, text):
    """In one line, before anything is compiled."""
    with pytest.raises(ValueError, match=text) as caught:
        js.solve_tsp(points, **{"max_steps": 5} | options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("option", ["initial", "callback", "forbidden"])
def test_several_instances_have_no_such_options(option):
    given = {option: print if option == "callback" else "inf"}
    with pytest.raises(ValueError, match=f"{option} is .*, expected None for several instances"):
        js.solve_tsp(list(TEN), **given)
    if option != "forbidden":
        with pytest.raises(ValueError, match=f"{option} is .*, expected None for several"):
            js.solve_qap([SQUARE], [SQUARE], **given)
