"""Counting the attacking pairs of queens in a double loop compiled for one core.

Of 32 bits throughout, so that the compiler makes vector instructions of it. It needs numba, from
the extra `peers`.
"""

import functools
from collections.abc import Callable

import numpy as np


@functools.cache
def compiled() -> Callable[[np.ndarray], int]:
    """Returns a function from [n] int32 to the number of attacking pairs.

    Raises:
      ImportError: if numba is missing.
    """
    import numba

    @numba.njit
    def count(queens):
        attacks = 0
        for i in range(len(queens) - 1):
            own, behind, found = queens[i], queens[i + 1 :], np.int32(0)
            for k in range(len(behind)):
                if abs(np.int32(behind[k] - own)) == np.int32(k + 1):
                    found += np.int32(1)
            attacks += found
        return attacks

    return count
