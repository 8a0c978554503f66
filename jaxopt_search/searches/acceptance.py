"""Acceptance: which of the moves that a search has priced are made.

A rule is a part of `local_search`, as `Metropolis` is of `simulated_annealing`. A new one is a few
lines: `passes`, and where it needs more than the change in cost, `control` or a history.
"""

import abc
import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxopt_search.backends import memory, random
from jaxopt_search.checks import check_count
from jaxopt_search.pytrees import pytree, static
from jaxopt_search.searches import schedules
from jaxopt_search.types import Cost

__all__ = [
    "Acceptance",
    "Greedy",
    "LateAcceptance",
    "Metropolis",
    "Threshold",
    "Trial",
    "greedy",
    "late_acceptance",
    "metropolis",
    "threshold",
]


class Trial(NamedTuple):
    """What a rule may look at when moves are put to the test.

    Attributes:
      control: what `Acceptance.control` returned for this step.
      history: what the search remembers for the rule; None if the rule remembers nothing.
      cost: [] the cost of the current solution.
      delta: the change in cost, [] for one move or [M] for each of several.
      words: `num_words` uint32 arrays of the shape of `delta`.
    """

    control: Any
    history: Any
    cost: Cost
    delta: Cost
    words: tuple[jax.Array, ...]


class Acceptance(abc.ABC):
    """A rule: a pytree with `passes`, and whichever of the other methods it needs.

    `passes` and `after` are portable (docs/your_own_problem.md, section 4); the others run under
    XLA. A move that changes nothing or leads to NaN is never made, whatever `passes` says.

    Example:
      >>> @pytree
      ... @dataclasses.dataclass(frozen=True)
      ... class GreatDeluge(Acceptance):
      ...     level: float
      ...     def passes(self, trial):
      ...         return trial.cost + trial.delta <= self.level
      >>> trial = Trial(control=None, history=None, cost=100, delta=jnp.array([5, 50]), words=())
      >>> GreatDeluge(120.0).passes(trial).tolist()
      [True, False]
    """

    num_words: int = 0
    """The random words that one test takes."""

    def check(self, problem: Any, max_steps: int | None) -> None:
        """Refuses settings that suit neither the problem nor so long a run; on the host."""
        return

    def control(self, step: jax.Array) -> Any:
        """Returns scalars that are the same for all searches at `step`, [] int32."""
        return None

    def start(self, cost: Cost) -> Any:
        """Returns the history of a search that starts at a solution of this cost; None for none.

        A pytree of scalars and of arrays with one axis or two, which `memory.load` reads and
        `memory.store` writes.
        """
        return None

    @abc.abstractmethod
    def passes(self, trial: Trial) -> jax.Array:
        """Returns whether moves may be made, bool of the shape of `trial.delta`."""

    def after(self, history: Any, cost: Cost) -> Any:
        """Returns the history after a step, whether a move was made or not.

        Args:
          history: the one before.
          cost: [] the cost of the solution that is now the current one.
        """
        return history


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scheduled(Acceptance):
    """A rule whose `control` is a schedule's number for the step, a temperature or threshold."""

    schedule: schedules.Schedule

    def check(self, problem: Any, max_steps: int | None) -> None:
        schedules.check(self.schedule, max_steps)

    def control(self, step: jax.Array) -> jax.Array:
        return schedules.temperature(self.schedule, step)


@pytree
@dataclasses.dataclass(frozen=True, kw_only=True)
class Metropolis(Scheduled):
    """Build it with `metropolis`."""

    num_words = 1

    def passes(self, trial: Trial) -> jax.Array:
        """A uniform u lies below exp(-delta / temperature) where -log(u) lies above the quotient.

        -log(u) is exponentially distributed; written so, temperature 0 accepts delta <= 0 only.
        """
        threshold = trial.control * random.exponential(trial.words[0])
        return trial.delta.astype(jnp.float32) <= threshold


@pytree
@dataclasses.dataclass(frozen=True, kw_only=True)
class Threshold(Scheduled):
    """Build it with `threshold`."""

    def passes(self, trial: Trial) -> jax.Array:
        return trial.delta.astype(jnp.float32) <= trial.control


@pytree
@dataclasses.dataclass(frozen=True, kw_only=True)
class Greedy(Acceptance):
    """Build it with `greedy`."""

    sideways: bool = static()

    def passes(self, trial: Trial) -> jax.Array:
        return trial.delta <= 0 if self.sideways else trial.delta < 0


class LateCosts(NamedTuple):
    """The costs that late acceptance compares with.

    Attributes:
      costs: [L] the lowest of each kind: entry i is compared with in steps i, i + L, i + 2 L...
      now: [] int32, the entry of the next step.
    """

    costs: jax.Array
    now: jax.Array


@pytree
@dataclasses.dataclass(frozen=True, kw_only=True)
class LateAcceptance(Acceptance):
    """Build it with `late_acceptance`."""

    length: int = static()

    def start(self, cost: Cost) -> LateCosts:
        return LateCosts(jnp.full(self.length, cost), jnp.int32(0))

    def passes(self, trial: Trial) -> jax.Array:
        late = memory.load(trial.history.costs, trial.history.now)
        return (trial.delta <= 0) | (trial.cost + trial.delta < late)

    def after(self, history: LateCosts, cost: Cost) -> LateCosts:
        costs, now = history
        costs = memory.store(costs, now, cost, cost < memory.load(costs, now))
        return LateCosts(costs, jnp.where(now + 1 < self.length, now + 1, 0))


def metropolis(schedule: float | jax.Array | schedules.Schedule) -> Metropolis:
    """Returns the rule of simulated annealing: a worse solution passes with a probability.

    It is exp(-delta / temperature); equal and better ones always pass. Metropolis, Rosenbluth,
    Rosenbluth, Teller, Teller, "Equation of state calculations by fast computing machines", 1953.

    Args:
      schedule: a temperature, or a function from the step to one, such as `js.geometric` returns.

    Raises:
      TypeError, ValueError: as `simulated_annealing` for such a schedule.

    Example:
      >>> words = jnp.arange(1000, dtype=jnp.uint32) * jnp.uint32(2**32 // 1000)
      >>> trial = Trial(jnp.float32(10), None, cost=100, delta=jnp.full(1000, 10), words=(words,))
      >>> int(metropolis(10.0).passes(trial).sum())  # of 1000: exp(-10 / 10) is 0.368
      368
    """
    return Metropolis(schedule=schedules.as_schedule(schedule))


def threshold(schedule: float | jax.Array | schedules.Schedule) -> Threshold:
    """Returns the rule of threshold accepting: what is worse by at most a threshold passes.

    Dueck, Scheuer, "Threshold accepting: a general purpose optimization algorithm appearing
    superior to simulated annealing", 1990. There a change must lie below the threshold; here it may
    equal it, so that at 0 equal solutions pass.

    Args:
      schedule: the threshold, in units of cost, or a function from the step to one.

    Raises:
      TypeError, ValueError: as `metropolis`.

    Example:
      >>> rule = threshold(3.0)
      >>> now = rule.control(jnp.int32(0))
      >>> rule.passes(Trial(now, None, cost=100, delta=jnp.array([-5, 3, 4]), words=())).tolist()
      [True, True, False]
    """
    return Threshold(schedule=schedules.as_schedule(schedule))


def greedy(*, sideways: bool = True) -> Greedy:
    """Returns the rule that no worse solution passes.

    Args:
      sideways: whether equal ones do.

    Example:
      >>> trial = Trial(None, None, cost=100, delta=jnp.array([-1, 0, 1]), words=())
      >>> greedy().passes(trial).tolist(), greedy(sideways=False).passes(trial).tolist()
      ([True, True, False], [True, False, False])
    """
    return Greedy(sideways=bool(sideways))


def late_acceptance(length: int) -> LateAcceptance:
    """Returns the rule by which a move is compared with the cost of `length` steps ago.

    What is no worse than the current solution passes, too, and the cost that a move is compared
    with only falls. Burke, Bykov, "The late acceptance hill-climbing heuristic", 2017, with both of
    its improvements. A step is one iteration of theirs, however many moves it prices.

    Args:
      length: L, how many costs each search remembers; 1 makes it `greedy`.

    Raises:
      ValueError: if `length` is no positive integer.

    Example:
      >>> rule = late_acceptance(2)
      >>> history = rule.after(rule.start(jnp.int32(100)), jnp.int32(90))
      >>> history.costs.tolist()  # the next step compares with the 100 of two steps ago
      [90, 100]
      >>> rule.passes(Trial(None, history, cost=90, delta=jnp.array([5, 15]), words=())).tolist()
      [True, False]
    """
    return LateAcceptance(length=check_count("length", length, 1, 2**20))
