"""A QAP of which some facilities are fixed to locations."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from jaxopt_search.checks import plain_array
from jaxopt_search.problems.qap.problem import QAP, Partial


def with_fixed(problem: QAP, partial_match: Any) -> QAP:
    """Returns a QAP with some facilities fixed to locations.

    Args:
      problem: a QAP of which nothing is fixed.
      partial_match: as in `qap`.
    """
    n = problem.capacity
    facilities, locations = _checked_pairs(partial_match, n).T
    # The last one has nowhere else to go.
    facilities, locations = facilities[: n - 1], locations[: n - 1]
    free = np.setdiff1d(np.arange(n), facilities).astype(np.int32)
    assignment = np.empty(n, np.int32)
    assignment[facilities] = locations
    assignment[free] = np.setdiff1d(np.arange(n), locations)
    is_free = np.isin(np.arange(n), free).astype(np.int32)
    partial = Partial(*map(jax.device_put, (assignment, free, is_free)))
    check = functools.partial(_check_fixed, problem.host.check, facilities, locations)
    host = dataclasses.replace(problem.host, check=check)
    return dataclasses.replace(problem, partial=partial, host=host)


def _checked_pairs(partial_match: Any, n: int) -> np.ndarray:
    """Returns [k, 2] int32: facilities and locations in range, each once."""
    pairs = plain_array(partial_match, "partial_match")
    if pairs.size == 0:
        pairs = pairs.reshape(0, 2).astype(np.int32)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(f"partial_match has shape {pairs.shape}, expected (k, 2)")
    if not np.issubdtype(pairs.dtype, np.integer):
        raise ValueError(f"partial_match has dtype {pairs.dtype}, expected integers")
    for column, what in zip(pairs.T, ("facility", "location"), strict=True):
        outside = column[(column < 0) | (column >= n)]
        if outside.size:
            raise ValueError(f"partial_match has {what} {outside[0]}, expected 0 to {n - 1}")
        values, counts = np.unique(column, return_counts=True)
        if (counts > 1).any():
            raise ValueError(f"partial_match has {what} {values[counts > 1][0]} twice")
    return pairs.astype(np.int32)


def _check_fixed(
    check: Callable[[Any, str], np.ndarray],
    facilities: np.ndarray,
    locations: np.ndarray,
    values: Any,
    name: str,
) -> np.ndarray:
    assignment = check(values, name)
    for facility, location in zip(facilities, locations, strict=True):
        if assignment[facility] != location:
            raise ValueError(
                f"{name} has facility {facility} at location {assignment[facility]}, expected"
                f" {location}, as partial_match says"
            )
    return assignment
