"""What a run of `solve` does: its arguments, checked on the host before anything is compiled."""

import functools
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxopt_search import contracts
from jaxopt_search.backends import Implementation, random
from jaxopt_search.checks import check_count, check_number, check_option, highest_cost_that_meets
from jaxopt_search.driver import checkpoints
from jaxopt_search.driver.options import RunOptions
from jaxopt_search.driver.starts import LateStarts, check_starts, check_state
from jaxopt_search.engine import memory, starting, stepping
from jaxopt_search.engine.compile import Program
from jaxopt_search.engine.devices import Devices, find_devices, refuse_tracers
from jaxopt_search.engine.fingerprints import fingerprint
from jaxopt_search.engine.memory import MemoryEstimate
from jaxopt_search.engine.split import DeviceSplit
from jaxopt_search.engine.state import (
    MAX_PATIENCE,
    RunState,
    check_interval,
    make_rules,
)
from jaxopt_search.problems.host import Original, counted_on_device
from jaxopt_search.types import Exchange, Problem, Search

_OPTIMUM = "optimum"
_ROUNDING = 2.0**-20  # the relative error of a float cost on the device, amply


class SavedRun(NamedTuple):
    """What a checkpoint has of a run: its state, and the search and the exchange that hold."""

    run: RunState
    search: Any
    exchange: Any


class Plan:
    """What a run does, apart from its `RunOptions`: the arguments of `solve`, checked.

    It starts from a key and start solutions, or from a state.

    Attributes:
      problem: on the first device, like the search and the exchange, and counted as there.
      search: the algorithm.
      exchange: what searches learn from one another.
      original: the instance as it was given; None where the problem keeps none.
      num_searches: side by side.
      key: two uint32 words; None with a state.
      starts: start solutions; None for random ones, and with a state.
      state: of the run that is continued; None for none.
      saved: the checkpoint that the state is from; None for none.
      goal: the target as it was given; None for none.
      is_optional: whether a run that misses it may succeed.
      target: the goal in the units and the dtype of the device.
      patience, check_every, chunk_steps: as in `solve`.
      split: the devices over which the searches are spread.
      choice: how steps are run.

    Raises:
      ValueError, TypeError, MemoryError, RuntimeError: as `solve` says.
    """

    def __init__(
        self,
        options: RunOptions,
        problem: Any,
        search: Any,
        key: Any = 0,
        *,
        num_searches: Any,
        target: Any = None,
        patience: Any = None,
        exchange: Any = None,
        initial: Any = None,
        state: Any = None,
        check_every: Any = None,
        chunk_steps: Any = None,
        implementation: Implementation = "auto",
    ) -> None:
        refuse_tracers(problem, search, key, exchange, initial, state)
        shape, cost = contracts.check_parts(problem, search, exchange=exchange)
        original, goal, is_optional = problem.host, target, isinstance(target, str)
        if is_optional:
            check_option("target", target, (_OPTIMUM,))
            goal = original.best_known if original is not None and original.is_optimal else None
        timer = options.timer
        if problem.is_trivial:
            timer.max_steps = 0
        is_endless = timer.max_steps is None and timer.max_seconds is None and goal is None
        # Float costs, rounded, may improve in circles.
        ends_by_itself = (
            search.is_done is not None
            and exchange is None
            and np.issubdtype(cost.dtype, np.integer)
        )
        if is_endless and patience is None and not ends_by_itself:
            raise ValueError(
                "no limit is given, expected max_steps, max_seconds, target or patience"
            )
        if goal is not None:
            goal = check_number("target", goal)
            units = (original.unit, original.offset) if original else ()
            target = highest_cost_that_meets(goal, cost.dtype, *units)
            if np.issubdtype(cost.dtype, np.floating) and np.isfinite(target):
                target += cost.dtype.type(_ROUNDING) * abs(target)  # exact costs tell if it is met
            if original is not None and original.max_feasible is not None:
                target = min(target, cost.dtype.type(original.max_feasible))
            goal = goal.item() if isinstance(goal, np.generic) else goal
        if patience is not None:
            patience = check_count("patience", patience, 1, MAX_PATIENCE)
        if chunk_steps is not None:
            chunk_steps = check_count("chunk_steps", chunk_steps)
        check_every = check_count(
            "check_every", check_interval(search, check_every), 1, MAX_PATIENCE
        )

        if options.resume is None:  # before the instance is brought to a device
            if state is None:
                num_searches = check_count("num_searches", num_searches, 1, None)
            else:
                num_searches = check_state(problem, search, state)
                state = state._replace(best_cost=state.device_best)  # counted as on the device
            problem = counted_on_device(problem)
            starting.check_room(problem, search, shape, num_searches, options.devices, exchange)
        else:
            problem = counted_on_device(problem)
        search.check(problem, timer.max_steps)
        split = DeviceSplit(options.devices)
        problem, search, exchange = split.bring((problem, search, exchange))
        # A kernel takes a second to try. Where the run's own is made ahead, that tells as well.
        is_tried = implementation != "auto" or not split.compiles_ahead
        choice = stepping.choose(implementation, split.first, problem, search, is_tried=is_tried)
        original, words, starts, saved = problem.host, None, None, None
        if options.resume is not None:

            def shapes_of(notes: dict[str, Any]) -> tuple[SavedRun, Any]:
                """Returns the shapes of what is kept of the run, and of the best solution."""
                num = check_count("num_searches", notes["num_searches"], 1, None)
                held = jax.eval_shape(lambda *parts: parts, search, exchange)
                best = shape
                if original is not None and original.num_entries is not None:
                    best = jax.ShapeDtypeStruct((original.num_entries,), shape.dtype)
                return SavedRun(starting.shape(problem, search, num), *held), best

            own = checkpoints.identity_of(problem, search, exchange, check_every)
            saved = checkpoints.read(options.resume, own, shapes_of)
            state, num_searches = saved.state.run, len(saved.state.run.index)
        elif state is not None:
            check_state(problem, search, state)
        else:
            words = random.as_key(key)
            if initial is None and original is not None and original.starts is not None:
                build = functools.partial(original.starts, problem, num_searches)
                initial = LateStarts(num_searches, build)
            if initial is not None:
                starts = check_starts(problem, shape, num_searches, initial)
        self.problem, self.search, self.exchange = problem, search, exchange
        self.original: Original | None = original
        self.num_searches: int = num_searches
        self.key, self.starts, self.state, self.saved = words, starts, state, saved
        self.goal: int | float | None = goal
        self.is_optional, self.target = is_optional, None if goal is None else target
        self.patience, self.check_every, self.chunk_steps = patience, check_every, chunk_steps
        self.split, self.choice = split, choice

    def words(self) -> tuple[Any, ...]:
        """Returns what tells this plan from another one, for `repr`."""
        if self.state is None:
            start = fingerprint(self.key, self.starts and self.starts.built())
        else:
            start = fingerprint(self.state), self.saved is None
        identity = checkpoints.identity_of(
            self.problem, self.search, self.exchange, self.check_every
        )
        ends = self.goal, self.is_optional, self.target, self.patience, self.chunk_steps
        return identity, self.num_searches, start, ends, self.choice.implementation


def memory_estimate(
    problem: Problem,
    search: Search,
    num_searches: int = 128,
    *,
    exchange: Exchange | None = None,
    devices: Devices = None,
    implementation: Implementation = "auto",
) -> MemoryEstimate:
    """Returns how many bytes `solve` takes on the device that holds most, and what for.

    It allocates nothing. It compiles the run's programs, since what they need besides their
    arguments only XLA knows; that takes some seconds, which `solve` saves where it is called with
    the same shapes afterwards. Not counted are start solutions that are given, a state or a
    checkpoint that is continued, and what JAX and XLA hold for themselves; and on several devices,
    after `jax.distributed.initialize`, what programs need besides, as XLA does not tell it there.

    Args:
      problem: what is minimized; its arrays may be shapes, such as `jax.eval_shape` returns. Then
        the problem may be too large for any device.
      search: the algorithm, likewise.
      num_searches: S, how many searches run side by side.
      exchange: as in `solve`; its arrays may be shapes.
      devices, implementation: as in `solve`.

    Raises:
      ValueError: for arguments out of range, or more searches than arrays can index.
      TypeError: for what is no problem, search or exchange.
      RuntimeError: if called under `jit`, or in a forked process.

    Example:
      >>> import jax, jax.numpy as jnp, jaxopt_search as js
      >>> cities = jax.ShapeDtypeStruct((1000, 2), jnp.float32)
      >>> problem = jax.eval_shape(lambda xy: js.tsp_from_coords(xy, metric="EUCLID"), cities)
      >>> search = js.simulated_annealing(js.Relocate(), 1.0)
      >>> needed = memory_estimate(problem, search, num_searches=10_000)
      >>> needed.instance, needed.states // 10**6 >= 120
      (8016, True)
    """
    refuse_tracers(problem, search, exchange, caller="memory_estimate")
    solution, _ = contracts.check_parts(problem, search, exchange=exchange)
    num_searches = check_count("num_searches", num_searches, 1, None)
    memory.check_size(solution, num_searches)
    problem = counted_on_device(problem)
    split = DeviceSplit(find_devices(devices))
    chosen = stepping.choose(implementation, split.first, problem, search).implementation
    shape = starting.shape(problem, search, num_searches)
    programs = dict[str, Program]()
    if split.compiles_ahead:
        problem, search, brought = split.brought((problem, search, exchange))
        rules = make_rules(search, shape.device_best.dtype, exchange=brought)
        key = split.brought(random.as_key(0))
        programs = split.programs(problem, search, shape, rules, chosen)
        own, static = (key, problem, search, None), {"num_searches": num_searches}
        programs["start"] = Program(starting.begin, own, static)
    return memory.estimate((problem, search, exchange), shape, split.devices, programs)
