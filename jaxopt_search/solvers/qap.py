"""One call from flows and distances to a good assignment: `solve_qap`."""

import os
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from jaxopt_search.checks import check_count, check_option
from jaxopt_search.driver import checkpoints
from jaxopt_search.driver.chunks import drive
from jaxopt_search.driver.options import resolve
from jaxopt_search.driver.results import Report
from jaxopt_search.driver.run import Run
from jaxopt_search.driver.starts import FirstStarts
from jaxopt_search.engine.devices import Devices, host_driver, is_cpu
from jaxopt_search.engine.memory import memory_errors_explained
from jaxopt_search.exchanges import recombine
from jaxopt_search.neighborhoods import DeltaSwap, SwapTable
from jaxopt_search.problems.matrix_input import DType
from jaxopt_search.problems.padding import capacity_for
from jaxopt_search.problems.qap.build import as_qap, as_qaps, is_several, negated
from jaxopt_search.problems.qap.construction import constructed_assignment
from jaxopt_search.results import Result
from jaxopt_search.searches import tabu_search
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
from jaxopt_search.solvers.maximum import Opposite, opposite, opposite_target
from jaxopt_search.solvers.stacked import StackedRun, stack_of_assignments

Method: TypeAlias = Literal["auto", "annealing", "tabu"]

_QAP = Recipe(hottest=0.5, coldest=0.01, num_searches=2112, moves_per_search=8)
_QAP_ON_CPU = Recipe(
    hottest=0.3,
    coldest=0.03,
    num_searches=4,
    moves_per_search=32,
    choose="first",
    resample_every=10_000,  # a search that is resampled makes its table again, in O(n**3)
)
# Searches per device: four for each multiprocessor of an H200, or two beyond 64 facilities, as
# registers allow for the warps of each.
_TABU, _TABU_ON_CPU = 528, 8
_TABU_OF_SEVERAL, _TABU_OF_SEVERAL_ON_CPU = 32, 4  # searches of each instance
_TABU_CHECK_EVERY, _TABU_CHECK_EVERY_ON_CPU = 100, 25
# Sizes of padded instances from one power of two to the next. On a CPU steps of tables take as long
# as the room is large; in a kernel they do not, but memory does.
_SIZES, _SIZES_ON_CPU, _FEW = 2, 8, 256
# Facilities from which tabu search, whose steps take O(n * n), falls behind annealing on a CPU.
_MANY = 300


@host_driver
def solve_qap(
    flow: Any,
    distance: Any = None,
    key: Any = 0,
    *,
    linear: Any = None,
    partial_match: Any = None,
    maximize: bool = False,
    dtype: DType | None = None,
    method: Method = "auto",
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
    """Returns a good assignment, by memetic tabu search or by population annealing of swaps.

    Memetic: robust tabu searches that continue, again and again, from children of their best
    assignments (`recombine`).

    The sum of `flow[i, j] * distance[p[i], p[j]]` over all i and j is minimized, as by SciPy's
    `quadratic_assignment`.

    Args:
      flow: [n, n] from facility to facility; or a `QAPInstance` as read by `datasets`, or a `QAP`,
        without `distance`. Or of B instances, to be solved at once by tabu search: [B, n, n], or a
        list of matrices [n, n], whose sizes may differ, or of `QAPInstance`s.
      distance: [n, n] from location to location, or likewise of B instances.
      linear: [n, n] what facility i costs at location k besides, added to the sum. Not of several
        instances.
      partial_match: [k, 2] integers, facilities and the locations where they have to be; as SciPy's
        option of that name.
      maximize: whether to look for the highest sum in place of the lowest, as SciPy's option of
        that name. `target` is then to be reached from below. The result has the sum itself, but its
        `problem`, its `state` and progress count with the opposite sign.
      dtype: as in `qap`: `"float32"` to give up exactness if integers are too large for int32.
      method: `"tabu"`, `"annealing"`, which cools over the run, or `"auto"`: the one that was
        measured to serve better, annealing from 300 facilities on a CPU and otherwise tabu search.
      initial: an assignment to start from, [n], or several, [B, n].

    The other arguments are those of `solve_tsp`.

    Returns:
      A `Result`; of B instances a `StackedResult`.

    Raises:
      ValueError, TypeError: as `qap` and `solve`.

    Example:
      >>> import jaxopt_search as js
      >>> flow, distance = [[0, 5, 2], [5, 0, 3], [2, 3, 0]], [[0, 8, 15], [8, 0, 13], [15, 13, 0]]
      >>> js.solve_qap(flow, distance, max_steps=50).fun
      218
    """
    if maximize and callable(callback):
        callback = Opposite(callback)
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
    with resolved.team.same_call() as note:
        check_option("method", method, ("auto", "annealing", "tabu"))
        if maximize:
            flow, linear = negated(flow), None if linear is None else negated(linear)
            target = opposite_target(target)
        devices, is_on_cpu = resolved.devices, is_cpu(resolved.devices[0])
        if is_several(flow):
            others = {"linear": linear, "partial_match": partial_match, "initial": initial}
            other_method = method if method == "annealing" else None
            refuse_for_several(target, method=other_method, callback=resolved.callback, **others)
            problems = as_qaps(flow, distance, dtype)
            if num_searches is None:
                num_searches = _TABU_OF_SEVERAL_ON_CPU if is_on_cpu else _TABU_OF_SEVERAL
            num_searches = check_count("num_searches", num_searches)
            n = max(each.capacity for each in problems)
            every, room = _recombine_every(n, is_on_cpu), _room_for(n, is_on_cpu)
            with memory_errors_explained(f"num_searches={num_searches}"):
                stack = stack_of_assignments(problems, num_searches, room, every, resolved)
            run = StackedRun(stack, resolved, key, note)
        else:
            problem = as_qap(flow, distance, linear, partial_match, dtype)
            padded, n = problem, int(problem.n)
            if problem.num_entries is None:  # with room for more, many sizes share programs
                padded = problem.padded(_room_for(n, is_on_cpu))
            is_tabu = method == "tabu" or (method == "auto" and not (is_on_cpu and n >= _MANY))
            recipe = _QAP_ON_CPU if is_on_cpu else _QAP
            if is_tabu:
                number = _TABU if padded.capacity <= 64 else _TABU // 2
                recipe = recipe._replace(num_searches=_TABU_ON_CPU if is_on_cpu else number)
            recipe = chosen(recipe, num_searches, devices)
            # Whatever happens, the result is as good as this one.
            built = FirstStarts(constructed_assignment(problem)[None])
            initial = starts_with(problem, initial, built, recipe.num_searches)
            if is_tabu:
                # Searches that continue from children of their best.
                run = Run(
                    resolved,
                    padded,
                    tabu_search(SwapTable()),
                    key,
                    num_searches=recipe.num_searches,
                    exchange=recombine(every=_recombine_every(n, is_on_cpu)),
                    check_every=_TABU_CHECK_EVERY_ON_CPU if is_on_cpu else _TABU_CHECK_EVERY,
                    initial=initial,
                    target=target,
                )
            else:
                unit = scales.swap_change(padded)
                ingredients = Ingredients(
                    cooling_search(recipe, SwapTable() if is_on_cpu else DeltaSwap()),
                    (recipe.hottest * unit, recipe.coldest * unit),
                )
                own = padded, recipe, ingredients
                run = plan_annealing(*own, resolved, key, initial, target)
    return opposite(drive(run)) if maximize else drive(run)


def _room_for(n: int, is_on_cpu: bool) -> int:
    return capacity_for(n, _SIZES_ON_CPU if is_on_cpu or n > _FEW else _SIZES)


def _recombine_every(n: int, is_on_cpu: bool) -> int:
    """Returns the steps between recombinations."""
    return n * (2 if is_on_cpu else 5)
