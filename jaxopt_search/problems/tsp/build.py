"""TSP instances from what users have: a matrix, coordinates, or an instance that was read.

Everything is checked here, on the host, before anything is compiled.
"""

import dataclasses
import functools
import math
from typing import Any, Literal, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search.checks import MAX_INT32, check_best_known, check_option, check_permutation
from jaxopt_search.datasets import distances as metrics
from jaxopt_search.datasets.instances import TSPInstance
from jaxopt_search.guards.forks import refuse_orphans
from jaxopt_search.portable.packed_pairs import Pairs, pack
from jaxopt_search.problems.host import Original
from jaxopt_search.problems.matrix_input import (
    DType,
    is_integral,
    is_mostly_common,
    is_nearly_symmetric,
    largest_of,
    power_of_two,
    quick_shape,
    real_array,
    refuse_first,
    unit_note,
)
from jaxopt_search.problems.tsp.problem import DISTANCES, MAX_SQUARED, TSP

Storage: TypeAlias = Literal["auto", "matrix", "coordinates"]

METRICS = (None, "MATRIX", "EUCLID", *metrics.EDGE_WEIGHTS)
"""What may be said about the data of `solve_tsp`."""

_FLOAT32_MAX = float(np.finfo(np.float32).max)
_LEAST_DIAMETER = 2.0**-40  # below, squared distances of neighbors may be 0 in float32
_LARGEST_FLOAT = float(np.finfo(np.float64).max)
_SAMPLED_CITIES = 256
_HALF_THE_EQUATOR = 20_038  # kilometers of TSPLIB's GEO, plus 1
_EDGES_IN_A_DELTA = 6
_MAX_MATRIX_BYTES = 2**30
_MATRIX_CITIES_ON_CPU = 1500  # a matrix of 9 MB; below, reading it beats computing distances


def tsp(
    distances: Any,
    *,
    dtype: DType | None = None,
    forbidden: Literal["inf"] | None = None,
    best_known: float | None = None,
) -> TSP:
    """Returns a TSP instance from a matrix of distances.

    Integers, and floats that are all integral, make an exact integer instance. The diagonal is
    ignored. Negative and asymmetric distances are allowed; an asymmetry of float distances within
    a relative 1e-6 is taken for rounding noise and averaged out.

    Float distances are of any size. Where float32 could not hold them or their squares (the largest
    is below 1e-12 or above 1e16 or so), the device counts in a power of two, `problem.host.unit`,
    in which temperatures are to be given then. Where distances are nearly all the same but for what
    leaving one city and coming to another costs, these costs, which all tours share, are left out
    on the device. Costs and targets are in full, always.

    Args:
      distances: [n, n] real numbers, from row to column.
      dtype: `"float32"` to give up exactness where an integer instance is too large for int32.
      forbidden: `"inf"` to read +inf as "no such edge"; `Result.feasible` tells whether a tour
        does without them.
      best_known: the best-known length, for `Result.gap`.

    Raises:
      ValueError: for a wrong shape, NaN, infinity, or integers too large for int32 arithmetic.
      TypeError: for entries that are not real numbers.

    Example:
      >>> problem = tsp([[0, 3, 4, 5], [3, 0, 5, 4], [4, 5, 0, 3], [5, 4, 3, 0]])
      >>> int(problem.cost(jax.numpy.arange(4)))
      16
    """
    refuse_orphans()
    check_option("dtype", dtype, (None, "int32", "float32"))
    check_option("forbidden", forbidden, (None, "inf"))
    check_best_known(best_known)
    matrix = _checked_matrix(distances, allow_inf=forbidden == "inf")
    allowed = np.isfinite(matrix)
    is_exact = dtype != "float32" and is_integral(matrix[allowed])
    if dtype == "int32" and not is_exact:
        raise ValueError("dtype is 'int32', expected None or 'float32' for fractional distances")
    matrix = np.where(allowed, matrix, 0).astype(np.int64 if is_exact else np.float64)
    return (_integer_tsp if is_exact else _float_tsp)(matrix, allowed, best_known)


def _integer_tsp(matrix: np.ndarray, allowed: np.ndarray, best_known: float | None) -> TSP:
    """Returns an exact instance, counted in multiples of a common divisor if it must.

    Args:
      matrix: [n, n] int64, 0 where an edge is not `allowed`.
    """
    n, largest = len(matrix), largest_of(matrix)
    has_forbidden, unit = not allowed.all(), 1
    if _bound(n, _dearest(n, largest, has_forbidden)) > MAX_INT32:
        unit = max(int(np.gcd.reduce(matrix, axis=None)), 1)
        matrix, largest = matrix // unit, largest // unit
    dearest = _dearest(n, largest, has_forbidden)
    matrix[~allowed] = dearest
    _check_bound(n, dearest)
    host = Original(
        cost=functools.partial(_matrix_cost, matrix, unit),
        check=functools.partial(_check_tour, n),
        is_feasible=functools.partial(_uses_only, allowed),
        max_feasible=n * largest if has_forbidden else None,
        unit=unit,
        best_known=best_known,
    )
    return _of_matrix(matrix, jnp.int32, host)


def _float_tsp(matrix: np.ndarray, allowed: np.ndarray, best_known: float | None) -> TSP:
    """Returns an instance of float32 distances.

    Args:
      matrix: [n, n] float64, 0 where an edge is not `allowed`.
    """
    n, has_forbidden, note = len(matrix), not allowed.all(), ""
    _check_float_range(n, largest_of(matrix))
    leaving, coming = _shared(matrix, allowed)
    own = np.where(allowed, _less(matrix, leaving, coming), 0)
    if not np.array_equal(matrix, matrix.T):
        mean, least = (leaving + coming) / 2, largest_of(own) if leaving.any() else 0.0
        if is_nearly_symmetric(_less(matrix, mean, mean), least):
            matrix, leaving, coming = matrix / 2 + matrix.T / 2, mean, mean
            own = np.where(allowed, _less(matrix, mean, mean), 0)
            note = "distances were symmetrized (they differed by a relative 1e-6 at most)"
    largest = largest_of(own)
    unit = float_unit(n, _dearest(n, largest, has_forbidden))
    own, largest = own / unit, largest / unit
    own[~allowed] = _dearest(n, largest, has_forbidden)
    if has_forbidden:
        matrix[~allowed] = (own * unit - _less(np.zeros_like(own), leaving, coming))[~allowed]
    host = Original(
        cost=functools.partial(_matrix_cost, matrix, 1),
        check=functools.partial(_check_tour, n),
        is_feasible=functools.partial(_uses_only, allowed),
        max_feasible=n * largest if has_forbidden else None,
        unit=unit,
        offset=math.fsum([*leaving, *coming]) / unit,
        best_known=best_known,
        note="; ".join(filter(None, (note, unit_note(unit)))),
    )
    return _of_matrix(own, jnp.float32, host)


def _of_matrix(matrix: np.ndarray, dtype: Any, host: Original) -> TSP:
    return TSP(
        matrix=jnp.asarray(matrix.ravel(), dtype),
        n=len(matrix),
        metric="MATRIX",
        is_symmetric=np.array_equal(matrix, matrix.T),
        host=host,
    )


def _shared(matrix: np.ndarray, allowed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns what each city adds to all distances from it, and to those to it, [n] each.

    All tours share the sum, as they leave each city once and come to it once. Without it, the
    shortest distance is 0. Zeros where it is not most of the distances.
    """
    nothing = np.zeros(len(matrix))
    is_known = allowed & ~np.eye(len(matrix), dtype=bool)
    if not is_known.any():
        return nothing, nothing
    for leaving, coming in ((nothing, nothing), _medians(matrix, is_known)):
        left = _less(matrix, leaving, coming)
        least = left.min(where=is_known, initial=np.inf)
        if is_mostly_common(largest_of(matrix), left.max(where=is_known, initial=least) - least):
            return leaving + least / 2, coming + least / 2
    return nothing, nothing


def _medians(matrix: np.ndarray, is_known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns what leaving each city and coming to it typically cost, [n] each."""
    some = np.arange(len(matrix))[:: max(1, len(matrix) // _SAMPLED_CITIES)]
    # Rows are compared with one of them, because their own numbers may differ much.
    one = is_known.sum(axis=1).argmax()
    is_in_both = is_known[:, some] & is_known[one, some]
    leaving = _row_medians(matrix[:, some] - matrix[one, some], is_in_both)
    coming = _row_medians((matrix[some] - leaving[some, None]).T, is_known[some].T)
    if np.array_equal(matrix, matrix.T):
        leaving = coming = (leaving + coming) / 2
    return leaving, coming


def _row_medians(matrix: np.ndarray, is_known: np.ndarray) -> np.ndarray:
    """Returns the median of what is known of each row, the lower one of two; 0 for nothing."""
    ordered, num = np.sort(np.where(is_known, matrix, np.inf), axis=1), is_known.sum(axis=1)
    middle = np.take_along_axis(ordered, np.maximum(num - 1, 0)[:, None] // 2, axis=1)[:, 0]
    return np.where(num > 0, middle, 0.0)


def _less(matrix: np.ndarray, leaving: np.ndarray, coming: np.ndarray) -> np.ndarray:
    """Returns the matrix with 0 on the diagonal and less elsewhere by what is shared."""
    left = matrix - (leaving[:, None] + coming)
    np.fill_diagonal(left, 0)
    return left


def tsp_from_coords(
    coords: Any,
    *,
    metric: str = "EUCLID",
    storage: Storage = "auto",
    best_known: float | None = None,
) -> TSP:
    """Returns a TSP instance from coordinates in the plane.

    Under `"EUCLID"` they are of any size; of units, see `tsp`.

    Args:
      coords: [n, 2] real numbers; for `"GEO"` latitude and longitude as DDD.MM.
      metric: `"EUCLID"` for float32 distances, or one of TSPLIB's integer rules `"EUC_2D"`,
        `"CEIL_2D"`, `"ATT"`, `"GEO"`.
      storage: where distances come from on the device, `"matrix"` (n * n * 4 bytes) or
        `"coordinates"`. `"auto"` takes what is faster. Integer rules can be computed exactly only
        from integer coordinates that are not too far apart, and never for GEO; else a matrix is
        used. For an integer rule the choice changes no result.
      best_known: the best-known length, for `Result.gap`.

    Raises:
      ValueError: for a wrong shape, NaN or infinity, an unknown metric, or a matrix too large.
      TypeError: for entries that are not real numbers.

    Example:
      >>> problem = tsp_from_coords([[0, 0], [3, 0], [3, 4], [0, 4]], metric="EUC_2D")
      >>> int(problem.cost(jax.numpy.arange(4)))
      14
    """
    refuse_orphans()
    check_option("metric", metric, ("EUCLID", *metrics.EDGE_WEIGHTS))
    check_option("storage", storage, ("auto", "matrix", "coordinates"))
    check_best_known(best_known)
    points = _checked_coords(coords)
    n, is_exact = len(points), metric != "EUCLID"
    can_compute = is_computable(points, metric)
    if storage == "coordinates" and not can_compute:
        raise ValueError(
            f"storage is 'coordinates', expected 'matrix': the {metric} distances of these"
            " coordinates cannot be computed exactly in int32"
        )
    if storage == "auto":
        is_small = jax.default_backend() == "cpu" and n <= _MATRIX_CITIES_ON_CPU
        storage = "matrix" if is_small or not can_compute else "coordinates"
    diameter, unit = diameters(points).item(), 1
    if is_exact:  # rounding adds up to 1
        _check_bound(n, diameter + 1 if metric in DISTANCES else _HALF_THE_EQUATOR)
    else:
        _check_float_range(n, diameter)
        unit = float_unit(n, diameter)
    places = points / unit
    host = Original(
        cost=functools.partial(_coords_cost, points, metric),
        check=functools.partial(_check_tour, n),
        unit=unit,
        best_known=best_known,
        coords=places,
        note=unit_note(unit),
    )
    common: dict[str, Any] = {"n": n, "is_symmetric": True, "host": host}
    if storage == "matrix":
        _check_memory(n, "storage='coordinates'" if can_compute else "metric='EUCLID'")
        matrix = metrics.distance_matrix(points, metric) if is_exact else _euclid_matrix(places)
        return TSP(matrix=jnp.asarray(matrix.ravel(), _dtype(is_exact)), metric="MATRIX", **common)
    x, y = jnp.asarray((places - places.min(axis=0)).T, _dtype(is_exact))
    return TSP(coords=pack(x, y) if is_exact else Pairs(x, y), metric=metric, **common)


def tsp_from_instance(instance: TSPInstance, *, storage: Storage = "auto") -> TSP:
    """Returns the TSP of an instance that was read or generated by `jaxopt_search.datasets`."""
    if instance.matrix is not None:
        problem = tsp(instance.matrix, best_known=instance.best_known)
    else:
        problem = tsp_from_coords(
            instance.coordinates,
            metric=instance.edge_weight_type,
            storage=storage,
            best_known=instance.best_known,
        )
    host = dataclasses.replace(problem.host, is_optimal=instance.is_optimal)
    return dataclasses.replace(problem, host=host)


def as_tsp(data: Any, metric: str | None = None, dtype: DType | None = None) -> TSP:
    """Returns the TSP that `data` stands for.

    Args:
      data: a `TSP`; a `TSPInstance`; [n, 2] coordinates, two cities included; or an [n, n] matrix.
      metric: the rule by which coordinates give distances, as in `tsp_from_coords`, or `"MATRIX"`
        for a matrix, also of two cities. None for the Euclidean metric of coordinates.
      dtype: as in `tsp`; `data` is a matrix if it is given.
    """
    check_option("metric", metric, METRICS)
    if isinstance(data, TSP | TSPInstance):
        for name, value in (("metric", metric), ("dtype", dtype)):
            if value is not None:
                kind = type(data).__name__
                raise ValueError(f"{name} is {value!r} beside a {kind}, expected None")
        return data if isinstance(data, TSP) else tsp_from_instance(data)
    if dtype is not None and metric not in (None, "MATRIX"):
        raise ValueError(f"dtype is {dtype!r} beside metric {metric!r}, expected None")
    shape = quick_shape(data)
    if metric == "MATRIX" or dtype is not None:
        return tsp(data, dtype=dtype)
    if metric is not None or (len(shape) == 2 and shape[1] == 2):
        return tsp_from_coords(data, metric=metric or "EUCLID")
    return tsp(data)


def _checked_matrix(distances: Any, allow_inf: bool) -> np.ndarray:
    """Returns [n, n] int64 or float64 with a zero diagonal."""
    shape = quick_shape(distances)
    if len(shape) == 2 and shape[0] == shape[1]:
        _check_memory(shape[0], "tsp_from_coords(..., storage='coordinates')")
    matrix = real_array(distances, "distances")
    if matrix.ndim == 2 and matrix.shape[1] == 2 and matrix.shape[0] > 2:
        raise ValueError(
            f"distances has shape {matrix.shape}, expected (n, n); for coordinates use"
            " tsp_from_coords"
        )
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ValueError(f"distances has shape {matrix.shape}, expected (n, n) with n >= 1")
    matrix = matrix.copy()
    np.fill_diagonal(matrix, 0)
    is_bad = ~np.isfinite(matrix)
    if allow_inf:
        is_bad &= ~np.isposinf(matrix)
    refuse_first(matrix, is_bad, "distance", "; forbidden='inf' allows it")
    return matrix


def _checked_coords(coords: Any) -> np.ndarray:
    """Returns [n, 2] float64."""
    points = real_array(coords, "coords")
    if points.ndim != 2 or points.shape[1] != 2 or not points.size:
        raise ValueError(f"coords has shape {points.shape}, expected (n, 2) with n >= 1")
    refuse_first(points, ~np.isfinite(points), "coords")
    return points.astype(np.float64)


def stack_of_coords(coords: Any) -> np.ndarray:
    """Returns [B, n, 2] float64, checked."""
    points = real_array(coords, "coords")
    if points.ndim != 3 or points.shape[2] != 2 or not points.size:
        raise ValueError(f"coords has shape {points.shape}, expected (B, n, 2) with B, n >= 1")
    refuse_first(points, ~np.isfinite(points), "coords")
    points = points.astype(np.float64)
    _check_float_range(points.shape[1], diameters(points).max().item())
    return points


def diameters(points: np.ndarray) -> np.ndarray:
    """Returns the diagonals of what bounds coordinates [..., n, 2]."""
    with np.errstate(over="ignore"):
        return np.hypot(*np.moveaxis(np.ptp(points, axis=-2), -1, 0))


def float_unit(n: int, largest: float) -> float:
    """Returns the power of two that float distances are counted in: 1 where float32 holds them.

    That is, where it holds sums of them, and squares of coordinates, also those of neighbors.

    Args:
      largest: distance.
    """
    is_held = max(_bound(n, largest), largest * largest) <= _FLOAT32_MAX
    is_held &= largest >= _LEAST_DIAMETER
    return 1 if is_held or not largest else power_of_two(largest)


def _dearest(n: int, largest: Any, has_forbidden: bool) -> Any:
    """Returns the largest entry of the matrix on the device.

    A forbidden edge makes a tour dearer than every tour without one, negative distances included.
    """
    if not has_forbidden:
        return largest
    return 2 * n * largest + 1 if isinstance(largest, int) else 2 * n * (largest or 1.0)


def _bound(n: int, largest: Any) -> Any:
    """Returns what no cost, and no sum in a delta, exceeds."""
    return max(n, _EDGES_IN_A_DELTA) * largest


def _check_bound(n: int, largest: Any) -> None:
    bound = _bound(n, largest)
    if bound > MAX_INT32:
        raise ValueError(
            f"distances up to {largest:.6g} over {n} cities reach costs of {bound:.6g}, beyond"
            f" int32 ({MAX_INT32}); use dtype='float32' or metric='EUCLID' for inexact costs"
        )


def _check_float_range(n: int, largest: float) -> None:
    # A forbidden edge counts as 2 n others.
    if not largest <= _LARGEST_FLOAT / (2 * max(n, _EDGES_IN_A_DELTA) ** 2):
        raise ValueError(
            f"distances reach {largest:.6g}, expected ones that float64 can add up over {n} cities;"
            " divide them by a constant"
        )


def _check_memory(n: int, way_out: str) -> None:
    num_bytes = 4 * n * n
    if num_bytes > _MAX_MATRIX_BYTES:
        raise ValueError(
            f"a matrix of {n} cities takes {num_bytes / 2**30:.1f} GiB on each device, expected at"
            f" most 1 GiB; use {way_out}"
        )


def _dtype(is_exact: bool) -> Any:
    return jnp.int32 if is_exact else jnp.float32


def is_computable(points: np.ndarray, metric: str) -> bool:
    """Returns whether the device gets these distances right from coordinates."""
    if metric == "EUCLID":
        return True
    if metric not in DISTANCES or not is_integral(points):
        return False
    dx, dy = np.ptp(points, axis=0)
    return dx * dx + dy * dy <= MAX_SQUARED


def _euclid_matrix(points: np.ndarray) -> np.ndarray:
    return np.stack([np.hypot(*(points - point).T) for point in points])


def _check_tour(n: int, values: Any, name: str) -> np.ndarray:
    return check_permutation(values, n, name)


def _matrix_cost(matrix: np.ndarray, unit: int, tour: np.ndarray) -> int | float:
    lengths = matrix[tour, np.roll(tour, -1)].tolist()
    return unit * sum(lengths) if matrix.dtype.kind == "i" else math.fsum(lengths)


def _coords_cost(points: np.ndarray, metric: str, tour: np.ndarray) -> int | float:
    if metric == "EUCLID":
        steps = points[tour] - points[np.roll(tour, -1)]
        return math.fsum(np.hypot(*steps.T))
    return metrics.tour_length(points, metric, tour)


def _uses_only(allowed: np.ndarray, tour: np.ndarray) -> bool:
    return bool(allowed[tour, np.roll(tour, -1)].all())
