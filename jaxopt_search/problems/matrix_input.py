"""Checks on matrices and coordinates that users hand in, shared by all problems.

Of arrays that are being traced, inside `jit` or `vmap`, only shapes and dtypes can be checked.
"""

import dataclasses
from typing import Any, Literal, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jaxopt_search.checks import check_option, check_square, plain_array, real_array
from jaxopt_search.problems.bounds import check_bytes

DType: TypeAlias = Literal["int32", "float32"]
_DTYPES = (None, "int32", "float32")


def on_device(values: Any, dtype: Any) -> jax.Array:
    """Returns a copy with a dtype; converted on the host and put, which compiles nothing."""
    return jax.device_put(np.array(values, dtype))


def quick_shape(values: Any) -> tuple[int, ...]:
    """Returns the shape of an array, or of nested lists if they are not ragged.

    Unlike `np.shape`, it copies no list.
    """
    if isinstance(values, list | tuple):
        return (len(values), *quick_shape(values[0])) if values else (0,)
    return tuple(getattr(values, "shape", ()))


def is_stack(data: Any) -> bool:
    """Returns whether data have the form of matrices of several instances."""
    if isinstance(data, list | tuple):
        return any(len(quick_shape(one)) == 2 for one in data)
    return len(quick_shape(data)) == 3


def may_be_rows(matrices: np.ndarray) -> bool:
    """Returns whether matrices may be rows of other numbers, such as places in space.

    They may if one is neither symmetric nor of one value on the diagonal, infinite ones aside.

    Args:
      matrices: [B, n, n], or [n, n].
    """
    diagonals = np.diagonal(matrices, axis1=-2, axis2=-1)
    is_one = ((diagonals == diagonals[..., :1]) | ~np.isfinite(diagonals)).all(axis=-1)
    is_symmetric = (matrices == matrices.swapaxes(-2, -1)).all(axis=(-2, -1))
    return not (is_one | is_symmetric).all()


def refuse_first(array: np.ndarray, is_bad: np.ndarray, name: str, hint: str = "") -> None:
    """Refuses an array with a bad entry, naming the first one.

    Args:
      hint: what to do about an infinite or missing entry.
    """
    if is_bad.any():
        index = tuple(np.argwhere(is_bad)[0].tolist())
        value, where = array[index], ",".join(map(str, index))
        text = "NaN" if np.isnan(value) else str(value)
        hint = "" if value == -np.inf else hint
        raise ValueError(f"{name}[{where}] is {text}, expected a finite number{hint}")


def finite_matrix(values: Any, name: str) -> np.ndarray:
    """Returns a matrix as int64 or float64, all finite, that is not too large for a device."""
    if len(shape := quick_shape(values)) == 2:
        check_bytes(4 * shape[0] * shape[1], f"{name} of shape {shape}")
    matrix = real_array(values, name)
    refuse_first(matrix, ~np.isfinite(matrix), name)
    return matrix


def integer_pairs(values: Any, name: str) -> np.ndarray:
    """Returns a list of pairs of integers, [k, 2]."""
    pairs = plain_array(values, name)
    if pairs.size == 0 and pairs.shape in ((0,), (0, 2)):
        return np.zeros((0, 2), np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(f"{name} has shape {pairs.shape}, expected (k, 2)")
    if not np.issubdtype(pairs.dtype, np.integer):
        raise ValueError(f"{name} has dtype {pairs.dtype}, expected integers")
    return pairs


def check_below(pairs: np.ndarray, name: str, *limits: int) -> None:
    """Refuses pairs of integers, [k, 2], that are not from 0 on and below their limits."""
    wrong = (pairs < 0) | (pairs >= limits)
    if wrong.any():
        i, j = np.argwhere(wrong)[0].tolist()
        hint = "; count from 0" if pairs.min() == 1 else ""
        raise ValueError(f"{name}[{i},{j}] is {pairs[i, j]}, expected 0 to {limits[j] - 1}{hint}")


def has_exact_costs(dtype: DType | None, what: str, *arrays: np.ndarray) -> bool:
    """Returns whether an instance is one of integers, from its numbers and the user's wish."""
    check_option("dtype", dtype, _DTYPES)
    is_exact = all(map(is_integral, arrays))
    if dtype == "int32" and not is_exact:
        raise ValueError(f"dtype is 'int32', expected None or 'float32' for fractional {what}")
    return is_exact and dtype != "float32"


def is_integral(values: np.ndarray) -> bool:
    """Returns whether all values are integers that a float64 holds exactly."""
    if values.dtype.kind == "i":
        return True
    return bool((np.abs(values) <= 2.0**53).all() and (values == np.floor(values)).all())


def is_nearly_symmetric(matrix: np.ndarray) -> bool:
    """Returns whether a matrix is symmetric but for rounding noise, a relative 1e-6."""
    scale = np.maximum(np.abs(matrix), np.abs(matrix.T))
    return bool((np.abs(matrix - matrix.T) <= 1e-6 * scale).all())


def as_told(problem: Any, is_symmetric: bool | None, text: str) -> Any:
    """Returns a problem that is as symmetric as the user says, if he does.

    Args:
      text: the beginning of a sentence about its matrices.
    """
    if is_symmetric is None:
        return problem
    if is_symmetric and not problem.is_symmetric:
        raise ValueError(f"is_symmetric is True, expected None or False: {text} not symmetric")
    return dataclasses.replace(problem, is_symmetric=is_symmetric)


def is_traced(*trees: Any) -> bool:
    """Returns whether some array among the leaves is being traced."""
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(trees))


def traced_numbers(array: Any, name: str, dtype: Any = None) -> jax.Array:
    """Returns real numbers as int32 or float32.

    Args:
      dtype: of the two, or None for the one that suits.

    Raises:
      ValueError: for int32 from floats.
      TypeError: for complex numbers, keys and the like.
    """
    check_option("dtype", dtype, _DTYPES)
    array = jnp.asarray(array)
    is_real = any(jnp.issubdtype(array.dtype, kind) for kind in (jnp.floating, jnp.integer, bool))
    if not is_real:
        raise TypeError(f"{name} has dtype {array.dtype}, expected real numbers")
    is_float = jnp.issubdtype(array.dtype, jnp.floating)
    if is_float and dtype == "int32":
        raise ValueError(f"dtype is 'int32', expected None or 'float32': {name} may be fractional")
    return array.astype(dtype or (jnp.float32 if is_float else jnp.int32))


def traced_square(array: Any, name: str, dtype: Any = None) -> jax.Array:
    """Returns a matrix, [n, n] int32 or float32."""
    matrix = traced_numbers(array, name, dtype)
    check_square(matrix, name)
    return matrix


def refuse_options(data: str, **options: Any) -> None:
    """Refuses options, by name, that are not None, next to such data."""
    for name, value in options.items():
        if value is not None:
            raise ValueError(f"{name} is given with {data}, expected None")
