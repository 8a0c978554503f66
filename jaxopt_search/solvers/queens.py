"""N-Queens: sets of different valid placements, by min-conflicts or repair, again and again.

Searches run side by side. At fixed distances it is looked which of them stand at a valid
placement; these are taken down, and their searches start anew, as do those that tried for long.
"""

import contextlib
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.checks import check_count, check_number, check_option
from jaxopt_search.driver import environment, progress
from jaxopt_search.driver.arguments import refuse_tracers
from jaxopt_search.driver.chunks import Timer
from jaxopt_search.engine import device_split, starting, stepping
from jaxopt_search.engine.state import RunState, make_rules
from jaxopt_search.guards import capacity
from jaxopt_search.guards.interrupts import held_back
from jaxopt_search.neighborhoods.queen_swap import QueenSwap
from jaxopt_search.portable import random
from jaxopt_search.portable.memory import power_of_two
from jaxopt_search.problems.queens import symmetry
from jaxopt_search.problems.queens.problem import NQueens, greedy_placement, nqueens
from jaxopt_search.problems.queens.symmetry import Distinct
from jaxopt_search.searches.min_conflicts import min_conflicts
from jaxopt_search.searches.queens_repair import repair
from jaxopt_search.solvers.queens_found import PlacementSet, dtype_of
from jaxopt_search.types import Status

_DEFAULT_SECONDS = 10.0
_MANY = 10_000
"""Queens from which placements are repaired, one after the other."""
_MAX_ROUNDS = 10_000
_PLACED_AT_ONCE = 2 * 10**8
"""Queens of all searches together."""
_MAX_LOOKS = 16
"""A search that has found nothing by so many starts anew."""


class QueensResult(NamedTuple):
    """What `solve_nqueens` returns.

    Attributes:
      solutions: [B, n] different valid placements, in the order in which they were found; int16 for
        n below 2**15, else int32.
      success: whether there are as many as were asked for.
      status: `TARGET` if so, else what ended the run: `EXHAUSTED` if there are no more.
      message: the same as a sentence.
      num_found: valid placements that were found, those found again included.
      nit: steps made by each search; of repair, the most rounds that each placement may take.
      compile_seconds: as in `Result`.
      elapsed: as in `Result`.
      env: versions, devices, and the implementation that ran.
    """

    solutions: np.ndarray
    success: bool
    status: Status
    message: str
    num_found: int
    nit: int
    compile_seconds: float
    elapsed: float
    env: dict[str, str]


class Harvest(NamedTuple):
    """What is taken down of the searches after a number of steps.

    Attributes:
      is_valid: [S] whether a search has found a valid placement.
      queens: [S, n] their best placements.
      words: [S, 2] uint32 fingerprints.
    """

    is_valid: jax.Array
    queens: jax.Array
    words: jax.Array


class Recipe(NamedTuple):
    """How placements are searched for.

    Attributes:
      num_searches: side by side, on each device, if so many placements are wanted.
      least_searches: if few are wanted.
      moves_per_search: priced per step.
      temperature: all the time the same.
      steps: between two looks.
      tries: of `greedy_placement`, by which searches start; 0 for random placements.
    """

    num_searches: int
    least_searches: int
    moves_per_search: int
    temperature: float
    steps: int
    tries: int


def recipe(n: int, platform: str) -> Recipe:
    """Returns how placements of n queens are searched for on a device of this platform."""
    temperature = 0.4 if n < 16 else 0.1
    if platform == "cpu":
        num_searches = min(max(200_000 // n, 16), 1024)
        return Recipe(num_searches, 4, 64, temperature, max(32, n * 3 // 10), 16)
    num_searches = min(16_896, _PLACED_AT_ONCE // n)
    return Recipe(num_searches, 132, 16 if n < 64 else 32, temperature, max(32, n * 7 // 10), 0)


def solve_nqueens(
    n: int,
    num_solutions: int = 1,
    key: Any = 0,
    *,
    distinct: Distinct = "raw",
    max_seconds: float | None = None,
    max_steps: int | None = None,
    num_searches: int | None = None,
    devices: device_split.Devices = "all",
    show_progress: bool = False,
) -> QueensResult:
    """Returns a set of different valid placements of n queens.

    Below 10,000 queens they are found by `min_conflicts`, from there on by `repair`, each from a
    start of its own, random or greedy. On the same devices the set depends on the key only, unless
    `max_seconds` cuts it short. Ctrl-C ends the run with what was found.

    Args:
      n: queens.
      num_solutions: placements asked for.
      key: an integer seed or a `jax.random.key`.
      distinct: which placements count as different: `"raw"`, all that are not equal; `"symmetry"`,
        those that no turn and no mirroring of the board makes equal.
      max_seconds: seconds of search, as in `solve`: what is compiled before comes on top; 10 if no
        limit is given.
      max_steps: steps of each search, or rounds of repair of each placement.
      num_searches: searches side by side; None for a number that suits the devices.
      devices: as in `solve`; by default all.
      show_progress: whether to write lines on standard error.

    Raises:
      ValueError: if an argument is out of range.
      MemoryError: if the searches do not fit into memory, or a device runs out of it.

    Example:
      >>> result = solve_nqueens(8, num_solutions=12, distinct="symmetry")
      >>> result.solutions.shape, result.success
      ((12, 8), True)
    """
    timer = Timer()
    refuse_tracers(key, caller="solve_nqueens")
    problem = nqueens(n)
    num_solutions = check_count("num_solutions", num_solutions)
    check_option("distinct", distinct, ("raw", "symmetry"))
    if num_searches is not None:
        num_searches = check_count("num_searches", num_searches)
    if max_steps is not None:
        max_steps = check_count("max_steps", max_steps, 0)
    if max_seconds is None:
        max_seconds = _DEFAULT_SECONDS if max_steps is None else math.inf
    timer.limit(max_steps, check_number("max_seconds", max_seconds, 0))
    found = device_split.find_devices(devices)
    words = random.as_key(key)
    finds = PlacementSet(num_solutions, distinct, problem.n)
    report = _reporter(finds, timer) if show_progress else lambda status: None
    report(Status.RUNNING)
    try:
        if problem.n >= _MANY:
            status = _by_repair(problem, words, finds, found, timer, report)
        else:
            with capacity.memory_errors_explained(num_searches):
                status = _by_searches(problem, words, finds, found, timer, report, num_searches)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    report(status)
    return QueensResult(
        solutions=finds.solutions,
        success=len(finds.solutions) == num_solutions,
        status=status,
        message=finds.message(status),
        num_found=finds.num_found,
        nit=finds.made,
        compile_seconds=timer.compile_seconds or 0.0,
        elapsed=timer.elapsed,
        env=environment.of(found) | {"implementation": finds.how},
    )


class _Stand(NamedTuple):
    """Where a run stands, to be shown."""

    found: int
    wanted: int
    step: int
    seconds: float
    status: Status


def _describe(stand: _Stand) -> str:
    if not stand.seconds:
        return "compiling"
    return f"step {stand.step}  {stand.seconds:.1f} s  {stand.found} of {stand.wanted} placements"


def _reporter(finds: PlacementSet, timer: Timer) -> Callable[[Status], None]:
    """Returns a function that shows where a run stands, by its status."""
    show = progress.reporter(describe=_describe)

    def report(status: Status) -> None:
        show(_Stand(len(finds.solutions), finds.wanted, finds.made, timer.seconds, status))

    return report


def _by_repair(
    problem: NQueens,
    key: random.Key,
    finds: PlacementSet,
    devices: tuple[jax.Device, ...],
    timer: Timer,
    report: Callable[[Status], None],
) -> Status:
    """Fills `finds` with placements that were repaired one after the other."""
    number, max_rounds = 0, _MAX_ROUNDS if timer.max_steps is None else timer.max_steps
    with held_back():
        repaired = _compiled_repair(problem.n, finds.distinct, devices[0])
    timer.start_search()
    with jax.default_device(devices[0]):
        while (status := finds.status()) == Status.RUNNING:
            report(status)
            if timer.is_over:
                return Status.MAX_SECONDS
            own = random.instance_key(key, jnp.uint32(number))
            queens, num_attacked, words = jax.device_get(repaired(own, max_rounds))
            number, finds.made = number + 1, max_rounds
            if num_attacked == 0:
                finds.add(queens[None], words[None])
            elif timer.max_steps is not None:
                return Status.MAX_STEPS
    return status


@functools.lru_cache(maxsize=16)
def _compiled_repair(n: int, distinct: Distinct, device: jax.Device) -> Callable[..., Any]:
    """Returns `_repaired` for these numbers, compiled: maps a key and the most rounds."""
    with jax.default_device(device):
        return _repaired.lower(random.as_key(0), 0, n=n, distinct=distinct).compile()


@functools.partial(jax.jit, static_argnames=("n", "distinct"))
def _repaired(key: random.Key, max_rounds: jax.Array, *, n: int, distinct: Distinct) -> Any:
    problem = nqueens(n)
    start = problem.init(random.start_key(key, jnp.uint32(0)))
    queens, num_attacked = repair(key, problem, start, max_rounds=max_rounds)
    return queens, num_attacked, symmetry.fingerprint(queens, distinct)


def _by_searches(
    problem: NQueens,
    key: random.Key,
    finds: PlacementSet,
    devices: tuple[jax.Device, ...],
    timer: Timer,
    report: Callable[[Status], None],
    num_searches: int | None,
) -> Status:
    """Fills `finds` with placements that searches find side by side."""
    chosen = recipe(problem.n, devices[0].platform)
    search, placement = search_of(chosen), device_split.DeviceSplit(devices)
    if num_searches is None:
        wanted = power_of_two(-(-finds.wanted // len(devices)))
        each = min(max(wanted, chosen.least_searches), chosen.num_searches)
        num_searches = each * len(devices)
    choice = stepping.choose("auto", devices[0], problem, search)
    finds.how = str(choice)

    def advanced(state: RunState) -> RunState:
        left = chosen.steps
        if timer.max_steps is not None:
            left = min(left, timer.max_steps - finds.made)
        finds.made += left
        return by(state, left)

    def by(state: RunState, num_steps: int) -> RunState:
        rules = make_rules(search, state.best_cost.dtype)
        return placement.advance(problem, search, state, num_steps, rules, choice.implementation)

    with jax.default_device(devices[0]):
        state = starting.init(key, problem, search, num_searches=num_searches)
    state, look, status = placement.split(state), 0, Status.RUNNING
    age = jnp.full_like(state.index, _MAX_LOOKS)  # so that the first look starts them all
    harvest_of = _harvester(devices, finds.distinct, chosen.tries)
    while status == Status.RUNNING:
        report(status)
        with held_back() if not look else contextlib.nullcontext():
            state, age, harvest = harvest_of(problem, search, state, age, jnp.uint32(look))
            if not look:
                jax.block_until_ready(by(state, 0))
                timer.start_search()
        look += 1
        is_last = timer.max_steps is not None and finds.made >= timer.max_steps
        if not is_last:
            state = advanced(state)  # goes on while the host takes down what was found
        is_valid = np.asarray(harvest.is_valid)
        if is_valid.any():
            finds.add(np.asarray(harvest.queens)[is_valid], np.asarray(harvest.words)[is_valid])
        status = finds.status()
        if status == Status.RUNNING and is_last:
            status = Status.MAX_STEPS
        elif status == Status.RUNNING and timer.is_over:
            status = Status.MAX_SECONDS
    return status


def search_of(chosen: Recipe) -> Any:
    """Returns the search of a recipe."""
    return min_conflicts(QueenSwap(), chosen.temperature, moves_per_search=chosen.moves_per_search)


@functools.cache
def _harvester(devices: tuple[jax.Device, ...], distinct: Distinct, tries: int) -> Any:
    """Returns `harvested` of searches as `Placement.split` spreads them."""
    harvest = functools.partial(harvested, distinct=distinct, tries=tries)
    if len(devices) == 1:
        return harvest
    axes = device_split.AXES
    return jax.pmap(
        harvest, in_axes=(None, None, axes, 0, None), out_axes=(axes, 0, 0), devices=devices
    )


@functools.partial(jax.jit, static_argnames=("distinct", "tries"))
def harvested(
    problem: NQueens,
    search: Any,
    state: RunState,
    age: jax.Array,
    look: jax.Array,
    *,
    distinct: Distinct,
    tries: int,
) -> tuple[RunState, jax.Array, Harvest]:
    """Returns the searches after those at valid placements, and old ones, started anew.

    Args:
      age: [S] int32 looks since each search started.
      look: [] uint32 number of this look.
      tries: as in `Recipe`.

    Returns:
      The state, the ages, and what was found.
    """

    def start(key: jax.Array) -> jax.Array:
        return greedy_placement(key, problem.n, tries) if tries else problem.init(key)

    costs = jax.vmap(search.best_cost)(state.searches)
    queens = jax.vmap(search.best, in_axes=(None, 0))(problem, state.searches)
    words = jax.vmap(lambda one: symmetry.fingerprint(one, distinct))(queens)
    is_valid, age = (costs == 0) & (state.index >= 0), age + 1
    starts_anew = is_valid | (age >= _MAX_LOOKS)
    keys = jax.vmap(random.start_key, in_axes=(None, 0))(
        random.instance_key(state.key, look), state.index.astype(jnp.uint32)
    )
    fresh = jax.vmap(search.init, in_axes=(None, 0))(problem, jax.vmap(start)(keys))

    def renewed(new: jax.Array, old: jax.Array) -> jax.Array:
        where = lax.expand_dims(starts_anew, range(1, new.ndim))
        return jnp.where(where, new, old)

    searches = jax.tree.map(renewed, fresh, state.searches)
    narrow = queens.astype(dtype_of(problem.n))
    age = jnp.where(starts_anew, 0, age)
    return state._replace(searches=searches), age, Harvest(is_valid, narrow, words)
