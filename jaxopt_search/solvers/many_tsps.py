"""Many TSPs at once, of any sizes: each is annealed by searches that recombine."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search.backends import random
from jaxopt_search.crossovers.edge_assembly import EdgeAssembly
from jaxopt_search.driver.options import RunOptions
from jaxopt_search.engine import memory
from jaxopt_search.exchanges.rules import Recombine, Resample
from jaxopt_search.neighborhoods.two_opt import from_candidates
from jaxopt_search.problems import padding
from jaxopt_search.problems.bounds import tour_unit
from jaxopt_search.problems.tsp import candidates, traced
from jaxopt_search.problems.tsp.build import diameters, drawn_near, middle
from jaxopt_search.problems.tsp.curves import tours_through
from jaxopt_search.problems.tsp.problem import TSP
from jaxopt_search.searches import SimulatedAnnealing
from jaxopt_search.solvers import scales
from jaxopt_search.solvers.cooling import Pace, Recipe, pacer_of, search_and_exchange
from jaxopt_search.solvers.stacked import Stack

_TRIVIAL = 3  # cities, of which all tours have the same length


def stack_of_tours(points: list[np.ndarray], recipe: Recipe, options: RunOptions) -> Stack:
    """Returns B instances, of each of which searches of its own find a short tour.

    They are searched for tours of places: cities at the same place follow one another.

    Args:
      points: of each instance, [n, 2] float64, checked; Euclidean distances.
      recipe: of the annealing.
    """
    first, place = zip(*map(candidates.places, points), strict=True)
    places = [each[rows] for each, rows in zip(points, first, strict=True)]
    near, left_out = zip(*map(drawn_near, places), strict=True)
    sizes, timer = list(map(len, places)), options.timer
    most = max(sizes)
    if most <= _TRIVIAL:
        timer.max_steps = 0
    num_tours, room = len(points) * recipe.num_searches, padding.capacity_for(most)
    memory.check_tours(room, num_tours, recipe.num_searches, options.devices)
    units = np.array([tour_unit(len(each), diameters(each).item()) for each in near], float)
    return Stack(
        kind=_Tours(recipe, room),
        instances=_instances(near, units, room),
        sizes=list(map(len, points)),
        own=lambda i, tour: _through_cities(tour[: sizes[i]], place[i]),
        in_full=lambda lengths: lengths * units + np.array(left_out),
        cost=lambda i, tour: _length(points[i], tour),
        pacer=pacer_of(recipe, most, timer.max_steps, timer.max_seconds),
        moves_per_step=len(points) * recipe.moves_per_search,
        is_trivial=most <= _TRIVIAL,
    )


def _through_cities(tour: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Returns the tour of cities, [n] int32, that passes their places as one of places, [p], does.

    Args:
      place: [n] of each city.
    """
    return np.argsort(np.argsort(tour)[place], kind="stable").astype(np.int32)


class _Instance(NamedTuple):
    """Coordinates as the devices get them.

    Attributes:
      points: [capacity, 2] float32; behind the cities stands the first one again.
      num_cities: [] int32.
    """

    points: Any
    num_cities: Any


class _Parts(NamedTuple):
    """What an annealing is made of.

    Attributes:
      candidates: [capacity, K] int32, see `traced.neighbors`.
      hottest: [] float32 the first temperature.
      coldest: [] float32 the last one.
    """

    candidates: jax.Array
    hottest: jax.Array
    coldest: jax.Array


class _Tours(NamedTuple):
    """Tours of up to `capacity` cities, by a recipe: a `stacked.Kind`."""

    recipe: Recipe
    capacity: int

    @property
    def num_searches(self) -> int:
        return self.recipe.num_searches

    @property
    def numbers_each(self) -> int:
        return self.capacity**2

    def parts(self, instance: _Instance) -> tuple[TSP, _Parts]:
        problem = traced.of_points(instance.points, instance.num_cities)
        scale, tree = scales.near_distance(problem), scales.tree_edge(problem)
        hottest = self.recipe.hottest * jnp.where(tree > 0, tree, scale)
        near = traced.neighbors(problem, self.recipe.num_candidates, "spread")
        return problem, _Parts(near, hottest, self.recipe.coldest * scale)

    def starts(self, key: random.Key, problem: TSP, instance: _Instance) -> jax.Array | None:
        if self.recipe.starts == "random":
            return None
        return tours_through(instance.points, key, self.num_searches, instance.num_cities)

    def search_and_exchange(
        self, problem: TSP, parts: _Parts, pace: Pace
    ) -> tuple[SimulatedAnnealing, Recombine | Resample]:
        return search_and_exchange(
            self.recipe,
            from_candidates(parts.candidates, problem.n),
            EdgeAssembly(candidates=parts.candidates),
            (parts.hottest, parts.coldest),
            pace,
        )


def _instances(points: Sequence[np.ndarray], units: np.ndarray, room: int) -> _Instance:
    def place(each: np.ndarray, unit: float) -> np.ndarray:
        own = each / unit
        own = (own - middle(own)).astype(np.float32)
        return np.concatenate([own, np.repeat(own[:1], room - len(own), axis=0)])

    places = np.stack(list(map(place, points, units.tolist())))
    return _Instance(places, np.array(list(map(len, points)), np.int32))


def _length(points: np.ndarray, tour: np.ndarray) -> float:
    placed = points[tour]
    return np.hypot(*(placed - np.roll(placed, -1, axis=0)).T).sum().item()
