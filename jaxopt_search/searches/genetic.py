"""A genetic algorithm on permutations or vectors; each search is an island.

Tsutsui, Fujimoto, "An analytical study of GPU computation for solving QAPs by parallel evolutionary
computation with independent run", 2010: a generation is their Figure 3, the restart their section
III. With a local search it is memetic: Moscato, "On evolution, search, optimization, genetic
algorithms and martial arts: towards memetic algorithms", 1989.
"""

import dataclasses
from typing import Any, Literal, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends import loops, memory, random, rows
from jaxopt_search.backends.costs import cost_of
from jaxopt_search.backends.memory import load, store
from jaxopt_search.backends.rows import Block
from jaxopt_search.checks import check_count, check_option, check_share, float32, int32
from jaxopt_search.contracts import check_part, solution_shape
from jaxopt_search.crossovers.operators import OPERATORS, Draws, Island, Operators
from jaxopt_search.pytrees import pytree, static
from jaxopt_search.types import Cost, Info, Problem, Search, Solution, Stream, null_delta

CrossoverName: TypeAlias = Literal["pmx", "ox", "uniform", "one_point"]

NUM_WORDS = 6
"""The random words for one child, the first ones of the slot of its row."""


@pytree
@dataclasses.dataclass(frozen=True, kw_only=True)
class Genetic(Search):
    """Build it with `genetic`."""

    mutation_rate: jax.Array
    alike: jax.Array | None
    restart_every: jax.Array
    local_search: Search | None
    population_size: int = static()
    crossover: CrossoverName = static()
    keep_best: bool = static()
    local_steps: int = static()

    def init(self, problem: Problem, solution: jax.Array) -> Island:
        return self.init_with(random.typed_key(random.as_key(0)), problem, solution)

    def init_with(self, key: jax.Array, problem: Problem, solution: jax.Array) -> Island:
        self.operators.check(problem, solution)
        (n,) = solution.shape
        most = random.MAX_SLOTS // (n + 1)
        if self.population_size > most:
            raise ValueError(
                f"population_size is {self.population_size}, expected at most {most} for n = {n}"
            )
        # Keys of the others, which `jax.random` does not derive from `key`.
        counter = lax.iota(jnp.uint32, self.population_size - 1) + jnp.uint32(1)
        words = random.threefry2x32(random.as_key(key), (counter, jnp.ones_like(counter)))
        others = jax.vmap(problem.init)(random.typed_key(words))
        population = jnp.concatenate([solution[None], others])
        return self._with_all(problem, population, solution, cost_of(problem, solution))

    def _with_all(
        self, problem: Problem, population: jax.Array, best: jax.Array, best_cost: Cost
    ) -> Island:
        costs = jax.vmap(cost_of, (None, 0))(problem, population)
        tables = self.operators.tables(population)
        return _remember_best(Island(population, tables, costs, best, best_cost, population, costs))

    def check(self, problem: Problem, max_steps: int | None) -> None:
        if problem.host is not None and problem.host.starts is not None:
            raise ValueError(
                "problem has random solutions that cost more than int32 holds, expected one of"
                " dtype='float32' or metric='EUCLID': genetic search starts from them"
            )

    def step(
        self, stream: Stream, control: None, problem: Problem, state: Island
    ) -> tuple[Island, Info]:
        """Restarts the island if it has stagnated, and makes a generation."""
        state = self._restart_if_alike(stream, problem, state)
        state = self._breed(stream, problem, state)
        return _replace(self.operators, state, jnp.bool_(False))

    def _breed(self, stream: Stream, problem: Problem, state: Island) -> Island:
        """Returns the state with a child of each individual, priced.

        Each mates with another one, drawn at random, by crossover and, by chance, mutation.
        """

        def breed(block: Block, state: Island) -> Island:
            row = block.rows[:, None]
            other, *cuts, chance, variable, value = stream.words(row.astype(jnp.uint32), NUM_WORDS)
            draws = Draws(
                second=random.another(other, row, state.costs.shape[0]),
                cuts=(cuts[0], cuts[1]),
                is_mutant=random.uniform(chance) < self.mutation_rate,
                change=(variable, value),
            )
            state = self.operators.breed(stream, problem, state, block, draws)
            if self.local_search is not None:
                return self._improve_children(stream, problem, state)
            return _price(problem, state, block)

        return rows.by_rows(state.population.shape, breed, state)

    def _improve_children(self, stream: Stream, problem: Problem, state: Island) -> Island:
        """Returns the state with the best that the local search finds from each child; XLA only."""
        search: Any = self.local_search

        def improve(problem: Problem, child: Solution, key: random.Key) -> tuple[Solution, Cost]:
            def step(i: jax.Array, state: Any) -> Any:
                own = random.Stream(key, i.astype(jnp.uint32), i)
                return search.step(own, search.control(i), problem, state)[0]

            end = loops.fori_loop(0, self.local_steps, step, search.init(problem, child))
            return search.best(problem, end), search.best_cost(end)

        number = lax.iota(jnp.uint32, state.costs.shape[0])
        keys = random.Key(*stream.words(number, NUM_WORDS + 2)[NUM_WORDS:])
        children, costs = jax.vmap(improve, in_axes=(None, 0, 0))(problem, state.children, keys)
        return state._replace(children=children, child_costs=costs)

    def _restart_if_alike(self, stream: Stream, problem: Problem, state: Island) -> Island:
        """Returns an island of random individuals if it has stagnated, else the island itself.

        Now and then it counts the individuals that have its lowest cost; once they are a large
        share, all are replaced. The best solution of all is remembered apart.
        """
        alike = self.alike
        if alike is None:
            return state

        def with_new_ones(state: Island, where: jax.Array) -> Island:
            new = self._with_random_children(stream, problem, state)
            new, _ = _replace(self.operators, new, where)
            if memory.is_in_kernel():
                return new
            return jax.tree.map(lambda new, old: jnp.where(where, new, old), new, state)

        def look(state: Island, where: jax.Array) -> Island:
            costs = _costs_of_all(state)
            num_alike = jnp.sum(costs == jnp.min(costs), dtype=jnp.int32)
            is_over = num_alike.astype(jnp.float32) >= alike * state.costs.shape[0]
            return memory.when(is_over & where, with_new_ones, state)

        is_due = (stream.step % self.restart_every == 0) & (stream.step > 0)
        return memory.when(is_due, look, state, all_alike=True)

    def _with_random_children(self, stream: Stream, problem: Problem, state: Island) -> Island:
        """Returns the state with random children, priced; the first one may be the best of all."""

        def make(block: Block, state: Island) -> Island:
            children, new = self.operators.random(stream, problem, state, block)
            if self.keep_best:
                best = [load(state.best, tile.column) for tile in block.tiles]
                pairs = zip(block.tiles, best, new, strict=True)
                new = [jnp.where(t.row == 0, b, v) for t, b, v in pairs]
            return _price(problem, state._replace(children=block.put(children, new)), block)

        return rows.by_rows(state.population.shape, make, state)

    def best_cost(self, state: Island) -> Cost:
        return state.best_cost

    def best(self, problem: Problem, state: Island) -> jax.Array:
        return state.best

    def current_cost(self, state: Island) -> Cost:
        return state.costs.min()

    def current(self, problem: Problem, state: Island) -> jax.Array:
        return state.population[jnp.argmin(state.costs)]

    def adopt(self, problem: Problem, state: Island, solution: jax.Array) -> Island:
        population = state.population.at[jnp.argmax(state.costs)].set(solution)
        return self._with_all(problem, population, state.best, state.best_cost)

    def individuals(self, state: Island) -> tuple[jax.Array, jax.Array]:
        return state.population, state.costs

    def with_individuals(self, state: Island, individuals: tuple[jax.Array, jax.Array]) -> Island:
        population, costs = individuals
        tables = self.operators.tables(population)
        return _remember_best(state._replace(population=population, tables=tables, costs=costs))

    @property
    def operators(self) -> Operators:
        """What depends on the space of solutions."""
        return OPERATORS[self.crossover]

    @property
    def space(self) -> str:
        """What the crossover is for."""
        return self.operators.space

    @property
    def parts(self) -> tuple[Any, ...]:
        return (self,) if self.local_search is None else (self, *self.local_search.parts)

    @property
    def check_every(self) -> int | None:
        """1 with a local search, as few generations are made then, and each takes long."""
        return None if self.local_search is None else 1

    def obstacle(self, problem: Problem) -> str:
        if self.local_search is not None:
            return "a genetic algorithm with a local search holds the states of many searches"
        has_costs = problem.row_costs is not None
        return "" if has_costs else f"{type(problem).__name__} has no row_costs"

    def evaluations_per_step(self, problem: Problem) -> int:
        if self.local_search is None:
            return self.population_size
        each = self.local_search.evaluations_per_step(problem)
        return self.population_size * (1 + self.local_steps * each)

    def num_warps(self, problem: Problem, num_searches: int) -> int:
        return rows.num_warps((self.population_size, *solution_shape(problem).shape))


def _price(problem: Problem, state: Island, block: Block) -> Island:
    """Returns the state with the costs of the children in these rows."""
    row_costs = problem.row_costs
    if row_costs is not None:
        costs = row_costs(block, state.children)
    else:
        costs = jax.vmap(cost_of, (None, 0))(problem, state.children)
    child_costs = store(state.child_costs, block.rows, costs, block.is_row)
    return state._replace(child_costs=child_costs)


def _replace(operators: Operators, state: Island, all_of_them: jax.Array) -> tuple[Island, Info]:
    """Returns the state in which better children have taken the places of their first parents.

    Args:
      all_of_them: [] bool, whether all children take these places, better or not.
    """
    child_costs = state.child_costs

    def replace(block: Block, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        population, tables = carry
        row = block.rows[:, None]
        where = (load(child_costs, row) < load(state.costs, row)) | all_of_them
        for tile in block.tiles:
            child = tile.get(state.children)
            population = tile.put(population, child, where)
            tables = operators.updated(tables, tile, child, where)
        return population, tables

    buffers = state.population, state.tables
    population, tables = rows.by_rows(state.population.shape, replace, buffers)
    lane, individual = _lanes(state)
    new, old = load(child_costs, individual), load(state.costs, individual)
    where = ((new < old) | all_of_them) & (lane < state.costs.shape[0])
    costs = store(state.costs, individual, new, where)
    state = state._replace(population=population, tables=tables, costs=costs)
    return _remember_best(state), Info(jnp.sum(where, dtype=jnp.int32))


def _lanes(state: Island) -> tuple[jax.Array, jax.Array]:
    """Returns the numbers of lanes, and their individuals: in excess, the last one; portable."""
    size = state.costs.shape[0]
    lane = memory.lanes(size)
    return lane, jnp.minimum(lane, size - 1)


def _costs_of_all(state: Island) -> jax.Array:
    """Returns the cost of each lane's individual, the highest there is in excess; portable."""
    lane, individual = _lanes(state)
    costs = load(state.costs, individual)
    return jnp.where(lane < state.costs.shape[0], costs, null_delta(costs.dtype))


def _remember_best(state: Island) -> Island:
    """Returns the state in which the best individual is the best of all, if it is; portable."""
    costs, (lane, _) = _costs_of_all(state), _lanes(state)
    lowest = jnp.min(costs)
    is_better = lowest < state.best_cost

    def write(buffers: tuple[Any, Any], where: jax.Array) -> tuple[Any, Any]:
        (best, population), (n,) = buffers, state.best.shape
        row = jnp.min(jnp.where(costs == lowest, lane, state.costs.shape[0] - 1))
        position = memory.lanes(n)
        index = jnp.minimum(position, n - 1)
        value = load(population, (row, index))
        return store(best, index, value, where & (position < n)), population

    best, population = memory.when(is_better, write, (state.best, state.population))
    best_cost = jnp.where(is_better, lowest, state.best_cost)
    return state._replace(best=best, population=population, best_cost=best_cost)


def genetic(
    *,
    population_size: int = 128,
    crossover: CrossoverName = "pmx",
    mutation_rate: float = 1.0,
    alike: float | None = 0.6,
    restart_every: int = 50,
    keep_best: bool = False,
    local_search: Search | None = None,
    local_steps: int = 20,
) -> Genetic:
    """Returns a genetic algorithm on permutations or on vectors; each search is an island.

    In a generation, each individual of an island has a child with another one, drawn at random. By
    the chance `mutation_rate` the child is changed in one place. Then it takes the place of its
    first parent if it is better. Islands are independent unless there is an exchange: with `ring`,
    an island that gets the best individual of another loses its worst; with `shuffle`, all
    individuals are spread at random over the islands.

    The crossover says what the solutions are, and with them how a child is made:

    - `"pmx"` (partially matched) and `"ox"` (ordered), for permutations of 0 to n - 1, [n] int32:
      the second parent gives the part between two random cuts, each before one of the positions,
      so the last value always comes from the first parent. Mutation exchanges two values.
    - `"uniform"` and `"one_point"`, for vectors, [n] int32 with 0 <= x[i] < domain_sizes[i]: each
      value comes from the one parent or the other at even chances (Syswerda, "Uniform crossover in
      genetic algorithms", 1989); or the second parent gives all from a random cut on (Holland,
      "Adaptation in natural and artificial systems", 1975). Mutation gives one random variable
      another random value of its domain, and changes nothing if it has only one.

    A problem of another space is refused before anything is compiled. What a problem on vectors has
    is said in `types.VectorProblem`.

    Args:
      population_size: P, individuals per island.
      crossover: `"pmx"`, `"ox"`, `"uniform"` or `"one_point"`.
      mutation_rate: 0 to 1. The paper has 0.1; docs/islands.md compares the two.
      alike: once this share of an island has the lowest cost on it, the island restarts at random;
        None for never.
      restart_every: generations between looks at that.
      keep_best: whether an island that restarts keeps the best individual that it has had, in
        place of one of the random ones, which the paper found harmful.
      local_search: a search, such as `hill_climbing` or `tabu_search`, that makes the algorithm
        memetic: before children compete, each is replaced by the best that this one finds from it.
        Through XLA only. None for none.
      local_steps: steps of the local search.

    Raises:
      ValueError: if a number is out of range, `crossover` is not one of these, or it is `"ox"` and
        the problem has facilities that are fixed.
      TypeError: if `local_search` is no search.

    Example:
      >>> import jaxopt_search as js
      >>> flow, distance = [[0, 5, 2], [5, 0, 3], [2, 3, 0]], [[0, 8, 15], [8, 0, 13], [15, 13, 0]]
      >>> search = genetic(population_size=16)
      >>> js.solve(js.qap(flow, distance), search, 0, num_searches=4, max_steps=20).fun
      218
    """
    check_option("crossover", crossover, tuple(OPERATORS))
    if local_search is not None:
        check_part(local_search, Search, "local_search")
    return Genetic(
        mutation_rate=float32(check_share("mutation_rate", mutation_rate)),
        alike=None if alike is None else float32(check_share("alike", alike)),
        restart_every=int32(check_count("restart_every", restart_every)),
        local_search=local_search,
        population_size=check_count("population_size", population_size, 2, 2**15),
        crossover=crossover,
        keep_best=bool(keep_best),
        local_steps=check_count("local_steps", local_steps),
    )
