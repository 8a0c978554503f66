"""Population annealing that keeps pace with the clock: what the solvers run.

Hukushima, Iba, "Population annealing and its application to a spin glass", 2003; the searches are
resampled as they cool.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxopt_search.checks import MAX_INT32
from jaxopt_search.exchange import Resample
from jaxopt_search.schedules import Geometric
from jaxopt_search.searches import SimulatedAnnealing, simulated_annealing
from jaxopt_search.searches.annealing import Choose

_SAFETY = 0.98  # of the time limit, in which the temperature reaches its lowest


class Recipe(NamedTuple):
    """Settings of an annealing on one device.

    Temperatures are in units of the changes made there (`problems.scales`): for the symmetric TSP
    the hottest in units of `tree_edge` and the coldest of `near_distance`, which differ much where
    cities lie in clusters; for other TSPs both of the latter, and for the QAP of `swap_change`.
    """

    hottest: float
    coldest: float
    num_searches: int
    moves_per_search: int
    choose: Choose = "best"
    num_exchanges: int = 100
    num_candidates: int = 12
    focus: float = 0.0


class Pace(NamedTuple):
    """How a cooling goes on, numbers or arrays.

    Attributes:
      step: from this one on.
      done: the share of the cooling made by then, 0 to 1.
      per_step: the share that each further step makes.
    """

    step: Any
    done: Any
    per_step: Any


def cooling(hottest: Any, coldest: Any, pace: Pace) -> Geometric:
    """Returns the schedule from `hottest` down to `coldest`, at a pace; it never warms."""
    log2_range = jnp.minimum(jnp.log2(coldest / hottest), 0)
    return Geometric(
        start=jnp.float32(hottest) * jnp.exp2(log2_range * pace.done),
        log2_alpha=jnp.float32(log2_range * pace.per_step),
        steps_per_temperature=jnp.int32(1),
        first_step=jnp.int32(pace.step),
    )


def steps_between_exchanges(recipe: Recipe, pace: Pace) -> int:
    """Returns every how many steps the searches are resampled, so often as the recipe says."""
    period = 1 / (recipe.num_exchanges * pace.per_step) if pace.per_step > 0 else MAX_INT32
    return int(min(max(period, 1), MAX_INT32))


def search_and_exchange(
    recipe: Recipe, neighborhood: Any, schedule: Geometric, every: Any
) -> tuple[SimulatedAnnealing, Resample]:
    """Returns the annealing of a recipe, and its resampling `every` so many steps."""
    search = simulated_annealing(
        neighborhood,
        schedule,
        moves_per_search=recipe.moves_per_search,
        choose=recipe.choose,
    )
    return search, Resample(every=jnp.int32(every), schedule=schedule)


class Clock:
    """Sets the pace of a cooling after each chunk of steps, so that it ends with the time."""

    def __init__(self, max_seconds: float):
        self.seconds = _SAFETY * max_seconds
        self.last: tuple[int, float] | None = None
        self.done, self.per_step = 0.0, 0.0

    def pace(self, step: int, seconds: float) -> Pace | None:
        """Returns the pace from `step` on, `seconds` after the start; None to go on as before."""
        before, self.last = self.last, (step, seconds)
        if before is None or step == before[0]:
            return None
        made = step - before[0]
        self.done = min(1.0, self.done + made * self.per_step)
        rate = made / (seconds - before[1])
        left = max(self.seconds - seconds, 0.0)
        self.per_step = (1 - self.done) / max(rate * left, 1.0)
        return Pace(min(step, MAX_INT32), self.done, self.per_step)
