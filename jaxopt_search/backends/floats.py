# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""Float arithmetic that every program rounds in the same way.

A compiler chooses the order in which it sums an array, and may add to a product without rounding
the product first. Its choice depends on the shapes around, such as how many searches are on a
device; so it would be seen in the course of a search. Integers have no such choices and are left to
the compiler.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends import loops

_TERMS = 16  # of a product of matrices in a step; on a CPU eight take several times as long


def any_in(tree: Any) -> bool:
    """Returns whether a pytree holds floats, of which running sums drift."""
    return any(jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in jax.tree.leaves(tree))


def product(a: jax.Array, b: jax.Array) -> jax.Array:
    """Returns `a * b`; of float32, with the last bit 0, so that no sum takes it unrounded.

    Portable.
    """
    found = a * b
    if found.dtype != jnp.float32:
        return found
    bits = lax.bitcast_convert_type(found, jnp.int32) & jnp.int32(-2)
    return lax.bitcast_convert_type(bits, jnp.float32)


def total(values: jax.Array) -> jax.Array:
    """Returns the sum over the last axis, in the dtype of `values`; of floats, half upon half.

    Zeros at the end change nothing, however many.
    """
    if not jnp.issubdtype(values.dtype, jnp.floating):
        return jnp.sum(values, axis=-1, dtype=values.dtype)
    size = values.shape[-1]
    room = (1 << max(size - 1, 0).bit_length()) - size
    values = jnp.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, room)])
    while values.shape[-1] > 1:
        half = values.shape[-1] // 2
        values = values[..., :half] + values[..., half:]
    return values[..., 0]


def matmul(first: jax.Array, second: jax.Array) -> jax.Array:
    """Returns the product of matrices [l, m] and [m, n]; of floats, term after term."""
    if not jnp.issubdtype(first.dtype, jnp.floating):
        return jnp.matmul(first, second)
    room = -first.shape[1] % _TERMS
    first, second = jnp.pad(first, ((0, 0), (0, room))), jnp.pad(second, ((0, room), (0, 0)))

    def add(number: jax.Array, sums: jax.Array) -> jax.Array:
        columns = lax.dynamic_slice_in_dim(first, number * _TERMS, _TERMS, axis=1)
        rows = lax.dynamic_slice_in_dim(second, number * _TERMS, _TERMS, axis=0)
        for k in range(_TERMS):
            sums = sums + product(columns[:, k : k + 1], rows[k : k + 1])
        return sums

    start = jnp.zeros((first.shape[0], second.shape[1]), first.dtype)
    return loops.fori_loop(0, first.shape[1] // _TERMS, add, start)


def norm(values: jax.Array) -> jax.Array:
    """Returns the square root of the sum of squares, [] float32, also where squares are no float32.

    Args:
      values: float32, finite.
    """
    unit = power_of_two(10, jnp.max(jnp.abs(values), initial=0))
    return jnp.sqrt(jnp.square(values * unit).sum()) / unit


def power_of_two(exponent: int, value: jax.Array) -> jax.Array:
    """Returns the highest power of two by which `value` stays below `2**exponent`; at most 2**127.

    Args:
      value: [] float32, at least 0 and finite.
    """
    biased = lax.bitcast_convert_type(value, jnp.int32) >> 23  # 127 for 1 up to 2
    power = jnp.minimum(exponent - 1 - (biased - 127), 127)
    return lax.bitcast_convert_type((power + 127) << 23, jnp.float32)
