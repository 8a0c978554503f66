"""TSP instances from coordinates in the plane, checked on the host before anything is compiled."""

import functools
import math
from typing import Any, Literal, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search.backends.packed_pairs import PACKED_BELOW, Pairs, pack
from jaxopt_search.checks import MAX_INT32, check_best_known, check_option, real_array
from jaxopt_search.datasets import distances
from jaxopt_search.guards.forks import refuse_orphans
from jaxopt_search.problems import permutation, traced_input
from jaxopt_search.problems.host import Original
from jaxopt_search.problems.matrix_input import (
    check_places,
    is_integral,
    on_device,
    refuse_first,
    unit_note,
)
from jaxopt_search.problems.tsp import construction, ranges, traced
from jaxopt_search.problems.tsp.problem import DISTANCES, MAX_DISTANCE, TSP

Storage: TypeAlias = Literal["auto", "matrix", "coordinates"]
_HALF_THE_EQUATOR = 20_038  # kilometers of TSPLIB's GEO, plus 1
_MATRIX_CITIES_ON_CPU = 1500  # a matrix of 9 MB; below, reading it beats computing distances
_ROWS = 128  # of a matrix, computed at once
_FAR = 2048.0  # times as far as the next one is a city at most, for float32 to tell tours apart


def tsp_from_coords(
    coords: Any,
    *,
    metric: str = "EUCLID",
    storage: Storage = "auto",
    best_known: float | None = None,
) -> TSP:
    """Returns a TSP instance from coordinates in the plane.

    Under `"EUCLID"` they are of any size; see `tsp` about units.

    Inside `jit` or `vmap`, `coords` may be traced. Then distances are Euclidean, of float32, and
    only shape and dtype are checked; see `tsp`.

    Args:
      coords: [n, 2] real numbers; for `"GEO"` latitude and longitude as DDD.MM, degrees and
        minutes. Minutes of 60 or more are computed with as TSPLIB does, and named in
        `Result.message`: they are mostly decimal degrees.
      metric: `"EUCLID"` for float32 distances, or one of TSPLIB's integer rules `"EUC_2D"`,
        `"CEIL_2D"`, `"ATT"`, `"GEO"`.
      storage: where distances come from on the device, `"matrix"` (n * n * 4 bytes) or
        `"coordinates"`. `"auto"` takes what is faster. Integer rules can be computed exactly only
        from integer coordinates that are not too far apart, and never for GEO; otherwise a matrix
        is used. For integer rules the choice changes no result.
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
    check_option("metric", metric, ("EUCLID", *distances.EDGE_WEIGHTS))
    check_option("storage", storage, ("auto", "matrix", "coordinates"))
    check_best_known(best_known)
    if traced_input.is_traced(coords):
        traced_input.refuse_options(best_known=best_known)
        return traced.of_coords(coords, metric, storage)
    points = checked_coords(coords)
    storage = _storage(points, metric, storage)
    _check_range(points, metric)
    is_exact = metric != "EUCLID"
    near, left_out = (points, 0) if is_exact else drawn_near(points)
    unit = 1 if is_exact else ranges.float_unit(len(points), diameters(near).item())
    places = near / unit
    host = Original(
        cost=functools.partial(_coords_cost, points, metric),
        check=functools.partial(permutation.check, len(points)),
        unit=unit,
        offset=left_out / unit if left_out else 0,
        best_known=best_known,
        coords=points / unit,
        note=_minutes_note(points) if metric == "GEO" else unit_note(unit),
    )
    if is_exact and ranges.bound(len(points), _longest(points, metric)) > MAX_INT32:
        host = construction.with_good_starts(host)
    common = {
        "capacity": len(points),
        "is_symmetric": True,
        "device_units": host.units,
        "host": host,
    }
    dtype = jnp.int32 if is_exact else jnp.float32
    if storage == "matrix":
        can_compute = is_computable(points, metric)
        ranges.check_memory(
            len(points), "storage='coordinates'" if can_compute else "metric='EUCLID'"
        )
        matrix = distances.distance_matrix(points, metric) if is_exact else _euclid_matrix(places)
        return TSP(matrix=on_device(matrix.ravel(), dtype), metric="MATRIX", **common)
    # Float coordinates count from the middle of most cities, where they are the most exact.
    x, y = np.asarray((places - (places.min(axis=0) if is_exact else middle(places))).T, dtype)
    can_pack = is_exact and max(x.max(), y.max()) < PACKED_BELOW
    pairs = jax.tree.map(jax.device_put, pack(x, y) if can_pack else Pairs(x, y))
    return TSP(coords=pairs, metric=metric, **common)


def _storage(points: np.ndarray, metric: str, wanted: Storage) -> Storage:
    """Returns where distances come from: `"matrix"` or `"coordinates"`."""
    can_compute = is_computable(points, metric)
    if wanted == "coordinates" and not can_compute:
        raise ValueError(
            f"storage is 'coordinates', expected 'matrix': the {metric} distances of these"
            " coordinates cannot be computed exactly in int32"
        )
    if wanted != "auto":
        return wanted
    is_small = len(points) <= _MATRIX_CITIES_ON_CPU
    is_small &= jax.default_backend() == "cpu"
    return "matrix" if is_small or not can_compute else "coordinates"


def middle(points: np.ndarray) -> np.ndarray:
    """Returns the medians of coordinates [n, 2] along both axes, [2]; the upper one of two."""
    return np.sort(points, axis=0)[len(points) // 2]


def drawn_near(points: np.ndarray) -> tuple[np.ndarray, float]:
    """Returns coordinates on which float32 can tell tours apart, and how much shorter all are.

    The distances of one city very far from all others would drown what lies between these. Drawn
    nearer on a straight line, it is nearer to all of them by the same, but for 1 / 4000 of what
    lies between them.
    """
    away = points - middle(points)
    distance = np.hypot(*away.T)
    far, most = distance.argmax(), _FAR * np.sort(distance)[-2:][0]
    if len(points) < 4 or not 0 < most < distance[far]:
        return points, 0.0
    near = points.copy()
    near[far] -= (1 - most / distance[far]) * away[far]
    return near, 2 * float(distance[far] - most)


def _check_range(points: np.ndarray, metric: str) -> None:
    """Refuses distances out of range."""
    if metric == "EUCLID":
        ranges.check_float_range(len(points), diameters(points).item())
    else:
        ranges.check_deltas(_longest(points, metric))


def _longest(points: np.ndarray, metric: str) -> float:
    """Returns what no distance exceeds by a rule that gives integers."""
    # Rounding adds up to 1.
    return diameters(points).item() + 1 if metric in DISTANCES else _HALF_THE_EQUATOR


def _minutes_note(points: np.ndarray) -> str:
    """Returns a sentence about the first city whose minutes are none; "" if there is no such."""
    minutes = np.round(100 * np.abs(points - np.trunc(points)), 6)
    if (minutes < 60).all():
        return ""
    city, axis = np.argwhere(minutes >= 60)[0].tolist()
    return (
        f"coords[{city},{axis}] is {points[city, axis]:g}, which as DDD.MM has minutes of 60 or"
        " more; of decimal degrees, give the whole part + 0.6 * the fraction"
    )


def checked_coords(coords: Any, name: str = "coords") -> np.ndarray:
    """Returns [n, 2] float64."""
    points = real_array(coords, name)
    check_places(points, name)
    refuse_first(points, ~np.isfinite(points), name)
    return points.astype(np.float64)


def stack_of_coords(coords: Any) -> list[np.ndarray]:
    """Returns the coordinates of B instances, [n, 2] float64 each, checked.

    Args:
      coords: [B, n, 2], or B arrays [n, 2] of whatever sizes.
    """
    if isinstance(coords, list | tuple):
        stack = [_one_of_stack(one, f"coords[{i}]") for i, one in enumerate(coords)]
        _refuse_single_cities([len(one) for one in stack])
        return stack
    points = real_array(coords, "coords")
    if points.ndim != 3 or points.shape[2] != 2 or not points.size:
        raise ValueError(f"coords has shape {points.shape}, expected (B, n, 2) with B, n >= 1")
    refuse_first(points, ~np.isfinite(points), "coords")
    _refuse_single_cities([points.shape[1]] * len(points))
    points = points.astype(np.float64)
    ranges.check_float_range(points.shape[1], diameters(points).max().item())
    return list(points)


def _refuse_single_cities(sizes: list[int]) -> None:
    if len(sizes) > 1 and max(sizes) == 1:
        raise ValueError(
            f"coords are {len(sizes)} instances of one city each; of one instance pass [n, 2],"
            " such as coords[:, 0]"
        )


def _one_of_stack(coords: Any, name: str) -> np.ndarray:
    points = checked_coords(coords, name)
    ranges.check_float_range(len(points), diameters(points).item(), f"distances of {name}")
    return points


def diameters(points: np.ndarray) -> np.ndarray:
    """Returns the diagonals of the boxes around coordinates [..., n, 2]."""
    with np.errstate(over="ignore"):
        return np.hypot(*np.moveaxis(np.ptp(points, axis=-2), -1, 0))


def is_computable(points: np.ndarray, metric: str) -> bool:
    """Returns whether the device computes these distances exactly from coordinates."""
    if metric == "EUCLID":
        return True
    if metric not in DISTANCES or not is_integral(points):
        return False
    return diameters(points).item() <= MAX_DISTANCE


def _euclid_matrix(points: np.ndarray) -> np.ndarray:
    (x, y), n = np.ascontiguousarray(points.T), len(points)
    matrix = np.empty((n, n))
    for low in range(0, n, _ROWS):
        high = low + _ROWS
        dx, dy = x[low:high, None] - x[low:], y[low:high, None] - y[low:]
        np.sqrt(dx * dx + dy * dy, out=matrix[low:high, low:])
        matrix[high:, low:high] = matrix[low:high, high:].T
    return matrix


def _coords_cost(points: np.ndarray, metric: str, tour: np.ndarray) -> int | float:
    if metric == "EUCLID":
        steps = points[tour] - points[np.roll(tour, -1)]
        return math.fsum(np.hypot(*steps.T))
    return distances.tour_length(points, metric, tour)
