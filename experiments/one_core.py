"""What the loops that numba compiles for one core have in common."""

import importlib.util
from collections.abc import Callable
from typing import Any


def has_numba() -> bool:
    """Returns whether a core can be measured."""
    return importlib.util.find_spec("numba") is not None


def compile_by(numba: Any) -> Callable[[Any], Any]:
    """Returns the decorator by which loops are compiled."""
    return numba.njit(error_model="numpy")
