"""One call from coordinates or distances to a short tour: `solve_tsp`."""

import math
import os
from collections.abc import Callable
from typing import Any, Literal

import jax
import numpy as np

from jaxopt_search.backends import random, runs_kernels
from jaxopt_search.crossovers.edge_assembly import edge_assembly
from jaxopt_search.datasets.instances import TSPInstance
from jaxopt_search.driver import checkpoints
from jaxopt_search.driver.chunks import drive
from jaxopt_search.driver.options import DEFAULT_SECONDS, RunOptions, Timer, resolve
from jaxopt_search.driver.results import Report
from jaxopt_search.driver.starts import FirstStarts
from jaxopt_search.engine import memory
from jaxopt_search.engine.devices import (
    Devices,
    for_device,
    host_driver,
    is_cpu,
)
from jaxopt_search.neighborhoods.three_opt import ThreeOpt
from jaxopt_search.neighborhoods.two_opt import TwoOpt
from jaxopt_search.problems.matrix_input import DType, is_stack
from jaxopt_search.problems.tsp import assignment, candidates, paths
from jaxopt_search.problems.tsp.build import as_tsp, stack_of_coords
from jaxopt_search.problems.tsp.construction import (
    SECONDS_PER_CITY,
    constructed_tour,
    constructed_tours,
)
from jaxopt_search.problems.tsp.problem import TSP
from jaxopt_search.results import Result
from jaxopt_search.solvers import scales
from jaxopt_search.solvers.anneal import (
    Ingredients,
    Recipe,
    chosen,
    cooling_search,
    plan_annealing,
    refuse_for_several,
    starts_with,
)
from jaxopt_search.solvers.regional import plan_regional
from jaxopt_search.solvers.stacked import StackedRun, stack_of_paths, stack_of_tours

_SYMMETRIC_TSP = Recipe(
    hottest=0.8,
    coldest=0.2,
    num_searches=2112,
    num_candidates=6,
    cooled=0.3,
    recombining=0.75,
    first_round=100,
    restarts=True,
    is_iterated=True,
)
# On a CPU an exchange tells less, and fewer searches have the time to come down.
_SYMMETRIC_TSP_ON_CPU = _SYMMETRIC_TSP._replace(
    num_searches=128, cooled=0.5, starts="constructed", first_round=50
)
# On a GPU whose steps XLA makes, each takes about a hundred small kernels: they are few, but each
# may price many moves.
_SYMMETRIC_TSP_BY_XLA = Recipe(
    hottest=2.5,
    coldest=0.04,
    num_searches=512,
    moves_per_search=128,
    choose="first",
    num_candidates=16,
    cooled=0.3,
    recombining=0.5,
)
# Tours should fit into the cache of the GPU; a program per multiprocessor is the least. That few do
# not differ enough to start from random tours.
_CITIES_OF_ALL, _LEAST_SEARCHES = 2_200_000, 132
_CANDIDATES_OF_MANY = 10  # then: of fewer edges, such few tours hold too few to combine
# On a CPU, the fewest searches, cities for each, and searches times squared cities that come down
# within about ten seconds. Random tours need so many seconds or steps for each city, times the
# cities, or times so many if there are fewer.
_LEAST_SEARCHES_ON_CPU, _CITIES_OF_A_SEARCH, _SEARCHED_ON_CPU = 16, 16, 2e8
_FROM_RANDOM = (5e-6, 500), (0.1, 200)
# Constructed tours: the fewest, if there is time, and the most, of up to 128 cities and of more.
_LEAST_TOURS, _TOURS_OF_FEW, _MOST_TOURS = 4, 8, 32
# Each of several instances has one search, or enough to recombine well: if a GPU, of 132
# multiprocessors, runs so many at once, or if a core has these seconds for each city.
_STACKED_TSP = _SYMMETRIC_TSP._replace(
    num_searches=32, num_candidates=5, first_round=0, restarts=False
)
_STACKED_TSP_ON_CPU = _STACKED_TSP._replace(num_searches=16, num_candidates=6, starts="constructed")
_FEWEST_TO_RECOMBINE, _SEARCHES_AT_ONCE, _SECONDS_TO_RECOMBINE = 8, 4224, 2e-3
# The most cities that are searched as a whole, and not in regions.
_MOST_ON_GPU, _MOST_ON_CPU = 40_000, 20_000
_ASYMMETRIC_TSP_ON_CPU = Recipe(
    hottest=2.0, coldest=0.04, num_searches=16, moves_per_search=12, num_candidates=8
)
_ASYMMETRIC_TSP = _ASYMMETRIC_TSP_ON_CPU._replace(num_searches=1024)


def tsp_recipe(is_symmetric: bool, device: jax.Device | str, n: int) -> Recipe:
    """Returns how `solve_tsp` searches n cities on a device, or one of a platform."""
    is_on_cpu = is_cpu(device)
    is_fused = is_on_cpu or runs_kernels(device)
    if not is_symmetric:
        return _ASYMMETRIC_TSP_ON_CPU if is_on_cpu else _ASYMMETRIC_TSP
    if is_on_cpu:
        recipe, least = _SYMMETRIC_TSP_ON_CPU, _LEAST_SEARCHES_ON_CPU
        most = min(n / _CITIES_OF_A_SEARCH, _SEARCHED_ON_CPU / n**2)
    else:
        recipe = _SYMMETRIC_TSP if is_fused else _SYMMETRIC_TSP_BY_XLA
        least, most = _LEAST_SEARCHES, _CITIES_OF_ALL / n
        if is_fused and most < 2 * least:  # the time is short for these
            recipe = recipe._replace(
                num_candidates=_CANDIDATES_OF_MANY,
                starts="constructed",
                first_round=0,
                restarts=False,
            )
    num_searches = recipe.num_searches
    while num_searches > least and num_searches > most:
        num_searches //= 2
    return recipe._replace(num_searches=num_searches)


def is_large(problem: TSP, device: jax.Device) -> bool:
    """Returns whether regional search is what suits an instance best, on a device."""
    most = _MOST_ON_CPU if is_cpu(device) else _MOST_ON_GPU
    is_fused = is_cpu(device) or runs_kernels(device)
    is_suited = is_fused and problem.coords is not None and problem.num_entries is None
    return is_suited and problem.capacity > most


@host_driver
def solve_tsp(
    data: Any,
    key: Any = 0,
    *,
    start: int | None = None,
    end: int | Literal["free"] | None = None,
    metric: str | None = None,
    dtype: DType | None = None,
    forbidden: Literal["inf"] | None = None,
    max_seconds: float | None = None,
    max_steps: int | None = None,
    target: float | Literal["optimum"] | None = "optimum",
    num_searches: int | None = None,
    initial: Any = None,
    checkpoint: str | os.PathLike | None = None,
    checkpoint_every: float = checkpoints.DEFAULT_SECONDS,
    resume: str | os.PathLike | bool | None = None,
    callback: Callable[[Report], Any] | None = None,
    history_size: int = 1000,
    devices: Devices = "all",
    show_progress: bool = False,
) -> Result | Any:
    """Returns a short tour: by iterated local search many times at once, and by recombination.

    Each search kicks its tour, descends by 2-opt and Or-opt, and goes back unless the new tour
    passes, as a move does in annealing (`iterated_local_search`). It cools by itself for the first
    part of a round: the first one from a good tour that is constructed on the host, so that no
    result is worse than that, and the others from random tours or, where the time is short, from
    constructed ones. From then on they continue, again and again, from a child of their best tour
    and another one's, by edge assembly (`edge_assembly`), and search at the lowest temperature in
    between. The longer the round still is, the less a child takes of the other tour.

    The first round is short, and each further one ends after four times as long as the one before
    it, or at the limit: so the time to a good tour hardly depends on the limit. At the start of a
    round the first search keeps the best tour so far, and the others restart. From constructed
    tours there is a single round.

    Temperatures follow from the instance. With `max_seconds` only, cooling keeps pace with the
    clock, so the result depends on the speed of the machine; with `max_steps`, it does not. An
    asymmetric instance is annealed by 3-opt moves that keep the direction (`three_opt`), as the
    searches are resampled (`resample`); its constructed tour comes from assignment problems.

    More cities by their coordinates than 20,000 on a CPU or 40,000 on a GPU are one tour, from a
    space-filling curve, which is searched in many regions at once (`regional_search`), spread over
    the devices, and cools likewise. A step is then one of all regions.

    Args:
      data: [n, 2] coordinates, an [n, n] matrix of distances, a `TSPInstance` as read by
        `datasets`, or a `TSP`. Or coordinates of B instances, to be solved at once: [B, n, 2], or
        a list of arrays [n, 2], whose sizes may differ; they start from all n * n distances, which
        takes long for more than some thousand cities. A [2, 2] array is two cities by their
        coordinates. Refused is one with zeros on the diagonal only, which may be distances, and a
        [3, 3] array that is neither symmetric nor of one value on the diagonal, which may be places
        in space.
      key: an integer seed or a `jax.random.key`.
      start: the city that a tour or path begins at; None for any.
      end: for a path in place of a closed tour, the city that it ends at, or `"free"` for any.
        A path takes a matrix, n * n * 4 bytes on the device.
      metric: the rule by which coordinates give distances, as in `tsp_from_coords`; None for the
        Euclidean one, which is the only one for several instances. `"MATRIX"` says that `data` is
        a matrix, also if it is [2, 2].
      dtype: as in `tsp`, for a matrix only.
      forbidden: likewise: `"inf"` to read +inf, NaN and None as "no such edge".
      max_seconds: seconds of search, as in `solve`: what is compiled before comes on top; 10 if no
        limit is given.
      max_steps: steps of each search.
      target: end once a tour is at most this long; by default, once it is as short as the optimum
        of an instance for which that is proven. None to continue up to the limit.
      num_searches: searches side by side, of B instances for each; None for a number that suits the
        devices.
      initial: a tour to start from, [n], or several, [B, n]: the first searches do, and the others
        as without it; a single search starts only there. Not of several instances.
      checkpoint, checkpoint_every, resume: as in `solve`, where a run by `max_steps` continues bit
        for bit if that is the same, and one by the clock at the pace that it had.
      callback: called with a `Report` after each chunk of steps; True ends the run. Not of several
        instances.
      history_size: as in `solve`.
      devices: as in `solve`; by default all.
      show_progress: as in `solve`.

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
    closed: TSP | None = None
    with resolved.team.same_call() as note:
        device = resolved.devices[0]
        if not isinstance(data, TSP | TSPInstance) and is_stack(data):
            others = {"forbidden": forbidden, "initial": initial, "callback": resolved.callback}
            other_metric = None if metric == "EUCLID" else metric
            refuse_for_several(target, metric=other_metric, dtype=dtype, **others)
            recipe = _STACKED_TSP_ON_CPU if is_cpu(device) else _STACKED_TSP
            points = stack_of_coords(data)
            if num_searches is None and resolved.resume is not None:
                num_searches = checkpoints.note_in(resolved.resume, "num_searches")
            elif num_searches is None:
                num_searches = _searches_of_each(recipe, points, resolved)
            recipe = chosen(recipe, num_searches)
            if recipe.num_searches == 1:  # there is nobody to recombine with
                recipe = recipe._replace(cooled=1.0, resample_every=None)
            with memory.memory_errors_explained(f"num_searches={recipe.num_searches}"):
                if end is not None:
                    stack = stack_of_paths(points, start, end, recipe, resolved)
                else:
                    stack = stack_of_tours(points, start, recipe, resolved)
            run = StackedRun(stack, resolved, key, note)
        else:
            problem = as_tsp(data, metric, dtype, forbidden)
            if start is not None or end is not None:
                closed = problem if end is not None else None
                problem = paths.with_ends(problem, start, end)
            if is_large(problem, device):
                run = plan_regional(problem, resolved, key, num_searches, initial, target)
            else:
                # All that is compiled depends on the capacity only: instances of many sizes share
                # it.
                padded = problem if problem.num_entries is not None else problem.padded()
                recipe = tsp_recipe(problem.is_symmetric, device, padded.capacity)
                recipe = chosen(recipe, num_searches, resolved.devices)
                if _needs_good_tours(problem, device, resolved.timer):
                    recipe = recipe._replace(starts="constructed", first_round=0)
                near = None
                if problem.is_symmetric:
                    near = candidates.neighbors(problem, recipe.num_candidates, "spread")
                ingredients = _ingredients(problem, padded, recipe, near)
                tours = _tours(problem, recipe, key, near, resolved.timer)
                initial = starts_with(problem, initial, tours, recipe.num_searches)
                own = padded, recipe, ingredients
                run = plan_annealing(*own, resolved, key, initial, target)
    result = drive(run)
    return result if closed is None else paths.counted(result, closed)


def _searches_of_each(recipe: Recipe, points: list[np.ndarray], options: RunOptions) -> int:
    """Returns how many searches each of several instances has: one, or some that recombine."""
    most, device, num_devices = recipe.num_searches, options.devices[0], len(options.devices)
    if is_cpu(device):
        seconds = (options.timer.max_seconds or math.inf) * num_devices
        has_time = seconds >= _SECONDS_TO_RECOMBINE * sum(map(len, points))
        return most if has_time else 1
    at_once = num_devices * for_device(_SEARCHES_AT_ONCE, device) // len(points)
    return min(at_once, most) if at_once >= _FEWEST_TO_RECOMBINE else 1


def _ingredients(problem: TSP, padded: TSP, recipe: Recipe, near: np.ndarray | None) -> Ingredients:
    """Returns the search of a padded instance, its temperatures, and its crossover."""
    if near is None:
        near, extra = assignment.likeliest(problem, recipe.num_candidates)
        scale = extra.mean(where=np.isfinite(extra)) or scales.near_distance(problem)
        lists = candidates.with_room(padded, near, recipe.num_candidates)
        search = cooling_search(recipe, ThreeOpt(candidates=lists))
        return Ingredients(search, (recipe.hottest * scale, recipe.coldest * scale))
    away = scales.near_distance(problem)
    coldest = recipe.coldest * away
    lists = candidates.with_room(padded, near, recipe.num_candidates)
    search = cooling_search(recipe, TwoOpt(candidates=lists))
    hottest = recipe.hottest * (scales.tree_edge(problem) or away)
    return Ingredients(search, (hottest, coldest), edge_assembly(padded))


def _tours(
    problem: TSP, recipe: Recipe, key: Any, near: np.ndarray | None, timer: Timer
) -> FirstStarts:
    """Returns tours to start from, the first one good: whatever happens, the result is as good.

    Of one, the other searches start at random, as they do before several rounds in any case:
    random tours recombine better.
    """
    num, starts = recipe.num_searches, problem.host.starts
    if near is None and starts is not None:
        return FirstStarts(starts(problem, num))
    if near is None or recipe.starts == "random":
        return FirstStarts(constructed_tour(problem, near)[None])
    words, n = random.as_key(key), len(near)
    num_tours = min(_num_tours(n, timer.max_seconds or DEFAULT_SECONDS), num)

    generator = np.random.default_rng([int(words.first), int(words.second)])
    if recipe.first_round and num > 1:
        others = np.tile(np.arange(n, dtype=np.int32), (num - 1, 1))
        first = constructed_tour(problem, near)[None]
        return FirstStarts(np.concatenate([first, generator.permuted(others, axis=1)]))
    tours = constructed_tours(problem, near, generator, num_tours)
    return FirstStarts(tours[np.arange(num) % num_tours])


def _needs_good_tours(problem: TSP, device: jax.Device, timer: Timer) -> bool:
    """Returns whether random tours are too long for int32 or, on a CPU, for the limit."""
    if problem.host.starts is not None:
        return True
    if not is_cpu(device):
        return False
    n, limits = int(problem.n), (timer.max_seconds, timer.max_steps)
    return any(
        limit is not None and limit < needed * n * max(n, least)
        for limit, (needed, least) in zip(limits, _FROM_RANDOM, strict=True)
    )


def _num_tours(n: int, seconds: float) -> int:
    """Returns how many different tours are constructed for a search of this many seconds.

    The more there are, the better they recombine, up to 8 to 32. They take a tenth of the time
    that the search has, or for few tours up to three tenths.
    """
    in_time = seconds / (SECONDS_PER_CITY * n)
    most = min(max(n // 16, _TOURS_OF_FEW), _MOST_TOURS)
    return int(min(max(0.1 * in_time, min(0.3 * in_time, _LEAST_TOURS), 1), most))
