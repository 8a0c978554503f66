"""Counting attacking pairs: every scheme equals a slow count, whatever it runs on."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from kernels import launches
from probes import refuses
from queens import slow_count

import jaxopt_search as js
from jaxopt_search.backends import counts as portable_counts
from jaxopt_search.backends import obstacle
from jaxopt_search.problems.queens import attacks as evaluation

ON_THREADS = [
    *(("threads", {"num_threads": count}) for count in (1, 40)),
    *(("range_reduce", {"num_threads": count}) for count in (1, 40)),
    *(("fork_join", {"threshold": threshold}) for threshold in (3, 1000)),
    ("fork_join", {"threshold": 1, "num_threads": 5}),
]


def placements(n):
    """Returns [B, n]: random, crowded, without an attack, and no permutations at all."""
    generator = np.random.default_rng(n)
    rows = [
        *(generator.permutation(n) for _ in range(3)),
        *generator.integers(0, n, (3, n)),
        generator.integers(0, min(n, 2), n),
        np.arange(n),
        np.arange(n)[::-1],
        np.minimum(np.arange(n), np.arange(n)[::-1]),
        np.zeros(n, int),
        np.full(n, n - 1),
    ]
    return np.stack(rows if n in (2, 3) else [*rows, js.hoffman(n)]).astype(np.int32)


@functools.cache
def expected(n):
    return slow_count(placements(n)).tolist()


@pytest.mark.parametrize(
    ("name", "n"),
    [
        (name, n)
        for name in evaluation.SCHEMES
        for n in ((5,) if name in evaluation.ON_HOST else (1, 5, 100))
    ],
)
def test_all_schemes_count_the_same(name, n):
    """Of random placements, crowded ones, and rows that are no permutations."""
    counts = js.attacking_pairs(placements(n), name)
    assert counts.dtype == np.int64
    assert counts.tolist() == expected(n)


@pytest.mark.parametrize(
    ("lanes", "rows", "columns", "n"), [(1, 8, 4, 32), (100, 4, 9, 33), (500, 100, 16, 33)], ids=str
)
def test_parts_of_what_is_compared_change_no_count(monkeypatch, lanes, rows, columns, n):
    """Many parts, whole or not, though a device's own size takes them all at once."""
    for name, size in (("_LANES", lanes), ("_ROWS", rows), ("_COLUMNS", columns)):
        monkeypatch.setattr(evaluation, name, size)
    queens = jnp.asarray(placements(n))
    by_list = functools.partial(evaluation.fine_pairs, evaluation.pair_list(n))
    for count in (evaluation.fine_index, by_list, evaluation.coarse):
        found = jax.jit(functools.partial(jax.lax.map, lambda one, count=count: count(one)))(queens)
        assert evaluation.as_python(found).tolist() == expected(n)


@pytest.mark.parametrize(("name", "options"), ON_THREADS, ids=str)
def test_options_change_no_count_on_the_host(name, options):
    """Neither the size of a task nor the number of threads, more than rows included."""
    for n in (1, 2, 3, 33, 100):
        assert [getattr(evaluation, name)(row, **options) for row in placements(n)] == expected(n)
    assert js.attacking_pairs(placements(n)[:2], name, **options).tolist() == expected(n)[:2]


def test_counts_of_threads_beyond_32_bits(monkeypatch):
    """What the host counts comes back whole, in batches, too."""

    def count_many(queens, *, num_threads=None):
        return 5 * 2**40 + 3

    monkeypatch.setitem(evaluation._SCHEMES, "threads", count_many)
    count = evaluation.scheme("threads", 4, num_threads=77)
    queens = jnp.zeros((2, 4), jnp.int32)
    assert evaluation.as_python(jax.vmap(count)(queens)).tolist() == [5 * 2**40 + 3] * 2


def test_counts_beyond_32_bits():
    """93,000 queens on one diagonal, either way: n (n - 1) / 2 pairs."""
    queens = np.arange(93_000)
    for placed in (queens, queens[::-1]):
        assert js.attacking_pairs(placed, "histogram") == 4_324_453_500


@pytest.mark.parametrize("name", ["serial", "coarse", "fine_index", "kernel"])
def test_sums_over_pairs_go_beyond_32_bits(monkeypatch, name):
    """300 queens on one diagonal, each attack counted as 2**21; compared in several parts."""
    Count = portable_counts.Count
    monkeypatch.setattr(portable_counts, "of", lambda count: Count(count >> 11, count << 21))
    for size in ("_LANES", "_ROWS", "_COLUMNS"):
        monkeypatch.setattr(evaluation, size, 64)
    kernel = functools.partial(evaluation.in_pieces, length=64, implementation="interpret")
    count = kernel if name == "kernel" else evaluation.scheme(name, 300)
    found = jax.jit(lambda queens: count(queens))(jnp.arange(300, dtype=jnp.int32))
    assert evaluation.as_python(found) == 300 * 299 // 2 * 2**21


@pytest.mark.parametrize("name", evaluation.SCHEMES)
def test_schemes_are_traced_like_any_function(name):
    """By vmap in a loop inside jit, those on threads of the host included."""
    count, queens = evaluation.scheme(name, 33), jnp.asarray(placements(33)[:12]).reshape(4, 3, 33)

    def look(i, counts):
        found = jax.vmap(count)(queens[i])
        return jax.tree.map(lambda whole, part: whole.at[i].set(part), counts, found)

    nothing = portable_counts.of(jnp.zeros((4, 3), jnp.uint32))
    looped = jax.jit(lambda: jax.lax.fori_loop(0, 4, look, nothing))()
    assert evaluation.as_python(looped).ravel().tolist() == expected(33)[:12]


def test_the_list_of_pairs_fits_or_is_refused():
    """136 pairs of 8 bytes: a byte less is too little; by default 2 GiB are the limit."""
    queens = np.arange(17)
    assert js.attacking_pairs(queens, "fine_pairs", max_bytes=1088) == 136
    with refuses(MemoryError, "pairs of 17 queens takes 1,088 bytes", "max_bytes=1,087"):
        js.attacking_pairs(queens, "fine_pairs", max_bytes=1087)
    with refuses(MemoryError, "39,999,600,000 bytes", "'fine_index' needs none"):
        js.nqueens(100_000, "fine_pairs")


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("brute", {}, "evaluation is 'brute', expected one of serial, threads"),
        ("serial", {"threshold": 3}, "'serial' has no option 'threshold', expected no option"),
        ("threads", {"num_threads": 0}, "num_threads is 0, expected an integer from 1 up"),
    ],
)
def test_unknown_schemes_and_options_are_refused(name, options, text):
    """By name, wherever they are given."""
    with refuses(ValueError, text):
        js.attacking_pairs(np.arange(5), name, **options)
    with refuses(ValueError, text):
        js.nqueens(5, name, **options)


@pytest.mark.parametrize(
    ("queens", "text"),
    [
        ([0.0, 1.0], "shape (2,) and dtype float64"),
        ([0, 2], "expected [n] or [B, n] integers from 0 to n - 1"),
        ([], "shape (0,)"),
    ],
)
def test_what_is_no_placement_is_refused(queens, text):
    with refuses(ValueError, "queens has", text):
        js.attacking_pairs(queens)


@pytest.mark.parametrize("dtype", [np.int8, np.uint64])
def test_placements_of_any_integers(dtype):
    """Diagonals beyond the range of the input's type are no others; no placement has no count."""
    queens = placements(100).astype(dtype)
    assert js.attacking_pairs(queens).tolist() == expected(100)
    assert js.attacking_pairs(queens[:0]).tolist() == []


@pytest.mark.parametrize(("n", "length"), [(1, None), (5, 7), (255, 64)])
def test_the_kernel_counts_the_same(n, length):
    """Pieces of less than a tile, of some tiles, and of all queens behind."""
    count = functools.partial(evaluation.in_pieces, length=length or n, implementation="interpret")
    found = jax.jit(functools.partial(jax.lax.map, count))(placements(n))
    assert evaluation.as_python(found).tolist() == expected(n)


@pytest.mark.parametrize(("name", "options"), [("coarse", {}), ("subtasks", {"threshold": 100})])
def test_a_gpu_counts_in_a_kernel(name, options):
    """Up to the sums of two coordinates that float32 holds; XLA runs beyond."""
    for n, is_kernel in ((1000, True), (2**22, True), (2**22 + 1, False)):
        queens = jax.ShapeDtypeStruct((n,), jnp.int32)
        scheme = evaluation.scheme(name, n, **options)
        assert launches(scheme, queens) == is_kernel
        assert obstacle(scheme, queens) == ""
