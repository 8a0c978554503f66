"""The door of `solve`: its arguments, checked on the host before anything is compiled."""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxopt_search import capabilities
from jaxopt_search.backends import Choice, random
from jaxopt_search.checks import (
    MAX_STEPS,
    check_count,
    check_number,
    check_option,
    highest_cost_that_meets,
)
from jaxopt_search.driver import checkpoints
from jaxopt_search.driver.checkpoints import Snapshot
from jaxopt_search.driver.starts import First, Starts, check_starts
from jaxopt_search.driver.states import check_state
from jaxopt_search.engine import device_split, starting, stepping
from jaxopt_search.engine.device_split import DeviceSplit
from jaxopt_search.engine.fingerprints import fingerprint
from jaxopt_search.engine.state import MAX_PATIENCE, RunState, check_interval
from jaxopt_search.engine.tracing import is_traced
from jaxopt_search.guards import contracts, spaces
from jaxopt_search.guards.forks import refuse_orphans
from jaxopt_search.problems.host import Original, counted_on_device
from jaxopt_search.types import Exchange, Problem, Search

_OPTIMUM = "optimum"
_ROUNDING = 2.0**-20  # the relative error of a float cost on the device, amply


@dataclasses.dataclass(frozen=True, kw_only=True)
class Arguments:
    """What `solve` is given, as it is given, but for what only shows the run."""

    problem: Any
    search: Any
    key: Any
    num_searches: Any
    max_steps: Any
    max_seconds: Any
    target: Any
    patience: Any
    exchange: Any
    initial: Any
    state: Any
    resume: Any
    devices: Any
    check_every: Any
    chunk_steps: Any
    callback: Any
    history_size: Any
    implementation: Any


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limits:
    """When a run ends and how often that is tested, as in `solve`.

    The target is in the units and the dtype of the device; the goal is the target as it was given.
    `is_optional` says that a run which misses it may succeed.
    """

    max_steps: int | None
    max_seconds: float | None
    target: Any
    goal: int | float | None
    is_optional: bool
    patience: int | None
    check_every: int
    chunk_steps: int | None


class Start(NamedTuple):
    """How a run starts.

    Attributes:
      num_searches: side by side.
      key: two uint32 words.
      starts: start solutions; None for random ones.
    """

    num_searches: int
    key: random.Key
    starts: Starts | None


class Kept(NamedTuple):
    """What a checkpoint has of a run: its state, and the search and the exchange that hold."""

    run: RunState
    search: Any
    exchange: Any


class Resumption(NamedTuple):
    """How a run continues an earlier one.

    Attributes:
      num_searches: side by side.
      state: at its end.
      saved: what a checkpoint has, which the state is from; None for none.
    """

    num_searches: int
    state: RunState
    saved: Snapshot | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Checked:
    """What `solve` does: its arguments, checked, and what follows from them.

    Attributes:
      problem: on the first device, like the search and the exchange, and counted as there.
      search: the algorithm.
      exchange: what searches learn from one another.
      original: the instance as it was given; None where the problem keeps none.
      limits: when the run ends.
      split: the devices over which the searches are spread.
      choice: how steps are run.
      history_size: lines of history.
      begin: how the run starts, or continues another one.
    """

    problem: Problem
    search: Search
    exchange: Exchange | None
    original: Original | None
    limits: Limits
    split: DeviceSplit
    choice: Choice
    history_size: int
    begin: Start | Resumption


def check(given: Arguments) -> Checked:
    """Returns the arguments of `solve`, checked.

    Raises:
      ValueError, TypeError, MemoryError, RuntimeError: as `solve` says.
    """
    shape, limits = _check_run(given)
    devices = device_split.find_devices(given.devices)
    if given.resume is None:  # before the instance is brought to a device
        num_searches = check_count("num_searches", given.num_searches, 1, None)
        if given.state is not None:
            num_searches = check_state(given.problem, given.search, given.state)
        given = _counted_on_device(given)
        starting.check_room(
            given.problem, given.search, shape, num_searches, devices, given.exchange
        )
    else:
        given = _counted_on_device(given)
    history_size = check_count("history_size", given.history_size, 2, None)
    capabilities.check(given.search, given.problem, limits.max_steps)
    split = DeviceSplit(devices)
    problem, search, exchange = split.bring((given.problem, given.search, given.exchange))
    # A kernel takes a second to try. Where the run's own is made ahead, that tells as well.
    is_tried = given.implementation != "auto" or not split.compiles_ahead
    choice = stepping.choose(given.implementation, split.first, problem, search, is_tried=is_tried)
    if given.resume is not None:
        begin = _check_resumption(given, problem, search, exchange, limits)
    elif given.state is not None:
        begin = Resumption(check_state(problem, search, given.state), given.state)
    else:
        begin = _check_start(given, problem, shape)
    return Checked(
        problem=problem,
        search=search,
        exchange=exchange,
        original=capabilities.original(problem),
        limits=limits,
        split=split,
        choice=choice,
        history_size=history_size,
        begin=begin,
    )


def _counted_on_device(given: Arguments) -> Arguments:
    """Returns the arguments with costs as the device counts."""
    state = given.state
    if isinstance(state, RunState):
        state = state._replace(best_cost=state.device_best)
    return dataclasses.replace(given, problem=counted_on_device(given.problem), state=state)


def _check_run(given: Arguments) -> tuple[Any, Limits]:
    """Returns the shape of a solution, and the limits."""
    problem, search, exchange = given.problem, given.search, given.exchange
    refuse_tracers(problem, search, given.key, exchange, given.initial, given.state)
    shape, cost = contracts.check_problem(problem)
    contracts.check_search(search)
    contracts.check_exchange(exchange)
    check_callback(given.callback)
    original, goal = capabilities.original(problem), given.target
    if isinstance(goal, str):
        check_option("target", goal, (_OPTIMUM,))
        goal = original.best_known if original is not None and original.is_optimal else None
    spaces.check(problem, search, exchange)
    return shape, _check_limits(given, cost.dtype, original, goal)


def _check_limits(given: Arguments, dtype: Any, original: Original | None, goal: Any) -> Limits:
    """Returns the limits of a run.

    Args:
      dtype: of costs on the device.
      goal: the target as a number; None for none.

    Raises:
      ValueError: for a limit out of range, or if no limit is given and the run needs one.
    """
    patience, chunk_steps = given.patience, given.chunk_steps
    max_steps = 0 if capabilities.is_trivial(given.problem) else given.max_steps
    is_endless = max_steps is None and given.max_seconds is None and goal is None
    if is_endless and patience is None and not _ends_by_itself(given, dtype):
        raise ValueError("no limit is given, expected max_steps, max_seconds, target or patience")
    target = None if goal is None else _device_target(goal, dtype, original)
    max_steps, max_seconds = check_clock(max_steps, given.max_seconds)
    check_every = check_interval(given.search, given.check_every)
    return Limits(
        max_steps=max_steps,
        max_seconds=max_seconds,
        target=target,
        goal=None if goal is None else _plain(check_number("target", goal)),
        is_optional=isinstance(given.target, str),
        patience=None if patience is None else check_count("patience", patience, 1, MAX_PATIENCE),
        check_every=check_count("check_every", check_every, 1, MAX_PATIENCE),
        chunk_steps=None if chunk_steps is None else check_count("chunk_steps", chunk_steps),
    )


def _plain(number: Any) -> int | float:
    """Returns a number as Python has it."""
    return number.item() if isinstance(number, np.generic) else number


def _ends_by_itself(given: Arguments, dtype: Any) -> bool:
    """Returns whether a run needs no limit: float costs, rounded, may improve in circles."""
    is_exact = np.issubdtype(dtype, np.integer)
    return capabilities.is_done(given.search) is not None and given.exchange is None and is_exact


def _device_target(goal: Any, dtype: Any, original: Original | None) -> Any:
    """Returns the highest cost on the device that may meet a goal."""
    goal = check_number("target", goal)
    target = highest_cost_that_meets(
        goal, dtype, *((original.unit, original.offset) if original else ())
    )
    if np.issubdtype(dtype, np.floating) and np.isfinite(target):
        target += dtype.type(_ROUNDING) * abs(target)  # whether it is met, exact costs tell
    if original is not None and original.max_feasible is not None:
        target = min(target, dtype.type(original.max_feasible))
    return target


def check_callback(callback: Any) -> None:
    """Refuses what cannot be called."""
    if callback is not None and not callable(callback):
        kind = type(callback).__name__
        raise TypeError(f"callback is a {kind}, expected a function or None")


def check_clock(
    max_steps: Any, max_seconds: Any, most_steps: int = MAX_STEPS
) -> tuple[int | None, float | None]:
    """Returns the limits of steps and of seconds, each None for no limit.

    Raises:
      ValueError: if one is out of range.
    """
    if max_steps is not None:
        max_steps = check_count("max_steps", max_steps, 0, most_steps)
    if max_seconds is not None:
        max_seconds = check_number("max_seconds", max_seconds, 0)
    return max_steps, max_seconds


def words_of(checked: Checked) -> tuple[Any, ...]:
    """Returns what tells one call from another one, for `repr`."""
    begin = checked.begin
    if isinstance(begin, Start):
        starts = begin.starts and begin.starts.built()
        start = begin.num_searches, fingerprint(begin.key, starts)
    else:
        start = begin.num_searches, fingerprint(begin.state), begin.saved is None
    every = checked.limits.check_every
    identity = checkpoints.identity_of(checked.problem, checked.search, checked.exchange, every)
    return identity, start, checked.limits, checked.choice.implementation


def _check_start(given: Arguments, problem: Problem, shape: Any) -> Start:
    """Returns how a run starts that continues no other one."""
    key = random.as_key(given.key)
    num_searches = check_count("num_searches", given.num_searches, 1, None)
    starts, initial, original = None, given.initial, capabilities.original(problem)
    if initial is None and original is not None and original.starts is not None:
        initial = First(num_searches, functools.partial(original.starts, problem, num_searches))
    if initial is not None:
        starts = check_starts(problem, shape, num_searches, initial)
    return Start(num_searches, key, starts)


def _check_resumption(
    given: Arguments, problem: Problem, search: Search, exchange: Exchange | None, limits: Limits
) -> Resumption:
    """Returns how a run continues from a checkpoint."""

    def shapes_of(notes: dict[str, Any]) -> tuple[Kept, Any]:
        num_searches = check_count("num_searches", notes["num_searches"], 1, None)
        held = jax.eval_shape(lambda *parts: parts, search, exchange)
        return Kept(starting.shape(problem, search, num_searches), *held), _own_solution(problem)

    own = checkpoints.identity_of(problem, search, exchange, limits.check_every)
    saved = checkpoints.read(given.resume, own, shapes_of)
    return Resumption(len(saved.state.run.index), saved.state.run, saved)


def _own_solution(problem: Problem) -> Any:
    """Returns the shape and dtype of a solution as the user has it."""
    shape, _ = contracts.check_problem(problem)
    original = capabilities.original(problem)
    if original is None or original.num_entries is None:
        return shape
    return jax.ShapeDtypeStruct((original.num_entries,), shape.dtype)


def refuse_tracers(*arguments: Any, caller: str = "solve") -> None:
    """Refuses to drive a run from inside a traced function, or where JAX would hang."""
    refuse_orphans()
    if is_traced(arguments):
        raise RuntimeError(
            f"{caller} is a host driver and was called inside jit or vmap; use run there"
        )
