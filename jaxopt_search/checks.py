"""Checks on what users hand in, on the host."""

from typing import Any

import numpy as np


def check_permutation(values: Any, n: int, name: str) -> np.ndarray:
    """Returns `values` as [n] int32, or says why it is no permutation of 0 to n - 1.

    Raises:
      ValueError: naming `name` and the offending value.
    """
    array = np.asarray(values)
    if array.shape != (n,):
        raise ValueError(f"{name} has shape {array.shape}, expected ({n},)")
    if not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} has dtype {array.dtype}, expected integers")
    if n and array.min() == 1 and array.max() == n and np.unique(array).size == n:
        raise ValueError(f"{name} counts from 1, expected a permutation of 0 to {n - 1}")
    outside = array[(array < 0) | (array >= n)]
    if outside.size:
        raise ValueError(f"{name} holds {outside[0]}, expected a permutation of 0 to {n - 1}")
    counts = np.bincount(array, minlength=n)
    if counts.max(initial=0) > 1:
        raise ValueError(f"{name} holds {counts.argmax()} twice, expected a permutation")
    return array.astype(np.int32)
