"""How searches learn from one another between steps.

An exchange names for each search the donor whose solution it continues from; the engine moves the
solutions, within a device and across (`engine.loop`). A rule sees costs by global index only,
so it does the same on any number of devices.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends import Implementation, floats, memory, random
from jaxopt_search.backends.costs import cost_change
from jaxopt_search.checks import check_count, check_share, float32, int32
from jaxopt_search.contracts import check_alike, check_part
from jaxopt_search.crossovers.operators import pmx
from jaxopt_search.problems import permutation
from jaxopt_search.pytrees import pytree, static
from jaxopt_search.searches import schedules
from jaxopt_search.types import Crossover, Exchange, Problem, Solution, Stream, null_delta

_HIGHEST_INVERSE = 1e30  # of a temperature: times a cost, it is still finite


@pytree
@dataclasses.dataclass(frozen=True, kw_only=True)
class BroadcastBest(Exchange):
    """Build it with `broadcast_best`."""

    every: jax.Array
    group_size: int | None = dataclasses.field(metadata={"static": True})

    def donors(self, stream: Stream, costs: jax.Array, num_searches: jax.Array) -> jax.Array:
        (size,) = costs.shape
        group = min(self.group_size or size, size)
        padded = jnp.pad(costs, (0, -size % group), constant_values=null_delta(costs.dtype))
        best = jnp.argmin(padded.reshape(-1, group), axis=1).astype(jnp.int32)
        first = group * lax.iota(jnp.int32, best.shape[0])
        return jnp.repeat(first + best, group)[:size]


@pytree
@dataclasses.dataclass(frozen=True, kw_only=True)
class Ring(Exchange):
    """Build it with `ring`."""

    every: jax.Array

    def donors(self, stream: Stream, costs: jax.Array, num_searches: jax.Array) -> jax.Array:
        own = lax.iota(jnp.int32, costs.shape[0])
        before = jnp.where(own == 0, num_searches - 1, own - 1)
        return jnp.where(costs[before] < costs, before, -1)


@pytree
@dataclasses.dataclass(frozen=True, kw_only=True)
class Resample(Exchange):
    """Build it with `resample`."""

    every: jax.Array
    schedule: schedules.Schedule

    passes_on = "current"

    def donors(self, stream: Stream, costs: jax.Array, num_searches: jax.Array) -> jax.Array:
        index = lax.iota(jnp.int32, costs.shape[0])
        is_real = index < num_searches
        copies = self._copies(stream, costs, is_real)
        # A search that survives keeps its place; further copies fill the places of the others, in
        # order.
        further = jnp.cumsum(jnp.maximum(copies - 1, 0), dtype=jnp.int32)
        is_free = is_real & (copies == 0)
        number = jnp.cumsum(is_free, dtype=jnp.int32) - 1
        donor = jnp.searchsorted(further, number, side="right").astype(jnp.int32)
        return jnp.where(is_free, donor, -1)

    def _copies(self, stream: Stream, costs: jax.Array, is_real: jax.Array) -> jax.Array:
        """Returns [S] int32, how many searches continue from each one; they add up to all searches.

        Systematic: search i gets the points k + u, k = 0, 1, ..., in its part of the line, where u
        is uniform and a part is as long as the mean number of copies.
        """
        rise = self._inverse(stream.step) - self._inverse(jnp.maximum(stream.step - self.every, 0))
        num = jnp.sum(is_real, dtype=jnp.int32)
        above = cost_change(jnp.where(is_real, costs, costs.min()), costs.min())
        # An infinite cost dies out, even where the temperature stays the same.
        is_real &= above < null_delta(above.dtype)
        above = jnp.where(is_real, above, jnp.zeros_like(above)).astype(jnp.float32)
        power = floats.product(jnp.maximum(rise, 0), above)
        weight = jnp.where(is_real, jnp.exp(-power), 0)  # the best one's is 1
        end = jnp.cumsum(_as_shares(weight), dtype=jnp.uint32)
        (word,) = stream.words(jnp.uint32(0), 1)
        density = num.astype(jnp.float32) / end[-1].astype(jnp.float32)
        points = floats.product(end.astype(jnp.float32), density)
        whole = jnp.floor(points)
        upto = whole.astype(jnp.int32) + (random.uniform(word) < points - whole).astype(jnp.int32)
        upto = jnp.where(end == end[-1], num, upto)
        return jnp.diff(upto, prepend=jnp.int32(0))

    def _inverse(self, step: jax.Array) -> jax.Array:
        """Returns 1 / temperature, held below infinity."""
        return jnp.minimum(1 / schedules.temperature(self.schedule, step), _HIGHEST_INVERSE)


def _as_shares(weights: jax.Array) -> jax.Array:
    """Returns [S] uint32 weights in units that are 2**30 to 2**31 together, if rounded exactly."""
    units = floats.power_of_two(31, floats.total(weights))
    return jnp.round(weights * units).astype(jnp.uint32)


@pytree
@dataclasses.dataclass(frozen=True)
class PartialMatch(Crossover):
    """PMX of random positions (`crossovers.pmx`); a child that equals a parent is perturbed."""

    space = "permutation"

    def child(
        self, key: jax.Array, problem: Problem, own: jax.Array, given: jax.Array, share: jax.Array
    ) -> jax.Array:
        bits, _ = permutation.words(key, own.size)
        child = pmx(own, given, random.uniform(bits) < share)
        is_a_parent = jnp.all(child == own) | jnp.all(child == given)
        return jnp.where(is_a_parent, problem.perturb(key, child), child)


@pytree
@dataclasses.dataclass(frozen=True, kw_only=True)
class Mating(Exchange):
    """What exchanges share in which searches continue from children; a base class."""

    every: jax.Array
    share: jax.Array
    crossover: Crossover

    @property
    def space(self) -> str | None:
        """What the crossover is for."""
        return self.crossover.space

    def combine(
        self,
        words: tuple[jax.Array, jax.Array],
        problem: Problem,
        own: Solution,
        given: Solution,
        implementation: Implementation = "xla",
    ) -> Any:
        keys = random.typed_key(words)
        made = self.crossover.children(keys, problem, own, given, self.share, implementation)
        check_alike(f"{type(self.crossover).__name__}.child", made, own)
        return made


@pytree
@dataclasses.dataclass(frozen=True, kw_only=True)
class Recombine(Mating):
    """Build it with `recombine`."""

    alike: jax.Array | None
    is_generational: bool = static(default=False)
    reach: int | None = static(default=None)

    def donors(self, stream: Stream, costs: jax.Array, num_searches: jax.Array) -> jax.Array:
        own = lax.iota(jnp.int32, costs.shape[0])
        (word,) = memory.computed_once(stream.words(own.astype(jnp.uint32), 1))
        # One of those from the first on that takes part, and another one than the search itself.
        # Infinity says never, as None does, in a program in which searches may restart.
        never = True if self.alike is None else jnp.isinf(self.alike)
        first = jnp.int32(1 if self.is_generational else jnp.where(never, 0, 1))
        others = jnp.maximum(num_searches - first - 1, 1).astype(jnp.uint32)
        if self.reach is None:
            other = first + (word % others).astype(jnp.int32)
            other += (other >= own).astype(jnp.int32)
        else:
            ahead = 1 + (word % jnp.minimum(others, jnp.uint32(self.reach))).astype(jnp.int32)
            other = first + (own - first + ahead) % (num_searches - first)
        other = jnp.where(num_searches > first + 1, other, own)
        return jnp.where(own < first, -1, other)

    def starts_anew(self, costs: jax.Array, num_searches: jax.Array) -> jax.Array | None:
        if self.alike is None:
            return None
        index = lax.iota(jnp.int32, costs.shape[0])
        is_one = (index > 0) & (index < num_searches)
        best = jnp.where(is_one, costs, null_delta(costs.dtype)).min()
        num_alike = jnp.sum(is_one & (costs == best), dtype=jnp.int32)
        num_others = (num_searches - 1).astype(jnp.float32)
        is_tie = (num_alike > 1) | (self.alike == 0)
        return is_tie & (num_alike.astype(jnp.float32) >= self.alike * num_others)


@pytree
@dataclasses.dataclass(frozen=True, kw_only=True)
class Merge(Mating):
    """Build it with `merge`."""

    passes_on = "current"

    def donors(self, stream: Stream, costs: jax.Array, num_searches: jax.Array) -> jax.Array:
        own = lax.iota(jnp.int32, costs.shape[0])
        (word,) = memory.computed_once(stream.words(own.astype(jnp.uint32), 1))
        other = ((word >> 1) % num_searches.astype(jnp.uint32)).astype(jnp.int32)
        return jnp.where(word & 1, other, own)


@pytree
@dataclasses.dataclass(frozen=True, kw_only=True)
class Shuffle(Exchange):
    """Build it with `shuffle`."""

    every: jax.Array

    def order(self, stream: Stream, is_padding: jax.Array) -> jax.Array:
        number = lax.iota(jnp.int32, is_padding.shape[0])
        words = stream.words(number.astype(jnp.uint32), 2)
        *_, order = lax.sort((is_padding, *words, number), num_keys=3)
        return order


def broadcast_best(*, every: int, group_size: int | None = None) -> BroadcastBest:
    """Returns the exchange after which all searches continue from the best solution of all.

    Lam, Tsoi, Luk, "Parallel neighbourhood search on many-core platforms", section 3.2. The best
    search itself goes back to its best solution, too.

    Args:
      every: steps between exchanges.
      group_size: exchange only within groups of this many consecutive searches, which makes the
        groups independent runs; None for one group.

    Raises:
      ValueError: if a number is not a positive integer.

    Example:
      >>> costs = jnp.array([5, 3, 4, 6])
      >>> broadcast_best(every=1000).donors(None, costs, jnp.int32(4)).tolist()
      [1, 1, 1, 1]
      >>> broadcast_best(every=1000, group_size=2).donors(None, costs, jnp.int32(4)).tolist()
      [1, 1, 2, 2]
    """
    if group_size is not None:
        group_size = check_count("group_size", group_size)
    return BroadcastBest(every=int32(check_count("every", every)), group_size=group_size)


def ring(*, every: int) -> Ring:
    """Returns the exchange in which each search takes over from the one before it, if better.

    Example:
      >>> ring(every=50).donors(None, jnp.array([5, 3, 4]), jnp.int32(3)).tolist()  # -1 for none
      [2, -1, 1]
    """
    return Ring(every=int32(check_count("every", every)))


def resample(schedule: float | jax.Array | schedules.Schedule, *, every: int) -> Resample:
    """Returns the exchange of population annealing: searches are resampled as they cool.

    Each search continues in proportion to exp(-(1/T - 1/T') cost), where T' is the temperature at
    the exchange before and T the one now: some twice or more, others not at all. If searches are in
    equilibrium at T', the resampled ones are nearly so at T. Hukushima, Iba, "Population annealing
    and its application to a spin glass", 2003; Machta, "Population annealing with weighted
    averages", 2010. Copies are drawn systematically, as near to proportion as can be.

    Args:
      schedule: the temperatures of the annealing, above 0; as in `simulated_annealing`.
      every: steps between exchanges.

    Example:
      >>> stream = random.Stream(random.as_key(0), jnp.uint32(100), jnp.int32(100))
      >>> exchange = resample(schedules.geometric(10.0, 0.9), every=100)
      >>> costs = jnp.array([20, 20, 900, 20])
      >>> jax.jit(exchange.donors)(stream, costs, jnp.int32(4)).tolist()  # -1 for itself
      [-1, -1, 1, -1]
    """
    return Resample(
        every=int32(check_count("every", every)), schedule=schedules.as_schedule(schedule)
    )


def merge(*, every: int, crossover: Crossover) -> Merge:
    """Returns the exchange in which searches keep what is better of where they have come to.

    Each continues from a child of its best solution and of its current one, or every other time of
    the current one of any search. With a crossover that takes the better of each part, such as
    `component_partition`, improvements in different places add up, also if they come with losses
    elsewhere; and with a schedule of this `period`, searches are reheated after each exchange.

    Args:
      every: steps between exchanges.
      crossover: makes the children.

    Raises:
      ValueError: if `every` is not a positive integer.
      TypeError: if `crossover` is not a crossover.

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.max_cut(js.datasets.toroidal_grid(25, 32, 8003))
      >>> schedule = js.geometric(1.0, 0.9997, period=5000)
      >>> search = js.simulated_annealing(js.Flip(), schedule, moves_per_search=8, choose="next")
      >>> merge = js.merge(every=5000, crossover=js.component_partition())
      >>> -js.solve(problem, search, 0, num_searches=4, exchange=merge, target=-582).fun
      582
    """
    check_part(crossover, Crossover)
    every = check_count("every", every)
    return Merge(every=int32(every), share=float32(0.5), crossover=crossover)


def shuffle(*, every: int) -> Shuffle:
    """Returns the exchange after which all individuals of all islands are spread at random.

    For searches that have islands, such as `genetic`: `individuals(state)` has leaves [P, ...], and
    `with_individuals(state, individuals)` is the state with others. As in an earlier model of
    Tsutsui, Fujimoto ("Solving quadratic assignment problems by genetic algorithms with GPU
    computation: a case study", 2009), every 500 generations.

    Args:
      every: steps between exchanges.

    Example:
      >>> stream = random.Stream(random.as_key(0), jnp.uint32(500), jnp.int32(500))
      >>> shuffle(every=500).order(stream, jnp.zeros(6, bool)).tolist()
      [1, 2, 4, 5, 0, 3]
    """
    return Shuffle(every=int32(check_count("every", every)))


def recombine(
    *,
    every: int,
    share: float = 0.5,
    alike: float | None = 0.6,
    crossover: Crossover | None = None,
    generational: bool = False,
    reach: int | None = None,
) -> Recombine:
    """Returns the exchange after which searches continue from children of their best solutions.

    `crossover` makes a child of a search's own best and another one's. So each search remembers one
    good solution, until a descendant of a child turns out better.

    Once many have equally good ones, all but the first search restart at random. The first one
    continues by itself, from the best of all at each restart.

    Merz, Freisleben, "Fitness landscape analysis and memetic algorithms for the quadratic
    assignment problem", 2000, have local search on children. Tsutsui, Fujimoto, "An analytical
    study of GPU computation for solving QAPs by parallel evolutionary computation with independent
    run", 2010, let each child replace its own parent if it is better, and have the restart.

    Args:
      every: steps between exchanges.
      share: how much of the other one's a child has, 0 to 1.
      alike: the share of searches with the lowest cost among them at which all restart; None for
        never, and then the first search has children, too. At 0 they restart in any case.
      crossover: `edge_assembly` for tours; None for PMX of any positions, for solutions that are
        permutations, [n] int32, whose children are perturbed if they equal a parent. A run on a
        problem with other solutions is refused.
      generational: whether a search forgets its best for the child, so that it may get worse, but
        the population does not stay with the first good solutions. The first search has no
        children then, and continues from the best of all.
      reach: how far after a search, at most, the other one stands, in a ring; None for anywhere.

    Raises:
      ValueError: if a number is out of range.
      TypeError: if `crossover` is not a crossover.

    Example:
      >>> stream = random.Stream(random.as_key(0), jnp.uint32(100), jnp.int32(100))
      >>> exchange = recombine(every=100, alike=None)
      >>> exchange.donors(stream, jnp.array([7, 7, 7, 7]), jnp.int32(4)).tolist()  # other parents
      [2, 0, 1, 0]
    """
    if crossover is not None:
        check_part(crossover, Crossover)
    return Recombine(
        every=int32(check_count("every", every)),
        share=float32(check_share("share", share)),
        alike=None if alike is None else float32(check_share("alike", alike)),
        crossover=PartialMatch() if crossover is None else crossover,
        is_generational=generational,
        reach=None if reach is None else check_count("reach", reach),
    )
