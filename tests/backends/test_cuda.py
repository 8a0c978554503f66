"""Kernels as they are emitted: what the C++ computes, played on a host or run on a GPU."""

import dataclasses
import functools
import itertools
import json
import os
import re
import subprocess
import sys

import chex
import golden
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import coords_tsp, matrix_tsp
from digests import digest
from lanes import needs_compiler, played
from ways import ON_GPU, needs_cpu

import jaxopt_search as js
from experiments import own
from experiments.finite.autocorrelation import low_autocorrelation
from jaxopt_search import backends
from jaxopt_search.backends import memory
from jaxopt_search.backends.cuda import compile, emit, launch

BY_NAME = {case.name: case for case in golden.CASES if not case.note}
OWN, SEVERAL, FEW = (lambda warps: (warps, 0)), (lambda warps: (4, 900)), (lambda warps: (1, 300))
"""As asked for; more warps, or one, with some arrays in shared memory."""
PLAYED = [
    ("pspm", OWN),
    ("2-opt", FEW),
    ("swap table", SEVERAL),
    ("min-conflicts", FEW),
    ("islands that restart", OWN),
    ("fang in random order", SEVERAL),
    ("edge assembly", SEVERAL),
]
KEPT = json.loads(golden.FILE.read_text(encoding="utf-8"))


def in_both_orders(monkeypatch, run, laid_out=OWN):
    """Returns what a kernel makes that is played, whether its first lanes run ahead or its last."""
    with played(monkeypatch, laid_out) as set_order:
        for order in (0, 1):
            set_order(order)
            yield run("interpret")


@needs_compiler
@pytest.mark.parametrize(("name", "laid_out"), PLAYED, ids=[name for name, _ in PLAYED])
def test_what_is_emitted_makes_the_same_searches(name, laid_out, monkeypatch):
    """As far as barriers let the first lanes run ahead of the others, or the last."""
    run = functools.partial(BY_NAME[name].run, devices=1)
    found = in_both_orders(monkeypatch, run, laid_out)
    assert list(map(digest, found)) == [KEPT[name]] * 2


def check_played(monkeypatch, problem, search):
    """Checks that a run is the same by XLA, in both orders, and on a GPU if there is one."""

    def run(way):
        return js.run(5, problem, search, num_searches=2, max_steps=40, implementation=way)

    expected = run("xla")
    if ON_GPU:
        chex.assert_trees_all_equal(run("cuda"), expected)
    for found in in_both_orders(monkeypatch, run):
        chex.assert_trees_all_equal(found, expected)
    assert expected.info.accepted.sum() > 0


@needs_compiler
def test_many_moves_take_several_warps(monkeypatch):
    """A search of 128 moves: what one warp writes, the others read."""
    problem = coords_tsp(60)
    search = js.simulated_annealing(js.two_opt(problem), 30.0, moves_per_search=128)
    assert search.num_warps(problem, 2) == 4
    check_played(monkeypatch, problem, search)


@needs_compiler
def test_moves_of_vectors_that_are_priced_in_full(monkeypatch):
    """The best of 40 flips, by a problem that has a cost and no hooks."""
    problem, search = low_autocorrelation(40), js.tabu_search(js.Flip(), tenure=(4, 12))
    assert js.why_not_portable(problem, search) == ""
    check_played(monkeypatch, problem, search)


def work(i, given, own):
    """Calls what the emitter has code of its own for."""
    numbers, table, floats = given
    (out, total), lane = own, memory.lanes(64)
    some = jnp.where(lane < 50, memory.load(numbers, lane, lane < 50), 7)
    wide, high = jax.lax.iota(jnp.int32, 128)[None], jax.lax.iota(jnp.int32, 16)[:, None]
    few, entries = jax.lax.iota(jnp.int32, 8)[None], memory.load(table, (high, wide))
    by_row = jnp.sum(entries, axis=1)
    real = memory.load(floats, lane)
    parts = [
        jnp.sum(some) + jnp.prod(real.astype(jnp.int32) | 1),
        jnp.argmin(some).astype(jnp.int32),
        jnp.argmax(real).astype(jnp.int32),
        jnp.any(some > 40).astype(jnp.int32),
        memory.pick(some, jnp.int32(49)),
        memory.pick(by_row, jnp.int32(5)),
        jnp.min(jnp.where(by_row[:, None] > 3 * wide, entries, 999)),
        (real * 3.7).astype(jnp.int32).max(),
        jnp.where(real > 0, real, -jnp.inf).astype(jnp.int8).astype(jnp.int32).min(),
        jnp.sum(jnp.sign(some - 20) * (some // 7) % jnp.maximum(some % 5, 1)),
        jnp.max(jnp.left_shift(some, 3) ^ jnp.right_shift(-some, 1)),
        jax.lax.bitcast_convert_type(jnp.max(jnp.abs(jnp.floor(real))), jnp.int32),
        jnp.sum(jax.lax.population_count(some) + jax.lax.clz(some)),
        jnp.sum(jnp.cumsum(entries, axis=1) * (wide % 5)),
        jnp.sum(jnp.cumsum(memory.load(table, (high, few)), axis=1) * (few + high)),
        jnp.sum((some[32:] - some[:32]) * jax.lax.iota(jnp.int32, 32)),
        jnp.max(jax.lax.slice(some, (3,), (48,), (6,)) * jax.lax.iota(jnp.int32, 8)),
        jax.lax.slice(some, (41,), (42,)).reshape(()),
    ]
    out = memory.store(out, lane, jnp.cumsum(some), lane < 64)
    place = jnp.minimum(lane, 49)  # lanes in excess read what another one has written
    out = memory.store(out, place, some + i, lane < 50)
    parts.append(jnp.sum(memory.load(out, place)))
    lane = jax.lax.iota(jnp.int32, 32)
    out = memory.store(
        out,
        64 + lane,
        jax.lax.switch(
            i % 3, [lambda: lane, lambda: lane * 2, lambda: lane * memory.load(numbers, i)]
        ),
        jnp.bool_(True),
    )
    for number, part in enumerate(parts):
        total = memory.store(total, jnp.int32(number), part + i, jnp.bool_(True))
    return out, total


GIVEN = (
    np.random.default_rng(0).integers(-60, 60, 70).astype(np.int32),
    np.random.default_rng(1).integers(-60, 60, (16, 128)).astype(np.int32),
    np.random.default_rng(2).normal(0, 99, 70).astype(np.float32),
)


def launched(implementation, num_warps):
    own = jnp.zeros((3, 96), jnp.int32), jnp.zeros((3, 24), jnp.int32)
    options = {"num_warps": num_warps, "implementation": implementation}
    given = jax.tree.map(jnp.asarray, GIVEN)
    return jax.device_get(backends.launch(work, jnp.int32(5), given, own, **options))


@needs_compiler
@pytest.mark.parametrize("num_warps", [1, 2, 8])
def test_operations(num_warps, monkeypatch):
    """However entries are dealt out to threads, each operation gives what XLA gives."""
    expected = launched("interpret", num_warps)
    monkeypatch.setattr(emit, "BARRIER_AFTER_WRITES", num_warps == 1)
    with played(monkeypatch) as set_order:
        set_order(1)
        chex.assert_trees_all_equal(launched("interpret", num_warps), expected)
    if ON_GPU:
        chex.assert_trees_all_equal(launched("cuda", num_warps), expected)


ALWAYS, WIDE = jnp.bool_(True), 128


def copied(i, given, own):
    """Writes to what was copied just before, after a barrier for where to."""
    a, b = own
    lane = memory.lanes(WIDE)
    b = memory.copy(memory.store(b, WIDE - 1 - lane, lane + i, ALWAYS), a, ALWAYS)
    return memory.store(a, (lane * 3 + 64) % WIDE, lane + i, ALWAYS), b


def read_by_each(i, given, own):
    """Writes to the first of the arrays that each lane has read, likewise."""
    a, b = own
    lane = memory.lanes(WIDE)
    b = memory.store(b, WIDE - 1 - lane, lane + i, ALWAYS)
    read = memory.each(lambda ab, k: ab[0][k * 5 % WIDE] + ab[1][k * 7 % WIDE], (a, b), lane)
    return memory.store(a, lane, 1000 * i + lane, ALWAYS), memory.store(b, lane, read, ALWAYS)


def one_for_all(i, given, own):
    """Writes a number that each lane has computed by itself, times that of the lane."""
    a, b = own
    lane = memory.lanes(WIDE)
    return memory.store(a, lane, lane * memory.each(lambda b, k: jnp.sum(b) + k, b, i), ALWAYS), b


def looped(i, given, own):
    """Writes to what the test of a loop has read when it ended."""
    a, b = own
    lane = memory.lanes(WIDE)

    def step(place):
        return place + 1 + memory.pick(lane * place, place) % 2

    goes_on = lambda place: memory.load(a, place) < 3 * i  # noqa: E731
    end = jax.lax.while_loop(goes_on, step, memory.load(b, i) % 8)
    return memory.store(a, lane, lane // 9 + end, ALWAYS), memory.store(b, i, end, ALWAYS)


def chosen(i, given, own):
    """One of three for each lane, and entries of a table by numbers of eight bits."""
    a, b = own
    lane = memory.lanes(WIDE)
    a = memory.store(a, lane, jax.lax.select_n(lane % 3, lane, lane * 10, lane * 99), ALWAYS)
    place = (lane % 16).astype(jnp.uint8), lane.astype(jnp.uint8)
    bits = jax.lax.clz(place[1]).astype(jnp.int32)
    return a, memory.store(b, lane, memory.load(given[1], place) + bits, ALWAYS)


@needs_compiler
@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("program", [copied, read_by_each, one_for_all, looped, chosen])
def test_small_programs(program, num_warps, monkeypatch):
    """What XLA gives, whichever lanes run ahead."""
    own = jnp.tile(jnp.arange(WIDE) // 9, (2, 1)), jnp.tile(jnp.arange(WIDE) * 2, (2, 1))
    given = jax.tree.map(jnp.asarray, GIVEN)

    def run(way):
        how = {"num_warps": num_warps, "implementation": way}
        return jax.device_get(backends.launch(program, jnp.int32(5), given, own, **how))

    expected = run("interpret")
    if ON_GPU:
        chex.assert_trees_all_equal(run("cuda"), expected)
    for found in in_both_orders(monkeypatch, run):
        chex.assert_trees_all_equal(found, expected)


HELD = np.arange(7, dtype=np.int32) ** 2


def turn(i, k, a, b):
    """Sets entries of two arrays to what stood in the other one, some of them beyond the end."""
    place = (i * 7 + k) % (a.shape[0] + 2)
    new = a.at[place].set(b[i] - a[i], mode="drop").at[i].set(a[i + 1] * 3)
    return new, b.at[i + 1].set(a[i] + b[place % 9])


def plain(read, k):
    """Plain JAX on arrays, by itself for each lane: what an emitted thread does in its own way."""
    numbers, table, floats = read
    n = numbers.shape[0]
    order = jnp.roll(numbers, 3) + k
    ranks = jnp.zeros(n, jnp.int32).at[jnp.abs(order) % n].add(order)
    ranks = ranks.at[k % n].max(99).at[k + 65].set(7, mode="drop")
    square = jnp.where(table > k, table, -table)[:9, :9]
    window = jax.lax.dynamic_slice(table, (k - 3, k), (4, 5))
    changed = jax.lax.dynamic_update_slice(table, window.T, (k % 11, k * 2))
    ends = jax.lax.fori_loop(0, 5, lambda i, e: e + jax.lax.cummax(e[::-1]) % (i + 2), order)
    (last, seen), rows = jax.lax.scan(
        lambda carry, row: ((carry[0] + row[k % 8], carry[1] | (row[0] > 9)), row[:3] * carry[0]),
        (jnp.int32(0), jnp.bool_(False)),
        table[:6],
    )
    halved = jax.lax.while_loop(lambda x: x[0] > 2, lambda x: (x[0] // 2, x[1] + 1), (k + 50, k))
    shared = table[:5, :5] % 7 + k
    for _ in range(9):  # each is asked for twice
        shared = (shared + shared[::-1]) % 101
    once = jax.lax.fori_loop(0, 1, lambda i, x: x * 3 + 1, k[None])  # as it is used below
    turned = jax.lax.fori_loop(0, 12, lambda i, both: turn(i, k, *both), (order, numbers))
    transposed = jax.lax.fori_loop(
        0,
        5,
        lambda i, t: jax.lax.fori_loop(0, 4, lambda j, t: t.at[i, j].set(t[j, i] * 3 + j), t),
        table[:5, :5],
    )
    either = jax.lax.cond(k % 2 == 0, lambda: jnp.sum(ends), lambda: jnp.max(ends))
    parts = [
        jnp.sum(order * jnp.arange(n)),
        jnp.sum(ranks * jnp.arange(n)),
        jnp.sum(square @ square.T * jnp.arange(9)[:, None])
        + jnp.sum(
            jnp.einsum(
                "bij,bkj->bik", table[:12, :5].reshape(3, 4, 5), square[:6, :5].reshape(3, 2, 5)
            )
        ),
        jnp.sum(window * jnp.arange(5)[None]) + jnp.max(changed, axis=0)[k],
        last + seen + jnp.sum(rows * jnp.arange(3)[None]),
        halved[1] + either + jnp.sum(once * 3 + 1),
        jnp.sum(jnp.asarray(HELD)[order % 7])
        + jnp.argmax(order) * 100
        + jnp.sum(jnp.argmin(table[:9] % 5, axis=1) * jnp.arange(9))
        + jnp.argmin(jnp.concatenate([order, order[:5] - 1])),
        jnp.sum(jnp.cumsum(table, axis=1, dtype=jnp.int32)[:, 4] ^ jnp.min(table, axis=1)),
        jnp.sum(table[jnp.array(2), jnp.minimum(order % 9, 8)]),
        jnp.sum(jnp.take(numbers, jnp.arange(4) + 68 + k, mode="fill", fill_value=5)),
        jnp.all(order < 200) + jnp.stack([k, k + 1], axis=-1)[1],
        jnp.sum(jax.lax.pad(table, k, ((2, 1, 0), (-1, 3, 0)))[k % 19] * jnp.arange(130)),
        jnp.sum(numbers.at[k].set(3)[order % n] * order.at[jnp.stack([k, k])].set(k * k)[::-1]),
        (floats[k % 70] * 3 + jnp.sqrt(jnp.abs(floats[k]))).astype(jnp.int32),
        jnp.sum(shared * jnp.arange(5)[None]) + jnp.sum(jnp.concatenate([numbers[:0], order])),
        jnp.sum(turned[0] * jnp.arange(n) ^ turned[1]) + jnp.sum(transposed * jnp.arange(5)[None]),
        jnp.prod(numbers[:5] | 1) + jnp.max(jnp.cumprod(table[:, k] | 1)),
        jnp.sum(jnp.transpose(table)[3:40:2].reshape(-1)[:30] * jnp.arange(30)),
    ]
    return tuple(part.astype(jnp.int32) for part in parts)


def _windows(table, k):
    """Adds to windows, of which those that are not all within the array are left out."""
    numbers = jax.lax.ScatterDimensionNumbers((1, 2), (), (0, 1))
    where = jnp.stack([jnp.stack([k - 20, k % 7]), jnp.stack([k % 20, k])])
    return jax.lax.scatter_add(table, where, jnp.ones((2, 3, 4), jnp.int32) * k, numbers)


def batched(read, k):
    """Likewise, what `vmap` makes of indices, of which each array has its own."""
    numbers, table, floats = read
    rows, at = table[:, :12] + k, (numbers[:16] + k) % 15 - 2
    swapped = jax.vmap(lambda row, i: row.at[i].set(row[i + 1]).at[i + 3].add(k))(rows, at)
    slices = jax.vmap(lambda row, i: jax.lax.dynamic_slice(row, (i,), (3,)))(rows, at)
    put = jax.vmap(lambda row, i: jax.lax.dynamic_update_slice(row, row[:3] * k, (i,)))(rows, at)
    taken = jnp.take_along_axis(rows, (at[:, None] + jnp.arange(12)[None]) % 12, 1)
    halves = (floats[:16] + k) / 4
    first, second, _ = jnp.split(numbers, [3, 10])
    parts = [
        jnp.sum(swapped * jnp.arange(12)[None]),
        jnp.sum(slices * jnp.arange(3)[None]),
        jnp.sum(put * jnp.arange(12)[None]),
        jnp.sum(taken * jnp.arange(12)[None]),
        jnp.sum(table.at[k % 9, at].min(k, mode="clip")[k % 9] * jnp.arange(128)),
        jnp.sum(jnp.round(halves) + halves // 2.5 + halves**0) + jnp.sum((at - 3) ** 5),
        jnp.sum((halves % 3 + 1) ** -3 * 10_000),
        jnp.sum(jnp.tile(first + k, 3)[:7] * second),
    ]
    return tuple(part.astype(jnp.int32) for part in parts)


def rare(read, k):
    """Likewise, what hardly anybody writes."""
    numbers, table, _ = read
    high = k.astype(jnp.uint32) - 9  # some are 2**32 less
    bits = (numbers + k).astype(jnp.uint8)
    parts = [
        jnp.sum(jax.lax.shift_right_arithmetic(bits, bits % 11).astype(jnp.int32))
        + jax.lax.shift_right_arithmetic(high, high % 40).astype(jnp.int32),
        jnp.sum(jax.lax.dynamic_slice(numbers, (high,), (5,)) * jnp.arange(5)),
        numbers[high] + jnp.take(numbers, high, mode="fill", fill_value=5),
        jnp.sum(_windows(table, k) * jnp.arange(16)[:, None]),
        jnp.sum(jnp.concatenate([table[:0], table[16:]])[:, :1] + k) + k,
        jnp.sum(jax.lax.pad(numbers[:3] + k, k, ((-5, 7, 0),)) * jnp.arange(5)),
        jnp.sum(jax.jit(lambda row: jnp.concatenate([row, HELD[3:4]]))(numbers + k)),
    ]
    return tuple(part.astype(jnp.int32) for part in parts)


@needs_compiler
@pytest.mark.parametrize("program", [plain, batched, rare])
def test_plain_jax_of_each_lane(program, monkeypatch):
    """Loops, scatters, slices, scans and sums in arrays of a thread's own: what XLA gives."""
    num_lanes = 128

    def work(i, given, own):
        made = memory.each(program, given, memory.lanes(num_lanes) % 60 + i)
        for number, values in enumerate(made):
            where = (jnp.int32(number), memory.lanes(num_lanes))
            own = memory.store(own, where, values, jnp.bool_(True))
        return memory.overwrite(own, lambda own: own[:, ::-1] + own[0, 0] * 0, own, i > 0)

    def run(implementation):
        own = jnp.zeros((2, 18, num_lanes), jnp.int32)
        given = jax.tree.map(jnp.asarray, GIVEN)
        how = {"implementation": implementation}
        return jax.device_get(backends.launch(work, jnp.int32(3), given, own, **how))

    expected = run("interpret")
    assert len(np.unique(expected)) >= 16
    with played(monkeypatch) as set_order:
        set_order(1)
        np.testing.assert_array_equal(run("interpret"), expected)
    if ON_GPU:
        np.testing.assert_array_equal(run("cuda"), expected)


@needs_compiler
@pytest.mark.parametrize("name", ["flow shop", "Golomb ruler"])
def test_costs_in_plain_jax_run_in_kernels(name, monkeypatch):
    """Of problems of one's own: a thread prices a move."""
    problem, moves = next(parts for long, parts in own.problems().items() if long.startswith(name))
    search = js.simulated_annealing(moves, 20.0, moves_per_search=20)
    check_played(monkeypatch, problem, search)
    assert js.why_not_portable(problem, search) == ""


def test_nvrtc_compiles_what_is_emitted(monkeypatch):
    """For GPUs that this machine need not have."""
    kernels = []

    def note(*operands, program, groups, num_warps):
        kernels.append(emit.emit(program, groups, 4, 99))
        return operands[-len(program.out_avals) :]

    monkeypatch.setattr(launch, "_interpreted", note)
    launched("interpret", 3)  # a number of warps that no other test has
    assert kernels
    for kernel, capability in itertools.product(kernels, (75, 90)):
        try:
            text = compile.to_ptx(kernel.source, capability)
        except OSError as error:
            pytest.skip(str(error))
        assert f".target sm_{capability}" in text


_TELL = """
import numpy as np
import jaxopt_search as js
from jaxopt_search.backends.cuda import emit, launch

def told(*arguments):
    print((code := emit.emit(*arguments)).source)
    return code

launch.emit = told
problem = js.qap(np.ones((100, 100), int), np.ones((100, 100), int))
assert not js.why_not_portable(problem, js.tabu_search(js.SwapTable()))
"""


def test_other_processes_emit_the_same():
    """Whatever the order of their sets, so that a cache has the program."""
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _TELL],
            env=environment | {"PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in ("1", "5")
    ]
    first, second = (process.communicate()[0] for process in processes)
    assert "kernel(" in first
    assert first == second


def test_reads_of_the_past_are_refused():
    """A kernel writes in place: what a buffer held before is gone."""

    @jax.tree_util.register_static
    @dataclasses.dataclass(frozen=True)
    class Late(js.Relocate):
        def commit(self, problem, representation, move, accept):
            before = representation.successor
            tour = super().commit(problem, representation, move, accept)
            next_one = memory.load(before, move.city)
            return tour._replace(
                successor=memory.store(tour.successor, move.city, next_one, accept)
            )

    search = js.simulated_annealing(Late(), 1.0)
    reason = js.why_not_portable(matrix_tsp(9), search)
    assert re.fullmatch(
        r".*Late.commit \(.*\) reads a buffer as it was before a write to it", reason
    )


@pytest.mark.skipif(not ON_GPU, reason="needs an NVIDIA GPU")
@pytest.mark.parametrize("name", [name for name, _ in PLAYED])
@pytest.mark.parametrize("num_warps", [1, 2, 8])
def test_any_number_of_warps_makes_the_same_searches(name, num_warps, monkeypatch):
    """As for a GPU with compute capability 7.5 and little shared memory."""
    expected = digest(BY_NAME[name].run("xla", 1))
    small = launch._device()._replace(capability=75, shared=64 * 1024)
    on_gpu = launch._on_gpu
    monkeypatch.setattr(launch, "_device", lambda: small)
    monkeypatch.setattr(
        launch, "_on_gpu", lambda *own, **how: on_gpu(*own, **how | {"num_warps": num_warps})
    )
    jax.clear_caches()
    assert digest(BY_NAME[name].run("cuda", 1)) == expected
    jax.clear_caches()


@needs_cpu
def test_a_kernel_is_tried_before_it_is_trusted(monkeypatch):
    """By numbers that are known; what fails is told, and XLA runs instead."""

    class Wrong(launch.Launcher):
        def launch(self, *args):
            return jax.tree.map(lambda leaf: leaf + 1, super().launch(*args))

    device = jax.devices("cpu")[0]
    assert launch.distrust(device).startswith("a kernel fails here: ")  # a CPU has none
    monkeypatch.setitem(launch.BACKENDS, "cuda", launch.Launcher("interpret"))
    assert launch.distrust(device) == ""
    monkeypatch.setitem(launch.BACKENDS, "cuda", Wrong("interpret"))
    assert launch.distrust(device) == "a kernel computes wrong numbers here"
