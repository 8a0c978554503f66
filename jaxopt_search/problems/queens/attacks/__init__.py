"""How attacking queens are counted: eight published schemes, and one that takes O(n).

By name, as functions of one signature that can be traced, whatever they run on.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial

from jaxopt_search.backends import counts
from jaxopt_search.backends.counts import Count
from jaxopt_search.checks import check_count, check_option
from jaxopt_search.problems.queens.attacks import device, host
from jaxopt_search.problems.queens.attacks.device import Scheme

__all__ = ["SCHEMES", "Scheme", "as_python", "attacking_pairs", "scheme"]

_BYTES_PER_PAIR = 8
_OPTIONS: dict[str, dict[str, Any]] = {
    "serial": {},
    "threads": {"num_threads": None},
    "range_reduce": {"num_threads": None},
    "fork_join": {"threshold": 64, "num_threads": None},
    "fine_pairs": {"max_bytes": 2**31},
    "fine_index": {},
    "coarse": {},
    "subtasks": {"threshold": 2**13},
    "histogram": {},
}
SCHEMES = tuple(_OPTIONS)
"""The paper's eight, in its order, and the one that takes O(n)."""


def scheme(name: str, n: int, **options: int | None) -> Scheme:
    """Returns a function that counts the attacking pairs of a placement of n queens.

    All schemes return the same number. What they return is a pytree and can be handed to `jit`;
    those on threads of the host are called back from there.

    Args:
      name: one of `SCHEMES`.
      n: queens.
      options: `num_threads` of `"threads"`, `"range_reduce"` and `"fork_join"`; `threshold`, rows
        of `"fork_join"` or comparisons of `"subtasks"` that are not divided further; `max_bytes`
        that the list of `"fine_pairs"` may take. Making it takes no more, counting 20 MB more.

    Returns:
      A function from [n] int32, the column of the queen in each row, to a `Count`.

    Raises:
      ValueError: for a name, an option or a number that is out of range.
      MemoryError: if the list of pairs would take more than `max_bytes`.

    Example:
      >>> count = scheme("fork_join", 4, threshold=2)
      >>> as_python(count(jnp.array([0, 1, 2, 3])))
      6
    """
    check_option("evaluation", name, SCHEMES)
    known = _OPTIONS[name]
    for option in options:
        if option not in known:
            expected = ", ".join(known) or "no option"
            raise ValueError(f"evaluation {name!r} has no option {option!r}, expected {expected}")
    chosen: dict[str, Any] = {
        option: value if value is known[option] else check_count(option, value, 1, None)
        for option, value in (known | options).items()
    }
    if name == "fine_pairs":
        num_bytes, most = n * (n - 1) // 2 * _BYTES_PER_PAIR, chosen["max_bytes"]
        if num_bytes > most:
            raise MemoryError(
                f"the list of all pairs of {n} queens takes {num_bytes:,} bytes, more than"
                f" max_bytes={most:,}; 'fine_index' needs none"
            )
        return Partial(device.fine_pairs, device.pair_list(n))
    return Partial(_with_options(name, **chosen))


@functools.cache
def _with_options(name: str, **options: Any) -> Scheme:
    """Returns the same function for the same options, so that it is compiled once."""
    if name in host.HOST:
        return functools.partial(_called_back, functools.partial(host.HOST[name], **options))
    return functools.partial(device.PURE[name], **options)


def _called_back(count: Callable[[np.ndarray], int], queens: jax.Array) -> Count:
    def words(queens: Any) -> tuple[Any, Any]:
        high, low = divmod(count(np.asarray(queens)), 2**32)
        return np.uint32(high), np.uint32(low)

    word = jax.ShapeDtypeStruct((), jnp.uint32)
    return Count(*jax.pure_callback(words, (word, word), queens, vmap_method="sequential"))


@jax.jit
def _counted(scheme: Scheme, queens: jax.Array) -> Count:
    return jax.lax.map(scheme, queens)


def as_python(count: Count) -> Any:
    """Returns one count as a Python integer, several as an int64 array; on the host.

    Example:
      >>> as_python(Count(np.uint32(1), np.uint32(5)))
      4294967301
    """
    return counts.on_host(count)


def attacking_pairs(queens: Any, evaluation: str = "histogram", **options: int | None) -> Any:
    """Returns how many pairs of queens attack each other along a diagonal, exactly.

    Args:
      queens: [n] or [B, n] integers from 0 to n - 1: the column of the queen in each row. Rows
        need not be permutations: only diagonals count.
      evaluation: one of `evaluation.SCHEMES`; all give the same number.
      options: as in `evaluation.scheme`.

    Returns:
      An `int`; of several placements [B] int64.

    Raises:
      ValueError, MemoryError: as `evaluation.scheme`; or if `queens` is not of this kind.

    Example:
      >>> attacking_pairs([0, 1, 2, 3]), attacking_pairs([1, 3, 0, 2], "serial")
      (6, 0)
    """
    queens = np.asarray(queens)
    is_number = np.issubdtype(queens.dtype, np.integer) and queens.ndim in (1, 2)
    n = queens.shape[-1] if queens.ndim else 0
    if not is_number or not n or queens.min(initial=0) < 0 or queens.max(initial=0) >= n:
        raise ValueError(
            f"queens has shape {queens.shape} and dtype {queens.dtype}, expected [n] or [B, n]"
            " integers from 0 to n - 1"
        )
    placed = jnp.asarray(queens.reshape(-1, n), jnp.int32)
    found = as_python(_counted(scheme(evaluation, n, **options), placed))
    return found if queens.ndim == 2 else int(found[0])
