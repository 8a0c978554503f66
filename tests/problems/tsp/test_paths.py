"""Paths and tours from a city, by exact dynamic programming."""

import itertools

import numpy as np
import probes
import pytest

import jaxopt_search as js
from jaxopt_search.problems.tsp import paths


def shortest(matrix: np.ndarray, start: int | None, end: int | str | None) -> float:
    """The length of the shortest path with these ends: of a tour through one more city."""
    n = len(matrix)
    more = np.full((n + 1, n + 1), np.inf)
    more[:n, :n] = matrix
    more[n, slice(n) if start is None else start] = 0
    more[slice(n) if end in (None, "free") else end, n] = 0
    return probes.shortest(more)


def matrix_of(kind: str, is_symmetric: bool, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    matrix = generator.integers(1, 100, (7, 7)).astype(float)
    if kind == "floats":
        matrix += generator.random((7, 7))
    if kind == "large":
        matrix *= 10**12
    if kind == "forbidden":
        matrix[generator.random((7, 7)) < 0.2] = np.inf
    np.fill_diagonal(matrix, 0)
    return np.maximum(matrix, matrix.T) if is_symmetric else matrix


@pytest.mark.parametrize(
    ("start", "end", "kind", "is_symmetric"),
    [
        (None, "free", "integers", True),
        (2, "free", "floats", False),
        (None, 3, "forbidden", True),
        (2, 3, "forbidden", False),
        (2, 3, "large", True),
    ],
)
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
        assert result.problem.cost(result.x) == pytest.approx(result.fun, rel=1e-5)


def test_many_paths_at_once():
    """Each instance has its shortest path, whatever their sizes: 70 in all."""
    (start, end), generator = (2, "free"), np.random.default_rng(0)
    places = [generator.random((4 + i % 7, 2)) for i in range(70)]
    result = js.solve_tsp(places, start=start, end=end, max_steps=200)
    for n in range(4, 11):
        xy = np.stack(places[n - 4 :: 7])
        matrices = np.hypot(*np.moveaxis(xy[:, :, None] - xy[:, None], -1, 0))
        lengths = result.fun[n - 4 :: 7]
        expected = [shortest(matrix, start, end) for matrix in matrices]
        np.testing.assert_allclose(lengths, expected, rtol=1e-12)
        for matrix, path, length in zip(matrices, result.x[n - 4 :: 7], lengths, strict=True):
            assert length == pytest.approx(matrix[path[:-1], path[1:]].sum())
            assert path[0] == start


def test_tours_begin_at_the_start():
    """Closed ones are the shortest ones, and a path is given without the city of the ends."""
    matrix, path = matrix_of("integers", True, 0), [4, 0, 2, 3, 5, 6, 1]
    options = {"metric": "MATRIX", "num_searches": 16}
    result = js.solve_tsp(matrix, start=5, max_steps=300, **options)
    assert (result.x[0], result.fun) == (5, probes.shortest(matrix.tolist()))
    starts = np.tile(path, (15, 1))
    result = js.solve_tsp(matrix, start=4, end=1, initial=starts, max_steps=0, **options)
    assert result.solutions.tolist().count(path) == 15


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
        ({"start": 3, "end": 3}, "start and end are both 3"),
    ],
)
def test_ends_that_are_none(options, message):
    """They are refused by name."""
    with pytest.raises(ValueError, match=message):
        js.solve_tsp(np.ones((7, 7)), metric="MATRIX", max_steps=1, **options)
