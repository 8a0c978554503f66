"""Paths and tours from a city, by exact dynamic programming."""

import itertools

import numpy as np
import pytest

import jaxopt_search as js
from jaxopt_search.problems.tsp import paths

ENDS = [(None, "free"), (2, "free"), (None, 3), (2, 3)]


def shortest(matrix: np.ndarray, start: int | None, end: int | str | None) -> np.ndarray:
    """The lengths of the shortest paths with these ends, by Held and Karp's recursion.

    Of one matrix, [n, n], or of several, [B, n, n].
    """
    n = matrix.shape[-1]
    best = np.full((1 << n, *matrix.shape[:-1]), np.inf)
    for city in range(n) if start is None else [start]:
        best[1 << city, ..., city] = 0
    for visited in range(1, 1 << n):
        for city in range(n):
            before = visited ^ 1 << city
            if visited >> city & 1 and before:
                best[visited, ..., city] = (best[before] + matrix[..., city]).min(axis=-1)
    return best[-1].min(axis=-1) if end in (None, "free") else best[-1, ..., end]


def matrix_of(kind: str, is_symmetric: bool, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    matrix = generator.integers(1, 100, (7, 7)).astype(float)
    if kind == "floats":
        matrix += generator.random((7, 7))
    if kind == "forbidden":
        matrix[generator.random((7, 7)) < 0.2] = np.inf
    np.fill_diagonal(matrix, 0)
    return np.maximum(matrix, matrix.T) if is_symmetric else matrix


@pytest.mark.parametrize(
    ("kind", "is_symmetric"),
    [("integers", True), ("floats", False), ("forbidden", True), ("forbidden", False)],
)
@pytest.mark.parametrize(("start", "end"), ENDS)
def test_paths_are_the_shortest(start, end, is_symmetric, kind):
    """Of seven cities, whichever ends are given; they begin and end there."""
    for seed in range(2):
        matrix = matrix_of(kind, is_symmetric, seed)
        options = {"start": start, "end": end, "max_steps": 300, "num_searches": 16}
        options["forbidden"] = "inf" if kind == "forbidden" else None
        result = js.solve_tsp(matrix, metric="MATRIX", **options)
        assert result.fun == pytest.approx(shortest(matrix, start, end), rel=1e-12)
        assert sorted(result.x) == list(range(7))
        assert start in (None, result.x[0])
        assert end in ("free", result.x[-1])
        assert np.isfinite(result.fun) == result.feasible
        assert not result.feasible or result.bound <= result.fun
        assert result.costs.min() == pytest.approx(result.fun)


@pytest.mark.parametrize(("start", "end"), ENDS)
def test_many_paths_at_once(start, end):
    """Each instance has its shortest path, whatever their sizes: 1008 in all."""
    generator = np.random.default_rng(0)
    places = [generator.random((4 + i % 7, 2)) for i in range(252)]
    result = js.solve_tsp(places, start=start, end=end, max_steps=200)
    for n in range(4, 11):
        xy = np.stack(places[n - 4 :: 7])
        matrices = np.hypot(*np.moveaxis(xy[:, :, None] - xy[:, None], -1, 0))
        lengths = result.fun[n - 4 :: 7]
        np.testing.assert_allclose(lengths, shortest(matrices, start, end), rtol=1e-12)
        for matrix, path, length in zip(matrices, result.x[n - 4 :: 7], lengths, strict=True):
            assert length == pytest.approx(matrix[path[:-1], path[1:]].sum())
            assert (start in (None, path[0])) and (end in ("free", path[-1]))


def test_tours_begin_at_the_start():
    """Closed ones have the same length as without."""
    xy = np.random.default_rng(0).random((3, 8, 2))
    results = [js.solve_tsp(xy, start=start, max_steps=20) for start in (None, 5)]
    assert (results[1].x[:, 0] == 5).all()
    assert results[0].fun == pytest.approx(results[1].fun)
    assert js.solve_tsp(xy[0], start=6, max_steps=20).x[0] == 6


def test_a_path_to_start_from_and_to_draw():
    """It is given without the city that stands for the ends; a picture has one line less."""
    xy, path = np.random.default_rng(1).random((9, 2)), np.array([4, 0, 2, 8, 3, 5, 7, 6, 1])
    result = js.solve_tsp(xy, start=4, end=1, initial=path, max_steps=0, num_searches=1)
    assert result.x.tolist() == path.tolist()
    assert len(result.plot()[0].lines[0].get_xdata()) == 9


def test_wrong_ends_are_mended():
    """A path with other ends than the given ones is closed and opened, and costs no more."""
    for is_symmetric, seed in itertools.product([True, False], range(20)):
        matrix = matrix_of("integers", is_symmetric, seed)
        problem = paths.with_ends(js.tsp(matrix), 2, 3)
        tour = np.random.default_rng(seed).permutation(8)
        path = problem.host.own(tour)
        assert (path[0], path[-1]) == (2, 3)
        assert sorted(path) == list(range(7))
        assert paths.length(matrix, path) <= problem.host.cost(tour)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": 7}, "start is 7, expected an integer from 0 to 6"),
        ({"end": "last"}, "end is 'last', expected an integer from 0 to 6"),
        ({"start": 3, "end": 3}, "start and end are both 3"),
    ],
)
def test_ends_that_are_none(options, message):
    """They are refused by name."""
    with pytest.raises(ValueError, match=message):
        js.solve_tsp(np.ones((7, 7)), metric="MATRIX", max_steps=1, **options)
