"""A genetic algorithm on permutations or vectors; each search is an island."""

import dataclasses
from typing import Any, Literal, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends import memory, random, rows
from jaxopt_search.backends.costs import cost_of
from jaxopt_search.checks import check_count, check_option, check_share, float32, int32
from jaxopt_search.contracts import check_search
from jaxopt_search.crossovers import OPERATORS, Operators
from jaxopt_search.pytrees import pytree
from jaxopt_search.searches.genetic import island
from jaxopt_search.searches.genetic.generation import Breeding, generation
from jaxopt_search.searches.genetic.island import GeneticState
from jaxopt_search.searches.genetic.memetic import Improvement
from jaxopt_search.searches.genetic.restart import Restart, restarted
from jaxopt_search.types import Cost, Info, Problem, Search, Stream

CrossoverName: TypeAlias = Literal["pmx", "ox", "uniform", "one_point"]


@pytree
@dataclasses.dataclass(frozen=True, kw_only=True)
class Genetic(Search):
    """Build it with `genetic`."""

    mutation_rate: jax.Array
    alike: jax.Array | None
    restart_every: jax.Array
    local_search: Search | None
    population_size: int = dataclasses.field(metadata={"static": True})
    crossover: CrossoverName = dataclasses.field(metadata={"static": True})
    keep_best: bool = dataclasses.field(metadata={"static": True})
    local_steps: int = dataclasses.field(metadata={"static": True})

    def init(self, problem: Problem, solution: jax.Array) -> GeneticState:
        return self.init_with(random.typed_key(random.as_key(0)), problem, solution)

    def init_with(self, key: jax.Array, problem: Problem, solution: jax.Array) -> GeneticState:
        self.operators.check(problem, solution)
        (n,) = solution.shape
        most = random.MAX_SLOTS // (n + 1)
        if self.population_size > most:
            raise ValueError(
                f"population_size is {self.population_size}, expected at most {most} for n = {n}"
            )
        keys = _further_keys(key, self.population_size - 1)
        population = jnp.concatenate([solution[None], jax.vmap(problem.init)(keys)])
        return self._with_all(problem, population, solution, cost_of(problem, solution))

    def _with_all(
        self, problem: Problem, population: jax.Array, best: jax.Array, best_cost: Cost
    ) -> GeneticState:
        costs = jax.vmap(cost_of, (None, 0))(problem, population)
        tables = self.operators.tables(population)
        return island.remember_best(
            GeneticState(population, tables, costs, best, best_cost, population, costs)
        )

    def step(
        self, stream: Stream, control: None, problem: Problem, state: GeneticState
    ) -> tuple[GeneticState, Info]:
        improvement = None
        if self.local_search is not None:
            improvement = Improvement(self.local_search, self.local_steps)
        if self.alike is not None:
            rule = Restart(self.alike, self.restart_every, self.keep_best)
            state = restarted(rule, self.operators, stream, problem, state)
        memory.barrier()
        breeding = Breeding(self.operators, self.mutation_rate, improvement)
        return generation(breeding, stream, problem, state)

    def best_cost(self, state: GeneticState) -> Cost:
        return state.best_cost

    def best(self, problem: Problem, state: GeneticState) -> jax.Array:
        return state.best

    def current_cost(self, state: GeneticState) -> Cost:
        return state.costs.min()

    def current(self, problem: Problem, state: GeneticState) -> jax.Array:
        return state.population[jnp.argmin(state.costs)]

    def adopt(self, problem: Problem, state: GeneticState, solution: jax.Array) -> GeneticState:
        population = state.population.at[jnp.argmax(state.costs)].set(solution)
        return self._with_all(problem, population, state.best, state.best_cost)

    def individuals(self, state: GeneticState) -> tuple[jax.Array, jax.Array]:
        return state.population, state.costs

    def with_individuals(
        self, state: GeneticState, individuals: tuple[jax.Array, jax.Array]
    ) -> GeneticState:
        population, costs = individuals
        tables = self.operators.tables(population)
        return island.remember_best(
            state._replace(population=population, tables=tables, costs=costs)
        )

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
        (n,) = jax.eval_shape(problem.init, random.typed_key(random.as_key(0))).shape
        return rows.num_warps((self.population_size, n))


def _further_keys(key: jax.Array, number: int) -> jax.Array:
    """Returns typed keys [number], other than those that `jax.random` derives from `key`."""
    data = jax.random.key_data(key)
    counter = lax.iota(jnp.uint32, number) + jnp.uint32(1)
    words = random.threefry2x32((data[0], data[1]), (counter, jnp.ones_like(counter)))
    return random.typed_key(words)


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
        check_search(local_search, "local_search")
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
