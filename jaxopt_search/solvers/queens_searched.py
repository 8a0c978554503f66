"""Valid placements of queens that searches find side by side.

At fixed distances the searches that stand at a valid placement are found out: it is taken down, and
they restart, as do those that have tried for long.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.driver.ahead import Ahead
from jaxopt_search.driver.chunks import Timer
from jaxopt_search.engine import device_split, loop, room, stepping
from jaxopt_search.engine.device_split import DeviceSplit
from jaxopt_search.engine.kept_programs import Kept
from jaxopt_search.engine.state import RunState, Since, make_rules
from jaxopt_search.guards import capacity
from jaxopt_search.guards.interrupts import held_back
from jaxopt_search.neighborhoods.queen_swap import CountedQueens, QueenSwap
from jaxopt_search.portable import random
from jaxopt_search.portable.counts import Steps
from jaxopt_search.problems import padding
from jaxopt_search.problems.queens import symmetry
from jaxopt_search.problems.queens.problem import NQueens, greedy_placement
from jaxopt_search.problems.queens.symmetry import Distinct
from jaxopt_search.results import Status
from jaxopt_search.searches.min_conflicts import MinConflicts, MinConflictsState, min_conflicts
from jaxopt_search.solvers.queens_found import PlacementSet, Standing, dtype_of
from jaxopt_search.types import Info

_PLACED_AT_ONCE = 2 * 10**8
"""Queens of all searches together."""
_MAX_LOOKS = 16
"""A search that has found nothing by this many restarts."""
_MORE = 8
"""From one number of searches to the next: of few, so that few programs are compiled."""


class Plan(NamedTuple):
    """How placements are searched for.

    Attributes:
      num_searches: side by side, on each device, if as many placements are wanted.
      least_searches: if few are wanted.
      moves_per_search: priced per step.
      temperature: all the time the same.
      steps: between two looks.
      tries: of `greedy_placement`, by which searches start; 0 for random placements.
    """

    num_searches: int
    least_searches: int
    moves_per_search: int
    temperature: float
    steps: int
    tries: int


def plan_of(n: int, platform: str) -> Plan:
    """Returns how placements of n queens are searched for on a device of this platform.

    What is compiled for depends on the capacity only.
    """
    temperature, capacity = 0.4 if n < 16 else 0.1, padding.capacity_for(n)
    if platform == "cpu":
        num_searches = min(max(200_000 // capacity, 16), 1024)
        return Plan(num_searches, 4, 64, temperature, max(32, n * 3 // 10), 16)
    num_searches, moves = min(16_896, _PLACED_AT_ONCE // capacity), 16 if capacity <= 64 else 32
    return Plan(num_searches, 132, moves, temperature, max(32, n * 7 // 10), 0)


def num_searches_for(plan: Plan, wanted: int) -> int:
    """Returns the searches on each device that are to find as many placements."""
    number = plan.least_searches
    while number < wanted:
        number *= _MORE
    return min(number, plan.num_searches)


def search_of(plan: Plan) -> MinConflicts:
    """Returns the search of a plan."""
    return min_conflicts(QueenSwap(), plan.temperature, moves_per_search=plan.moves_per_search)


class Harvest(NamedTuple):
    """What is taken down of the searches after a number of steps.

    Attributes:
      is_valid: [S] whether a search has found a valid placement.
      queens: [S, capacity] their best placements.
      words: [S, 2] uint32 fingerprints.
    """

    is_valid: jax.Array
    queens: jax.Array
    words: jax.Array


class Searches:
    """A run of searches side by side, spread over devices: a `chunks.Chunked`.

    Attributes:
      implementation: how steps are run.
      made: steps made by each search, those included that are still on their way.
      step: steps after which the searches were last looked at.
    """

    def __init__(
        self,
        problem: NQueens,
        key: random.Key,
        finds: PlacementSet,
        timer: Timer,
        devices: tuple[jax.Device, ...],
        num_searches: int | None,
    ):
        self.problem, self.finds, self.timer = problem.padded(), finds, timer
        self.plan = plan_of(problem.n, devices[0].platform)
        self.search, self.split = search_of(self.plan), DeviceSplit(devices)
        self._choice = stepping.choose("auto", self.split.first, self.problem, self.search)
        self.implementation, self.made, self.step = str(self._choice), 0, 0
        if num_searches is None:
            each = num_searches_for(self.plan, -(-finds.wanted // len(devices)))
            num_searches = each * len(devices)
        capacity.check_size(np.broadcast_to(0, self.problem.capacity), num_searches)
        state = blank(key, self.problem, self.search, num_searches)
        parts = self.problem, self.search
        room.check(parts, room.estimate(parts, state, devices), num_searches, devices)
        index: Any = np.arange(num_searches, dtype=np.int32)
        with held_back(), jax.default_device(self.split.first):
            state = jax.device_put(state._replace(index=index, ancestor=index))
        self.state = self.split.split(state)
        self._rules = make_rules(self.search, self.state.best_cost.dtype)
        # The first look starts them all.
        self._age: Any = np.full(self.state.index.shape, _MAX_LOOKS, np.int32)
        self._harvest_of = _harvester(devices, finds.distinct, self.plan.tries)
        self._num_looks = 0
        self._ahead = Ahead(self._to_compile())
        self._harvest: Harvest | None = None  # what is not yet taken down
        self._has_started = False

    def _to_compile(self) -> list[Callable[[], None]]:
        if len(self.split.devices) > 1:
            return []
        own = self.problem, self.search, self.state
        options = {"distinct": self.finds.distinct, "tries": self.plan.tries}
        return [
            *loop.program(self._choice.implementation, *own, self._rules).to_compile(),
            *harvested.to_compile(*own, self._age, np.uint32(0), **options),
        ]

    def advance(self, num_steps: int) -> None:
        """Finds out what was found, and starts the next steps; compiles, the first time."""
        self._ahead.wait()
        if self._harvest is None:
            self.state, self._age, self._harvest = self._harvest_of(
                self.problem, self.search, self.state, self._age, np.uint32(self._num_looks)
            )
            self._num_looks += 1
        if not num_steps:
            jax.block_until_ready(self._advanced(0))
            self._harvest = None  # of searches that had not started
            return
        self.step, self._has_started = self.made, True
        if self.timer.max_steps is not None:
            num_steps = min(num_steps, self.timer.max_steps - self.made)
        if num_steps:
            self.state = self._advanced(num_steps)
            self.made += num_steps

    def _advanced(self, num_steps: int) -> RunState:
        """Returns the state after some steps, which need not be made by then."""
        return self.split.advance(
            self.problem,
            self.search,
            self.state,
            num_steps,
            self._rules,
            self._choice.implementation,
        )

    def look(self) -> object:
        """Takes down what was found, while the next steps are made."""
        if self._has_started and self._harvest is not None:
            team = self.split.team
            is_valid = team.gathered(self._harvest.is_valid)
            if is_valid.any():
                queens, words = team.gathered((self._harvest.queens, self._harvest.words))
                self.finds.add(self.problem.host.own(queens[is_valid]), words[is_valid])
            self._harvest = None

    def status(self, limit: Status) -> Status:
        status = self.finds.status()
        is_limited = status == Status.RUNNING and self._has_started
        return limit if is_limited else status

    def report(self, status: Status) -> Standing:
        return self.finds.standing(self.made, self.timer.seconds, status)

    def next_steps(self, made: int, seconds: float) -> int:
        return self.plan.steps


def blank(key: random.Key, problem: NQueens, search: MinConflicts, num_searches: int) -> RunState:
    """Returns a state of searches that have not started, all with index 0.

    Nothing is traced or compiled for it, and its arrays take no memory on the host.
    """

    def zeros(dtype: Any, *shape: int) -> Any:
        return np.broadcast_to(np.zeros((), dtype), (num_searches, *shape))

    n, small = problem.capacity, dtype_of(problem.capacity)
    diagonals, cost = zeros(small, 2 * n), zeros(np.int32)
    placed = CountedQueens(zeros(small, n), diagonals, diagonals)
    number: Any = np.int32(0)
    none: Any = np.uint32(0)
    word = zeros(np.uint32)
    return RunState(
        key=key,
        step=Steps(none, none),
        since=Since(number, number, number),
        best_cost=number,
        tested_cost=number,
        stale=number,
        status=number + np.int32(Status.RUNNING),
        index=cost,
        searches=MinConflictsState(
            placed, cost, QueenSwap().snapshot(placed), cost, zeros(np.int32, search.num_places)
        ),
        ancestor=cost,
        hit=Steps(word, word),
        info=Info(accepted=cost),
    )


@functools.cache
def _harvester(devices: tuple[jax.Device, ...], distinct: Distinct, tries: int) -> Any:
    """Returns `harvested` of searches as `DeviceSplit.split` spreads them."""
    harvest = functools.partial(harvested, distinct=distinct, tries=tries)
    if len(devices) == 1:
        return harvest
    axes = device_split.AXES
    return jax.pmap(
        harvest, in_axes=(None, None, axes, 0, None), out_axes=(axes, 0, 0), devices=devices
    )


@Kept
@functools.partial(jax.jit, static_argnames=("distinct", "tries"))
def harvested(
    problem: NQueens,
    search: Any,
    state: RunState,
    age: jax.Array,
    look: jax.Array,
    *,
    distinct: Distinct,
    tries: int,
) -> tuple[RunState, jax.Array, Harvest]:
    """Returns the searches after those at valid placements, and old ones, have restarted.

    Args:
      age: [S] int32 looks since each search started.
      look: [] uint32 number of this look.
      tries: as in `Plan`.

    Returns:
      The state, the ages, and what was found.
    """

    def start(key: jax.Array) -> jax.Array:
        if not tries:
            return problem.init(key)
        return greedy_placement(key, problem.n, tries, problem.capacity)

    costs = jax.vmap(search.best_cost)(state.searches)
    queens = jax.vmap(search.best, in_axes=(None, 0))(problem, state.searches)
    words = jax.vmap(lambda one: symmetry.fingerprint(one, distinct, problem.num_entries))(queens)
    is_valid, age = (costs == 0) & (state.index >= 0), age + 1
    restarts = is_valid | (age >= _MAX_LOOKS)
    keys = jax.vmap(random.start_key, in_axes=(None, 0))(
        random.instance_key(state.key, look), state.index.astype(jnp.uint32)
    )
    fresh = jax.vmap(search.init, in_axes=(None, 0))(problem, jax.vmap(start)(keys))

    def renewed(new: jax.Array, old: jax.Array) -> jax.Array:
        where = lax.expand_dims(restarts, range(1, new.ndim))
        return jnp.where(where, new, old)

    searches = jax.tree.map(renewed, fresh, state.searches)
    narrow = queens.astype(dtype_of(problem.capacity))
    age = jnp.where(restarts, 0, age)
    return state._replace(searches=searches), age, Harvest(is_valid, narrow, words)
