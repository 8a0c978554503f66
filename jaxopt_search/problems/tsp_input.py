"""TSP instances from what users have: a matrix, coordinates, or an instance that was read.

Everything is checked here, on the host, before anything is compiled.
"""

import functools
import math
from typing import Any, Literal, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search import metrics
from jaxopt_search.checks import MAX_INT32, check_option, check_permutation
from jaxopt_search.datasets.instances import TSPInstance
from jaxopt_search.forks import refuse_orphans
from jaxopt_search.pairs import Pairs, pack
from jaxopt_search.problems.host import Host
from jaxopt_search.problems.matrix_input import (
    DType,
    is_integral,
    is_nearly_symmetric,
    real_array,
    refuse_first,
)
from jaxopt_search.problems.tsp import DISTANCES, MAX_SQUARED, TSP

Storage: TypeAlias = Literal["auto", "matrix", "coordinates"]

_FLOAT32_MAX = float(np.finfo(np.float32).max)
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
    shape = np.shape(distances) if isinstance(distances, np.ndarray | jax.Array) else ()
    _check_memory(shape[0] if len(shape) == 2 else 0, "tsp_from_coords(..., storage='coordinates')")
    matrix = _checked_matrix(distances, allow_inf=forbidden == "inf")
    n = matrix.shape[0]
    allowed = np.isfinite(matrix)
    is_exact = dtype != "float32" and is_integral(matrix[allowed])
    if dtype == "int32" and not is_exact:
        raise ValueError("dtype is 'int32', expected None or 'float32' for fractional distances")
    matrix = np.where(allowed, matrix, 0).astype(np.int64 if is_exact else np.float64)
    note = ""
    if not is_exact and not np.array_equal(matrix, matrix.T) and is_nearly_symmetric(matrix):
        matrix = matrix / 2 + matrix.T / 2
        note = "distances were symmetrized (they differed by a relative 1e-6 at most)"
    largest = max(matrix.max().item(), -matrix.min().item())
    has_forbidden, unit = not allowed.all(), 1
    if is_exact and _bound(n, _dearest(n, largest, has_forbidden)) > MAX_INT32:
        unit = max(int(np.gcd.reduce(matrix, axis=None)), 1)
        matrix, largest = matrix // unit, largest // unit
    dearest = _dearest(n, largest, has_forbidden)
    matrix[~allowed] = dearest
    _check_bound(n, dearest, is_exact)
    return TSP(
        matrix=jnp.asarray(matrix.ravel(), _dtype(is_exact)),
        n=n,
        metric="MATRIX",
        is_symmetric=np.array_equal(matrix, matrix.T),
        host=Host(
            cost=functools.partial(_matrix_cost, matrix, unit),
            check=functools.partial(_check_tour, n),
            is_feasible=functools.partial(_uses_only, allowed),
            max_feasible=n * largest if has_forbidden else None,
            unit=unit,
            best_known=best_known,
            note=note,
        ),
    )


def tsp_from_coords(
    coords: Any,
    *,
    metric: str = "EUCLID",
    storage: Storage = "auto",
    best_known: float | None = None,
) -> TSP:
    """Returns a TSP instance from coordinates in the plane.

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
    points = _checked_coords(coords)
    refuse_orphans()
    check_option("metric", metric, ("EUCLID", *metrics.EDGE_WEIGHTS))
    check_option("storage", storage, ("auto", "matrix", "coordinates"))
    n = len(points)
    can_compute = is_computable(points, metric)
    if storage == "coordinates" and not can_compute:
        raise ValueError(
            f"storage is 'coordinates', expected 'matrix': the {metric} distances of these"
            " coordinates cannot be computed exactly in int32"
        )
    if storage == "auto":
        is_small = jax.default_backend() == "cpu" and n <= _MATRIX_CITIES_ON_CPU
        storage = "matrix" if is_small or not can_compute else "coordinates"
    host = Host(
        cost=functools.partial(_coords_cost, points, metric),
        check=functools.partial(_check_tour, n),
        best_known=best_known,
        coords=points,
    )
    is_exact = metric != "EUCLID"
    diameter = math.hypot(*np.ptp(points, axis=0)) + is_exact  # rounding adds up to 1
    _check_bound(n, diameter if metric in DISTANCES else _HALF_THE_EQUATOR, is_exact)
    common: dict[str, Any] = {"n": n, "is_symmetric": True, "host": host}
    if storage == "matrix":
        _check_memory(n, "storage='coordinates'" if can_compute else "metric='EUCLID'")
        matrix = metrics.distance_matrix(points, metric) if is_exact else _euclid_matrix(points)
        return TSP(matrix=jnp.asarray(matrix.ravel(), _dtype(is_exact)), metric="MATRIX", **common)
    x, y = jnp.asarray((points - points.min(axis=0)).T, _dtype(is_exact))
    return TSP(coords=pack(x, y) if is_exact else Pairs(x, y), metric=metric, **common)


def tsp_from_instance(instance: TSPInstance, *, storage: Storage = "auto") -> TSP:
    """Returns the TSP of an instance that was read or generated by `jaxopt_search.datasets`."""
    if instance.matrix is not None:
        return tsp(instance.matrix, best_known=instance.best_known)
    return tsp_from_coords(
        instance.coordinates,
        metric=instance.edge_weight_type,
        storage=storage,
        best_known=instance.best_known,
    )


def as_tsp(data: Any) -> TSP:
    """Returns the TSP that `data` stands for.

    Args:
      data: a `TSP`; a `TSPInstance`; [n, 2] coordinates with n != 2, under the Euclidean metric;
        or an [n, n] matrix.
    """
    if isinstance(data, TSP):
        return data
    if isinstance(data, TSPInstance):
        return tsp_from_instance(data)
    array = real_array(data, "distances")
    if array.ndim == 2 and array.shape[1] == 2 and array.shape[0] != 2:
        return tsp_from_coords(array)
    return tsp(array)


def _checked_matrix(distances: Any, allow_inf: bool) -> np.ndarray:
    """Returns [n, n] int64 or float64 with a zero diagonal."""
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
    diameters = np.hypot(*np.ptp(points, axis=1).T)
    _check_bound(points.shape[1], diameters.max(), is_exact=False)
    return points


def _dearest(n: int, largest: int | float, has_forbidden: bool) -> int | float:
    """Returns the largest entry of the matrix on the device.

    A forbidden edge makes a tour dearer than every tour without one, negative distances included.
    """
    return 2 * n * largest + 1 if has_forbidden else largest


def _bound(n: int, largest: int | float) -> int | float:
    """Returns what no cost, and no sum in a delta, exceeds."""
    return max(n, _EDGES_IN_A_DELTA) * largest


def _check_bound(n: int, largest: int | float, is_exact: bool) -> None:
    bound = _bound(n, largest)
    if is_exact and bound > MAX_INT32:
        raise ValueError(
            f"distances up to {largest:.6g} over {n} cities reach costs of {bound:.6g}, beyond"
            f" int32 ({MAX_INT32}); use dtype='float32' or metric='EUCLID' for inexact costs"
        )
    # Squares of coordinates are to be finite, too.
    if not is_exact and not max(bound, largest * largest) <= _FLOAT32_MAX:
        raise ValueError(
            f"distances up to {largest:.6g} over {n} cities, expected ones that float32 can square"
            f" and add up (to {_FLOAT32_MAX:.6g}); divide them by a constant"
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
