"""What the one-call solvers share: a recipe for annealing, kept at the pace of the run."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxopt_search.checks import check_count, plain_array
from jaxopt_search.driver import checkpoints
from jaxopt_search.driver.chunks import is_true
from jaxopt_search.driver.options import RunOptions
from jaxopt_search.driver.plan import Plan, make_plan
from jaxopt_search.driver.results import Report
from jaxopt_search.driver.run import Steer
from jaxopt_search.driver.starts import LateStarts
from jaxopt_search.solvers.cooling import Pace, Pacer, Recipe, pacer_of, search_and_exchange
from jaxopt_search.types import Crossover, Exchange, Neighborhood, Search


def for_all(recipe: Recipe, devices: tuple[jax.Device, ...]) -> Recipe:
    """Returns a recipe for several devices from one for each."""
    return recipe._replace(num_searches=len(devices) * recipe.num_searches)


def chosen(recipe: Recipe, num_searches: int | None, moves_per_search: int | None) -> Recipe:
    """Returns the recipe with what the user sets."""
    wishes = {"num_searches": num_searches, "moves_per_search": moves_per_search}
    given = {name: value for name, value in wishes.items() if value is not None}
    return recipe._replace(**{name: check_count(name, value) for name, value in given.items()})


def starts_with(problem: Any, initial: Any, built: LateStarts, num_searches: int) -> LateStarts:
    """Returns start solutions: a constructed one, those of the user's, the other constructed ones.

    Args:
      problem: as it was given.
      initial: [n] or [B, n], fewer than there are searches; None for none.
      built: the constructed ones, [C, n].
    """
    if initial is None:
        return built
    own, n = np.atleast_2d(plain_array(initial, "initial")), int(problem.n)
    if own.ndim > 2 or own.shape[1] != n:
        raise ValueError(f"initial has shape {np.shape(initial)}, expected ({n},) or (B, {n})")
    if len(own) >= num_searches > 1:
        raise ValueError(
            f"initial holds {len(own)} solutions, expected fewer than the {num_searches} searches"
        )
    for number, solution in enumerate(own):
        problem.host.check(solution, f"initial[{number}]" if len(own) > 1 else "initial")
    if num_searches == 1:
        return LateStarts(1, lambda: own)

    def build() -> np.ndarray:
        first, *others = built.build()
        return np.array([first, *own, *others])

    return LateStarts(built.number + len(own), build)


def refuse_for_several(target: Any, **options: Any) -> None:
    """Refuses options, by name, that several instances at once do not have."""
    options |= {"target": None if target == "optimum" else target}
    for name, value in options.items():
        if value is not None:
            shown = repr(value) if isinstance(value, int | float | str) else "given"
            raise ValueError(f"{name} is {shown}, expected None for several instances at once")


class Ingredients(NamedTuple):
    """What an annealing is made of besides its recipe.

    Attributes:
      neighborhood: the moves.
      temperatures: the hottest and the coldest.
      crossover: as in `search_and_exchange`.
      exchange: in place of the recipe's; None for that.
    """

    neighborhood: Neighborhood
    temperatures: tuple[float, float]
    crossover: Crossover | None = None
    exchange: Exchange | None = None

    def at_pace(self, recipe: Recipe, pace: Pace) -> tuple[Search, Exchange]:
        """Returns the search of a recipe and what the searches exchange, at a pace."""
        neighborhood, temperatures, crossover, exchange = self
        search, own = search_and_exchange(recipe, neighborhood, crossover, temperatures, pace)
        return search, own if exchange is None else exchange

    def cold(self, recipe: Recipe) -> tuple[Recipe, "Ingredients"]:
        """Returns what a run that has cooled continues with; it recombines at once if it does."""
        coldest = self.temperatures[1]
        cooled = 0.0 if recipe.recombines else recipe.cooled
        return recipe._replace(cooled=cooled), self._replace(temperatures=(coldest, coldest))


def plan_annealing(
    problem: Any,
    recipe: Recipe,
    ingredients: Ingredients,
    options: RunOptions,
    key: Any,
    *,
    state: Any = None,
    **settings: Any,
) -> tuple[Plan, RunOptions]:
    """Returns the run that cools by a recipe from the hottest temperature to the coldest.

    Args:
      state: of a run to continue, at the coldest one.
      settings: those of `make_plan` that the recipe leaves open.
    """
    if state is not None:
        recipe, ingredients = ingredients.cold(recipe)
    n, timer = int(problem.n), options.timer
    limits = timer.max_steps, timer.max_seconds
    begun = recipe.begun(ingredients.temperatures, n, *limits)
    pacer = pacer_of(recipe, n, *limits, begun)
    at_pace = functools.partial(ingredients.at_pace, recipe)
    search, exchange = at_pace(pacer.pace)
    options = dataclasses.replace(options, callback=_Steering(at_pace, pacer, options.callback))
    plan = make_plan(
        options,
        problem,
        search,
        key,
        num_searches=recipe.num_searches,
        exchange=exchange,
        state=state,
        check_every=recipe.check_every,
        **settings,
    )
    return plan, options


class _Steering:
    """Keeps the pace of an annealing: a callback of `solve`, which asks the user's own."""

    def __init__(
        self,
        at_pace: Callable[[Pace], tuple[Search, Exchange]],
        pacer: Pacer,
        callback: Callable[[Report], Any] | None,
    ):
        self._at_pace, self._pacer, self._callback = at_pace, pacer, callback

    def __call__(self, report: Report) -> Steer | bool | None:
        if self._callback is not None and is_true(self._callback(report)):
            return True
        changes = self._pacer.note(report.step, report.seconds, report.acceptance)
        left = self._pacer.steps_left(report.step)
        if not changes and left is None:
            return None
        return Steer(*self._at_pace(self._pacer.pace), ask_after=left)

    def notes(self) -> dict[str, Any]:
        """Returns the pace, and what the user's callback wants to be kept."""
        own = getattr(self._callback, "notes", lambda: None)()
        return {"pace": self._pacer.notes(), "callback": own}

    def recall(self, notes: dict[str, Any]) -> None:
        """Continues at the pace of a checkpoint."""
        with checkpoints.notes_read():
            self._pacer.recall(notes["pace"])
        recall = getattr(self._callback, "recall", None)
        if recall is not None and notes["callback"] is not None:
            recall(notes["callback"])
