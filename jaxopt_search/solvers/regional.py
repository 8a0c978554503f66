"""Regional search: iterated local search in many regions of one large tour at once.

Each step cuts the tour anew (`problems.tsp.regions`), searches all regions side by side, and puts
the tour together again.
"""

import dataclasses
import math
from typing import Any, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.backends import Implementation, floats, random, runs_kernels
from jaxopt_search.backends.costs import cost_of
from jaxopt_search.backends.memory import Pairs, load_pair
from jaxopt_search.checks import check_count, check_option, check_suits, int32
from jaxopt_search.driver.options import RunOptions
from jaxopt_search.driver.run import Run
from jaxopt_search.driver.starts import FirstStarts
from jaxopt_search.engine import loop, starting, stepping
from jaxopt_search.engine.devices import AXIS, default_device, for_device, is_cpu
from jaxopt_search.engine.state import make_rules
from jaxopt_search.neighborhoods.three_opt import DoubleBridge
from jaxopt_search.neighborhoods.two_opt import KINDS, TwoOpt
from jaxopt_search.problems.host import ON_DEVICE
from jaxopt_search.problems.tsp import curves, regions, traced
from jaxopt_search.problems.tsp.problem import TSP, Ties
from jaxopt_search.pytrees import pytree, static
from jaxopt_search.searches import iterated_local_search
from jaxopt_search.searches.acceptance import Metropolis, metropolis
from jaxopt_search.searches.base import SolutionSearch
from jaxopt_search.searches.schedules import Schedule
from jaxopt_search.solvers.anneal import (
    Ingredients,
    Recipe,
    chosen,
    plan_annealing,
    starts_with,
)
from jaxopt_search.types import Info, Stream

RECIPE = Recipe(hottest=1.0, coldest=0.07, num_searches=1, resample_every=None)
"""Of `solve_tsp` for large instances, with temperatures as in `regional_search`."""
_LOOKS = 100
# Cities of a region: on a GPU the fewest, and the most that leave room for several in the shared
# memory of a multiprocessor; as many regions as run at once, between these. On a CPU, one size.
_FEWEST, _MOST, _REGIONS_AT_ONCE, _ON_CPU = 256, 1000, 1056, 256
_LEAST = 8
_NUM_CANDIDATES, _COUNTED = 5, 3
_TIE = 4  # times as long as the longest edge counts a tie
_MOST_WORTH = 2**30  # of all ties of a region
_AT_ONCE = 2**26  # distances in memory
_WARP = 32


class RegionalState(NamedTuple):
    """The state of a regional search: a tour, the best one, [n] int32, and their lengths, []."""

    solution: jax.Array
    cost: jax.Array
    best: jax.Array
    best_cost: jax.Array


class Part(NamedTuple):
    """A region, to be searched.

    Attributes:
      problem: its cities, with room for m.
      near: [m, K] int32 candidates of each.
      away: [] float32, the mean distance to the first of them.
    """

    problem: TSP
    near: jax.Array
    away: jax.Array


@pytree
@dataclasses.dataclass(frozen=True, kw_only=True)
class RegionalSearch(SolutionSearch):
    """Build it with `regional_search`.

    If `is_spread`, it is a single search, of which each of several devices has a copy, and searches
    regions of its own.
    """

    acceptance: Metropolis
    looks: jax.Array
    num_regions: int = static()
    is_spread: bool = static()
    implementation: Implementation = static()

    space = "permutation"
    check_every = 1

    def init(self, problem: TSP, solution: jax.Array) -> RegionalState:
        cost = cost_of(problem, solution)
        return RegionalState(solution, cost, solution, cost)

    def control(self, step: jax.Array) -> jax.Array:
        return self.acceptance.control(step)

    def step(
        self, stream: Stream, control: jax.Array, problem: TSP, state: RegionalState
    ) -> tuple[RegionalState, Info]:
        """Searches all regions of a tour that is cut at random, and puts it together."""
        key, tour = random.Key(*stream.words(jnp.uint32(0), 2)), state.solution
        if self._num_devices() > 1:  # all do what the first one does
            key, tour = jax.tree.map(lambda leaf: lax.all_gather(leaf, AXIS)[0], (key, tour))
        # Several tours one after the other: each of them keeps a device busy.
        improve = jax.custom_batching.sequential_vmap(self._improve)
        after = self.moved(problem, state, improve(key, control, problem, tour))
        return after, Info(accepted=(after.cost < state.cost).astype(jnp.int32))

    def _improve(
        self, key: random.Key, temperature: jax.Array, problem: TSP, tour: jax.Array
    ) -> jax.Array:
        """Returns the tour after a step."""
        n, points = tour.size, traced.points_of(problem)
        assert points is not None
        cells = curves.cells_of(points)
        laying, joining = (random.start_key(key, jnp.uint32(number)) for number in range(2))
        room = _room(-(-n // self.num_regions))
        along = curves.tour_through(cells, laying)
        cut = regions.cut(along, tour, self.num_regions, room)
        batch = min(max(_AT_ONCE // room**2, 1), self.num_regions)
        parts = lax.map(lambda one: part_of(problem, tour, one), cut, batch_size=batch)

        def search(region: tuple[jax.Array, Part]) -> jax.Array:
            number, part = region
            return self._search(random.instance_key(key, number), temperature, part)

        each = self._own((lax.iota(jnp.uint32, self.num_regions), parts))
        orders = jax.vmap(search)(each) if self.implementation == "cuda" else lax.map(search, each)
        orders = self._of_all(orders)
        neighbors = regions.neighbors_after(tour, cut, orders)
        return regions.tour_of(regions.joined(problem, cells, joining, neighbors))

    def _own(self, all_regions: Any) -> Any:
        """Returns the regions that this device searches, of leaves [R, ...]."""
        if (num_devices := self._num_devices()) == 1:
            return all_regions
        number = -(-self.num_regions // num_devices)
        own = lax.axis_index(AXIS) + num_devices * lax.iota(jnp.int32, number)
        own = jnp.minimum(own, self.num_regions - 1)
        return jax.tree.map(lambda leaf: leaf[own], all_regions)

    def _of_all(self, orders: jax.Array) -> jax.Array:
        """Returns the orders of all regions, [R, m], of those of each device."""
        if self._num_devices() == 1:
            return orders
        every = jnp.swapaxes(lax.all_gather(orders, AXIS), 0, 1)
        return every.reshape(-1, orders.shape[1])[: self.num_regions]

    def _num_devices(self) -> int:
        """Returns over how many devices the search is spread where it is traced."""
        try:
            return lax.psum(1, AXIS) if self.is_spread else 1
        except NameError:  # there is no such axis
            return 1

    def _search(self, key: random.Key, temperature: jax.Array, part: Part) -> jax.Array:
        """Returns the order, [m] int32, in which a region is passed after a search of it."""
        problem, near, away = part
        search = iterated_local_search(
            TwoOpt(candidates=near),
            DoubleBridge(),
            acceptance=metropolis(temperature * away),
        )
        order = lax.iota(jnp.int32, problem.capacity)[None]
        state = starting.fresh(key, problem, search, order, 1)
        rules, steps = make_rules(search, state.device_best.dtype), self.looks * problem.n
        state = loop.advance_by(
            problem, search, state, steps, rules, implementation=self.implementation
        )
        one = jax.tree.map(lambda leaf: leaf[0], state.searches)
        # Its local optimum, or what is better on the way to the next one.
        is_better = one.cost < one.home_cost
        return jnp.where(is_better, one.representation.city, one.home.city)

    def evaluations_per_step(self, problem: TSP) -> int:
        return int(self.looks) * problem.capacity * _NUM_CANDIDATES * KINDS

    def obstacle(self, problem: TSP) -> str:
        return "regional search starts kernels of its own, of its regions"

    def check(self, problem: TSP, max_steps: int | None) -> None:
        _check_suits(problem)
        if problem.num_entries is not None:
            raise ValueError("problem is padded, expected one without room for more cities")


def part_of(problem: TSP, tour: jax.Array, region: regions.Regions) -> Part:
    """Returns a region as an instance by itself.

    Args:
      tour: [n] int32, which was cut.
      region: a single one.
    """
    count, position, number = region
    assert problem.coords is not None
    x, y = load_pair(problem.coords, tour[position])
    part = TSP(
        coords=Pairs(x - x[0], y - y[0]),
        num_entries=count,
        capacity=number.size,
        metric=problem.metric,
        scale=problem.scale,
        is_symmetric=True,
        host=ON_DEVICE,
    )
    i = lax.iota(jnp.int32, number.size)
    ahead = jnp.where(i + 1 < count, i + 1, 0)
    is_free = (jnp.abs(number[ahead] - number) != 1) & (i < count)
    worth = _TIE * jnp.where(is_free, part.distance(i, ahead), 0).max()
    if jnp.issubdtype(worth.dtype, jnp.integer):
        worth = jnp.minimum(worth, _MOST_WORTH // number.size)
    near = traced.neighbors(part, _NUM_CANDIDATES, "spread")
    nearest = near[:, :_COUNTED]
    away = part.distance(jnp.broadcast_to(i[:, None], nearest.shape), nearest)
    away = jnp.where(i[:, None] < count, away, 0).astype(jnp.float32).ravel()
    mean = floats.total(away) / (_COUNTED * count).astype(jnp.float32)
    return Part(dataclasses.replace(part, ties=Ties(number, worth)), near, mean)


def regional_search(
    problem: TSP,
    temperature: float | jax.Array | Schedule = 0.1,
    *,
    looks: int = 50,
    num_regions: int | None = None,
    implementation: Implementation = "auto",
) -> RegionalSearch:
    """Returns a search that improves a large tour in many regions at once.

    A step cuts the plane, along a space-filling curve that is turned and shifted at random, into
    regions of equally many cities; each is searched by iterated local search with ties where the
    tour leaves it; and then the tour is put together again, which takes O(n log n). So tours of a
    million cities improve everywhere at once, in memory of O(n).

    A step does much, and one tour keeps a device busy: `num_searches` of `solve` is one for each.

    Args:
      problem: of distances by coordinates, without room for more cities; in a region they are
        counted in int32 or float32.
      temperature: at which the end of a descent passes, as in `metropolis`, in units of the mean
        distance to the nearest cities in each region; or a schedule over the steps.
      looks: steps of iterated local search for each city of a region.
      num_regions: None for as many as suit the default device.
      implementation: how regions are searched, as in `solve`, which has its own.

    Raises:
      ValueError: if the problem has a matrix or few cities, or a number is out of range.
      TypeError: as `simulated_annealing` for a temperature.

    Example:
      >>> import jaxopt_search as js
      >>> grid = js.datasets.grid_tsp(12, 12, spacing=10)
      >>> problem = js.tsp_from_instance(grid, storage="coordinates")
      >>> start, search = js.curve_tours(0, problem, 1), regional_search(problem, num_regions=4)
      >>> js.solve(problem, search, 0, num_searches=1, initial=start, max_steps=30).fun
      1440
    """
    check_suits("regional_search", "a TSP", problem, isinstance(problem, TSP))
    _check_suits(problem)
    check_option("implementation", implementation, get_args(Implementation))
    n, device = problem.capacity, default_device()
    number = regions_for(n, device) if num_regions is None else num_regions
    if implementation == "auto":
        implementation = _fastest(device)
    return RegionalSearch(
        acceptance=metropolis(temperature),
        looks=int32(check_count("looks", looks)),
        num_regions=check_count("num_regions", number, 1, n // _LEAST),
        is_spread=False,
        implementation=implementation,
    )


def _check_suits(problem: TSP) -> None:
    if problem.coords is None:
        raise ValueError("problem has a matrix, expected distances that follow from coordinates")
    if problem.capacity < _LEAST:
        raise ValueError(f"problem has {problem.capacity} cities, expected at least {_LEAST}")


def _fastest(device: jax.Device) -> Implementation:
    if is_cpu(device):
        return "native"
    return "xla" if not runs_kernels(device) or stepping.distrust(device) else "cuda"


def regions_for(n: int, device: jax.Device, num_devices: int = 1) -> int:
    """Returns how many regions of n cities suit devices like this one."""
    if is_cpu(device):
        return max(n // _ON_CPU, 1)
    at_once = num_devices * for_device(_REGIONS_AT_ONCE, device)
    return max(min(at_once, n // _FEWEST), -(-n // _MOST), 1)


def _room(size: int) -> int:
    """Returns room for the cities of a region and for those at the other ends of its edges."""
    return -(-(size + 2 * math.isqrt(size) + _LEAST) // _WARP) * _WARP


def plan_regional(
    problem: TSP, options: RunOptions, key: Any, num_searches: Any, initial: Any, target: Any
) -> Run:
    """Returns the run of `solve_tsp` for a large instance: regional search that cools."""
    device, num_devices = options.devices[0], len(options.devices)
    recipe = chosen(RECIPE, num_searches)
    search = regional_search(
        problem,
        looks=_LOOKS,
        num_regions=regions_for(problem.capacity, device, num_devices),
        implementation=_fastest(device),
    )
    search = dataclasses.replace(search, is_spread=recipe.num_searches == 1)
    num = recipe.num_searches
    built = FirstStarts(np.asarray(curves.curve_tours(key, problem, num)))
    initial = starts_with(problem, initial, built, num)
    ingredients = Ingredients(search, (recipe.hottest, recipe.coldest))
    return plan_annealing(problem, recipe, ingredients, options, key, initial, target)
