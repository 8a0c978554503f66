"""The host driver: `loop.advance` in chunks, with what needs a clock or a person.

Wall-clock limits, progress, callbacks, Ctrl-C and history live here. How a run is cut into chunks
changes none of its searches.
"""

import contextlib
import dataclasses
import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import numpy as np

from jaxopt_search.checks import check_count, check_option
from jaxopt_search.driver import arguments, environment, progress
from jaxopt_search.driver.arguments import Limits
from jaxopt_search.driver.chunks import Timer
from jaxopt_search.engine import device_split, outcome, starting, stepping
from jaxopt_search.engine.outcome import Outcome
from jaxopt_search.engine.state import RunState, check_interval, make_rules
from jaxopt_search.guards import contracts, spaces
from jaxopt_search.guards.capacity import memory_errors_explained
from jaxopt_search.guards.interrupts import held_back
from jaxopt_search.kernels import Choice, Implementation
from jaxopt_search.portable import counts, random
from jaxopt_search.portable.costs import cost_of
from jaxopt_search.problems.host import Original
from jaxopt_search.types import Exchange, Hit, Problem, Record, Result, Search, Status

_OPTIMUM = "optimum"

MESSAGES = {
    Status.TARGET: "the target was reached",
    Status.MAX_STEPS: "max_steps were made",
    Status.PATIENCE: "no better solution for `patience` steps",
    Status.LOCAL_OPTIMA: "all searches are at local optima",
    Status.MAX_SECONDS: "max_seconds were over",
    Status.CALLBACK: "the callback asked to stop",
    Status.INTERRUPTED: "interrupted from the keyboard",
    Status.EXHAUSTED: "there are no more",
}


class Report(NamedTuple):
    """Where a run stands after a chunk, for callbacks. Its arrays are copies.

    Attributes:
      step: steps made by each search.
      seconds: of search, as `max_seconds` counts them.
      fun: the best cost so far; it never rises.
      x: a solution of that cost.
      gap: as in `Result`.
      acceptance: accepted moves per search and step in this chunk.
      status: `RUNNING`, or why the run ends here.
    """

    step: int
    seconds: float
    fun: int | float
    x: np.ndarray
    gap: float | None
    acceptance: float
    status: Status


class Steer(NamedTuple):
    """What a callback returns to continue with other settings, of the same types and shapes.

    Attributes:
      search: in place of the one so far.
      exchange: likewise.
      ask_after: the callback is called again after this many steps at the latest; None to leave
        that to the clock.
    """

    search: Search
    exchange: Exchange | None
    ask_after: int | None = None


def solve(
    problem: Problem,
    search: Search,
    key: Any,
    *,
    num_searches: int = 128,
    max_steps: int | None = None,
    max_seconds: float | None = None,
    target: float | Literal["optimum"] | None = None,
    patience: int | None = None,
    exchange: Exchange | None = None,
    initial: Any = None,
    state: RunState | None = None,
    devices: device_split.Devices = None,
    check_every: int | None = None,
    chunk_steps: int | None = None,
    callback: Callable[[Report], Any] | None = None,
    show_progress: bool = False,
    history_size: int = 1000,
    implementation: Implementation = "auto",
) -> Result:
    """Runs many searches on a problem until a limit, and returns the best solution.

    At least one of `max_steps`, `max_seconds`, `target` and `patience` must be given, but for hill
    climbing without an exchange on integer costs, which comes to an end by itself. Ctrl-C ends
    the run after the first chunk with the best so far.

    Args:
      problem: what is minimized.
      search: the algorithm.
      key: an integer seed or a `jax.random.key`.
      num_searches: searches side by side.
      max_steps: steps of each search in all; with `state`, those made before count.
      max_seconds: seconds of search. The clock starts when the first step can be made; what is
        compiled before comes on top, and is reported as `Result.compile_seconds`.
      target: end once a search has a cost of at most this. `"optimum"`: once it has the best known
        cost of an instance for which that is proven to be optimal; for others, no target.
      patience: end once so many steps brought no better cost.
      exchange: what searches learn from one another; None for nothing.
      initial: start solutions. One for all: the first search starts there and the others close
        by, at `problem.perturb` of it, or there too if the problem has no such method. Or one
        for each search, with a leading axis.
      state: the `Result.state` of a run to go on with, made with the same arguments; takes the
        place of `key`, `num_searches` and `initial`. The number of devices may differ.
      devices: None for the default device, `"all"`, a platform, a number, or a list.
      check_every: steps between stop tests; None for 100, or what the search asks for. First hits
        are exact whatever it is.
      chunk_steps: steps per chunk; None for chunks of half a second or less.
      callback: called with a `Report` after each chunk; True ends the run, a `Steer` changes
        its settings.
      show_progress: whether to write lines on standard error, also while programs compile.
      history_size: lines of history kept; beyond, every other line is dropped, as often as needed.
      implementation: how steps are run: `"triton"` as a fused kernel, `"xla"`, or another of
        `kernels.Implementation`; `"auto"` takes the fastest. `Result.env` tells what ran and why.

    Raises:
      ValueError: for arguments out of range, before anything is compiled.
      TypeError: for what is no problem, search, exchange, callback or state, likewise.
      MemoryError: if the searches do not fit into memory, or a device runs out of it.
      RuntimeError: if called under `jit`, or in a forked process; or if the sum of deltas differs
        from the exact cost of an integer problem, which is a bug.

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.tsp_from_instance(js.datasets.grid_tsp(4, 4, spacing=10))
      >>> search = js.simulated_annealing(js.Relocate(), 5.0, moves_per_search=8)
      >>> result = solve(problem, search, key=0, target=160, max_steps=20_000)
      >>> result.fun, result.success
      (160, True)
    """
    timer = Timer()
    arguments.refuse_tracers(problem, search, key, exchange, initial, state)
    solution, cost = contracts.check_problem(problem)
    contracts.check_search(search)
    contracts.check_exchange(exchange)
    if callback is not None and not callable(callback):
        raise TypeError(f"callback is a {type(callback).__name__}, expected a function or None")
    host = getattr(problem, "host", None)
    is_optional = isinstance(target, str)
    if is_optional:
        check_option("target", target, (_OPTIMUM,))
        target = host.best_known if host is not None and host.is_optimal else None
    spaces.check(problem, search, exchange)
    limits = arguments.check_limits(
        dtype=cost.dtype,
        host=host,
        max_steps=0 if getattr(problem, "is_trivial", False) else max_steps,
        max_seconds=max_seconds,
        target=target,
        patience=patience,
        check_every=check_interval(search, check_every),
        chunk_steps=chunk_steps,
        ends_by_itself=_ends_by_itself(search, exchange, cost.dtype),
    )
    timer.limit(limits.max_steps, limits.max_seconds)
    history_size = check_count("history_size", history_size, 2, None)
    getattr(search, "check", lambda max_steps: None)(limits.max_steps)
    placement = device_split.DeviceSplit(device_split.find_devices(devices))
    problem, search, exchange = placement.bring((problem, search, exchange))
    choice = stepping.choose(implementation, placement.devices[0], problem, search)
    driver = _Driver(
        problem, search, host, placement, limits, exchange, choice, timer, history_size, is_optional
    )
    if callback is not None:
        driver.observers.append(callback)
    if show_progress:
        show = progress.reporter()
        driver.observers.append(show)
        show(progress.Phase("compiling", timer.elapsed))
    if state is None:
        words, count = random.as_key(key), check_count("num_searches", num_searches, 1, None)
        starting.check_room(problem, search, solution, count, placement.devices)
        starts = arguments.start_solutions(problem, host, words, count, solution, initial)
    else:
        count = arguments.check_state(problem, search, state)
    with memory_errors_explained(count):
        if state is None:
            words, starts = placement.bring((words, starts))
            state = starting.start(words, problem, search, starts, count)
        else:
            state = placement.bring(state)
            state = arguments.reopened(problem, host, search, state, limits.target)
        return driver.drive(jax.block_until_ready(state))


def _ends_by_itself(search: Search, exchange: Exchange | None, dtype: Any) -> bool:
    """Returns whether a run needs no limit: float costs, rounded, may improve in circles."""
    is_exact = np.issubdtype(dtype, np.integer)
    return hasattr(search, "is_done") and exchange is None and is_exact


@dataclasses.dataclass
class _Driver:
    """One call of `solve`."""

    problem: Problem
    search: Search
    host: Original | None
    placement: device_split.DeviceSplit
    limits: Limits
    exchange: Exchange | None
    choice: Choice
    timer: Timer
    history_size: int
    is_optional: bool  # the target, for success
    observers: list[Callable[[Report], Any]] = dataclasses.field(default_factory=list)
    history: list[Record] = dataclasses.field(default_factory=list)
    record_every: int = 1
    best: tuple[Any, int | float] = (None, math.nan)

    def drive(self, state: RunState) -> Result:
        """Advances `state` until the run ends."""
        num_searches = state.index.shape[0]
        first_step = counts.as_python(state.step)
        placed, seen, ask_after = self.placement.split(state), None, None
        status, num_steps, num_chunks = Status.RUNNING, 0, 0
        try:
            while status == Status.RUNNING:
                began, seen = self.timer.elapsed, None
                # The first chunk makes no step: it compiles, and tests the start.
                with contextlib.nullcontext() if num_chunks else held_back():
                    placed = self._advance(placed, num_steps)
                    made, seconds = num_steps, self.timer.elapsed - began
                    seen = self._look(placed)
                if not num_chunks:
                    self.timer.start_search()
                self._note(seen)
                placed, status = self._checked(placed, seen, num_searches)
                snapshot = self._snapshot(seen, status, made * num_searches)
                if num_chunks % self.record_every == 0 or status != Status.RUNNING:
                    self._record(snapshot)
                num_chunks += 1
                for observe in self.observers:
                    answer = observe(snapshot)
                    if isinstance(answer, Steer):
                        before = self.search, self.exchange
                        self.search, self.exchange = arguments.steered(
                            self.problem, before, answer[:2]
                        )
                        ask_after = answer.ask_after
                    is_true = isinstance(answer, bool | np.bool_) and bool(answer)
                    if is_true and status == Status.RUNNING:
                        status = Status.CALLBACK
                num_steps = self._next_steps(seen.step, made, seconds)
                if ask_after is not None:
                    num_steps, ask_after = min(num_steps, max(ask_after, 1)), None
        except KeyboardInterrupt:
            if not num_chunks:
                raise
            if status == Status.RUNNING:
                status = Status.INTERRUPTED
        seen = seen or self._look(placed)
        return self._result(self.placement.join(placed, num_searches), seen, status, first_step)

    def _advance(self, placed: RunState, num_steps: int) -> RunState:
        rules = make_rules(
            self.search,
            placed.best_cost.dtype,
            exchange=self.exchange,
            target=self.limits.target,
            patience=self.limits.patience,
            check_every=self.limits.check_every,
        )
        placed = self.placement.advance(
            self.problem, self.search, placed, num_steps, rules, self.choice.implementation
        )
        return jax.block_until_ready(placed)

    def _look(self, placed: RunState) -> Outcome:
        return self.placement.look(self.problem, self.search, placed)

    def _checked(
        self, placed: RunState, seen: Outcome, num_searches: int
    ) -> tuple[RunState, Status]:
        """Returns the state and the status after a chunk; the target counts in exact costs.

        A float cost on the device is rounded, and may meet the target where the exact one does
        not: then the run continues towards a lower one. So it does after a hit whose solution the
        search has lost.
        """
        status, is_met = seen.status, self._meets_goal()
        if status == Status.TARGET and not is_met:
            if np.issubdtype(seen.cost.dtype, np.floating):
                lower = np.nextafter(seen.cost, np.array(-np.inf, seen.cost.dtype))
                self.limits = dataclasses.replace(self.limits, target=lower)
            joined = self.placement.join(placed, num_searches)
            joined = arguments.retargeted(self.problem, self.search, joined, self.limits.target)
            placed, status = self.placement.split(joined), Status.RUNNING
        if status == Status.RUNNING:
            status = self.timer.status(seen.step)
            status = Status.TARGET if status != Status.RUNNING and is_met else status
        return placed, status

    def _meets_goal(self) -> bool:
        goal, (_, fun) = self.limits.goal, self.best
        return goal is not None and math.isfinite(fun) and fun <= goal

    def _next_steps(self, step: int, made: int, seconds: float) -> int:
        """Returns the steps of the next chunk."""
        # Where steps may be slow, the first chunk tells.
        is_fast = self.choice.implementation in ("triton", "native")
        first = self.limits.check_every if is_fast else 1
        if (chunk_steps := self.limits.chunk_steps) is not None:
            made, first = 0, chunk_steps
        return self.timer.next_steps(step, made, seconds, first)

    def _snapshot(self, seen: Outcome, status: Status, num_moves: int) -> Report:
        x, fun = self.best
        return Report(
            step=seen.step,
            seconds=self.timer.seconds,
            fun=fun,
            x=jax.tree.map(np.array, x),
            gap=self._gap(fun),
            acceptance=seen.accepted / max(num_moves, 1),
            status=status,
        )

    def _note(self, seen: Outcome) -> None:
        """Takes note of the best solution so far and its exact cost."""
        x, fun = self._best(seen)
        if math.isnan(self.best[1]) or fun < self.best[1]:
            self.best = x, fun

    def _best(self, seen: Outcome) -> tuple[Any, int | float]:
        """Returns the best solution and its exact cost, after comparing that with the device's."""
        solution, running = seen.solution, seen.cost.item()
        if self.host is None:
            exact = _full_cost(self.problem, solution).item()
        else:
            exact, running = self.host.cost(solution), self.host.in_full(running)
        if isinstance(exact, int) and exact != running:
            raise RuntimeError(
                f"the running cost {running} is not the exact {exact}; please report this bug, if"
                " delta and cost are not your own and the run does not continue another one's state"
            )
        is_feasible = self.host is None or self.host.is_feasible(solution)
        return jax.tree.map(np.array, solution), exact if is_feasible else math.inf

    def _gap(self, fun: int | float) -> float | None:
        best_known = self.host.best_known if self.host else None
        if best_known is None:
            return None
        if best_known == 0:
            return 0.0 if fun == 0 else math.copysign(math.inf, fun)
        return (fun - best_known) / abs(best_known)

    def _record(self, snapshot: Report) -> None:
        if len(self.history) >= self.history_size // 2 * 2:  # even, so that gaps stay equal
            self.history = self.history[::2]
            self.record_every *= 2
        self.history.append(
            Record(snapshot.step, snapshot.seconds, snapshot.fun, snapshot.acceptance)
        )

    def _result(self, state: RunState, seen: Outcome, status: Status, first_step: int) -> Result:
        self._note(seen)
        x, fun = self.best
        with held_back():
            best = outcome.all_best(self.problem, self.search, state)
        (solutions, costs), ancestors = jax.tree.map(
            np.array, jax.device_get((best, state.ancestor))
        )
        if self.host is not None:
            costs = self.host.all_in_full(costs)
        made = seen.step
        is_met, hit = self._meets_goal(), seen.first_hit
        return Result(
            x=x,
            fun=fun,
            success=is_met or self._is_success(status, made),
            status=status,
            message=self._message(status, fun, made),
            nit=made,
            nfev=(made - first_step) * len(costs) * self.search.evaluations_per_step(self.problem),
            gap=self._gap(fun),
            first_hit=(hit or Hit(made, seen.best_search)) if is_met else None,
            feasible=math.isfinite(fun),
            history=self.history,
            costs=costs,
            solutions=solutions,
            ancestors=ancestors,
            state=state._replace(status=jax.device_put(np.int32(status))),
            compile_seconds=self.timer.compile_seconds or 0.0,
            elapsed=self.timer.elapsed,
            env=environment.of(self.placement.devices) | {"implementation": str(self.choice)},
        )

    def _is_success(self, status: Status, made: int) -> bool:
        """Returns whether a run that has not met a target, or had none, is one."""
        has_searched = made > 0 or status == Status.LOCAL_OPTIMA or self._is_trivial()
        is_wanted = self.limits.goal is not None and not self.is_optional
        is_found = has_searched and math.isfinite(self.best[1])
        return is_found and not is_wanted and status != Status.INTERRUPTED

    def _is_trivial(self) -> bool:
        return getattr(self.problem, "is_trivial", False)

    def _message(self, status: Status, fun: int | float, made: int) -> str:
        parts = [MESSAGES[status]]
        if self._is_trivial():
            parts = ["all solutions have the same cost"]
        elif not made and status != Status.LOCAL_OPTIMA:
            parts.append("no step was made: this is the best start")
        elif status == Status.TARGET and self.is_optional:
            parts = ["the optimum was reached, which is proven"]
        if not math.isfinite(fun):
            parts.append(f"the best cost is {fun}, which is no success")
        if self.host is not None:
            if self.host.best_known is not None and fun < self.host.best_known:
                parts.append(f"better than the best known {self.host.best_known}")
            if self.host.note:
                parts.append(self.host.note)
        return "; ".join(parts)


@jax.jit
def _full_cost(problem: Problem, solution: Any) -> jax.Array:
    return cost_of(problem, solution)
