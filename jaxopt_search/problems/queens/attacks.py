"""How attacking queens are counted: eight published schemes, and one that takes O(n).

By name, they are functions of one signature that can be traced, whatever they run on: see `Scheme`.
All but `histogram` compare queens pair by pair. Written as q[i] + i and q[i] - i, the two diagonals
of a queen, an attack is that either is the same for both queens.

Source: "Parallel schemes of the N-Queens fitness function on CPU and GPU".
"""

import functools
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.tree_util import Partial

from jaxopt_search import backends
from jaxopt_search.backends import counts, loops, memory
from jaxopt_search.backends.counts import Count
from jaxopt_search.backends.memory import load
from jaxopt_search.checks import check_count, check_option, num_cores

__all__ = ["SCHEMES", "Scheme", "as_python", "attacking_pairs", "scheme"]

Scheme: TypeAlias = Callable[[jax.Array], Count]
"""From [n] int32, the column of the queen in each row, to the number of attacking pairs."""

MAX_INT16 = 2**15 - 1

_LANES = 2**22
"""Pairs that `fine_index` compares at once, at least a whole row of its table."""
_ROWS, _COLUMNS = 8192, 1024
"""What is compared at once, row by column."""
_KERNEL_ROWS, _KERNEL_COLUMNS, _NUM_WARPS = 64, 64, 2
"""Likewise in a kernel: a block of rows is a whole number of tiles of columns."""
_MOST_IN_KERNEL = 2**22
"""Queens up to which sums of two coordinates are exact in float32."""
_MOST_PAIRS_BYTES, _BYTES_PER_PAIR = 2**31, 8
_RANGES_PER_THREAD = 8
_BLOCK = 64
"""Rows that a thread compares in one go."""


# On the device: Algorithms 1 and 7 on.


def serial(queens: jax.Array) -> Count:
    """Counts in two nested loops, one pair after the other."""
    n = queens.shape[0]

    def row(i: jax.Array, count: Count) -> Count:
        def pair(j: jax.Array, attacks: jax.Array) -> jax.Array:
            return attacks + (jnp.abs(queens[i] - queens[j]) == j - i).astype(jnp.uint32)

        return counts.add(count, counts.of(loops.fori_loop(i + 1, n, pair, jnp.uint32(0))))

    return loops.fori_loop(0, n, row, counts.zero())


def coarse(queens: jax.Array) -> Count:
    """Counts with a lane per queen, which compares it with all queens behind it."""
    return _on_its_platform(queens, queens.shape[0], _COLUMNS)


def subtasks(queens: jax.Array, *, threshold: int = 2**13) -> Count:
    """Counts with a lane for every `threshold` comparisons of a queen with those behind it."""
    return _on_its_platform(queens, threshold, threshold)


def _on_its_platform(queens: jax.Array, length: int, columns: int) -> Count:
    """Counts `in_pieces` on NVIDIA GPUs that are new enough for kernels, else by tiles."""
    other = functools.partial(_by_tiles, columns=columns)
    has_none = any(map(backends.refusal, jax.local_devices()))
    if has_none or queens.shape[0] > _MOST_IN_KERNEL:
        return other(queens)
    cuda = functools.partial(in_pieces, length=length)
    return lax.platform_dependent(queens, cuda=cuda, default=other)


def _by_tiles(queens: jax.Array, columns: int) -> Count:
    """Counts with a lane per queen and `columns` comparisons of each at a time."""
    n = queens.shape[0]
    rows, columns = min(n, _ROWS), min(n, columns)
    row = lax.iota(jnp.int32, n)
    # What fills the tiles up attacks nothing.
    room, nothing = (0, rows + columns), 3 * n
    rising = jnp.pad(queens + row, room, constant_values=nothing)
    falling = jnp.pad(queens - row, room, constant_values=nothing)

    def cut(start: jax.Array, size: int) -> tuple[jax.Array, ...]:
        diagonals = (lax.dynamic_slice(d, (start,), (size,)) for d in (rising, falling))
        return (start + lax.iota(jnp.int32, size), *diagonals)

    def look_at_rows(block: jax.Array, count: Count) -> Count:
        i, *own = (part[:, None] for part in cut(block * rows, rows))

        def look(tile: jax.Array, of_rows: jax.Array) -> jax.Array:
            j, *others = (part[None, :] for part in cut(tile * columns, columns))
            attacks = ((own[0] == others[0]) | (own[1] == others[1])) & (i < j) & (j < n)
            return of_rows + jnp.sum(attacks, axis=1, dtype=jnp.uint32)

        first, last = block * rows // columns, -(-n // columns)
        of_rows = loops.fori_loop(first, last, look, jnp.zeros(rows, jnp.uint32))
        return counts.add(count, counts.total(counts.of(of_rows)))

    return loops.fori_loop(0, -(-n // rows), look_at_rows, counts.zero())


def in_pieces(queens: jax.Array, *, length: int, implementation: str = "cuda") -> Count:
    """Counts in a kernel: a program for some queens and `length` of the queens behind each.

    Args:
      queens: [n] int32, n up to 2**22.
      length: queens behind that a program looks at, rounded up to whole tiles.
      implementation: the kernel's, see `backends.launch`.
    """
    n = queens.shape[0]
    num_blocks = -(-n // _KERNEL_ROWS)
    tiles = -(-min(length, n + _KERNEL_COLUMNS) // _KERNEL_COLUMNS)
    num_pieces = -(-n // (tiles * _KERNEL_COLUMNS))
    row = lax.iota(jnp.int32, n)
    # What fills tiles up attacks nothing: neither a queen nor other filling.
    room, nothing = (0, num_blocks * _KERNEL_ROWS + _KERNEL_COLUMNS - n), jnp.float32(jnp.nan)
    rising = jnp.pad((queens + row).astype(jnp.float32), room, constant_values=nothing)
    falling = jnp.pad((queens - row).astype(jnp.float32), room, constant_values=nothing)

    def count(i: jax.Array, diagonals: Any, own: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        block, piece, _ = own
        start = block * _KERNEL_ROWS
        first = start + piece * (tiles * _KERNEL_COLUMNS)
        of_rows = _attacks_in_piece(n, tiles, start, first, diagonals)
        return block, piece, jnp.sum(of_rows).astype(jnp.uint32)

    block, piece = jnp.divmod(lax.iota(jnp.int32, num_blocks * num_pieces), num_pieces)
    _, _, attacks = backends.launch(
        count,
        jnp.int32(1),
        (rising, falling),
        (block, piece, jnp.zeros(block.shape, jnp.uint32)),
        num_warps=_NUM_WARPS,
        implementation=implementation,
    )
    attacks = attacks.reshape(num_blocks, num_pieces)
    return counts.total(counts.total(counts.of(attacks)))


def _attacks_in_piece(
    n: int, tiles: int, start: jax.Array, first: jax.Array, diagonals: tuple[Any, ...]
) -> jax.Array:
    """Returns how many queens behind it each of some rows attacks, [_KERNEL_ROWS] int32.

    Args:
      n: queens.
      tiles: of the columns that are looked at.
      start: the first of the rows.
      first: the first of the columns.
      diagonals: the rising and the falling one of each queen.
    """
    i = start + lax.iota(jnp.int32, _KERNEL_ROWS)
    own = tuple(load(diagonal, i)[:, None] for diagonal in diagonals)

    def attacks(tile: jax.Array) -> tuple[jax.Array, jax.Array]:
        j = first + tile * _KERNEL_COLUMNS + lax.iota(jnp.int32, _KERNEL_COLUMNS)
        others = tuple(load(diagonal, j)[None, :] for diagonal in diagonals)
        # Two sums take fewer of the scarcer instructions than a logical or.
        is_on = [(a == b).astype(jnp.float32) for a, b in zip(own, others, strict=True)]
        return j, is_on[0] + is_on[1]

    def edge(tile: jax.Array, count: jax.Array) -> jax.Array:
        j, found = attacks(tile)
        return count + jnp.where(i[:, None] < j[None, :], found, 0.0)

    def inner(tile: jax.Array, count: jax.Array) -> jax.Array:
        return count + attacks(tile)[1]

    zero = jnp.zeros((_KERNEL_ROWS, _KERNEL_COLUMNS), jnp.float32)
    # Only tiles among a block's own rows hold pairs that are not to be counted.
    last = jnp.clip((n - first + _KERNEL_COLUMNS - 1) // _KERNEL_COLUMNS, 0, tiles)
    border = jnp.clip((start + _KERNEL_ROWS - first) // _KERNEL_COLUMNS, 0, last)
    count = lax.fori_loop(jnp.int32(0), border, edge, zero)
    count = lax.fori_loop(border, last, inner, count)
    return jnp.sum(count.astype(jnp.int32), axis=1)


@functools.partial(jax.jit, static_argnums=0)
def pair_list(n: int) -> jax.Array:
    """Returns all pairs of rows i < j, [2, R, C] int32 with R C pairs, for `fine_pairs`.

    In the order of `fine_index`; in closed form, so that nothing but the list takes memory.
    """
    height, width = _folded(n)
    return jnp.stack(_unfolded(_column(height), lax.iota(jnp.int32, width)[None, :], n))


def fine_pairs(pairs: jax.Array, queens: jax.Array) -> Count:
    """Counts with a lane for each pair of a list from `pair_list`."""

    def at(start: jax.Array, rows: int) -> tuple[jax.Array, jax.Array]:
        first, second = lax.dynamic_slice_in_dim(pairs, start, rows, axis=1)
        return first, second

    return _by_pairs(queens, at)


def fine_index(queens: jax.Array) -> Count:
    """Counts with a lane per pair, which computes its pair from its number."""
    n = queens.shape[0]
    column = lax.iota(jnp.int32, _folded(n)[1])[None, :]
    return _by_pairs(queens, lambda start, rows: _unfolded(start + _column(rows), column, n))


def _by_pairs(
    queens: jax.Array, pairs_at: Callable[[jax.Array, int], tuple[jax.Array, jax.Array]]
) -> Count:
    """Counts with a lane per pair.

    The triangle of pairs is folded to a rectangle: its row r holds the pairs of queen r and of
    the queen as far from the end, n - 1 or n of them together.

    Args:
      pairs_at: gives the pairs i < j of some rows from the first row on, each [rows, width].
    """
    height, width = _folded(queens.shape[0])
    rows = min(max(1, _LANES // max(width, 1)), height)

    def look(chunk: jax.Array, count: Count) -> Count:
        # The last rows are looked at together with some before them, which do not count again.
        start = jnp.minimum(chunk * rows, height - rows)
        i, j = pairs_at(start, rows)
        is_new = start + _column(rows) >= chunk * rows
        attacks = (jnp.abs(queens[i] - queens[j]) == j - i) & is_new
        return counts.add(count, counts.of(jnp.sum(attacks, dtype=jnp.uint32)))

    return loops.fori_loop(0, -(-height // max(rows, 1)), look, counts.zero())


def _column(size: int) -> jax.Array:
    return lax.iota(jnp.int32, size)[:, None]


def _folded(n: int) -> tuple[int, int]:
    """Returns the rows and columns of the folded triangle: a place for each pair, none to spare."""
    return n // 2, n - 1 + n % 2


def _unfolded(row: jax.Array, column: jax.Array, n: int) -> tuple[jax.Array, jax.Array]:
    """Returns the pair i < j that stands at a place of the folded triangle."""
    shift = n % 2
    is_own = column >= row + shift
    i = jnp.where(is_own, row, n - 1 - shift - row)
    j = jnp.where(is_own, column + 1 - shift, n - 1 - column)
    return i, j


def histogram(queens: jax.Array, num_entries: jax.Array | None = None) -> Count:
    """Counts the queens on each diagonal, O(n): each attacks all others that stand on it.

    Args:
      queens: [n] int32.
      num_entries: [] int32, only this many first rows have queens; None for all.
    """
    on = jnp.concatenate(on_diagonals(queens, num_entries)).astype(jnp.uint32)
    others = jnp.where(on > 0, on - 1, on)
    if queens.shape[0] <= MAX_INT16:  # all pairs are below 2**31, those on one diagonal below 2**30
        return counts.of(jnp.sum(on * others, dtype=jnp.uint32) >> jnp.uint32(1))
    # One of the two is even.
    is_even, one = (on & jnp.uint32(1)) == 0, jnp.uint32(1)
    on, others = jnp.where(is_even, on >> one, on), jnp.where(is_even, others, others >> one)
    return counts.total(Count(counts.upper_product(on, others), on * others))


def on_diagonals(
    queens: jax.Array, num_entries: jax.Array | None = None
) -> tuple[jax.Array, jax.Array]:
    """Returns how many queens stand on each diagonal.

    Args:
      queens: [n] int32.
      num_entries: as in `histogram`.

    Returns:
      [2 n] by the sum of row and column, and [2 n] by the difference of column and row, plus n;
      both int16 for n below 2**15, else int32.
    """
    n = queens.shape[0]
    dtype = jnp.int16 if n <= MAX_INT16 else jnp.int32
    row, none = lax.iota(jnp.int32, n), jnp.zeros(2 * n, dtype)
    one: Any = 1 if num_entries is None else (row < num_entries).astype(dtype)
    return (
        none.at[queens + row].add(one, **memory.IN_BOUNDS),
        none.at[queens - row + n].add(one, **memory.IN_BOUNDS),
    )


# On threads of the host: Algorithms 2 to 6. A thread compares some queens with all behind them, and
# NumPy does that without holding Python's lock.


def threads(queens: np.ndarray, *, num_threads: int | None = None) -> int:
    """Counts on threads that take blocks of rows in turns.

    Args:
      queens: [n] integers.
      num_threads: None for the number of cores.
    """
    num_threads = num_threads or num_cores()
    n, attacks = len(queens), _attacks(queens)

    def part(number: int) -> int:
        starts = range(number * _BLOCK, n, num_threads * _BLOCK)
        return sum(attacks(start, min(start + _BLOCK, n)) for start in starts)

    return sum(_pool(num_threads).map(part, range(num_threads)))


def range_reduce(queens: np.ndarray, *, num_threads: int | None = None) -> int:
    """Counts by ranges of rows with equally many pairs, which idle threads take, and adds up."""
    n, num_threads = len(queens), num_threads or num_cores()
    parts, attacks = num_threads * _RANGES_PER_THREAD, _attacks(queens)
    # Row i has n - 1 - i pairs, so that a share s of all is done after n - n sqrt(1 - s) rows.
    bounds = (n * (1 - np.sqrt(1 - np.arange(parts + 1) / parts))).astype(int).tolist()
    return sum(_pool(num_threads).map(attacks, bounds[:-1], bounds[1:]))


def fork_join(queens: np.ndarray, *, threshold: int = 64, num_threads: int | None = None) -> int:
    """Counts by halving the rows until at most `threshold` are left, and joins the halves in pairs.

    A half is left to an idle thread; if none has begun it when it is needed, it is done at once.
    The thread that calls is one of the `num_threads`.
    """
    num_threads, attacks = num_threads or num_cores(), _attacks(queens)
    pool = _pool(num_threads - 1) if num_threads > 1 else None

    def task(first: int, last: int) -> int:
        if last - first <= threshold:
            return attacks(first, last)
        middle = (first + last) // 2
        if pool is None:
            return task(first, middle) + task(middle, last)
        forked: Future[int] = pool.submit(task, first, middle)
        own = task(middle, last)
        return own + (task(first, middle) if forked.cancel() else forked.result())

    return task(0, len(queens))


def _attacks(queens: np.ndarray) -> Callable[[int, int], int]:
    """Returns a function that counts how often queens in some rows attack queens behind them."""
    place = np.arange(len(queens), dtype=queens.dtype)
    diagonals = queens + place, queens - place

    def count(first: int, last: int) -> int:
        attacks = 0
        for start in range(first, last, _BLOCK):
            end = min(start + _BLOCK, last)
            for diagonal in diagonals:
                own = diagonal[start:end, None]
                attacks += np.count_nonzero(own == diagonal[end:])
                attacks += np.count_nonzero(np.triu(own == diagonal[start:end], 1))
        return int(attacks)

    return count


@functools.cache
def _pool(num_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(num_threads, thread_name_prefix="jaxopt_search")


# By name.

_SCHEMES: dict[str, Callable[..., Any]] = {
    "serial": serial,
    "threads": threads,
    "range_reduce": range_reduce,
    "fork_join": fork_join,
    "fine_pairs": fine_pairs,
    "fine_index": fine_index,
    "coarse": coarse,
    "subtasks": subtasks,
    "histogram": histogram,
}
SCHEMES = tuple(_SCHEMES)
"""The paper's eight, in its order, and the one that takes O(n)."""
ON_HOST = ("threads", "range_reduce", "fork_join")
"""Those on threads of the host: functions from a numpy placement to an int."""


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
    known: dict[str, Any] = _SCHEMES[name].__kwdefaults__ or {}
    if name == "fine_pairs":
        known = {"max_bytes": _MOST_PAIRS_BYTES}
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
        return Partial(fine_pairs, pair_list(n))
    return Partial(_with_options(name, **chosen))


@functools.cache
def _with_options(name: str, **options: Any) -> Scheme:
    """Returns the same function for the same options, so that it is compiled once."""
    count = functools.partial(_SCHEMES[name], **options)
    return functools.partial(_called_back, count) if name in ON_HOST else count


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
