# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""Counts of 64 bits on the device, as two uint32 words; the functions are portable.

JAX has no 64-bit integers unless its x64 mode is on, but the steps of a run, the attacking pairs of
queens and the weights of possibilities may pass 32 bits. Where they are known not to, the functions
that take a `Number` also take one word for each, which is faster.
"""

import dataclasses
import functools
import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jaxopt_search.checks import MAX_INT32
from jaxopt_search.pytrees import pytree

_MAX_WORD = np.uint32(2**32 - 1)
_SIXTEEN, _LOWER = np.uint32(16), np.uint32(0xFFFF)
_AT_ONCE = 2**16
"""This many halves of words add up in 32 bits."""


def _operator(
    compute: Callable[[Any, Any], Any], *, compares: bool = False, reflected: bool = False
) -> Callable[["Count", Any], Any]:
    """Returns a method that computes with a count and a number, or compares them.

    Exact outside of `jit`; inside, comparisons with integers are.
    """

    def method(count: "Count", other: Any) -> Any:
        if not isinstance(other, _NUMBERS):
            return NotImplemented
        pair = (other, count) if reflected else (count, other)
        if all(map(_is_known, pair)):
            return compute(*map(on_host, pair))
        is_integer = isinstance(other, Count) or jnp.issubdtype(jnp.result_type(other), jnp.integer)
        if not (compares and is_integer):
            return compute(*(jnp.asarray(x) if isinstance(x, Count) else x for x in pair))
        words, is_negative = _words_of(other)
        is_low = is_at_most(count, words) & ~is_negative
        is_same = is_low & is_at_most(words, count)
        return compute(jnp.where(is_low, -1, 1) + is_same, 0)  # the sign of the difference

    return method


_compared = functools.partial(_operator, compares=True)
_reflected = functools.partial(_operator, reflected=True)


@pytree
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Count:
    """A count `high * 2**32 + low`, or counts, of any shape; it behaves as a number.

    Outside of `jit`, that is an integer of Python, or an array of NumPy. Inside, comparisons with
    integers are exact, and arithmetic is of int32, held at 2**31 - 1 (of int64 in JAX's x64 mode).

    Example:
      >>> count = Count(np.uint32(1), np.uint32(5))
      >>> count == 2**32 + 5, count - 5, f"{count} steps"
      (True, 4294967296, '4294967301 steps')
    """

    high: Any
    low: Any

    __array_priority__ = 100  # operators of NumPy's numbers leave it to those below

    def __int__(self) -> int:
        return int(self.high) * 2**32 + int(self.low)

    __index__ = __int__

    def __float__(self) -> float:
        return float(int(self))

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __hash__(self) -> int:
        return hash(int(self))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(on_host(self), dtype)

    def __jax_array__(self) -> jax.Array:
        if jnp.result_type(int) == np.int32:
            return as_int32(self)
        high = jnp.minimum(self.high, jnp.uint32(MAX_INT32)).astype(np.int64)
        return (high << 32) | jnp.asarray(self.low).astype(np.int64)

    def __repr__(self) -> str:
        if _is_known(self):
            return str(on_host(self))
        return f"Count(high={self.high!r}, low={self.low!r})"

    def __format__(self, spec: str) -> str:
        return format(int(self), spec) if spec else str(self)

    __eq__ = _compared(operator.eq)
    __ne__ = _compared(operator.ne)
    __lt__ = _compared(operator.lt)
    __le__ = _compared(operator.le)
    __gt__ = _compared(operator.gt)
    __ge__ = _compared(operator.ge)
    __add__, __radd__ = _operator(operator.add), _reflected(operator.add)
    __sub__, __rsub__ = _operator(operator.sub), _reflected(operator.sub)
    __mul__, __rmul__ = _operator(operator.mul), _reflected(operator.mul)
    __truediv__, __rtruediv__ = _operator(operator.truediv), _reflected(operator.truediv)
    __floordiv__, __rfloordiv__ = _operator(operator.floordiv), _reflected(operator.floordiv)
    __mod__, __rmod__ = _operator(operator.mod), _reflected(operator.mod)

    def __neg__(self) -> Any:
        return 0 - self


_NUMBERS = (int, float, np.ndarray, np.number, np.bool_, jax.Array, Count)


def _is_known(number: Any) -> bool:
    """Returns whether the host can read a number or a count: it is not traced."""
    words = (number.high, number.low) if isinstance(number, Count) else (number,)
    return not any(isinstance(word, Tracer | jax.ShapeDtypeStruct) for word in words)


def _words_of(number: Any) -> tuple["Count", Any]:
    """Returns an integer, or integers, as a count, and whether it is negative, which no count is.

    Integers beyond 64 bits come as the largest count.
    """
    if isinstance(number, Count):
        return number, np.bool_(False)
    if isinstance(number, int):
        held = min(max(number, 0), 2**64 - 1)
        return Count(np.uint32(held >> 32), np.uint32(held & 0xFFFFFFFF)), np.bool_(number < 0)
    is_wide = number.dtype.itemsize > 4
    words = of(number)
    return Count((number >> 32).astype(jnp.uint32), words.low) if is_wide else words, number < 0


Steps: TypeAlias = Count
"""Steps of a run; `never()` is above all others."""

Number: TypeAlias = Count | jax.Array
"""A count, or one word, uint32; what is returned is of the same kind."""


def zero() -> Count:
    """Returns the count 0."""
    return Count(jnp.uint32(0), jnp.uint32(0))


def of(words: jax.Array) -> Count:
    """Returns nonnegative numbers of 32 bits as counts."""
    low = words.astype(jnp.uint32)
    return Count(jnp.zeros_like(low), low)


def never(shape: tuple[int, ...]) -> Count:
    """Returns counts that stand for "not yet"."""
    word = jnp.full(shape, _MAX_WORD)
    return Count(word, word)


def is_never(count: Count) -> jax.Array:
    """Returns where a count is `never`, bool."""
    return (count.high == _MAX_WORD) & (count.low == _MAX_WORD)


def is_zero(number: Number) -> jax.Array:
    """Returns where a number is 0, bool."""
    return (number.high | number.low) == 0 if isinstance(number, Count) else number == 0


def is_at_most(number: Number, bound: Number) -> jax.Array:
    """Returns where a number is at most `bound`, bool."""
    if not (isinstance(number, Count) and isinstance(bound, Count)):
        return _low(number) <= _low(bound)
    is_low = number.low <= bound.low
    return (number.high < bound.high) | ((number.high == bound.high) & is_low)


def first(counts: Count) -> jax.Array:
    """Returns the index of the smallest of [S] counts, the lowest of equals, as int32."""
    is_first = counts.high == counts.high.min()
    is_first &= counts.low == jnp.where(is_first, counts.low, _MAX_WORD).min()
    return jnp.argmax(is_first).astype(jnp.int32)


def add(number: Any, amount: Number) -> Any:
    """Returns a number plus a count or a nonnegative number of 32 bits."""
    if not isinstance(number, Count):
        return number + _low(amount)
    low = number.low + _low(amount)
    high = number.high + amount.high if isinstance(amount, Count) else number.high
    return Count(high + (low < number.low).astype(jnp.uint32), low)


def subtract(number: Number, amount: Number) -> Number:
    """Returns a number less a count or a nonnegative number of 32 bits, which is no larger."""
    if not isinstance(number, Count):
        return number - _low(amount)
    high = number.high - amount.high if isinstance(amount, Count) else number.high
    borrowed = (number.low < _low(amount)).astype(jnp.uint32)
    return Count(high - borrowed, number.low - _low(amount))


def total(numbers: Any, axis: int = -1) -> Any:
    """Returns the sum over an axis."""
    if not isinstance(numbers, Count):
        return _sum(numbers, axis)
    if numbers.low.shape[axis] > _AT_ONCE:
        return _total_of_many(
            Count(*(jnp.moveaxis(word, axis, -1) for word in (numbers.high, numbers.low)))
        )
    lower, upper = (_sum(half, axis) for half in _halves(numbers.low))
    return _joined(_sum(numbers.high, axis), lower, upper)


def _total_of_many(counts: Count) -> Count:
    """Returns the sum over the last axis, in parts."""
    room = [(0, 0)] * (counts.low.ndim - 1) + [(0, -counts.low.shape[-1] % _AT_ONCE)]

    def in_parts(word: jax.Array) -> jax.Array:
        filled = jnp.pad(word, room)
        return filled.reshape(*filled.shape[:-1], -1, _AT_ONCE)

    return total(total(Count(in_parts(counts.high), in_parts(counts.low))))


def prefix_sums(numbers: Number) -> Number:
    """Returns the sums of [M] numbers up to and including each, M at most 2**16."""
    if not isinstance(numbers, Count):
        return _cumulative(numbers)
    return _joined(_cumulative(numbers.high), *map(_cumulative, _halves(numbers.low)))


def upper_product(word: jax.Array, other: jax.Array | int) -> jax.Array:
    """Returns the upper word of the product of two words, uint32.

    Args:
      word: uint32, any shape.
      other: uint32, or a Python integer below 2**32, which takes fewer operations.
    """
    (low, high), (other_low, other_high) = _halves(word), _halves(other)
    middle = high * other_low + (low * other_low >> _SIXTEEN)
    if isinstance(other, int) and other < 2**16:
        return middle >> _SIXTEEN
    rest = low * other_high + (middle & _LOWER)
    return high * other_high + (middle >> _SIXTEEN) + (rest >> _SIXTEEN)


def scaled(number: Number, fraction: tuple[jax.Array, jax.Array]) -> Number:
    """Returns `floor(number * fraction)`, exactly.

    Args:
      fraction: [] uint32, the upper and the lower 32 of the 64 bits of a fraction in [0, 1).
    """
    upper, lower = fraction
    # The product has four words, of which the upper two count.
    carried = upper_product(lower, _low(number))
    low = upper * _low(number) + carried
    high = upper_product(upper, _low(number))
    high = high + (low < carried).astype(jnp.uint32)  # below 2**32 - 1 before
    if not isinstance(number, Count):
        return high
    more, least = upper_product(lower, number.high), lower * number.high
    low = low + least
    result = Count(upper_product(upper, number.high), upper * number.high)
    for word in (high, more, (low < least).astype(jnp.uint32)):
        result = add(result, word)
    return result


def until_carry(count: Count) -> jax.Array:
    """Returns how many steps share the high word of `count`, at most 2**31 - 1, as int32.

    Written without `minimum`: on an H200 with JAX 0.11.2, the minimum of this difference and a
    constant, plus 1, came out with the wrong sign inside the loop.
    """
    room = _MAX_WORD - count.low
    return jnp.where(room < MAX_INT32, room.astype(jnp.int32) + 1, jnp.int32(MAX_INT32))


def as_int32(count: Count) -> jax.Array:
    """Returns the count as int32, held at 2**31 - 1."""
    is_small = (count.high == 0) & (count.low < MAX_INT32)
    return jnp.where(is_small, count.low.astype(jnp.int32), jnp.int32(MAX_INT32))


def on_host(number: Any) -> Any:
    """Returns a number or a count as Python or NumPy has it: an `int`, or an array."""
    if not isinstance(number, Count):
        return np.asarray(number)[()] if isinstance(number, jax.Array) else number
    if not np.ndim(number.high):
        return int(number)
    high, low = (np.asarray(word).astype(np.uint64) for word in (number.high, number.low))
    whole = (high << np.uint64(32)) | low
    return whole.astype(np.int64) if (high < 2**31).all() else whole


def _low(number: Number) -> jax.Array:
    return number.low if isinstance(number, Count) else jnp.asarray(number, jnp.uint32)


def _sum(words: jax.Array, axis: int) -> jax.Array:
    return jnp.sum(words, axis=axis, dtype=jnp.uint32)


def _cumulative(words: jax.Array) -> jax.Array:
    return jnp.cumsum(words, dtype=jnp.uint32)


def _halves(word: jax.Array | int) -> tuple[jax.Array, jax.Array]:
    """Returns the lower and the upper 16 bits."""
    if isinstance(word, int):
        return jnp.uint32(word & 0xFFFF), jnp.uint32(word >> 16)
    return word & _LOWER, word >> _SIXTEEN


def _joined(high: jax.Array, lower: jax.Array, upper: jax.Array) -> Count:
    """Returns counts whose two lower parts count in units of 1 and 2**16, and may pass that."""
    upper = upper + (lower >> _SIXTEEN)
    return Count(high + (upper >> _SIXTEEN), (upper << _SIXTEEN) | (lower & _LOWER))
