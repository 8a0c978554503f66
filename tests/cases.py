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


def _relocate(name, problem):
    return Case(f"relocate-{name}-{problem.n}", problem, js.Relocate())


def _two_opt(name, problem, **options):
    return Case(f"two_opt-{name}-{problem.n}", problem, js.two_opt(problem, **options))


def _three_opt(name, problem, **options):
    return Case(f"three_opt-{name}-{problem.n}", problem, js.three_opt(problem, **options))


def _double_bridge(problem, max_path):
    return Case(f"double_bridge-{problem.n}", problem, js.DoubleBridge(max_path))


def small_qap(n, seed=0, symmetric=True):
    return js.qap(*matrices(n, seed, symmetric))


def matrices(n, seed=0, symmetric=True):
    pair = np.random.default_rng(seed).integers(0, 50, (2, n, n))
    return [np.triu(m, 1) + np.triu(m, 1).T for m in pair] if symmetric else pair


def _swap_table(name, problem):
    return Case(f"swap_table-{name}-{problem.n}", problem, js.SwapTable())


def _swap(name, problem):
    return Case(f"swap-{name}-{problem.n}", problem, js.FullEvaluation(js.Swap()))


def _insert(moves, n):
    name = f"{type(moves).__name__}-ordering-{n}"
    return Case(name, linear_ordering(n), js.FullEvaluation(moves))


def _queen_swap(n):
    return Case(f"queen_swap-{n}", js.nqueens(n), js.QueenSwap())


# Small sizes are the hard ones: there a move meets its own surroundings.
NEIGHBORHOOD_CASES = [
    _relocate("matrix", matrix_tsp(3)),
    _relocate("float", matrix_tsp(6, dtype=np.float64)),
    _two_opt("matrix", matrix_tsp(8)),
    _two_opt("large", coords_tsp(150), num_candidates=5),
    _three_opt("asymmetric", matrix_tsp(6, symmetric=False)),
    _double_bridge(matrix_tsp(4), 30),
    _double_bridge(matrix_tsp(9, symmetric=False), 3),
    _swap_table("fixed", js.qap(*matrices(8), partial_match=[[1, 3], [4, 0], [5, 5]])),
    _queen_swap(6),
    _swap("ordering", linear_ordering(5)),
    _insert(js.Insert(), 5),
    _insert(js.InsertSegment(), 6),
]


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


def _finite(name, problem, neighborhood):
    return Case(f"{type(neighborhood).__name__}-{name}-{problem.n}", problem, neighborhood)


NEIGHBORHOOD_CASES += [
    _finite("max_cut", sparse_cut(40), js.Assign()),
    _finite("assignment", agents_and_jobs(3, 7), js.Assign()),
]


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


def _coloring(n, share, k, neighborhood):
    return _finite(f"coloring{k}", js.graph_coloring(random_graph(n, share), k), neighborhood)


NEIGHBORHOOD_CASES += [
    _coloring(30, 0.4, 5, js.Guided(js.successors.ConflictsOnly())),
    _finite("labeling", labeling([3, 4, 2, 5], PricedLabeling), js.Guided(js.successors.ByDelta())),
    _finite("labeling", labeling([3, 2, 3]), js.SwapValues()),
    _finite("labeling", labeling([3, 2, 3]), js.AssignOrSwap()),
    _finite("assignment", agents_and_jobs(3, 7), few_agents_and_jobs()),
]
