"""Problems of one's own in plain `jax.numpy`: `js.anneal` by the clock, and schedules made by hand.

    python -m experiments.own --seconds 5 --seeds 3
    python -m experiments.own --rates --searches 1024

Six problems that the library knows nothing of, each an `init` and a `cost`. `js.anneal` gets a time
limit and no temperature. Then come five geometric schedules for as many steps of the same searches,
in units of what a random move changes on average: what a person may try. Ends are compared with the
best of these five in the mean over seeds; of a profit, which is below 0, more is better, too.

With `--rates`, on an NVIDIA GPU: moves that are priced in a second, in a kernel and by XLA, in one
run, and whether the searches are those of XLA on a CPU, bit for bit.
"""

import argparse
import dataclasses
import sys
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import jaxopt_search as js
from experiments import common, flag_types

SCHEDULES = ((1.0, 0.01), (0.3, 0.01), (0.1, 0.01), (0.1, 0.001), (0.03, 0.001))
"""First and last temperatures, in units of the mean change by a random move."""
_LEAST_SECONDS, _MOVES = 0.5, 32  # of a timed run, and moves of a search in a step


@js.pytree
@dataclasses.dataclass(frozen=True)
class Order(js.Problem):
    """What an order of n things costs, given some data.

    Attributes:
      data: a pytree of arrays.
      n: the length of orders.
      price: maps data and an order, [n] int32, to its cost.
    """

    data: Any
    n: int = dataclasses.field(metadata={"static": True})
    price: Callable[[Any, jax.Array], jax.Array] = dataclasses.field(metadata={"static": True})

    space = "permutation"

    def init(self, key: jax.Array) -> jax.Array:
        return jax.random.permutation(key, jnp.arange(self.n, dtype=jnp.int32))

    def cost(self, order: jax.Array) -> jax.Array:
        return self.price(self.data, order)


def makespan(times: jax.Array, order: jax.Array) -> jax.Array:
    """Returns when the last job leaves the last machine of a flow shop; times are [jobs, m]."""

    def place(i: jax.Array, ends: jax.Array) -> jax.Array:
        own = times[order[i]]
        total = jnp.cumsum(own)
        # A job waits for itself on the machine before and for the job before on its own machine.
        return total + lax.cummax(ends - (total - own))

    ends = lax.fori_loop(0, order.shape[0], place, jnp.zeros(times.shape[1], times.dtype))
    return ends[-1]


def against_order(matrix: jax.Array, order: jax.Array) -> jax.Array:
    """Returns the sum of the entries below the diagonal once rows and columns are in order."""
    n = order.shape[0]
    entries = matrix[order[:, None], order[None, :]]
    place = jnp.arange(n)
    return jnp.sum(jnp.where(place[:, None] > place[None, :], entries, 0), dtype=jnp.int32)


def minus_packed(items: tuple[jax.Array, ...], order: jax.Array) -> jax.Array:
    """Returns minus the value of the items, in order, up to the first that does not fit."""
    weights, values, capacity = items
    fits = jnp.cumsum(weights[order], dtype=jnp.int32) <= capacity
    return -jnp.sum(jnp.where(fits, values[order], 0), dtype=jnp.int32)


def bandwidth(edges: jax.Array, label: jax.Array) -> jax.Array:
    """Returns by how much labels of neighbors differ at most; of equals fewer edges that do."""
    first, second = label[edges[:, 0]], label[edges[:, 1]]
    # XLA of JAX 0.11.2 for GPUs leaves out the `abs` of int32 below a maximum.
    apart = jnp.maximum(first - second, second - first)
    most = jnp.max(apart)
    return most * edges.shape[0] + jnp.sum(apart == most, dtype=jnp.int32)


def late_tour(town: tuple[jax.Array, ...], order: jax.Array) -> jax.Array:
    """Returns the way from customer to customer, and ten times the minutes that one is late."""
    distance, opening, closing = town

    def visit(carry: tuple[jax.Array, ...], city: jax.Array) -> tuple[tuple[jax.Array, ...], None]:
        clock, late, before, way = carry
        step = distance[before, city]
        clock = jnp.maximum(clock + step, opening[city])
        late = late + jnp.maximum(clock - closing[city], 0)
        return (clock, late, city, way + step), None

    zero = jnp.int32(0)
    (_, late, last, way), _ = lax.scan(visit, (zero, zero, zero, zero), order + 1)
    return way + distance[last, 0] + 10 * late


def ruler(pairs: tuple[jax.Array, jax.Array], gaps: jax.Array) -> jax.Array:
    """Returns the length of a ruler of different gaps, and 50 for each two equal distances.

    Args:
      pairs: [p] int32 each, the first and the second mark of all pairs; the last of the marks
        tells how many of the gaps count.
      gaps: [n] int32, from 0 on: a gap is one longer.
    """
    first, second = pairs
    marks = jnp.cumsum(gaps + 1, dtype=jnp.int32)  # the mark before all is at 0
    between = marks[second] - jnp.where(first < 0, 0, marks[first])
    num_equal = jnp.sum(between[:, None] == between[None, :], dtype=jnp.int32)
    return marks[jnp.max(second)] + 25 * (num_equal - first.shape[0])


def problems() -> dict[str, tuple[Order, js.Moves]]:
    """Returns an instance of each problem, and its moves."""
    rng = np.random.default_rng(0)
    flow_shop = Order(_int32(rng.integers(1, 100, (50, 10))), 50, makespan)

    rng = np.random.default_rng(0)
    ordering = Order(_int32(rng.integers(0, 100, (40, 40))), 40, against_order)

    rng = np.random.default_rng(0)
    weights = rng.integers(100, 1000, 100)
    items = weights, weights + rng.integers(-50, 100, 100), weights.sum() // 2
    knapsack = Order(tuple(map(_int32, items)), 100, minus_packed)

    rng = np.random.default_rng(0)
    edges = np.argwhere(np.triu(rng.random((60, 60)) < 0.07, 1))
    labeling = Order(_int32(edges), 60, bandwidth)

    rng = np.random.default_rng(0)
    places = rng.integers(0, 100, (31, 2))
    distance = np.rint(np.hypot(*np.moveaxis(places[:, None] - places, 2, 0)))
    opening = rng.integers(0, 1500, 31)
    town = distance, opening, opening + rng.integers(50, 300, 31)
    windows = Order(tuple(map(_int32, town)), 30, late_tour)

    second, first = np.tril_indices(11, -1)  # of twelve marks, the first of which is -1
    second, first = np.append(second, np.arange(11)), np.append(first, np.full(11, -1))
    golomb = Order((_int32(first), _int32(second)), 30, ruler)
    return {
        "flow shop, 50 jobs on 10 machines": (flow_shop, js.Insert()),
        "linear ordering, 40 rows": (ordering, js.Insert()),
        "knapsack, 100 items": (knapsack, js.Swap()),
        "bandwidth, 60 vertices": (labeling, js.Swap()),
        "time windows, 30 customers": (windows, js.Insert()),
        "Golomb ruler, 12 marks": (golomb, js.Swap()),
    }


def _int32(values: Any) -> jax.Array:
    return jnp.asarray(values, jnp.int32)


def mean_change(problem: Order, moves: js.Moves) -> float:
    """Returns by how much a move changes the cost of a random order on average."""
    hood = js.neighborhoods.FullEvaluation(moves)

    def change(key: jax.Array) -> jax.Array:
        state = hood.init(problem, problem.init(key))
        words = jax.random.bits(jax.random.fold_in(key, 1), (hood.num_words,))
        return jnp.abs(hood.delta(problem, state, hood.propose(problem, state, tuple(words))))

    return float(jnp.mean(jax.jit(jax.vmap(change))(jax.random.split(jax.random.key(0), 500))))


def by_hand(problem: Order, moves: js.Moves, found: js.Result, seed: int) -> list[float]:
    """Returns what the schedules end with, in the steps, searches and moves of a run."""
    unit, steps, number = mean_change(problem, moves), max(found.nit, 1), len(found.costs)
    made, each = [], found.nfev // (steps * number)
    for first, last in SCHEDULES:
        cooling = js.geometric(first * unit, (last / first) ** 0.01, max(steps // 100, 1))
        search = js.simulated_annealing(moves, cooling, moves_per_search=each)
        run = js.solve(problem, search, seed, num_searches=number, max_steps=steps, devices="all")
        made.append(float(run.fun))
    return made


def runner(problem: Order, moves: js.Moves, number: int, how: Any) -> Callable[[int], Any]:
    """Returns what makes steps of this many searches by an implementation: a state in the end."""
    problem = jax.device_put(problem, jax.config.jax_default_device)
    temperature = mean_change(problem, moves) / 30
    search = js.simulated_annealing(moves, temperature, moves_per_search=_MOVES)
    options = {"num_searches": number, "implementation": how}
    return lambda steps: js.run(0, problem, search, max_steps=steps, **options)


def moves_per_second(run: Callable[[int], Any], number: int) -> float:
    """Returns the moves that searches price in a second."""
    steps, took = 5, 0.0
    while took < _LEAST_SECONDS:
        steps *= 4
        _, took = common.timed(run, steps)
    return _MOVES * number * steps / took


def rates(number: int) -> str:
    """Returns the table of moves that are priced in a second."""
    rows = []
    for name, own in problems().items():
        runs = [runner(*own, number, how) for how in ("cuda", "xla")]
        with jax.default_device(jax.devices("cpu")[0]):
            right = runner(*own, number, "xla")(20)
        alike = ["yes" if _are_alike(right, run(20)) else "no" for run in runs]
        ours, theirs = (moves_per_second(run, number) for run in runs)
        rows.append([name, f"{ours:.3g}", f"{theirs:.3g}", f"{ours / theirs:.1f}", *alike])
        print(" | ".join(rows[-1]), flush=True)
    header = "problem | moves/s | by XLA | times | searches as on a CPU | by XLA"
    return common.table(header, rows, markdown=True)


def _are_alike(one: Any, other: Any) -> bool:
    pairs = zip(*map(jax.tree.leaves, (one, other)), strict=True)
    return all(np.array_equal(*map(np.asarray, pair)) for pair in pairs)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints a line for each problem, and returns the exit status."""
    flags = argparse.ArgumentParser(prog="experiments.own")
    flags.add_argument("--seconds", type=flag_types.limit, default=5.0)
    flags.add_argument("--seeds", type=flag_types.positive, default=3, help="how many, from 0 on")
    flags.add_argument("--rates", action="store_true", help="how fast kernels are, on a GPU")
    flags.add_argument("--searches", type=flag_types.positive, default=1024)
    args = flags.parse_args(arguments)
    if args.rates:
        print("\n" + rates(args.searches))
        return 0
    common.use_cpu_cores()
    rows = []
    for name, (problem, moves) in problems().items():
        ours, others = [], []
        for seed in range(args.seeds):
            found = js.anneal(problem, moves, seed, max_seconds=args.seconds)
            ours.append(float(found.fun))
            others.append(by_hand(problem, moves, found, seed))
        means = np.mean(others, axis=0)
        best, own = means.min(), np.mean(ours)
        costs = (f"{cost:.1f}" for cost in (own, best, means.max()))
        rows.append([name, *costs, f"{(own - best) / abs(best):+.2%}"])
        print(" | ".join(rows[-1]), flush=True)
    header = "problem | js.anneal | best schedule | worst schedule | js.anneal less the best"
    print("\n" + common.table(header, rows, markdown=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
