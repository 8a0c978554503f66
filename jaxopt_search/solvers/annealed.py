"""What the one-call solvers share: a recipe for annealing, kept at the pace of the run."""

import functools
from typing import Any

import jax

from jaxopt_search.checks import MAX_STEPS, check_count, check_number
from jaxopt_search.driver.run import Report, Steer, solve
from jaxopt_search.solvers.cooling import Clock, Recipe, StepCount, search_and_exchange
from jaxopt_search.types import Crossover, Result

DEFAULT_SECONDS = 10.0


def for_all(recipe: Recipe, devices: tuple[jax.Device, ...]) -> Recipe:
    return recipe._replace(num_searches=len(devices) * recipe.num_searches)


def chosen(recipe: Recipe, num_searches: int | None, moves_per_search: int | None) -> Recipe:
    """Returns the recipe with what the user sets."""
    wishes = {"num_searches": num_searches, "moves_per_search": moves_per_search}
    given = {name: value for name, value in wishes.items() if value is not None}
    return recipe._replace(**{name: check_count(name, value) for name, value in given.items()})


def anneal(
    problem: Any,
    recipe: Recipe,
    neighborhood: Any,
    temperatures: tuple[float, float],
    key: Any,
    *,
    max_seconds: float | None,
    max_steps: int | None,
    crossover: Crossover | None = None,
    **options: Any,
) -> Result:
    """Returns the result of a recipe, cooled from the first of `temperatures` to the second.

    Args:
      crossover: as in `search_and_exchange`.
    """
    if max_steps is None:
        max_seconds = DEFAULT_SECONDS if max_seconds is None else max_seconds
        timer = Clock(recipe, check_number("max_seconds", max_seconds, 0))
    else:
        timer = StepCount(recipe, problem.n, check_count("max_steps", max_steps, 0, MAX_STEPS))
    at_pace = functools.partial(search_and_exchange, recipe, neighborhood, crossover, temperatures)

    def steer(snapshot: Report) -> Steer | None:
        changes, left = timer.note(snapshot.step, snapshot.seconds), timer.steps_left(snapshot.step)
        if not changes and left is None:
            return None
        return Steer(*at_pace(timer.pace), ask_after=left)

    search, exchange = at_pace(timer.pace)
    return solve(
        problem,
        search,
        key,
        num_searches=recipe.num_searches,
        max_seconds=max_seconds,
        max_steps=max_steps,
        exchange=exchange,
        callback=steer,
        check_every=recipe.check_every,
        **options,
    )
