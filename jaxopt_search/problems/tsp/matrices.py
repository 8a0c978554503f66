"""TSP instances from a matrix of distances, checked on the host before anything is compiled."""

import functools
import math
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np

from jaxopt_search.checks import MAX_INT32, check_best_known, check_option, real_array
from jaxopt_search.guards.forks import refuse_orphans
from jaxopt_search.problems import permutation, traced_input
from jaxopt_search.problems.host import Original
from jaxopt_search.problems.matrix_input import (
    DType,
    as_told,
    check_square,
    is_integral,
    is_nearly_symmetric,
    largest_of,
    on_device,
    quick_shape,
    refuse_first,
    unit_note,
)
from jaxopt_search.problems.tsp import construction, potentials, ranges, traced
from jaxopt_search.problems.tsp.problem import TSP


def tsp(
    distances: Any,
    *,
    dtype: DType | None = None,
    forbidden: Literal["inf"] | None = None,
    is_symmetric: bool | None = None,
    allow_negative: bool = False,
    best_known: float | None = None,
) -> TSP:
    """Returns a TSP instance from a matrix of distances.

    Integers, and floats that are all integral, make an exact integer instance. The diagonal is
    ignored. Asymmetric distances are allowed; an asymmetry of float distances within a relative
    1e-6 is taken for rounding noise and averaged out.

    Float distances are of any size. Where float32 could not hold them or their squares (the largest
    is below 1e-12 or above 1e16 or so), the device counts in a power of two, `problem.host.unit`;
    temperatures are then in this unit. Where most of each distance is a cost of leaving one city
    and of coming to the other, these costs, which all tours share, are left out on the device.
    Costs and targets are always in full.

    Inside `jit` or `vmap`, `distances` may be traced: integers become int32 and floats float32 as
    they are, with sums that must fit, and only shape and dtype are checked. Such an instance is for
    `run`, `init` and `advance`; `solve` needs one that the host knows.

    Where random tours cost more than int32 holds, searches start from constructed tours, close to
    which costs are exact; `init` and `run` have to be given `solutions`. A search that is too hot
    to stay there ends with an error.

    Args:
      distances: [n, n] real numbers, from row to column.
      dtype: `"float32"` to give up exactness if an integer instance is too large for int32.
      forbidden: `"inf"` to read +inf as "no such edge"; `Result.feasible` tells whether a tour
        does without them.
      is_symmetric: whether distances are the same in both directions; None to find out, which a
        matrix that is traced does not allow, and to refuse a triangle.
      allow_negative: whether distances may be negative. By default they are refused, because most
        stand for edges that are missing; traced ones are not looked at.
      best_known: the best-known length, for `Result.gap`.

    Raises:
      ValueError: for a wrong shape, NaN, infinity, negative distances, or integers too large for
        int32 arithmetic.
      TypeError: for entries that are not real numbers.

    Example:
      >>> problem = tsp([[0, 3, 4, 5], [3, 0, 5, 4], [4, 5, 0, 3], [5, 4, 3, 0]])
      >>> int(problem.cost(jnp.arange(4)))
      16
    """
    refuse_orphans()
    check_option("dtype", dtype, (None, "int32", "float32"))
    check_option("forbidden", forbidden, (None, "inf"))
    check_best_known(best_known)
    if traced_input.is_traced(distances):
        symmetric = traced_input.check_symmetry(is_symmetric)
        traced_input.refuse_options(forbidden=forbidden, best_known=best_known)
        return traced.of_matrix(distances, symmetric, dtype)
    matrix = _checked_matrix(distances, allow_inf=forbidden == "inf")
    if is_symmetric is None and _is_triangle(matrix):
        raise ValueError(
            "distances are 0 on one side of the diagonal; of a triangle pass d + d.T (tsp(d,"
            " is_symmetric=False) takes them as they are)"
        )
    if not allow_negative:
        _refuse_negative(matrix)
    allowed = np.isfinite(matrix)
    is_exact = dtype != "float32" and is_integral(matrix[allowed])
    if dtype == "int32" and not is_exact:
        raise ValueError("dtype is 'int32', expected None or 'float32' for fractional distances")
    matrix = np.where(allowed, matrix, 0).astype(np.int64 if is_exact else np.float64)
    problem = (_integer_tsp if is_exact else _float_tsp)(matrix, allowed, best_known)
    return as_told(problem, is_symmetric, "distances are")


def _integer_tsp(matrix: np.ndarray, allowed: np.ndarray, best_known: float | None) -> TSP:
    """Returns an exact instance, counted in multiples of a common divisor if necessary.

    Args:
      matrix: [n, n] int64, 0 where an edge is not `allowed`.
    """
    n, largest = len(matrix), largest_of(matrix)
    has_forbidden, unit = not allowed.all(), 1
    if ranges.bound(n, ranges.dearest(n, largest, has_forbidden)) > MAX_INT32:
        unit = max(int(np.gcd.reduce(matrix, axis=None)), 1)
        matrix, largest = matrix // unit, largest // unit
    dearest = ranges.dearest(n, largest, has_forbidden)
    matrix[~allowed] = dearest
    ranges.check_deltas(dearest)
    least = n * min(matrix.min().item(), 0)
    host = Original(
        cost=functools.partial(_matrix_cost, matrix, unit),
        check=functools.partial(permutation.check, n),
        remaining=functools.partial(_forbidden_edges, allowed),
        max_feasible=min(n * largest, dearest + least - 1) if has_forbidden else None,
        unit=unit,
        best_known=best_known,
    )
    if ranges.bound(n, dearest) > MAX_INT32:
        host = construction.with_good_starts(host)
    return _on_device(matrix, jnp.int32, host)


def _float_tsp(matrix: np.ndarray, allowed: np.ndarray, best_known: float | None) -> TSP:
    """Returns an instance of float32 distances.

    Args:
      matrix: [n, n] float64, 0 where an edge is not `allowed`.
    """
    n, has_forbidden, note = len(matrix), not allowed.all(), ""
    ranges.check_float_range(n, largest_of(matrix))
    leaving, coming = potentials.shared(matrix, allowed)
    own = np.where(allowed, potentials.taken_off(matrix, leaving, coming), 0)
    if not np.array_equal(matrix, matrix.T):
        mean, least = (leaving + coming) / 2, largest_of(own) if leaving.any() else 0.0
        if is_nearly_symmetric(potentials.taken_off(matrix, mean, mean), least):
            matrix, leaving, coming = matrix / 2 + matrix.T / 2, mean, mean
            own = np.where(allowed, potentials.taken_off(matrix, mean, mean), 0)
            note = "distances were symmetrized (they differed by a relative 1e-6 at most)"
    largest = largest_of(own)
    unit = ranges.float_unit(n, ranges.dearest(n, largest, has_forbidden))
    own, largest = own / unit, largest / unit
    own[~allowed] = ranges.dearest(n, largest, has_forbidden)
    if has_forbidden:
        in_full = own * unit - potentials.taken_off(np.zeros_like(own), leaving, coming)
        matrix[~allowed] = in_full[~allowed]
    host = Original(
        cost=functools.partial(_matrix_cost, matrix, 1),
        check=functools.partial(permutation.check, n),
        remaining=functools.partial(_forbidden_edges, allowed),
        max_feasible=n * largest if has_forbidden else None,
        unit=unit,
        offset=math.fsum([*leaving, *coming]) / unit,
        best_known=best_known,
        note="; ".join(filter(None, (note, unit_note(unit)))),
    )
    return _on_device(own, jnp.float32, host)


def _on_device(matrix: np.ndarray, dtype: Any, host: Original) -> TSP:
    return TSP(
        matrix=on_device(matrix.ravel(), dtype),
        capacity=len(matrix),
        metric="MATRIX",
        is_symmetric=np.array_equal(matrix, matrix.T),
        device_units=host.units,
        host=host,
    )


def _checked_matrix(distances: Any, allow_inf: bool) -> np.ndarray:
    """Returns [n, n] int64 or float64 with a zero diagonal."""
    shape = quick_shape(distances)
    if len(shape) == 2 and shape[0] == shape[1]:
        ranges.check_memory(shape[0], "tsp_from_coords(..., storage='coordinates')")
    matrix = real_array(distances, "distances")
    if matrix.ndim == 2 and matrix.shape[1] == 2 and matrix.shape[0] > 2:
        raise ValueError(
            f"distances has shape {matrix.shape}, expected (n, n); for coordinates use"
            " tsp_from_coords"
        )
    hint = "; of places in space, pass distances" if matrix.shape[1:] == (3,) else ""
    check_square(matrix, "distances", hint)
    matrix = matrix.copy()
    np.fill_diagonal(matrix, 0)
    is_bad = ~np.isfinite(matrix)
    if allow_inf:
        is_bad &= ~np.isposinf(matrix)
    refuse_first(matrix, is_bad, "distance", "; forbidden='inf' allows it")
    return matrix


def _is_triangle(matrix: np.ndarray) -> bool:
    """Returns whether all is 0 on one side of the diagonal, and not on the other."""
    below = any(row[:i].any() for i, row in enumerate(matrix))
    return below != any(row[i + 1 :].any() for i, row in enumerate(matrix))


def _refuse_negative(matrix: np.ndarray) -> None:
    if (matrix < 0).any():
        row, column = np.argwhere(matrix < 0)[0].tolist()
        raise ValueError(
            f"distance[{row},{column}] is {matrix[row, column]}, expected 0 or more; for an edge"
            " that is missing give inf and forbidden='inf', and for distances that are negative"
            " tsp(..., allow_negative=True)"
        )


def _matrix_cost(matrix: np.ndarray, unit: int, tour: np.ndarray) -> int | float:
    lengths = matrix[tour, np.roll(tour, -1)].tolist()
    return unit * sum(lengths) if matrix.dtype.kind == "i" else math.fsum(lengths)


def _forbidden_edges(allowed: np.ndarray, tour: np.ndarray) -> str:
    number = int((~allowed[tour, np.roll(tour, -1)]).sum())
    if not number:
        return ""
    return f"{number} forbidden edge{' remains' if number == 1 else 's remain'}"
