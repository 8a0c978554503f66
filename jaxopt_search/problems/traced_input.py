"""Matrices and coordinates that are being traced, inside `jit` or `vmap`, shared by all problems.

Only their shapes and dtypes can be checked.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer

from jaxopt_search.problems.matrix_input import check_square


def is_traced(*trees: Any) -> bool:
    """Returns whether some array among the leaves is being traced."""
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(trees))


def numbers(array: Any, name: str, dtype: Any = None) -> jax.Array:
    """Returns real numbers as int32 or float32.

    Args:
      dtype: of the two, or None for the one that suits.

    Raises:
      ValueError: for int32 from floats.
      TypeError: for complex numbers, keys and the like.
    """
    array = jnp.asarray(array)
    is_real = any(jnp.issubdtype(array.dtype, kind) for kind in (jnp.floating, jnp.integer, bool))
    if not is_real:
        raise TypeError(f"{name} has dtype {array.dtype}, expected real numbers")
    is_float = jnp.issubdtype(array.dtype, jnp.floating)
    if is_float and dtype == "int32":
        raise ValueError(f"dtype is 'int32', expected None or 'float32': {name} may be fractional")
    return array.astype(dtype or (jnp.float32 if is_float else jnp.int32))


def square(array: Any, name: str, dtype: Any = None) -> jax.Array:
    """Returns a matrix, [n, n] int32 or float32."""
    matrix = numbers(array, name, dtype)
    check_square(matrix, name)
    return matrix


def check_symmetry(is_symmetric: bool | None) -> bool:
    """Returns what the user says of matrices whose entries cannot be compared."""
    if is_symmetric not in (True, False):
        raise ValueError(
            f"is_symmetric is {is_symmetric!r}, expected True or False for matrices that are being"
            " traced"
        )
    return is_symmetric


def refuse_options(**options: Any) -> None:
    """Refuses options, by name, that are not None."""
    for name, value in options.items():
        if value is not None:
            raise ValueError(f"{name} is given, expected None for arrays that are being traced")
