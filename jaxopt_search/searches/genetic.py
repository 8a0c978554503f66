"""A genetic algorithm on permutations; each search is an island.

Tsutsui, Fujimoto, "An analytical study of GPU computation for solving QAPs by parallel evolutionary
computation with independent run", 2010: Figure 3 and the restart of section III.
"""

import dataclasses
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search import crossover, random
from jaxopt_search.checks import check_count, check_option, check_share
from jaxopt_search.neighborhoods.swap import Swap
from jaxopt_search.types import Cost, Info, Stream

Crossover: TypeAlias = Literal["pmx", "ox"]

_WORDS = 6  # for one child
_MIXERS = (0x9E3779B9, 0x85EBCA6B)  # odd, from the golden ratio and MurmurHash3


class GeneticState(NamedTuple):
    """The state of one island.

    Attributes:
      population: [P, n] int32, a permutation each.
      costs: [P] their costs.
      best: [n] int32, the best permutation of all since the start.
      best_cost: [] its cost.
    """

    population: jax.Array
    costs: jax.Array
    best: jax.Array
    best_cost: Cost


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Genetic:
    """Build it with `genetic`."""

    mutation_rate: jax.Array
    alike: jax.Array | None
    renew_every: jax.Array
    population_size: int = dataclasses.field(metadata={"static": True})
    crossover: Crossover = dataclasses.field(metadata={"static": True})

    obstacle = "a genetic algorithm handles whole populations at once"

    def evaluations_per_step(self, problem: Any) -> int:
        return self.population_size

    def init(self, problem: Any, solution: jax.Array) -> GeneticState:
        if self.crossover == "ox" and getattr(problem, "free", None) is not None:
            raise ValueError("crossover is 'ox', expected 'pmx', which leaves what is fixed")
        # The others are as random as the first one is.
        others = jnp.arange(1, self.population_size, dtype=jnp.uint32)
        first, second = (_mixed(solution, factor) for factor in _MIXERS)
        keys = random.threefry2x32((first, second), (others, jnp.zeros_like(others)))
        population = jax.vmap(problem.init)(random.typed_key(keys))
        population = jnp.concatenate([solution[None], population])
        costs = jax.vmap(problem.cost)(population)
        return _remember(GeneticState(population, costs, solution, costs[0]))

    def control(self, step: jax.Array) -> None:
        return None

    def step(
        self, stream: Stream, control: None, problem: Any, state: GeneticState
    ) -> tuple[GeneticState, Info]:
        number = lax.iota(jnp.int32, self.population_size)
        words = stream.words(number.astype(jnp.uint32), _WORDS)
        partner = _another(words[0], number, self.population_size)
        children = jax.vmap(self._child, in_axes=(None, 0, 0, 0))(
            problem, state.population, state.population[partner], words[1:]
        )
        costs = jax.vmap(problem.cost)(children)
        is_better = costs < state.costs
        state = state._replace(
            population=jnp.where(is_better[:, None], children, state.population),
            costs=jnp.where(is_better, costs, state.costs),
        )
        return _remember(state), Info(jnp.sum(is_better, dtype=jnp.int32))

    def renew(self, stream: Stream, problem: Any, state: GeneticState) -> GeneticState:
        """Returns an island anew if it has stagnated; the best of all is remembered."""
        if self.alike is None:
            return state
        first, second = stream.words(jnp.uint32(0), 2)
        new = self.init(problem, problem.init(random.typed_key((first, second))))
        new = new._replace(best=state.best, best_cost=state.best_cost)
        num_alike = jnp.sum(state.costs == state.costs.min(), dtype=jnp.int32)
        is_over = num_alike.astype(jnp.float32) >= self.alike * self.population_size
        return jax.tree.map(lambda new, old: jnp.where(is_over, new, old), _remember(new), state)

    def best_cost(self, state: GeneticState) -> Cost:
        return state.best_cost

    def best(self, problem: Any, state: GeneticState) -> jax.Array:
        return state.best

    def current_cost(self, state: GeneticState) -> Cost:
        return state.costs.min()

    def current(self, problem: Any, state: GeneticState) -> jax.Array:
        return state.population[jnp.argmin(state.costs)]

    def adopt(self, problem: Any, state: GeneticState, solution: jax.Array) -> GeneticState:
        worst = jnp.argmax(state.costs)
        return _remember(
            state._replace(
                population=state.population.at[worst].set(solution),
                costs=state.costs.at[worst].set(problem.cost(solution)),
            )
        )

    def individuals(self, state: GeneticState) -> tuple[jax.Array, jax.Array]:
        return state.population, state.costs

    def with_individuals(
        self, state: GeneticState, individuals: tuple[jax.Array, jax.Array]
    ) -> GeneticState:
        population, costs = individuals
        return _remember(state._replace(population=population, costs=costs))

    def refresh(self, problem: Any, state: GeneticState) -> GeneticState:
        return state

    def _child(
        self, problem: Any, parent: jax.Array, other: jax.Array, words: tuple[jax.Array, ...]
    ) -> jax.Array:
        (n,) = parent.shape
        position = lax.iota(jnp.int32, n)
        cut = random.below(words[0], n)
        cuts = cut, _another(words[1], cut, n)
        start, end = jnp.minimum(*cuts), jnp.maximum(*cuts)
        is_others = (position >= start) & (position < end)
        if self.crossover == "pmx":
            child = crossover.pmx(parent, other, is_others)
        else:
            child = crossover.ox(parent, other, is_others, end)
        move = Swap().propose(problem, child, words[3:])
        is_mutant = random.uniform(words[2]) < self.mutation_rate
        return jnp.where(is_mutant, Swap().apply(problem, child, move), child)


def _another(word: jax.Array, number: jax.Array, size: int) -> jax.Array:
    """Returns a random number below `size` other than `number`, if there is one."""
    if size < 2:
        return number
    other = random.below(word, size - 1)
    return other + (other >= number)


def _mixed(values: jax.Array, factor: int) -> jax.Array:
    """Returns a uint32 made of all values and their order."""

    def add(total: jax.Array, value: jax.Array) -> tuple[jax.Array, None]:
        total = (total ^ value.astype(jnp.uint32)) * jnp.uint32(factor)
        return total ^ (total >> jnp.uint32(15)), None

    return lax.scan(add, jnp.uint32(factor), values)[0]


def _remember(state: GeneticState) -> GeneticState:
    lowest = jnp.argmin(state.costs)
    is_better = state.costs[lowest] < state.best_cost
    return state._replace(
        best=jnp.where(is_better, state.population[lowest], state.best),
        best_cost=jnp.where(is_better, state.costs[lowest], state.best_cost),
    )


def genetic(
    *,
    population_size: int = 128,
    crossover: Crossover = "pmx",
    mutation_rate: float = 0.1,
    alike: float | None = 0.6,
    restart_every: int = 50,
) -> Genetic:
    """Returns a genetic algorithm on any permutation problem; `num_searches` is that of islands.

    In a generation, each permutation of an island has a child with another one, drawn at random, of
    which it gives the part outside of two random cuts, before one of its positions each, so that
    the last value is always its own; by the chance `mutation_rate`, two values of the child change
    places. A child takes the place of this parent, if it is better. Islands are
    independent unless there is an exchange: with `ring`, one that gets the best permutation of
    another loses its worst; with `shuffle`, all are spread anew.

    Args:
      population_size: P, permutations per island.
      crossover: `"pmx"`, partially matched, or `"ox"`, ordered; see `crossover`.
      mutation_rate: 0 to 1.
      alike: once this share of an island has the lowest cost on it, it starts anew at random; None
        for never.
      restart_every: generations between looks at that.

    Raises:
      ValueError: if a number is out of range, `crossover` is neither, or it is `"ox"` and the
        problem has facilities that are fixed.

    Example:
      >>> import jaxopt_search as js
      >>> flow, distance = [[0, 5, 2], [5, 0, 3], [2, 3, 0]], [[0, 8, 15], [8, 0, 13], [15, 13, 0]]
      >>> search = genetic(population_size=16)
      >>> js.solve(js.qap(flow, distance), search, 0, num_searches=4, max_steps=20).fun
      218
    """
    check_option("crossover", crossover, ("pmx", "ox"))
    return Genetic(
        mutation_rate=jnp.float32(check_share("mutation_rate", mutation_rate)),
        alike=None if alike is None else jnp.float32(check_share("alike", alike)),
        renew_every=jnp.int32(check_count("restart_every", restart_every)),
        population_size=check_count("population_size", population_size, 2, 2**15),
        crossover=crossover,
    )
