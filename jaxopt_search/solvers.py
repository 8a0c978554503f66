"""One call from data to a good solution, with settings chosen from the instance."""

import functools
from typing import Any, Literal, TypeAlias

import jax

from jaxopt_search import capacity, parallel
from jaxopt_search.checks import MAX_STEPS, check_count, check_number, check_option
from jaxopt_search.cooling import Clock, Recipe, StepCount, search_and_exchange
from jaxopt_search.datasets.instances import TSPInstance
from jaxopt_search.driver import Snapshot, Steer, solve
from jaxopt_search.driver_input import refuse_tracers
from jaxopt_search.eax import edge_assembly
from jaxopt_search.exchange import recombine
from jaxopt_search.interrupts import held_back
from jaxopt_search.neighborhoods import DeltaSwap, Relocate, SwapTable, two_opt
from jaxopt_search.problems import scales
from jaxopt_search.problems.curves import curve_tours
from jaxopt_search.problems.matrix_input import DType, quick_shape
from jaxopt_search.problems.qap import QAP
from jaxopt_search.problems.qap_input import as_qap
from jaxopt_search.problems.tsp import TSP
from jaxopt_search.problems.tsp_input import as_tsp, stack_of_coords
from jaxopt_search.searches import tabu_search
from jaxopt_search.stacked import solve_stacked
from jaxopt_search.types import Crossover, Result

Method: TypeAlias = Literal["auto", "annealing", "tabu"]

_DEFAULT_SECONDS = 10.0

_SYMMETRIC_TSP_ON_CPU = Recipe(
    hottest=0.5,
    coldest=0.03,
    num_searches=128,
    moves_per_search=8,
    num_candidates=12,
    cooled=0.5,
    starts="curves",
)
_SYMMETRIC_TSP = Recipe(
    hottest=2.5,
    coldest=0.04,
    num_searches=2112,
    moves_per_search=32,
    choose="first",
    num_candidates=16,
    cooled=0.3,
    check_every=1000,
)
# Tours should fit into the cache of the GPU; a program per multiprocessor is the least.
_CITIES_OF_ALL, _LEAST_SEARCHES = 2_200_000, 132
# On a CPU, searches times squared cities that can be cooled within about ten seconds.
_COOLED_ON_CPU, _LEAST_SEARCHES_ON_CPU = 2e8, 16
_STACKED_TSP_ON_CPU = _SYMMETRIC_TSP_ON_CPU._replace(num_searches=16, num_candidates=8)
_STACKED_TSP = _SYMMETRIC_TSP._replace(num_searches=32, num_candidates=10)
_ASYMMETRIC_TSP_ON_CPU = Recipe(hottest=4.0, coldest=0.1, num_searches=16, moves_per_search=12)
_ASYMMETRIC_TSP = _ASYMMETRIC_TSP_ON_CPU._replace(num_searches=1024, check_every=1000)
_QAP = Recipe(hottest=0.5, coldest=0.01, num_searches=2112, moves_per_search=8, check_every=1000)
_QAP_ON_CPU = Recipe(hottest=0.3, coldest=0.03, num_searches=4, moves_per_search=32, choose="first")
_TABU, _TABU_ON_CPU = 528, 8  # searches per device
_TABU_CHECK_EVERY, _TABU_CHECK_EVERY_ON_CPU = 100, 25
# Facilities from which tabu search, whose steps take O(n * n), falls behind annealing on a CPU.
_MANY = 120


def tsp_recipe(is_symmetric: bool, platform: str, n: int) -> Recipe:
    """Returns how `solve_tsp` anneals n cities on a device of this platform."""
    is_on_cpu = platform == "cpu"
    if not is_symmetric:
        return _ASYMMETRIC_TSP_ON_CPU if is_on_cpu else _ASYMMETRIC_TSP
    if is_on_cpu:
        recipe, least = _SYMMETRIC_TSP_ON_CPU, _LEAST_SEARCHES_ON_CPU
        most = _COOLED_ON_CPU / n**2
    else:
        recipe, least, most = _SYMMETRIC_TSP, _LEAST_SEARCHES, _CITIES_OF_ALL / n
    num_searches = recipe.num_searches
    while num_searches > least and num_searches > most:
        num_searches //= 2
    return recipe._replace(num_searches=num_searches)


def solve_tsp(
    data: Any,
    key: Any = 0,
    *,
    metric: str | None = None,
    dtype: DType | None = None,
    max_seconds: float | None = None,
    max_steps: int | None = None,
    target: float | Literal["optimum"] | None = "optimum",
    num_searches: int | None = None,
    moves_per_search: int | None = None,
    devices: parallel.Devices = "all",
    show_progress: bool = False,
) -> Result | Any:
    """Returns a short tour: many are annealed by 2-opt and Or-opt, and then recombined.

    Each search cools by itself for the first part of the run, from a random tour, or on CPUs from
    one along a space-filling curve (`curve_tours`). From then on it goes on, again and again, from
    a child of its best tour and another one's, by edge assembly (`edge_assembly`), and anneals at
    the lowest temperature in between. The longer the run still is, the less a child takes of the
    other tour.

    Temperatures follow from the instance. With `max_seconds` only, cooling keeps pace with the
    clock, so the result depends on the speed of the machine; with `max_steps`, it does not. An
    asymmetric instance is annealed by relocations, as the searches are resampled (`resample`).

    Args:
      data: [n, 2] coordinates, an [n, n] matrix of distances, a `TSPInstance` as read by
        `datasets`, or a `TSP`. Or [B, n, 2] coordinates of B instances, to be solved at once.
        A [2, 2] array is two cities by their coordinates.
      key: an integer seed or a `jax.random.key`.
      metric: the rule by which coordinates give distances, as in `tsp_from_coords`; None for the
        Euclidean one, which is the only one for several instances. `"MATRIX"` says that `data` is
        a matrix, also if it is [2, 2].
      dtype: as in `tsp`, for a matrix only.
      max_seconds: seconds of search, as in `solve`: what is compiled before comes on top; 10 if no
        limit is given.
      max_steps: steps of each search.
      target: end once a tour is at most this long; by default, once it is as short as the optimum
        of an instance for which that is proven. None to go on to the limit.
      num_searches: searches side by side, of B instances for each; None for a number that suits the
        devices.
      moves_per_search: moves priced per search and step; None for the number that was measured to
        serve best.
      devices: as in `solve`; by default all.
      show_progress: whether to write lines on standard error.

    Returns:
      A `Result`; of B instances a `StackedResult`.

    Raises:
      ValueError, TypeError: as `tsp`, `tsp_from_coords` and `solve`.

    Example:
      >>> import jaxopt_search as js
      >>> corners = [[0, 0], [2, 2], [0, 2], [2, 0], [1, 3]]
      >>> round(js.solve_tsp(corners, max_steps=500).fun, 3)
      8.828
    """
    refuse_tracers(key, data if isinstance(data, TSP | jax.Array) else None, caller="solve_tsp")
    found = parallel.find_devices(devices)
    if not isinstance(data, TSP | TSPInstance) and len(quick_shape(data)) == 3:
        if metric not in (None, "EUCLID") or dtype is not None:
            raise ValueError(
                f"metric is {metric!r} and dtype is {dtype!r}, expected 'EUCLID' or None, and None,"
                " for several instances at once"
            )
        if target not in (None, "optimum"):
            raise ValueError(f"target is {target!r}, expected None for several instances at once")
        recipe = _STACKED_TSP_ON_CPU if found[0].platform == "cpu" else _STACKED_TSP
        recipe = _chosen(recipe, num_searches, moves_per_search)
        with capacity.memory_errors_explained(recipe.num_searches):
            return solve_stacked(
                stack_of_coords(data),
                key,
                recipe,
                max_seconds=_DEFAULT_SECONDS if max_seconds is max_steps is None else max_seconds,
                max_steps=max_steps,
                devices=found,
                show_progress=show_progress,
            )
    problem = as_tsp(data, metric, dtype)
    recipe = _for_all(tsp_recipe(problem.is_symmetric, found[0].platform, problem.n), found)
    recipe = _chosen(recipe, num_searches, moves_per_search)
    near, crossover, initial = float(scales.near_distance(problem)), None, None
    if problem.is_symmetric:
        neighborhood = two_opt(
            problem,
            num_candidates=recipe.num_candidates,
            candidates="nearest" if problem.host.coords is None else "quadrant",
        )
        hottest = recipe.hottest * (float(scales.tree_edge(problem)) or near)
        crossover = edge_assembly(problem)
        if recipe.starts == "curves" and problem.host.coords is not None:
            num_searches = recipe.num_searches
            capacity.check_tours(problem.n, num_searches, num_searches, found[:1])
            with held_back(), capacity.memory_errors_explained(num_searches):
                initial = jax.block_until_ready(curve_tours(problem, key, num_searches))
    else:
        neighborhood, hottest = Relocate(), recipe.hottest * near
    return _anneal(
        problem,
        recipe,
        neighborhood,
        (hottest, recipe.coldest * near),
        key,
        max_seconds=max_seconds,
        max_steps=max_steps,
        crossover=crossover,
        initial=initial,
        target=target,
        devices=found,
        show_progress=show_progress,
    )


def solve_qap(
    flow: Any,
    distance: Any = None,
    key: Any = 0,
    *,
    partial_match: Any = None,
    method: Method = "auto",
    max_seconds: float | None = None,
    max_steps: int | None = None,
    target: float | Literal["optimum"] | None = "optimum",
    num_searches: int | None = None,
    moves_per_search: int | None = None,
    devices: parallel.Devices = "all",
    show_progress: bool = False,
) -> Result:
    """Returns a good assignment, by memetic tabu search or by population annealing of swaps.

    Memetic: robust tabu searches that go on, again and again, from children of their best
    assignments (`recombine`).

    The sum of `flow[i, j] * distance[p[i], p[j]]` over all i and j is minimized, as by SciPy's
    `quadratic_assignment`.

    Args:
      flow: [n, n] from facility to facility; or a `QAPInstance` as read by `datasets`, or a `QAP`,
        without `distance`.
      distance: [n, n] from location to location.
      partial_match: [k, 2] integers, facilities and the locations where they have to be; as SciPy's
        option of that name.
      method: `"tabu"`, `"annealing"`, which cools once over the run, or `"auto"`: the one that was
        measured to serve better, annealing for many facilities on a CPU and tabu search else.
      moves_per_search: priced per step of annealing. Tabu search always prices all swaps.

    The other arguments are those of `solve_tsp`.

    Raises:
      ValueError, TypeError: as `qap` and `solve`.

    Example:
      >>> import jaxopt_search as js
      >>> flow, distance = [[0, 5, 2], [5, 0, 3], [2, 3, 0]], [[0, 8, 15], [8, 0, 13], [15, 13, 0]]
      >>> js.solve_qap(flow, distance, max_steps=50).fun
      218
    """
    check_option("method", method, ("auto", "annealing", "tabu"))
    arrays = [one for one in (flow, distance) if isinstance(one, QAP | jax.Array)]
    refuse_tracers(key, arrays, caller="solve_qap")
    problem, found = as_qap(flow, distance, partial_match), parallel.find_devices(devices)
    is_on_cpu = found[0].platform == "cpu"
    if max_seconds is None and max_steps is None:
        max_seconds = _DEFAULT_SECONDS
    options = {"target": target, "devices": found, "show_progress": show_progress}
    recipe = _for_all(_QAP_ON_CPU if is_on_cpu else _QAP, found)
    recipe = _chosen(recipe, num_searches, moves_per_search)
    if method == "tabu" or (method == "auto" and not (is_on_cpu and problem.n >= _MANY)):
        # Four or two for each multiprocessor of an H200, as registers allow for the warps of each.
        per_device = _TABU_ON_CPU if is_on_cpu else _TABU if problem.n <= 64 else _TABU // 2
        return solve(
            problem,
            tabu_search(SwapTable()),
            key,
            num_searches=len(found) * per_device if num_searches is None else num_searches,
            max_seconds=max_seconds,
            max_steps=max_steps,
            exchange=recombine(every=problem.n * (2 if is_on_cpu else 5)),
            check_every=_TABU_CHECK_EVERY_ON_CPU if is_on_cpu else _TABU_CHECK_EVERY,
            **options,
        )
    unit = scales.swap_change(problem)
    return _anneal(
        problem,
        recipe,
        SwapTable() if is_on_cpu else DeltaSwap(),
        (recipe.hottest * unit, recipe.coldest * unit),
        key,
        max_seconds=max_seconds,
        max_steps=max_steps,
        **options,
    )


def _for_all(recipe: Recipe, devices: tuple[jax.Device, ...]) -> Recipe:
    return recipe._replace(num_searches=len(devices) * recipe.num_searches)


def _chosen(recipe: Recipe, num_searches: int | None, moves_per_search: int | None) -> Recipe:
    """Returns the recipe with what the user sets."""
    wishes = {"num_searches": num_searches, "moves_per_search": moves_per_search}
    given = {name: value for name, value in wishes.items() if value is not None}
    return recipe._replace(**{name: check_count(name, value) for name, value in given.items()})


def _anneal(
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
        max_seconds = _DEFAULT_SECONDS if max_seconds is None else max_seconds
        timer = Clock(recipe, check_number("max_seconds", max_seconds, 0))
    else:
        timer = StepCount(recipe, problem.n, check_count("max_steps", max_steps, 0, MAX_STEPS))
    at_pace = functools.partial(search_and_exchange, recipe, neighborhood, crossover, temperatures)

    def steer(snapshot: Snapshot) -> Steer | None:
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
