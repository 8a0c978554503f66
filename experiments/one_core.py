"""Loops that numba compiles for one core: the sequential baselines of experiments."""

import functools
import importlib.util
from collections.abc import Callable
from typing import Any


def has_numba() -> bool:
    """Returns whether a core can be measured."""
    return importlib.util.find_spec("numba") is not None


@functools.cache
def compiled(build: Callable[..., Any], *args: Any) -> Any:
    """Returns `build(compiler, *args)`, which compiles its functions when they are first called.

    Raises:
      ImportError: if numba is not installed, from the extra `peers`.
    """
    import numba

    return build(numba.njit(error_model="numpy"), *args)


def xorshift(word):
    """Returns the next state of a generator of 32 bits; Marsaglia, "Xorshift RNGs", 2003."""
    word ^= (word << 13) & 0xFFFFFFFF
    word ^= word >> 17
    return word ^ ((word << 5) & 0xFFFFFFFF)
