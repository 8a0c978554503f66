"""TSP: tours from a given city, and paths that end at another one, as closed tours.

A path through n cities is a closed tour through one more, which is next to the ends that are given
and equally far from all other cities: so far that no short tour has other ends.
"""

import dataclasses
import functools
import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxopt_search.checks import check_count
from jaxopt_search.problems.host import with_host
from jaxopt_search.problems.tsp.build import matrix_in_full, tsp
from jaxopt_search.problems.tsp.problem import TSP, Ends
from jaxopt_search.results import Result


def with_ends(problem: TSP, start: Any, end: Any) -> TSP:
    """Returns the TSP whose solutions are tours from `start`, or paths if there is an `end`.

    Args:
      problem: one of closed tours, without room for more cities.
      start: a city, or None for any.
      end: a city, `"free"` for any; None for closed tours.

    Raises:
      ValueError: for a number that is no city, a path to its own start, or too large a matrix.
    """
    n, is_exact, shown = problem.capacity, is_integer(problem), problem.host.as_given
    coords = problem.host.coords if shown is None else shown.coords
    start = check_city("start", start, n)
    if end is None:
        return with_host(problem, as_given=Ends(start, is_path=False, coords=coords))
    end = None if isinstance(end, str) and end == "free" else check_city("end", end, n)
    if start is not None and start == end and n > 1:
        raise ValueError(f"start and end are both {start}, expected two cities, or end=None")
    matrix, is_symmetric = matrix_in_full(problem), problem.is_symmetric
    is_allowed, num_free = np.isfinite(matrix), (start, end).count(None)
    if num_free == 2:  # then all tours have two such edges: any length will do, a usual one
        others = is_allowed & ~np.eye(n, dtype=bool)
        nearest = np.where(others, matrix, np.inf).min(axis=1)
        away = np.median(nearest[np.isfinite(nearest)]) if others.any() else 0.0
        away = matrix.dtype.type(np.floor(away) if is_exact else away)
    else:
        known = matrix[is_allowed]
        unit = (np.gcd.reduce(known.astype(np.int64)) or 1) if is_exact else 0
        away = 3 * np.abs(known).max() + unit  # a multiple of what distances share
    far = away if is_allowed.all() else np.inf  # where an end is given
    wide = np.full((n + 1, n + 1), away, matrix.dtype)
    wide[:n, :n] = matrix
    if start is not None:
        wide[n], wide[n, start] = far, 0
    if end is not None:
        wide[:, n], wide[end, n] = far, 0
    if is_symmetric and (num_free != 1 or far == away):
        wide[n] = wide[:, n] = np.minimum(wide[n], wide[:, n])
    forbidden = None if far == away else "inf"
    dtype = None if is_exact else "float32"
    found = tsp(wide, dtype=dtype, forbidden=forbidden, allow_negative=True)
    ends = Ends(start, end, True, found.is_symmetric, coords)
    host, left_out = found.host, away.item() * num_free
    left_out = int(left_out) if is_exact else left_out
    found = with_host(
        found,
        as_given=ends,
        cost=functools.partial(_less, left_out, host.cost),
        remaining=functools.partial(_of_tour, host.remaining, n),
        check=functools.partial(ends.check, n),
        offset=host.offset - (left_out // host.unit if is_exact else left_out / host.unit),
        note=problem.host.note,
    )
    return dataclasses.replace(found, device_units=found.host.units)


def check_city(name: str, value: Any, n: int) -> int | None:
    """Returns the number of a city, if there is one."""
    return None if value is None else check_count(name, value, 0, n - 1)


def is_integer(problem: TSP) -> bool:
    """Returns whether all distances are integers."""
    if problem.matrix is None:
        return problem.metric != "EUCLID"
    return problem.matrix.dtype == jnp.int32


def length(matrix: np.ndarray, path: np.ndarray) -> float:
    """Returns the length of a path, [n], by distances, [n, n]."""
    return math.fsum(matrix[path[:-1], path[1:]].tolist())


def counted(result: Result, problem: TSP) -> Result:
    """Returns a result with the exact costs of its paths, also of those that got other ends.

    Args:
      problem: of closed tours.
    """
    matrix, is_exact = matrix_in_full(problem), is_integer(problem)
    costs = matrix[result.solutions[:, :-1], result.solutions[:, 1:]].sum(axis=1)
    fun = length(matrix, result.x)
    fun = int(fun) if is_exact and math.isfinite(fun) else fun
    return result._replace(fun=fun, costs=costs, feasible=math.isfinite(fun))


def _less(left_out: Any, cost: Any, tour: np.ndarray) -> int | float:
    return cost(tour) - left_out


def _of_tour(remaining: Any, n: int, solution: np.ndarray) -> str:
    """Returns what is forbidden in a tour, [n + 1], or in the path that it stands for."""
    return remaining(solution if len(solution) > n else np.append(solution, n))
