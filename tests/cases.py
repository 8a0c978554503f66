"""The parts under test, by table: adding a part to the library means adding a row here."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxopt_search as js
from jaxopt_search.backends import memory, random
from jaxopt_search.problems import random_vector


@js.pytree
@dataclasses.dataclass(frozen=True)
class LinearOrdering(js.Problem):
    """A problem of a user's own: an order that puts little weight below the diagonal."""

    weight: jax.Array
    n: int = dataclasses.field(metadata={"static": True})

    space = "permutation"

    def init(self, key):
        return jax.random.permutation(key, jnp.arange(self.n, dtype=jnp.int32))

    def cost(self, solution):
        ordered = self.weight[solution][:, solution]
        return jnp.sum(jnp.tril(ordered, -1), dtype=jnp.int32)


def linear_ordering(n, seed=0, scale=1):
    weight = scale * np.random.default_rng(seed).integers(0, 100, (n, n))
    return LinearOrdering(jnp.asarray(weight, jnp.int32), n)


def matrix_tsp(n, seed=0, symmetric=True, dtype=np.int64):
    distances = np.random.default_rng(seed).integers(1, 1000, (n, n)).astype(dtype)
    if dtype != np.int64:
        distances = distances + dtype(0.25)
    return js.tsp(np.triu(distances, 1) + np.triu(distances, 1).T if symmetric else distances)


def coords_tsp(n, seed=0, metric="EUC_2D", storage="coordinates"):
    coords = np.random.default_rng(seed).integers(0, 300, (n, 2))
    return js.tsp_from_coords(coords, metric=metric, storage=storage)


class OfSolutions(js.Neighborhood):
    """Moves of solutions that represent themselves."""

    is_portable = True

    def init(self, problem, solution):
        return solution

    def snapshot(self, representation):
        return representation

    def solution(self, problem, snapshot):
        return snapshot


@js.pytree
@dataclasses.dataclass(frozen=True)
class Levels(js.Problem):
    """Solutions 0, 1, 2, ... with these costs."""

    costs: jax.Array

    def init(self, key):
        return jax.random.randint(key, (), 0, self.costs.size, jnp.int32)

    def cost(self, solution):
        return self.costs[solution]


@functools.partial(jax.jit, static_argnums=(1, 2))
def _draws(key, number, num_words):
    indices = jnp.arange(number, dtype=jnp.uint32)
    stream = random.Stream(random.search_key(key, indices, jnp.uint32(0)), indices, indices)
    keys = jax.vmap(functools.partial(random.start_key, key))(indices)
    return keys, jax.vmap(lambda s: s.words(jnp.uint32(0), num_words))(stream)


@dataclasses.dataclass(frozen=True)
class Case:
    """A problem and one of its neighborhoods."""

    name: str
    problem: Any
    neighborhood: Any

    def __str__(self):
        return self.name

    def draws(self, number, seed=0):
        """Returns keys for start solutions and words for proposals."""
        return _draws(random.as_key(seed), number, self.neighborhood.num_words)


def small_qap(n, seed=0, symmetric=True):
    return js.qap(*matrices(n, seed, symmetric))


def matrices(n, seed=0, symmetric=True):
    pair = np.random.default_rng(seed).integers(0, 50, (2, n, n))
    return [np.triu(m, 1) + np.triu(m, 1).T for m in pair] if symmetric else pair


def sparse_cut(n, seed=0):
    """A maximum cut with weights of both signs, by lists of neighbors."""
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.integers(-9, 10, (n, n)) * (rng.random((n, n)) < 0.5), 1)
    return js.max_cut(upper + upper.T, storage="sparse")


def dense_qubo(n, seed=0):
    return js.qubo(np.random.default_rng(seed).integers(-50, 51, (n, n)), storage="dense")


def agents_and_jobs(agents, n, seed=0):
    rng = np.random.default_rng(seed)
    costs, loads = rng.integers(0, 50, (agents, n)), rng.integers(1, 10, (agents, n))
    return js.generalized_assignment(costs, loads, loads.sum(axis=1) // agents)


def few_agents_and_jobs():
    """Two agents for each of seven jobs, and three jobs for each of three agents."""
    values, variables = np.arange(14) % 3, np.arange(9) % 7
    lists = values.reshape(7, 2), variables.reshape(3, 3)
    return js.AssignOrSwap(**dict(zip(("values", "variables"), map(jnp.int32, lists), strict=True)))


@js.pytree
@dataclasses.dataclass(frozen=True)
class Labeling(js.VectorProblem):
    """A problem of a user's own on vectors, without prices: labels that cost, and must not agree.

    Variables differ in how many labels they have, one has a single one.
    """

    unary: jax.Array
    weight: jax.Array
    domain_sizes: jax.Array
    n: int = dataclasses.field(metadata={"static": True})
    max_domain: int = dataclasses.field(metadata={"static": True})

    def init(self, key):
        return random_vector(key, self.domain_sizes)

    def cost(self, solution):
        alike = solution[:, None] == solution[None]
        own = self.unary[jnp.arange(self.n), solution]
        return jnp.sum(jnp.where(jnp.triu(alike, 1), self.weight, 0)) + jnp.sum(own)

    def row_costs(self, block, vectors):
        values = [tile.get(vectors) for tile in block.tiles]

        def add(k, totals):
            terms = []
            for tile, value in zip(block.tiles, values, strict=True):
                weight = memory.load(self.weight, (jnp.full_like(tile.column, k), tile.column))
                is_equal = (k < tile.column) & (tile.get_column(vectors, k) == value)
                terms.append(jnp.where(is_equal, weight, 0))
            return tuple(map(jnp.add, totals, terms))

        start = tuple(
            memory.load(self.unary, (tile.column, value))
            for tile, value in zip(block.tiles, values, strict=True)
        )
        return block.sums(jax.lax.fori_loop(0, self.n, add, start))


class PricedLabeling(Labeling):
    """The same with prices in O(n) from the vector alone; it has no `scan`."""

    def tally(self, solution):
        return ()

    def assign_delta(self, solution, tally, variable, value):
        own, load = memory.load(solution, variable), memory.load
        start = load(self.unary, (variable, value)) - load(self.unary, (variable, own))

        def add(j, total):
            there, weight = (
                load(solution, j),
                load(self.weight, (variable, jnp.full_like(value, j))),
            )
            change = (value == there).astype(jnp.int32) - (own == there).astype(jnp.int32)
            return total + jnp.where(variable == j, 0, weight * change)

        return jax.lax.fori_loop(0, self.n, add, start)

    def swap_values_delta(self, solution, tally, first, second):
        a, b = memory.load(solution, first), memory.load(solution, second)
        change = self.assign_delta(solution, tally, first, b)
        change = change + self.assign_delta(solution, tally, second, a)
        return change - 2 * memory.load(self.weight, (first, second))

    def assigned(self, solution, tally, variable, value, where):
        return tally


js.pytree(PricedLabeling)


def labeling(sizes, kind=Labeling, seed=0):
    rng, n, most = np.random.default_rng(seed), len(sizes), max(sizes)
    weight = rng.integers(-9, 10, (n, n))
    parts = rng.integers(0, 20, (n, most)), np.triu(weight, 1) + np.triu(weight, 1).T, sizes
    return kind(*(jnp.asarray(part, jnp.int32) for part in parts), n, most)


def random_graph(n, share, seed=0):
    """Returns an adjacency matrix, [n, n] bool."""
    upper = np.triu(np.random.default_rng(seed).random((n, n)) < share, 1)
    return upper | upper.T


def _case(name, problem, moves):
    """Returns a case of a neighborhood, or of what makes one for the problem."""
    hood = moves(problem) if callable(moves) else moves
    return Case(f"{type(hood).__name__}-{name}-{problem.n}", problem, hood)


# Small sizes are the hard ones: there a move meets its own surroundings.
NEIGHBORHOOD_CASES = [
    _case("matrix", matrix_tsp(3), js.Relocate()),
    _case("float", matrix_tsp(6, dtype=np.float64), js.Relocate()),
    _case("matrix", matrix_tsp(8), js.two_opt),
    _case("large", coords_tsp(150), functools.partial(js.two_opt, num_candidates=5)),
    _case("asymmetric", matrix_tsp(6, symmetric=False), js.three_opt),
    _case("matrix", matrix_tsp(4), js.DoubleBridge(30)),
    _case("asymmetric", matrix_tsp(9, symmetric=False), js.DoubleBridge(3)),
    _case("fixed", js.qap(*matrices(8), partial_match=[[1, 3], [4, 0], [5, 5]]), js.SwapTable()),
    _case("queens", js.nqueens(6), js.QueenSwap()),
    _case("swaps", linear_ordering(5), js.FullEvaluation(js.Swap())),
    _case("insertions", linear_ordering(5), js.FullEvaluation(js.Insert())),
    _case("segments", linear_ordering(6), js.FullEvaluation(js.InsertSegment())),
    _case("cut", sparse_cut(40), js.Assign()),
    _case("assignment", agents_and_jobs(3, 7), js.Assign()),
    _case(
        "coloring",
        js.graph_coloring(random_graph(30, 0.4), 5),
        js.Guided(js.successors.ConflictsOnly()),
    ),
    _case("labeling", labeling([3, 4, 2, 5], PricedLabeling), js.Guided(js.successors.ByDelta())),
    _case("labeling", labeling([3, 2, 3]), js.SwapValues()),
    _case("labeling", labeling([3, 2, 3]), js.AssignOrSwap()),
    _case("assignment", agents_and_jobs(3, 7), few_agents_and_jobs()),
]
