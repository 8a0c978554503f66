"""Counting attacking pairs on threads of the host: how the work is split, and how many threads."""

import functools
import json
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from queens import slow_count

import jaxopt_search as js
from jaxopt_search.problems.queens import attacks as evaluation
from jaxopt_search.problems.queens.attacks import host

ON_THREADS = [
    *(("threads", {"num_threads": count}) for count in (1, 2, 5, 40)),
    *(("range_reduce", {"num_threads": count}) for count in (1, 2, 5, 40)),
    *(("fork_join", {"threshold": threshold}) for threshold in (1, 3, 1000)),
    *(("fork_join", {"threshold": 1, "num_threads": count}) for count in (1, 2, 5)),
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


@pytest.mark.parametrize(("name", "options"), ON_THREADS, ids=str)
def test_options_change_no_count_on_the_host(name, options):
    """Neither the size of a task nor the number of threads, more than rows included."""
    for n in (1, 2, 3, 4, 8, 33, 100, 257):
        assert [host.HOST[name](row, **options) for row in placements(n)] == expected(n)
    assert js.attacking_pairs(placements(n)[:2], name, **options).tolist() == expected(n)[:2]


class Meeting:
    """Where threads wait for one another in the middle of their work."""

    def __init__(self, size):
        self.size, self.threads, self.is_full = size, set(), threading.Event()

    def join(self):
        self.threads.add(threading.get_ident())
        if len(self.threads) >= self.size:
            self.is_full.set()
        assert self.is_full.wait(60), f"{len(self.threads)} threads, expected {self.size} at once"


@pytest.mark.parametrize("num_threads", [1, 2, 3])
@pytest.mark.parametrize("name", host.HOST)
def test_the_work_is_split_over_as_many_threads(name, num_threads, monkeypatch):
    """All are at work at once, each on rows of its own, and there are no others."""
    meeting, attacks, done = Meeting(num_threads), host._attacks, []

    def attacks_at_a_meeting(queens):
        count = attacks(queens)

        def part(first, last):
            meeting.join()
            done.extend(range(first, last))
            return count(first, last)

        return part

    sizes, pool = [0], host._pool
    monkeypatch.setattr(host, "_pool", lambda size: sizes.append(size) or pool(size))
    monkeypatch.setattr(host, "_attacks", attacks_at_a_meeting)
    queens = placements(300)[0]
    assert host.HOST[name](queens, num_threads=num_threads) == expected(300)[0]
    assert len(meeting.threads) == num_threads
    assert max(sizes) + (name == "fork_join") == num_threads  # there, the calling one works, too
    assert sorted(done) == list(range(300))


def test_counts_of_threads_beyond_32_bits(monkeypatch):
    """What the host counts comes back whole, in batches, too."""
    monkeypatch.setitem(host.HOST, "threads", lambda queens, num_threads: 5 * 2**40 + 3)
    count = evaluation.scheme("threads", 4, num_threads=77)
    queens = jnp.zeros((2, 4), jnp.int32)
    assert evaluation.as_python(jax.vmap(count)(queens)).tolist() == [5 * 2**40 + 3] * 2


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache folder of a user."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def pools(monkeypatch):
    """The numbers of threads that were used, in order."""
    used = []
    pool = host._pool
    monkeypatch.setattr(host, "_pool", lambda number: used.append(number) or pool(number))
    return used


def test_measured_numbers_of_threads_are_used(cache, pools):
    """`tune_threads` writes the fastest number for each size, and `threads` goes by that."""
    seconds = evaluation.tune_threads((5, 50), counts=(1, 2), repeats=1)
    assert {n: list(times) for n, times in seconds.items()} == {5: [1, 2], 50: [1, 2]}
    assert min(min(times.values()) for times in seconds.values()) > 0
    assert evaluation.table_path().is_relative_to(cache)
    table = json.loads(evaluation.table_path().read_text())
    assert table == {str(n): min(times, key=times.get) for n, times in seconds.items()}
    evaluation.table_path().write_text(json.dumps({"10": 3, "1000": 4}))
    pools.clear()
    for n in (5, 99, 101, 5000):
        assert host.threads(np.arange(n)) == n * (n - 1) // 2
    assert pools == [3, 3, 4, 4]


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "{",
        "[1, 2]",
        "3",
        '{"a": 1}',
        '{"5": null}',
        '{"5": [1]}',
        '{"5": 0}',
        '{"5": -2}',
        '{"0": 2}',
        "\udcff",
    ],
)
def test_a_broken_table_is_ignored(cache, pools, text):
    """Then as many threads run as there are cores."""
    if text is not None:
        evaluation.table_path().parent.mkdir()
        evaluation.table_path().write_text(text, errors="surrogateescape")
    assert host.threads(np.arange(7)) == 21
    assert pools == [host.num_cores()]


def test_the_nearest_size_is_that_of_the_nearest_ratio():
    """1000 lies in the middle of 100 and 10,000."""
    table = {100: 1, 10_000: 2, 10: 3}
    found = [host.best_num_threads(n, table) for n in (1, 31, 32, 100, 999, 1001, 5000, 10**6)]
    assert found == [3, 3, 1, 1, 1, 2, 2, 2]
    assert host.best_num_threads(1000, {}) == host.num_cores()
