"""Annealing that keeps pace with the clock, by searches that exchange: what the solvers run.

Either the searches are resampled as they cool (Hukushima, Iba, "Population annealing and its
application to a spin glass", 2003), or each cools by itself and they then continue from children of
one another's best.
"""

import math
from typing import Any, Literal, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search.checks import MAX_INT32, float32, int32
from jaxopt_search.exchanges import Recombine, Resample
from jaxopt_search.searches import SimulatedAnnealing, simulated_annealing
from jaxopt_search.searches.annealing import Choose
from jaxopt_search.searches.schedules import Geometric
from jaxopt_search.types import Crossover

_MOST_SHARE = 0.5  # of the AB-cycles
# Accepted moves per search and step below which searches are frozen, over this many steps; and the
# share of the time that a reheating takes at least.
_FROZEN, _STEPS_TO_TELL, _LEAST_TIME = 5e-4, 1000, 0.05
_SAFETY = 0.98  # of the time limit, in which the temperature reaches its lowest
# What a run takes to cool from the hottest, for each city: on 2 CPU cores, tours of 318 to 1002
# cities end shorter so within 10 s, and not within 1 s.
_SECONDS_TO_COOL, _STEPS_TO_COOL = 0.008, 150


class Recipe(NamedTuple):
    """Settings of an annealing on one device.

    Temperatures are in units of the changes made there (`solvers.scales`): for the symmetric TSP
    the hottest in units of `tree_edge` and the coldest of `near_distance`, which differ much where
    cities lie in clusters; for other TSPs both of the mean extra cost of candidates
    (`assignment.likeliest`), and for the QAP of `swap_change`.

    Runs too short to cool from the hottest begin at `colder`, in the same unit; None for none.

    `cooled` is the share of the run after which the lowest temperature is reached. If it is less
    than 1, each search cools by itself and they recombine afterwards; else they are resampled every
    `resample_every` steps as they cool. A period that followed the clock would shrink as steps get
    slower, until resampling took all the time. They start at random or, on the TSP, at constructed
    tours (`problems.tsp.construction`), and of several instances along curves
    (`problems.tsp.curves`).
    Every `check_every` steps comes a test whether the run is over, None for the interval of
    `solve`; on a GPU such a test takes as long as tens of steps.

    In a run by the clock, recombinations take `recombining` of the time after the cooling. Of the
    AB-cycles a child takes `shares_left` over the number of generations left, at most half: the
    more there are to come, the longer tours stay different, and the better they end.
    """

    hottest: float
    coldest: float
    num_searches: int
    moves_per_search: int
    choose: Choose = "best"
    resample_every: int = 1000
    num_candidates: int = 12
    cooled: float = 1.0
    starts: Literal["random", "constructed"] = "random"
    check_every: int | None = None
    recombining: float = 0.5
    shares_left: float = 10.0
    colder: float | None = None

    @property
    def cooling_every(self) -> int:
        """Returns the steps between exchanges during the cooling."""
        return MAX_INT32 if self.recombines else self.resample_every

    @property
    def recombines(self) -> bool:
        """Whether searches continue from children of one another's best, once they have cooled."""
        return self.cooled < 1

    def share(self, generations: float) -> float:
        """Returns the share of AB-cycles that a child takes with this many generations left."""
        return min(_MOST_SHARE, self.shares_left / max(generations, 1.0))

    def begun(
        self,
        temperatures: tuple[float, float],
        n: int,
        max_steps: int | None,
        max_seconds: float | None,
    ) -> float:
        """Returns the share of the cooling that a run leaves out for want of steps or seconds.

        Args:
          temperatures: the hottest and the coldest.
          n: how many cities or facilities.
        """
        most = n * (_SECONDS_TO_COOL if max_steps is None else _STEPS_TO_COOL)
        limit = max_seconds if max_steps is None else max_steps
        if self.colder is None or limit is None or limit >= most:
            return 0.0
        hottest, coldest = temperatures
        if not 0 < coldest < hottest:
            return 0.0
        return min(math.log(self.colder / self.hottest) / math.log(coldest / hottest), 1.0)


class Pace(NamedTuple):
    """How a cooling continues, numbers or arrays.

    Attributes:
      step: from this one on.
      done: the share of the cooling made by then, 0 to 1.
      per_step: the share that each further step makes.
      every: steps between exchanges.
      share: how many of the AB-cycles that make a child shorter it takes (`Recombine`).
    """

    step: Any
    done: Any
    per_step: Any
    every: Any
    share: Any = _MOST_SHARE


def cooling(hottest: Any, coldest: Any, pace: Pace) -> Geometric:
    """Returns the schedule from `hottest` down to `coldest`, at a pace; it never warms."""
    is_on_host = not isinstance(hottest, jax.Array)
    xp: Any = np if is_on_host else jnp  # where no program is needed for some numbers
    log2_range = xp.minimum(xp.log2(coldest / hottest), 0)
    return Geometric(
        start=float32(hottest * xp.exp2(log2_range * pace.done)),
        log2_alpha=float32(log2_range * pace.per_step),
        steps_per_temperature=int32(1),
        first_step=int32(pace.step),
    )


def annealing(recipe: Recipe, neighborhood: Any, schedule: Any) -> SimulatedAnnealing:
    """Returns the annealing of a recipe."""
    return simulated_annealing(
        neighborhood, schedule, moves_per_search=recipe.moves_per_search, choose=recipe.choose
    )


def search_and_exchange(
    recipe: Recipe,
    neighborhood: Any,
    crossover: Crossover | None,
    temperatures: tuple[Any, Any],
    pace: Pace,
) -> tuple[SimulatedAnnealing, Resample | Recombine]:
    """Returns the search of a recipe and its exchange, at a pace.

    Args:
      crossover: used if the recipe recombines.
      temperatures: the hottest and the coldest.
    """
    schedule, every = cooling(*temperatures, pace), int32(pace.every)
    search = annealing(recipe, neighborhood, schedule)
    if not recipe.recombines:
        return search, Resample(every=every, schedule=schedule)
    assert crossover is not None
    share = float32(pace.share)
    return search, Recombine(every=every, share=share, alike=None, crossover=crossover)


class Pacer(Protocol):
    """Sets the pace of a run at the ends of its chunks.

    Attributes:
      pace: from the last step noted on.
    """

    pace: Pace

    def note(self, step: int, seconds: float, acceptance: float = 1.0) -> bool:
        """Takes note of a chunk that ends at `step`, after `seconds` of search.

        Returns whether the pace changes.

        Args:
          acceptance: accepted moves per search and step.
        """
        raise NotImplementedError

    def steps_left(self, step: int) -> int | None:
        """Returns after how many steps the pace is known to change; None if that is not known."""
        raise NotImplementedError

    def notes(self) -> dict[str, Any]:
        """Returns what `recall` needs in a later process, for JSON."""
        raise NotImplementedError

    def recall(self, notes: dict[str, Any]) -> None:
        """Continues at the pace of an earlier process."""
        raise NotImplementedError


def pacer_of(
    recipe: Recipe,
    n: int,
    max_steps: int | None,
    max_seconds: float | None,
    begun: float = 0.0,
) -> Pacer:
    """Returns what keeps a run in pace with its steps or, without a limit on these, its seconds.

    Args:
      begun: the share of the cooling that is left out.
    """
    if max_steps is not None:
        return StepCount(recipe, n, max_steps, begun)
    assert max_seconds is not None
    return Clock(recipe, max_seconds, begun)


class StepCount:
    """The pace of a run of this many steps, of which a search counts the first 2**31 - 1 only.

    Attributes:
      pace: from the last step noted on.
    """

    def __init__(self, recipe: Recipe, n: int, max_steps: int, begun: float = 0.0):
        max_steps = min(max_steps, MAX_INT32)
        per_step = (1 - begun) / max(recipe.cooled * max_steps, 1)
        self.pace = Pace(0, begun, per_step, recipe.cooling_every)
        self._cooled_at = math.ceil(recipe.cooled * max_steps)
        self._then = self.pace
        if recipe.recombines:
            share = recipe.share((max_steps - self._cooled_at) / n)
            self._then = Pace(self._cooled_at, 1.0, 0.0, n, share)

    def note(self, step: int, seconds: float, acceptance: float = 1.0) -> bool:
        """Takes note of a chunk that ends at `step`; returns whether the pace changes."""
        if step < self._cooled_at or self.pace == self._then:
            return False
        self.pace = self._then
        return True

    def steps_left(self, step: int) -> int | None:
        """Returns after how many steps the pace changes; None if not any more."""
        return self._cooled_at - step if step < self._cooled_at else None

    def notes(self) -> dict[str, Any]:
        """Returns nothing: the step says it all."""
        return {}

    def recall(self, notes: dict[str, Any]) -> None:
        """Does nothing."""


class Clock:
    """Sets the pace after each chunk of steps so that the cooling ends when its time is over.

    The first chunk makes no step. Once searches have cooled, what chunks take longer than their
    steps did before is taken for recombinations. Searches that are resampled and freeze before are
    reheated half the way, as often as that happens, and cool to where they froze.

    Attributes:
      pace: from the end of the last chunk on.
    """

    _NOTED = (
        *("pace", "cooled_by", "last", "seconds_per_step"),
        *("since", "num_recombinations", "recombining_seconds", "until"),
    )

    def __init__(self, recipe: Recipe, max_seconds: float, begun: float = 0.0):
        self.recipe = recipe
        self._begun = begun
        self.max_seconds = max_seconds
        self.cooled_by = 0.0  # seconds
        self.last: tuple[int, float] | None = None
        self.seconds_per_step = 0.0
        self.since = 0  # steps since the last recombination
        self.num_recombinations, self.recombining_seconds = 0, 0.0
        self.until, self._is_reheated = 1.0, False  # the share of the cooling that is made
        self.pace = Pace(0, 0.0, 0.0, recipe.cooling_every)

    def note(self, step: int, seconds: float, acceptance: float = 1.0) -> bool:
        """Takes note of a chunk that ends at `step`, after `seconds` of search.

        Returns whether the pace changes.
        """
        before, self.last = self.last, (step, seconds)
        if before is None:
            share = _SAFETY * self.recipe.cooled
            self.cooled_by = seconds + share * max(self.max_seconds - seconds, 0.0)
            self.pace = self.pace._replace(done=max(self.pace.done, self._begun))
            return self._begun > 0
        if step == before[0]:
            return False
        made, took = step - before[0], seconds - before[1]
        done = min(self.until, self.pace.done + made * self.pace.per_step)
        left = max(self.cooled_by - seconds, 0.0)
        is_frozen = acceptance < _FROZEN and made >= _STEPS_TO_TELL and done > self._begun
        has_time = left > _LEAST_TIME * self.max_seconds
        self._is_reheated = is_frozen and has_time and not self.recipe.recombines
        if self._is_reheated:
            self.until, done = done, (self._begun + done) / 2
        per_step = (self.until - done) / max(made / took * left, 1.0)
        share = self.pace.share
        self._take_note_of_recombinations(made, took)
        if done == 1 and self.recipe.recombines and self.seconds_per_step > 0:
            every = self._recombine_every(made)
            generation = every * self.seconds_per_step + self._seconds_each
            share = self.recipe.share((self.max_seconds - seconds) / generation)
        else:
            every, self.seconds_per_step = self.recipe.cooling_every, took / made
        self.pace = Pace(min(step, MAX_INT32), done, per_step, every, share)
        return True

    def steps_left(self, step: int) -> int | None:
        """Returns 1 once searches are reheated, whose steps may be slow: else time tells."""
        return 1 if self._is_reheated else None

    def notes(self) -> dict[str, Any]:
        """Returns what `recall` needs in a later process, for JSON."""
        return {name: getattr(self, name) for name in self._NOTED}

    def recall(self, notes: dict[str, Any]) -> None:
        """Continues at the pace of an earlier process."""
        for name in self._NOTED:
            setattr(self, name, notes[name])
        self.pace, self.last = Pace(*notes["pace"]), notes["last"] and tuple(notes["last"])

    @property
    def _seconds_each(self) -> float:
        """Seconds of a recombination; 0 if there was none."""
        return self.recombining_seconds / max(self.num_recombinations, 1)

    def _take_note_of_recombinations(self, made: int, took: float) -> None:
        """Counts those of a chunk: one comes when as many steps as the pace says have been made."""
        every = self.pace.every
        first = max(every - self.since, 1)
        if made < first:
            self.since += made
        else:
            num, self.since = divmod(made - first, every)
            self.num_recombinations += num + 1
        if every < MAX_INT32:
            self.recombining_seconds += max(took - made * self.seconds_per_step, 0.0)

    def _recombine_every(self, made: int) -> int:
        every = self.pace.every
        if every == MAX_INT32:
            return made
        if not self.num_recombinations:
            return every
        share = self.recipe.recombining
        steps = self._seconds_each / self.seconds_per_step * (1 - share) / share
        # Not much less: the next chunk is made as long as would have taken its time so far.
        return int(min(max(steps, every / 2, 1), MAX_INT32))
