"""solve_tsp on several instances at once."""

import itertools

import jax
import numpy as np
import pytest

import jaxopt_search as js
from jaxopt_search.backends import Choice
from jaxopt_search.engine import stepping

POINTS = np.random.default_rng(0).normal(size=(3, 7, 2)) * [[[1]], [[1e-3]], [[1e4]]]


def length(points, tour):
    return np.hypot(*(points[tour] - points[np.roll(tour, -1)]).T).sum()


def shortest(points):
    tours = (np.array((0, *rest)) for rest in itertools.permutations(range(1, len(points))))
    return min(length(points, tour) for tour in tours)


@pytest.mark.slow
@pytest.mark.parametrize("implementation", ["native", "interpret"])
def test_tiny_instances_are_solved_to_optimality(implementation, monkeypatch):
    """Whatever their scale and however they are run; three instances on two devices."""
    monkeypatch.setattr(stepping, "choose", lambda *_: Choice(implementation))
    result = js.solve_tsp(POINTS, max_steps=300, devices=min(2, jax.local_device_count()))
    assert result.x.shape == (3, 7) and result.x.dtype == np.int32
    for points, tour, cost in zip(POINTS, result.x, result.fun, strict=True):
        assert sorted(tour.tolist()) == list(range(7))
        assert cost == pytest.approx(length(points, tour))
        assert cost == pytest.approx(shortest(points))
    assert (result.status, result.nit) == (js.Status.MAX_STEPS, 300)
    assert result.nfev == 300 * 3 * 16 * 8
    assert result.env["implementation"] == implementation


@pytest.mark.slow
def test_neither_devices_nor_neighbors_in_the_stack_change_a_run():
    """Three side by side, or two on one device and one with a copy of it on the other.

    Instances have keys of their own, by their numbers; another key leads to other tours.
    """
    points = np.random.default_rng(1).random((3, 20, 2))
    three = js.solve_tsp(points, 5, **QUICK)
    spread = js.solve_tsp(points, 5, **QUICK | {"devices": min(2, jax.local_device_count())})
    np.testing.assert_array_equal(three.x, spread.x)
    assert (three.x != js.solve_tsp(points, 6, **QUICK).x).any()


def test_copies_of_cities_make_no_tour_longer():
    """Thirty of each, in any order, beside an instance without any: both tours are the shortest."""
    places, random = np.random.default_rng(0).random((7, 2)), np.random.default_rng(1)
    points = [random.permutation(np.repeat(places, 30, axis=0)), places]
    result = js.solve_tsp(points, **QUICK | {"max_steps": 300})
    assert [sorted(tour.tolist()) for tour in result.x] == [list(range(210)), list(range(7))]
    np.testing.assert_allclose(result.fun, shortest(places), rtol=1e-12)
    np.testing.assert_allclose(result.fun, list(map(length, points, result.x)), rtol=1e-12)


def test_a_limit_of_seconds_ends_all_runs(capsys):
    """A short limit leaves longer tours."""
    points = np.random.default_rng(2).random((3, 20, 2))
    options = {"num_searches": 2, "moves_per_search": 3, "devices": 1}
    result = js.solve_tsp(points, max_seconds=0.01, show_progress=True, **options)
    assert (result.status, result.success) == (js.Status.MAX_SECONDS, True)
    assert "best" in capsys.readouterr().err
    longer = js.solve_tsp(points, max_seconds=0.5, **options)
    assert longer.nit > result.nit
    assert (longer.fun <= result.fun + 1e-9).all()


def test_scale_changes_no_bit_of_a_search(capsys):
    """Each instance is counted in a unit of its own, so that tiny and huge ones are searched."""
    scales = np.array([2.0**-996, 2.0**900, 2.0**-63])
    points = np.random.default_rng(2).random((3, 20, 2))
    options = {"max_steps": 20, "num_searches": 2, "moves_per_search": 3, "devices": 1}
    expected = js.solve_tsp(points, **options)
    result = js.solve_tsp(points * scales[:, None, None], show_progress=True, **options)
    np.testing.assert_array_equal(result.x, expected.x)
    np.testing.assert_allclose(result.fun / scales, expected.fun, rtol=1e-12)
    assert f"{(result.fun / 3).sum():.3g}"[-4:] in capsys.readouterr().err


QUICK = {"max_steps": 20, "num_searches": 2, "moves_per_search": 3, "devices": 1}
# Three instances, of which the largest has 17 to 24 cities, share one program.


def of_sizes(*sizes):
    return [np.random.default_rng((n, i)).random((n, 2)) * 10**i for i, n in enumerate(sizes)]


@pytest.mark.parametrize("n", [1, 3])
def test_a_few_cities(n):
    """Up to three cities all tours are the same, and they are measured rightly."""
    points = np.array([[[0, 0], [3, 0], [3, 4]], [[0, 0], [1e-300, 0], [0, 0]]])[:, :n]
    result = js.solve_tsp([*points, *of_sizes(20)], **QUICK | {"max_steps": 2, "metric": "EUCLID"})
    np.testing.assert_allclose(result.fun[:2], [[0, 0], [6, 2e-300], [12, 2e-300]][n - 1])


@pytest.mark.parametrize("limits", [{}, {"max_steps": None, "max_seconds": 0.02}])
def test_sizes_may_differ(limits, compiled):
    """Each has a tour of its own; another list of this length and class compiles nothing."""
    for sizes in ((1, 20, 2), (24, 3, 4), (17, 5, 9)):
        points = of_sizes(*sizes)
        result = js.solve_tsp(points, 1, **QUICK | limits)
        assert result.success and isinstance(result.x, list)
        assert [sorted(tour.tolist()) for tour in result.x] == [list(range(n)) for n in sizes]
        assert {tour.dtype for tour in result.x} == {np.dtype(np.int32)}
        np.testing.assert_allclose(result.fun, list(map(length, points, result.x)), rtol=1e-12)
        assert result.nfev == result.nit * 3 * 2 * 3
        assert sizes[0] == 1 or not compiled
        compiled.clear()


def test_others_in_a_list_change_no_run():
    """Of whatever sizes, if the largest has as many cities: these set the pace.

    Before the searches recombine it may have more or fewer, too.
    """
    first, *others = of_sizes(16, 15, 24, 24, 3)
    for steps, lists in ((100, (others[:2], others[2:])), (16, (others[:2], of_sizes(5, 17)))):
        tours = [js.solve_tsp([first, *more], 1, **QUICK | {"max_steps": steps}) for more in lists]
        np.testing.assert_array_equal(*(result.x[0] for result in tours))


def test_a_list_of_one_size_is_a_stack():
    """Of lists and arrays of any kind."""
    points = np.random.default_rng(1).random((3, 20, 2), np.float32)
    stacked = js.solve_tsp(points, 5, **QUICK)
    listed = js.solve_tsp((points[0].tolist(), jax.device_put(points[1]), points[2]), 5, **QUICK)
    assert isinstance(listed.x, np.ndarray) and listed.x.shape == (3, 20)
    np.testing.assert_array_equal(stacked.x, listed.x)
    np.testing.assert_array_equal(stacked.fun, listed.fun)


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        ([np.zeros((3, 3))], "coords[1] has shape (3, 3), expected (n, 2) with n >= 1"),
        ([[]], "coords[1] has shape (0,), expected (n, 2) with n >= 1"),
        ([5], "coords[1] has shape (), expected (n, 2) with n >= 1"),
        ([[[0, 1], [2]]], "coords[1] is a ragged list, expected an array"),
        ([None], "coords[1] has dtype object, expected integers or floats"),
        ([POINTS[0], [["a", "b"]]], "coords[2] has dtype <U1, expected integers or floats"),
        ([[[0, 1], [np.nan, 1]]], "coords[1][1,0] is NaN, expected a finite number"),
        ([[[0, 0], [0, 1e308]]], "distances of coords[1] reach 1e+308, expected 0 to"),
    ],
)
def test_bad_lists_are_refused(bad, text):
    """In one line that says which instance is wrong, and if it is the first one, too."""
    for number, instances in ((1, [POINTS[0], *bad]), (0, [*bad[-1:], POINTS[0]])):
        with pytest.raises((ValueError, TypeError)) as caught:
            js.solve_tsp(instances, **QUICK)
        expected = text if number else text.replace(f"[{len(bad)}]", "[0]")
        assert str(caught.value).startswith(expected) and "\n" not in str(caught.value)


@pytest.mark.parametrize("empty", [[], (), [[]], [[], []]])
def test_no_instance_at_all(empty):
    with pytest.raises(ValueError, match=r"has shape \([0-9]*,.*\), expected \(n, n\)"):
        js.solve_tsp(empty)


@pytest.mark.parametrize(
    ("points", "options", "text"),
    [
        (np.zeros((0, 5, 2)), {}, r"coords has shape \(0, 5, 2\), expected \(B, n, 2\)"),
        (np.zeros((2, 5, 3)), {}, r"coords has shape \(2, 5, 3\)"),
        (np.where(np.arange(2) == 1, np.nan, POINTS), {}, r"coords\[0,0,1\] is NaN"),
        (np.full((2, 5, 2), [0, 4e307]) * np.arange(5)[:, None], {}, "float64 sums"),
        (POINTS, {"target": 1}, "target is 1, expected None"),
        (POINTS, {"num_searches": 0}, "num_searches is 0"),
        (POINTS, {"moves_per_search": 0}, "moves_per_search is 0"),
        (POINTS, {"max_steps": -1}, "max_steps is -1"),
        (POINTS, {"max_seconds": float("nan")}, "max_seconds is nan"),
    ],
)
def test_bad_stacks_are_refused(points, options, text):
    """In one line, before anything is compiled."""
    with pytest.raises(ValueError, match=text) as caught:
        js.solve_tsp(points, **{"max_steps": 5} | options)
    assert "\n" not in str(caught.value)
