"""Annealing that keeps pace with the clock, by searches that exchange: what the solvers run.

`anneal` runs it on a problem of one's own, by a limit alone: temperatures follow from its moves.

Searches cool by themselves, or are resampled meanwhile (Hukushima, Iba, "Population annealing and
its application to a spin glass", 2003). Or once they have cooled they continue from children of one
another's best, or are reheated, again and again, and keep what got better.
"""

import dataclasses
import math
import os
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search.backends import random, runs_kernels
from jaxopt_search.checks import MAX_INT32, check_count, float32, int32, plain_array
from jaxopt_search.contracts import check_part, check_parts, solution_shape
from jaxopt_search.driver import checkpoints
from jaxopt_search.driver.chunks import drive, is_true
from jaxopt_search.driver.options import DEFAULT_SECONDS, RunOptions, Timer, resolve
from jaxopt_search.driver.results import Report
from jaxopt_search.driver.run import Run, Steer
from jaxopt_search.driver.starts import FirstStarts
from jaxopt_search.engine.devices import (
    Devices,
    find_devices,
    for_device,
    host_device,
    host_driver,
    is_cpu,
)
from jaxopt_search.exchanges import Merge, Recombine, Resample
from jaxopt_search.neighborhoods.flip import Flip
from jaxopt_search.neighborhoods.full_evaluation import as_neighborhood
from jaxopt_search.neighborhoods.three_opt import DoubleBridge
from jaxopt_search.problems import permutation
from jaxopt_search.problems.finite.qubo import QUBO
from jaxopt_search.results import Result
from jaxopt_search.searches import iterated_local_search, simulated_annealing
from jaxopt_search.searches.acceptance import metropolis
from jaxopt_search.searches.annealing import Choose
from jaxopt_search.searches.schedules import Geometric
from jaxopt_search.types import Crossover, Exchange, Problem, Search, null_delta

# The share of AB-cycles that a child takes: the most, and the one if a generation were left.
_MOST_SHARE, _SHARES_LEFT = 0.5, 10.0
_NEVER_ALIKE = 2.0  # times as many searches as there are
_NEVER = MAX_INT32  # steps between exchanges
_LOOKS = 10  # of iterated local search at each city, between recombinations in a run by steps
_MERGE_EVERY = 128  # moves to try for each variable
_ROUNDS_GROW, _CHUNKS_OF_A_ROUND, _CHUNKS_OF_A_REHEATING = 4, 10, 8
# Steps between tests whether the run is over, each of which takes as long as tens of fast ones.
_CHECK_EVERY = 1000
_SAFETY = 0.98  # of the time limit, in which the temperature reaches its lowest


class Recipe(NamedTuple):
    """Settings of an annealing on one device.

    Temperatures are in units of the changes made there (`solvers.scales`): for the symmetric TSP
    the hottest in units of `tree_edge` and the coldest of `near_distance`, which differ much where
    cities lie in clusters; for other TSPs both of the mean extra cost of candidates
    (`assignment.likeliest`), and for the QAP of `swap_change`.

    Attributes:
      hottest, coldest: temperatures at the beginning and at the end of the cooling.
      num_searches: side by side.
      moves_per_search, choose: as in `simulated_annealing`.
      resample_every: steps between exchanges as searches cool; None without any. A period that
        followed the clock would shrink as steps get slower, until resampling took all the time.
      num_candidates: of the TSP, as in `two_opt`.
      cooled: the share of the run after which the lowest temperature is reached. If it is less than
        1, each search cools by itself and they recombine afterwards; else they may be resampled.
      starts: at random or, on the TSP, at constructed tours (`problems.tsp.construction`), and of
        several instances along curves (`problems.tsp.curves`).
      recombining: the share of the time after the cooling that recombinations take, in a run by the
        clock.
      reheated: how much of the cooling is made, 0 to 1, where searches stand after each exchange
        once they have cooled: they cool until the next one, and `merge` what they have found. At 1
        they stay cold, and recombine.
      first_round: steps for each variable in the first of several rounds (`round_at`), which cool
        and recombine by themselves; 0 for a single one.
      restarts: whether searches that recombine can restart, in rounds: a part of the program, which
        is the same for all limits, also those that leave time for a single round.
      is_iterated: whether iterated local search takes the place of annealing, of symmetric TSPs:
        its local optima then pass as an annealing's moves do.
    """

    hottest: float
    coldest: float
    num_searches: int
    moves_per_search: int = 1
    choose: Choose = "best"
    resample_every: int | None = 1000
    num_candidates: int = 12
    cooled: float = 1.0
    starts: Literal["random", "constructed"] = "random"
    recombining: float = 0.5
    reheated: float = 1.0
    first_round: int = 0
    restarts: bool = False
    is_iterated: bool = False

    @property
    def cooling_every(self) -> int:
        """Returns the steps between exchanges during the cooling."""
        return _NEVER if self.cooled < 1 else self.resample_every or _NEVER

    @property
    def recombines(self) -> bool:
        """Whether searches continue from children of one another's best, once they have cooled."""
        return self.cooled < 1 and not self.merges

    @property
    def merges(self) -> bool:
        """Whether searches are reheated then, and merge what they find with their own best."""
        return self.reheated < 1


# In units of what moves cost more close to local optima: the mean, and the lowest hundredth.
_ON_CPU = Recipe(
    hottest=0.5,
    coldest=0.1,
    num_searches=4,
    moves_per_search=8,
    choose="first",
    resample_every=None,
)
_ON_GPU = _ON_CPU._replace(num_searches=1056, moves_per_search=32, resample_every=20_000)
_FIRST_ROUND = 100  # steps for each variable, where there is a target
_COOLED, _REHEATED = 0.4, 0.3  # where there is a crossover
_SOLUTIONS, _DESCENT, _MOVES = 16, 500, 100


@host_driver
def anneal(
    problem: Problem,
    neighborhood: Any,
    key: Any = 0,
    *,
    max_seconds: float | None = None,
    max_steps: int | None = None,
    target: float | None = None,
    crossover: Crossover | None = None,
    num_searches: int | None = None,
    initial: Any = None,
    checkpoint: str | os.PathLike | None = None,
    checkpoint_every: float = checkpoints.DEFAULT_SECONDS,
    resume: str | os.PathLike | bool | None = None,
    callback: Callable[[Report], Any] | None = None,
    history_size: int = 1000,
    devices: Devices = "all",
    show_progress: bool = False,
) -> Result:
    """Returns a good solution of any problem: annealing whose temperatures need no guessing.

    How much moves cost is measured close to local optima, of a few random solutions that moves are
    tried on. Searches cool from where many moves that cost more pass to where the cheapest hardly
    do, in pace with the clock or the steps. A step makes the first move that passes of 8 on a CPU
    and of 32 on a GPU, where searches are also resampled as they cool (`resample`); flips (`Flip`)
    of a QUBO are tried in order, other moves at random. With a `target`, searches cool in rounds,
    each as long as all before it or longer, so that an easy one is met soon under a long limit.

    With a `crossover`, such as `component_partition` for sparse QUBOs, searches cool in less than
    half of the time. From then on they are reheated, again and again, and keep what is better of
    their best and of where they have come to (`merge`).

    Args:
      problem: what is minimized.
      neighborhood: a `Neighborhood` or `Moves`, such as `Swap()` or `Insert()` for permutations.
      key: an integer seed or a `jax.random.key`.
      max_seconds: seconds of search, as in `solve`; 10 if no limit is given. The result then
        depends on the speed of the machine.
      max_steps: steps of each search.
      target: end once a cost is at most this.
      crossover: makes a solution of two, as for `merge`; None for annealing alone.
      num_searches: searches side by side; None for a number that suits the devices.
      initial: start solutions, as in `solve`.
      checkpoint, checkpoint_every, resume: as in `solve`.
      callback: called with a `Report` after each chunk of steps; True ends the run.
      history_size: as in `solve`.
      devices: as in `solve`; by default all.
      show_progress: as in `solve`.

    Raises:
      ValueError, TypeError: as `solve`.

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.nqueens(8)
      >>> js.anneal(problem, js.QueenSwap(), max_steps=200, target=0).fun
      0
    """
    check_parts(problem)
    resolved = resolve(
        max_steps=max_steps,
        max_seconds=max_seconds,
        devices=devices,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        resume=resume,
        show_progress=show_progress,
        callback=callback,
        history_size=history_size,
    )
    with resolved.team.same_call():
        recipe = _ON_CPU if is_cpu(resolved.devices[0]) else _ON_GPU
        recipe = chosen(recipe, num_searches, resolved.devices)
        hood = as_neighborhood(neighborhood)
        if recipe.choose == "first" and isinstance(hood, Flip) and isinstance(problem, QUBO):
            # Sweeps end lower than random flips, but move chains of equal cost around for ever.
            recipe = recipe._replace(choose="next")
        if target is not None:
            recipe = recipe._replace(first_round=_FIRST_ROUND)
        if crossover is not None:
            check_part(crossover, Crossover)
            recipe = recipe._replace(cooled=_COOLED, reheated=_REHEATED)
        usual, least = increases(problem, hood)
        temperatures = recipe.hottest * usual, recipe.coldest * least
        search = cooling_search(recipe, hood)
        ingredients = Ingredients(search, temperatures, crossover)
        run = plan_annealing(problem, recipe, ingredients, resolved, key, initial, target)
    return drive(run)


def increases(problem: Problem, neighborhood: Any) -> tuple[float, float]:
    """Returns by how much moves raise the cost near local optima: the mean, the lowest hundredth.

    Of raises of several sizes the highest ones are left out. Both are 1 where no move raises it.
    They are measured on the host: the same on every platform.
    """
    problem, neighborhood = jax.device_put((problem, neighborhood), host_device())
    deltas = np.asarray(_deltas(problem, neighborhood))
    higher = deltas[(deltas > 0) & (deltas < null_delta(deltas.dtype))].astype(np.float64)
    if not higher.size:
        return 1.0, 1.0
    if higher.min() < higher.max():  # with them, starts are too hot
        higher = higher[higher < higher.max()]
    return higher.mean().item(), np.quantile(higher, 0.01).item()


@jax.jit
def _deltas(problem: Problem, neighborhood: Any) -> jax.Array:
    """Returns deltas of random moves, of random solutions that some moves have improved."""

    def of_one(key: jax.Array) -> jax.Array:
        start, drawing = (jax.random.fold_in(key, number) for number in range(2))
        at = neighborhood.init(problem, problem.init(start))
        shape = _DESCENT + _MOVES, neighborhood.num_words
        words = permutation.words(drawing, math.prod(shape))[0].reshape(shape)

        def try_move(at: Any, words: jax.Array) -> tuple[Any, None]:
            move = neighborhood.propose(problem, at, tuple(words))
            is_better = neighborhood.delta(problem, at, move) < 0
            return neighborhood.commit(problem, at, move, is_better), None

        at, _ = jax.lax.scan(try_move, at, words[:_DESCENT])

        def price(words: jax.Array) -> jax.Array:
            move = neighborhood.propose(problem, at, tuple(words))
            return neighborhood.delta(problem, at, move)

        return jax.vmap(price)(words[_DESCENT:])

    keys = random.start_key(random.as_key(0), jnp.arange(_SOLUTIONS, dtype=jnp.uint32))
    return jax.vmap(of_one)(keys).ravel()


class Pace(NamedTuple):
    """How a cooling continues, numbers or arrays.

    Attributes:
      step: from this one on.
      done: the share of the cooling made by then, 0 to 1.
      per_step: the share that each further step makes.
      every: steps between exchanges.
      share: how many of the AB-cycles that make a child shorter it takes (`Recombine`).
      alike: the share of searches at which they restart (`Recombine`): 0 at the start of a round.
    """

    step: Any
    done: Any
    per_step: Any
    every: Any
    share: Any = _MOST_SHARE
    alike: Any = _NEVER_ALIKE


def cooling(hottest: Any, coldest: Any, pace: Pace, *, reheats: bool = False) -> Geometric:
    """Returns the schedule from `hottest` down to `coldest`, at a pace.

    Args:
      reheats: whether it begins again after each exchange; else it never warms.
    """
    is_on_host = not isinstance(hottest, jax.Array)
    xp: Any = np if is_on_host else jnp  # where no program is needed for some numbers
    log2_range = xp.minimum(xp.log2(coldest / hottest), 0)
    return Geometric(
        start=float32(hottest * xp.exp2(log2_range * pace.done)),
        log2_alpha=float32(log2_range * pace.per_step),
        steps_per_temperature=int32(1),
        first_step=int32(pace.step),
        period=int32(pace.every) if reheats else None,
    )


def cooling_search(recipe: Recipe, neighborhood: Any) -> Search:
    """Returns the search of a recipe, whose temperature a run sets."""
    if recipe.is_iterated:
        return iterated_local_search(neighborhood, DoubleBridge(), acceptance=metropolis(1.0))
    return simulated_annealing(
        neighborhood, 1.0, moves_per_search=recipe.moves_per_search, choose=recipe.choose
    )


class Ingredients(NamedTuple):
    """What an annealing is made of besides its recipe.

    Attributes:
      search: with an `acceptance` that has a schedule.
      temperatures: the hottest and the coldest.
      crossover: used if the recipe recombines or merges.
    """

    search: Any
    temperatures: tuple[Any, Any]
    crossover: Crossover | None = None

    def at_pace(self, recipe: Recipe, pace: Pace) -> tuple[Search, Exchange | None]:
        """Returns the search and the exchange of a recipe, at a pace."""
        every = int32(pace.every)
        schedule = cooling(*self.temperatures, pace, reheats=recipe.merges)
        acceptance = dataclasses.replace(self.search.acceptance, schedule=schedule)
        search = dataclasses.replace(self.search, acceptance=acceptance)
        if recipe.merges:
            assert self.crossover is not None
            return search, Merge(every=every, share=float32(0.5), crossover=self.crossover)
        if not recipe.recombines:
            resamples = recipe.resample_every is not None
            return search, Resample(every=every, schedule=schedule) if resamples else None
        assert self.crossover is not None
        alike = pace.alike if recipe.first_round else math.inf
        how: Any = {"alike": float32(alike) if recipe.restarts else None}
        how |= {"every": every, "share": float32(pace.share)}
        return search, Recombine(crossover=self.crossover, **how)


def merging(recipe: Recipe, n: int, step: int) -> Pace:
    """Returns the pace of reheating and merging, from a step on, of n variables."""
    every = max(_MERGE_EVERY // recipe.moves_per_search, 1) * n
    return Pace(step, recipe.reheated, (1 - recipe.reheated) / every, every)


def share_of(generations: float) -> float:
    """Returns the share of AB-cycles that a child takes with this many generations left.

    The more there are to come, the longer tours stay different, and the better they end.
    """
    return min(_MOST_SHARE, _SHARES_LEFT / max(generations, 1.0))


class Pacer:
    """Sets the pace of a run at the ends of its chunks; this one never changes it.

    Attributes:
      pace: from the last step noted on.
    """

    def __init__(self, pace: Pace):
        self.pace = pace

    def note(self, step: int, seconds: float) -> None:
        """Takes note of a chunk that ends at `step`, after `seconds` of search."""

    def steps_left(self, step: int) -> int | None:
        """Returns after how many steps the pace is known to change; None if that is not known."""
        return None

    def notes(self) -> dict[str, Any]:
        """Returns the notes for `recall` in a later process, for JSON."""
        return {}

    def recall(self, notes: dict[str, Any]) -> None:
        """Continues at the pace of an earlier process."""


def round_at(first: float, limit: float, now: float) -> tuple[float, float]:
    """Returns when the round that is under way begins and ends, in seconds or steps.

    Rounds end at `first`, four times that, sixteen times that, and so on, and the last one takes at
    least half of the limit: what is found soon is found as soon under a long limit as under a short
    one. Each but the first begins hot; of searches that recombine, all but the best restart.

    Args:
      first: 0 for a single round.
    """
    begin, end = 0, first or limit
    while 0 < end <= now and 2 * end <= limit:
        begin, end = end, _ROUNDS_GROW * end
    return begin, end if 2 * end <= limit else limit


def pacer_of(recipe: Recipe, n: int, timer: Timer) -> Pacer:
    """Returns the pacer for a limit on steps or, without one, for a limit on seconds.

    Args:
      n: how many variables, such as cities or facilities.
    """
    if timer.max_steps is not None:
        return StepCount(recipe, n, timer.max_steps)
    assert timer.max_seconds is not None
    return Clock(recipe, n, timer.max_seconds)


class StepCount(Pacer):
    """The pace of a run of this many steps, of which a search counts the first 2**31 - 1 only."""

    def __init__(self, recipe: Recipe, n: int, max_steps: int):
        self._recipe, self._n, self._max_steps = recipe, n, min(max_steps, MAX_INT32)
        super().__init__(self._pace_at(0))

    def _round(self, step: int) -> tuple[int, int, int]:
        """Returns the steps at which the round of a step begins, has cooled, and ends."""
        first = self._recipe.first_round * self._n
        begin, end = map(int, round_at(first, self._max_steps, step))
        return begin, begin + math.ceil(self._recipe.cooled * (end - begin)), end

    def _pace_at(self, step: int) -> Pace:
        (begin, cooled_at, end), recipe = self._round(step), self._recipe
        if step < cooled_at or recipe.cooled == 1:
            per_step = 1 / max(recipe.cooled * (end - begin), 1)
            if 0 < step == begin and recipe.recombines:
                return Pace(begin, 0.0, per_step, 1, alike=0.0)
            return Pace(begin, 0.0, per_step, recipe.cooling_every)
        if recipe.merges:
            return merging(recipe, self._n, cooled_at)
        every = _LOOKS * self._n if recipe.is_iterated else self._n
        return Pace(cooled_at, 1.0, 0.0, every, share_of((end - cooled_at) / every))

    def note(self, step: int, seconds: float) -> None:
        self.pace = self._pace_at(step)

    def steps_left(self, step: int) -> int | None:
        if self.pace.alike == 0:
            return 1
        _, *events = self._round(step)
        left = [event - step for event in events if step < event < self._max_steps]
        return min(left, default=None)


class Clock(Pacer):
    """Sets the pace after each chunk of steps so that the cooling ends when its time is over.

    The first chunk makes no step, and the ones after it tell how long the first round is. Once
    searches have cooled, what chunks take longer than their steps did before is taken for
    recombinations.

    Attributes:
      began, begins: seconds at the first step, and at the first of the round.
      first: how many seconds the first round takes; 0 before that is known.
      cooled_by: seconds after which the searches have cooled.
      ends: seconds at which the round ends.
      step, seconds: at the end of the last chunk; step -1 before the first.
      seconds_per_step: without recombinations.
      since: steps since the last recombination.
      num_recombinations, recombining_seconds: in this round.
    """

    def __init__(self, recipe: Recipe, n: int, max_seconds: float):
        super().__init__(Pace(0, 0.0, 0.0, recipe.cooling_every))
        self._recipe, self._n, self._max_seconds = recipe, n, max_seconds
        self.began = self.begins = self.first = self.cooled_by = self.ends = 0.0
        self.step, self.seconds, self.seconds_per_step = -1, 0.0, 0.0
        self.since = self.num_recombinations = 0
        self.recombining_seconds = 0.0

    def note(self, step: int, seconds: float) -> None:
        is_first, made, took = self.step < 0, step - self.step, seconds - self.seconds
        self.step, self.seconds = step, seconds
        if is_first:
            self.began = seconds
            self._begin_round(seconds)
            return
        if made == 0:
            return
        if self._is_first_of_rounds() and self.pace.done < 1:
            self.first = self._recipe.first_round * self._n * took / made
            self._begin_round(self.began)
        elif self.ends <= seconds < self._max_seconds:
            self._restart()
            return
        if self._is_merging():
            if step > MAX_INT32:
                self._reheat_on_host(step, made)
            return
        done, per_step = self._cooling(made, took)
        every, share, recipe = self._recipe.cooling_every, self.pace.share, self._recipe
        if recipe.merges and done == 1:
            self.pace = merging(recipe, self._n, min(step, MAX_INT32))
            return
        if recipe.recombines:
            self._count_recombinations(made, took)
        if recipe.recombines and done == 1 and self.seconds_per_step > 0:
            every, share = self._recombining()
        else:
            self.seconds_per_step = took / made
        self.pace = Pace(min(step, MAX_INT32), done, per_step, every, share)

    def _is_merging(self) -> bool:
        return self._recipe.merges and self.pace.every < _NEVER

    def _reheat_on_host(self, step: int, made: int) -> None:
        """Continues to reheat where schedules count no further, a temperature for each chunk."""
        pace = self.pace
        whole, passed = 1 - self._recipe.reheated, pace.done - self._recipe.reheated
        if pace.step < MAX_INT32:  # the first time, the schedule counted up to here
            passed, made = 0.0, step - pace.step
        done = self._recipe.reheated + (passed + made * pace.per_step) % whole
        self.pace = pace._replace(step=MAX_INT32, done=done)

    def _is_first_of_rounds(self) -> bool:
        """Returns whether this is the first of several rounds, also before its end is known."""
        has_rounds = self._recipe.first_round > 0
        return has_rounds and (self.first == 0 or self.seconds < self.began + self.first)

    def _begin_round(self, seconds: float) -> None:
        """Takes note of when the round that begins here ends, and by when searches cool."""
        limit = self._max_seconds - self.began
        _, end = round_at(self.first, limit, seconds - self.began)
        self.begins = seconds
        self.ends = self.began + end if end < limit else self._max_seconds
        self.cooled_by = seconds + _SAFETY * self._recipe.cooled * max(self.ends - seconds, 0.0)

    def _restart(self) -> None:
        """Begins a further round, hot; searches that recombine restart after its first step."""
        self._begin_round(self.seconds)
        self.since, self.num_recombinations, self.recombining_seconds = 0, 0, 0.0
        per_step = self.seconds_per_step / (self.cooled_by - self.seconds)
        self.pace = Pace(min(self.step, MAX_INT32), 0.0, per_step, self._recipe.cooling_every)
        if self._recipe.recombines:
            self.pace = self.pace._replace(every=1, alike=0.0)

    def _cooling(self, made: int, took: float) -> tuple[float, float]:
        """Returns the share of the cooling that is done, and the share of each further step."""
        done = min(1.0, self.pace.done + made * self.pace.per_step)
        left = max(self.cooled_by - self.seconds, 0.0)
        if self._recipe.cooled == 1 and left > 0:  # first chunks may be slower than later ones
            done = min(done, 1 - left / (self.cooled_by - self.begins))
        return done, (1 - done) / max(made / took * left, 1.0)

    def _count_recombinations(self, made: int, took: float) -> None:
        """Takes note of the recombinations of a chunk: one after each `every` steps."""
        every = self.pace.every
        first = max(every - self.since, 1)
        self.since += made
        if first <= made:
            num_more, self.since = divmod(made - first, every)
            self.num_recombinations += num_more + 1
        if every < _NEVER:
            self.recombining_seconds += max(took - made * self.seconds_per_step, 0.0)

    def _recombining(self) -> tuple[int, float]:
        """Returns the steps between recombinations, by what they cost, and their `share`."""
        part = self._recipe.recombining
        every, cost = 1, 0.0  # the first one, by itself, tells what they cost
        if self.num_recombinations:
            cost = self.recombining_seconds / self.num_recombinations
            every = int(min(max(cost / self.seconds_per_step * (1 - part) / part, 1), MAX_INT32))
        generation = every * self.seconds_per_step + cost
        return every, share_of((self.ends - self.seconds) / generation)

    def steps_left(self, step: int) -> int | None:
        """Returns the steps to the next event of a round that others follow: else time tells.

        They are 1 to restart and for the first recombination.
        """
        recipe = self._recipe
        is_first = recipe.recombines and self.pace.done == 1 and not self.num_recombinations
        if is_first or self.pace.alike == 0:
            return 1
        if self._is_first_of_rounds():
            return max(recipe.first_round * self._n // _CHUNKS_OF_A_ROUND, 1)
        if self._is_merging() and step > MAX_INT32:
            return max(self.pace.every // _CHUNKS_OF_A_REHEATING, 1)
        if self.ends >= self._max_seconds:
            return None
        event = self.cooled_by if self.pace.done < 1 and not self._is_merging() else self.ends
        return max(int((event - self.seconds) / self.seconds_per_step), 1)

    def notes(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def recall(self, notes: dict[str, Any]) -> None:
        for name in self.notes():
            setattr(self, name, notes[name])
        self.pace = Pace(*notes["pace"])


def chosen(recipe: Recipe, num_searches: Any, devices: Sequence[jax.Device] = ()) -> Recipe:
    """Returns the recipe with the user's number of searches; else with as many as suit devices.

    Args:
      devices: none for the searches of one instance of several.
    """
    if num_searches is not None:
        return recipe._replace(num_searches=check_count("num_searches", num_searches))
    if devices:
        each = for_device(recipe.num_searches, devices[0])
        recipe = recipe._replace(num_searches=len(devices) * each)
    return recipe


def completed(options: dict[str, Any], on_cpu: int, on_gpu: int) -> dict[str, Any]:
    """Returns options of `solve` with the usual limit, devices, and number of searches on each."""
    options = {"devices": "all"} | options
    if options.get("max_seconds") is options.get("max_steps") is None:
        options["max_seconds"] = DEFAULT_SECONDS
    if options.get("num_searches") is None:
        devices = find_devices(options["devices"])
        each = for_device(on_cpu if is_cpu(devices[0]) else on_gpu, devices[0])
        options["num_searches"] = len(devices) * each
    return options


def starts_with(problem: Any, initial: Any, built: FirstStarts, num_searches: int) -> FirstStarts:
    """Returns start solutions: a constructed one, the user's, and the other constructed ones.

    Args:
      problem: as it was given.
      initial: [n] or [B, n], fewer than there are searches; None for none.
      built: the constructed ones, [C, n].
    """
    if initial is None:
        return built
    own = np.atleast_2d(plain_array(initial, "initial"))
    if num_searches > 1:
        check_count("the number of solutions in initial", len(own), 0, num_searches - 1)
    names = [f"initial[{number}]" if len(own) > 1 else "initial" for number in range(len(own))]
    own = np.stack(list(map(problem.host.check, own, names)))
    if num_searches == 1:
        return FirstStarts(own)

    first, *others = built.solutions
    return FirstStarts(np.array([first, *own, *others]))


def refuse_for_several(target: Any, **options: Any) -> None:
    """Refuses options, by name, that several instances at once do not have."""
    options |= {"target": None if target == "optimum" else target}
    for name, value in options.items():
        if value is not None:
            shown = repr(value) if isinstance(value, int | float | str) else "given"
            raise ValueError(f"{name} is {shown}, expected None for several instances at once")


def plan_annealing(
    problem: Any,
    recipe: Recipe,
    ingredients: Ingredients,
    options: RunOptions,
    key: Any,
    initial: Any,
    target: Any,
) -> Run:
    """Returns the run that cools by a recipe from the hottest temperature to the coldest."""
    variables = jax.tree.leaves(solution_shape(problem))
    n = int(problem.n) if recipe.recombines else sum(leaf.size for leaf in variables)
    pacer = pacer_of(recipe, n, options.timer)
    search, exchange = ingredients.at_pace(recipe, pacer.pace)
    is_native = search.is_portable(problem) and not recipe.recombines  # and of few searches
    is_fast = is_native or runs_kernels(options.devices[0])
    steering = Steering(recipe, ingredients, pacer, options.callback)
    return Run(
        dataclasses.replace(options, callback=steering),
        problem,
        search,
        key,
        num_searches=recipe.num_searches,
        exchange=exchange,
        initial=initial,
        target=target,
        check_every=None if search.check_every or not is_fast else _CHECK_EVERY,
    )


class Steering(NamedTuple):
    """Keeps the pace of an annealing: a callback of `solve`, which asks the user's own."""

    recipe: Recipe
    ingredients: Ingredients
    pacer: Pacer
    callback: Callable[[Report], Any] | None

    def __call__(self, report: Report) -> Steer | bool:
        if self.callback is not None and is_true(self.callback(report)):
            return True
        self.pacer.note(report.step, report.seconds)
        left = self.pacer.steps_left(report.step)
        return Steer(*self.ingredients.at_pace(self.recipe, self.pacer.pace), ask_after=left)

    def notes(self) -> dict[str, Any]:
        """Returns the pace, and the notes of the user's callback."""
        own = getattr(self.callback, "notes", lambda: None)()
        return {"pace": self.pacer.notes(), "callback": own}

    def recall(self, notes: dict[str, Any]) -> None:
        """Continues at the pace of a checkpoint."""
        with checkpoints.notes_read():
            self.pacer.recall(notes["pace"])
        recall = getattr(self.callback, "recall", None)
        if recall is not None and notes["callback"] is not None:
            recall(notes["callback"])
