"""A problem of one's own in the fused kernel: graph bisection, step by step in the docs.

    python -m experiments.finite.graph_bisection
    python -m experiments.finite.graph_bisection --vertices 500 --pricing full

Splits the vertices of a weighted graph into two halves of equal size so that little weight lies
between them. A move exchanges two vertices, one of each half, and is priced in O(1) from gains
(Kernighan, Lin, "An efficient heuristic procedure for partitioning graphs", 1970). Nothing here is
known to the library; docs/your_own_problem.md explains each part.
"""

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxopt_search as js
from experiments import common
from jaxopt_search.backends import memory
from jaxopt_search.backends.memory import load, store
from jaxopt_search.backends.random import below

_STEPS = 20_000


@js.pytree
@dataclasses.dataclass(frozen=True)
class GraphBisection(js.Problem):
    """A graph. Build it with `graph_bisection`.

    Attributes:
      weight: [n * n] int32, row by row: symmetric, 0 on the diagonal and where there is no edge.
      n: the number of vertices, even.
    """

    weight: jax.Array
    n: int = dataclasses.field(metadata={"static": True})

    space = "permutation"

    def init(self, key):
        """Returns a random order of the vertices, [n] int32; the first n / 2 are the left half."""
        return jax.random.permutation(key, jnp.arange(self.n, dtype=jnp.int32))

    def cost(self, order):
        """Returns the weight between the halves, [] int32."""
        between = self.weight.reshape(self.n, self.n)[order]
        return jnp.sum(between[: self.n // 2, order[self.n // 2 :]], dtype=jnp.int32)


def graph_bisection(weight: np.ndarray) -> GraphBisection:
    """Returns the problem of a graph.

    Args:
      weight: [n, n] integers, symmetric with a zero diagonal, with a sum below 2**31 / 4; n even,
        at least 4, since to exchange the only two vertices changes nothing.

    Raises:
      ValueError: if n is another one.
    """
    weight = np.asarray(weight)
    n = weight.shape[0]
    if weight.shape != (n, n) or n < 4 or n % 2:
        raise ValueError(f"weight has shape {weight.shape}, expected (n, n), n even and 4 or more")
    return GraphBisection(jnp.asarray(weight.ravel(), jnp.int32), n)


class Pair(NamedTuple):
    """Exchanges the vertices at two places of the order.

    Attributes:
      left: int32, below n / 2.
      right: int32, from n / 2 on.
    """

    left: jax.Array
    right: jax.Array


def random_pair(n, words):
    """Returns the pair that two random words stand for; portable."""
    return Pair(below(words[0], n // 2), n // 2 + below(words[1], n // 2))


@dataclasses.dataclass(frozen=True)
class Exchange(js.Moves):
    """All n * n / 4 exchanges, each priced by full evaluation."""

    num_words = 2

    def propose(self, problem, order, words):
        return random_pair(problem.n, words)

    def apply(self, problem, order, move):
        left, right = order[move.left], order[move.right]
        return order.at[move.left].set(right).at[move.right].set(left)


class Halves(NamedTuple):
    """An order of the vertices with what is gained by moving each of them.

    Attributes:
      order: [n] int32, the solution.
      gain: [n] int32, the weight from each vertex to the other half less that to its own.
    """

    order: jax.Array
    gain: jax.Array


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class ExchangeByGain(js.Neighborhood):
    """The same exchanges, priced in O(1) and made in O(n) by lanes."""

    num_words = 2
    is_portable = True

    def init(self, problem, solution):
        n = problem.n
        is_left = jnp.zeros(n, bool).at[solution[: n // 2]].set(True)
        weight = problem.weight.reshape(n, n)
        is_internal = is_left[:, None] == is_left[None, :]
        gain = jnp.sum(jnp.where(is_internal, -weight, weight), axis=1, dtype=jnp.int32)
        return Halves(solution, gain)

    def snapshot(self, representation):
        return representation.order

    def solution(self, problem, snapshot):
        return snapshot

    def propose(self, problem, representation, words):
        return random_pair(problem.n, words)

    def delta(self, problem, representation, move):
        order, gain = representation
        a, b = load(order, move.left), load(order, move.right)
        return 2 * load(problem.weight, a * problem.n + b) - load(gain, a) - load(gain, b)

    def commit(self, problem, representation, move, accept):
        order, gain = representation
        a, b = load(order, move.left), load(order, move.right)
        # Both change sides: all of their edges turn over except the one between them.
        twice = 2 * load(problem.weight, a * problem.n + b)
        gain_of_a, gain_of_b = twice - load(gain, a), twice - load(gain, b)
        gain = _update_others(problem, representation, a, b, accept)
        gain = store(gain, a, gain_of_a, accept)
        gain = store(gain, b, gain_of_b, accept)
        order = store(order, move.left, b, accept)
        order = store(order, move.right, a, accept)
        return Halves(order, gain)


def _update_others(problem, halves, a, b, accept):
    """Returns the gains after `a` left the left half for `b`, except their own; portable."""
    n, lane = problem.n, memory.lanes(memory.LANES)

    def update_tile(number, gain):
        place = number * memory.LANES + lane
        is_real = place < n
        place = jnp.minimum(place, n - 1)
        vertex = load(halves.order, place)
        to_a, to_b = (load(problem.weight, vertex * n + other) for other in (a, b))
        change = jnp.where(place < n // 2, to_a - to_b, to_b - to_a)
        is_other = is_real & (vertex != a) & (vertex != b)
        return store(gain, vertex, load(gain, vertex) + 2 * change, accept & is_other)

    return memory.fori_loop(-(-n // memory.LANES), update_tile, halves.gain)


class Planted(NamedTuple):
    """A random graph with a known good bisection.

    Attributes:
      weight: [n, n] int32.
      cut: the weight between the planted halves.
    """

    weight: np.ndarray
    cut: int


def planted_graph(n: int, inside: float, between: float, seed: int) -> Planted:
    """Returns a graph with edges of weight 1 to 9, denser inside two hidden halves.

    Args:
      n: vertices, even.
      inside: the share of edges present within the halves.
      between: the share of edges present between them.
    """
    rng = np.random.default_rng(seed)
    is_left = rng.permutation(n) < n // 2
    is_cut = is_left[:, None] != is_left[None, :]
    is_edge = rng.random((n, n)) < np.where(is_cut, between, inside)
    weight = np.triu(np.where(is_edge, rng.integers(1, 10, (n, n)), 0), 1)
    return Planted((weight + weight.T).astype(np.int32), int(weight[is_cut].sum()))


def main(arguments: Sequence[str] | None = None) -> int:
    """Anneals a graph with a planted bisection, and returns the exit status."""
    flags = argparse.ArgumentParser(
        prog="experiments.finite.graph_bisection",
        description="Bisects a random graph with a planted bisection by simulated annealing.",
    )
    flags.add_argument("--vertices", type=int, default=200, help="an even number")
    flags.add_argument("--pricing", choices=("gain", "full"), default="gain")
    args = flags.parse_args(arguments)
    common.use_cpu_cores()
    planted = planted_graph(args.vertices, inside=0.2, between=0.05, seed=0)
    alpha = (0.3 / 30.0) ** (1 / 100)  # 100 temperatures from 30 to 0.3
    schedule = js.geometric(30.0, alpha, _STEPS // 100)
    moves = ExchangeByGain() if args.pricing == "gain" else Exchange()
    search = js.simulated_annealing(moves, schedule, moves_per_search=12)
    problem, limits = graph_bisection(planted.weight), {"max_steps": _STEPS, "devices": "all"}
    result = js.solve(problem, search, 0, num_searches=32, **limits)
    seconds = max(result.history[-1].seconds, 1e-9)
    print(f"cut found: {result.fun}, planted: {planted.cut}")
    print(f"implementation: {result.env['implementation']} on {result.env['devices']}")
    print(f"moves priced: {result.nfev} in {seconds:.2f} s, {result.nfev / seconds:.2e} per second")
    return 0


if __name__ == "__main__":
    sys.exit(main())
