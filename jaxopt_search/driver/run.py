"""`solve`: a run in chunks, with all that needs a clock or a person.

Wall-clock limits, progress, callbacks, Ctrl-C and history live here and in `chunks`. How a run is
cut into chunks changes none of its searches.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, Literal

import jax
import numpy as np

from jaxopt_search.driver import arguments, environment, progress, starts, states
from jaxopt_search.driver.ahead import Ahead
from jaxopt_search.driver.arguments import Arguments, Checked, Resumption
from jaxopt_search.driver.chunks import Timer, drive
from jaxopt_search.driver.results import Best, Recorder, Report
from jaxopt_search.driver.steering import Steer, check_steer
from jaxopt_search.engine import device_split, starting
from jaxopt_search.engine.outcome import Outcome
from jaxopt_search.engine.state import Rules, RunState, make_rules, with_all_limits
from jaxopt_search.guards.capacity import memory_errors_explained
from jaxopt_search.kernels import Implementation
from jaxopt_search.results import Hit, Result, Status
from jaxopt_search.types import Exchange, Problem, Search


# size: each of the 18 public parameters takes a line here and one where it is handed on.
def solve(
    problem: Problem,
    search: Search,
    key: Any = 0,
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

    At least one of `max_steps`, `max_seconds`, `target` and `patience` must be given, except for
    hill climbing without an exchange on integer costs, which ends by itself. Ctrl-C after the first
    chunk ends the run with the best so far.

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
      patience: end once this many steps brought no better cost.
      exchange: what searches learn from one another; None for nothing.
      initial: start solutions. One for all: the first search starts there and the others close
        by, at `problem.perturb` of it, or there too if the problem has no such method. Or one
        for each search, with a leading axis.
      state: the `Result.state` of a run to continue, made with the same arguments; takes the
        place of `key`, `num_searches` and `initial`. The number of devices may differ.
      devices: None for the default device, `"all"`, a platform, a number, or a list.
      check_every: steps between stop tests; None for 100, or what the search asks for. First hits
        are exact whatever it is.
      chunk_steps: steps per chunk; None for chunks of half a second or less.
      callback: called with a `Report` after each chunk; True ends the run, a `Steer` changes
        its settings.
      show_progress: whether to show on standard error where the run stands, also while programs
        compile: as a bar with tqdm (the extra `progress`), else as lines.
      history_size: lines of history kept; beyond, every other line is dropped, as often as needed.
      implementation: how steps are run: `"triton"` as a fused kernel, `"xla"`, or another of
        `kernels.Implementation`; `"auto"` takes the fastest. `Result.env` tells what ran and why.

    Raises:
      ValueError: for arguments out of range, before anything is compiled.
      TypeError: likewise, for what is no problem, search, exchange, callback or state.
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
    checked = arguments.check(
        Arguments(
            problem=problem,
            search=search,
            key=key,
            num_searches=num_searches,
            max_steps=max_steps,
            max_seconds=max_seconds,
            target=target,
            patience=patience,
            exchange=exchange,
            initial=initial,
            state=state,
            devices=devices,
            check_every=check_every,
            chunk_steps=chunk_steps,
            callback=callback,
            history_size=history_size,
            implementation=implementation,
        )
    )
    timer.limit(checked.limits.max_steps, checked.limits.max_seconds)
    with (
        progress.shown(show_progress, timer) as shown,
        memory_errors_explained(checked.begin.num_searches),
    ):
        run = _Run(checked, timer)
        observers: list[Callable[[Any], Any]] = [run.history.note]
        if callback is not None:
            observers.append(run.steered_by(callback))
        return run.result(drive(run, timer, [*observers, *shown]))


def _first_state(checked: Checked) -> RunState:
    """Returns the state before the first step."""
    problem, search, begin = checked.problem, checked.search, checked.begin
    if isinstance(begin, Resumption):
        state = checked.split.bring(begin.state)
        return states.reopened(problem, search, state, checked.limits.target)
    solutions = None
    if begin.starts is not None:
        solutions = starts.for_all(problem, begin.key, begin.starts, begin.num_searches)
    key, solutions = checked.split.bring((begin.key, solutions))
    return starting.start(key, problem, search, solutions, begin.num_searches)


class _Run:
    """One call of `solve`: a `chunks.Chunked`.

    Attributes:
      checked: what is done; a callback may change the search and the exchange, and the target on
        the device may fall.
      state: of the searches, spread over the devices.
      step: steps made by each search at the last look.
      best: the best solution so far.
      history: lines on the chunks.
    """

    def __init__(self, checked: Checked, timer: Timer):
        self.checked, self.timer = checked, timer
        # A state of a user's is checked before anything is compiled for it.
        given = _first_state(checked) if isinstance(checked.begin, Resumption) else None
        self._ahead = Ahead(self._to_compile())
        first = _first_state(checked) if given is None else given
        self.state = checked.split.split(jax.block_until_ready(first))
        self.step = self.first_step = int(self.state.step)
        self.best = Best(checked.problem, checked.limits)
        self.history = Recorder(checked.history_size)
        self._seen: Outcome | None = None  # after the last chunk
        self._made = 0  # steps of it
        self._ask_after: int | None = None

    def _rules(self, dtype: Any) -> Rules:
        limits, search = self.checked.limits, self.checked.search
        rules = make_rules(
            search,
            dtype,
            exchange=self.checked.exchange,
            target=limits.target,
            patience=limits.patience,
            check_every=limits.check_every,
        )
        return with_all_limits(rules, search, dtype)

    def _to_compile(self) -> list[Callable[[], None]]:
        checked = self.checked
        own = checked.problem, checked.search
        shape = starting.shape(*own, checked.begin.num_searches)
        rules, choice = self._rules(shape.best_cost.dtype), checked.choice.implementation
        return checked.split.to_compile(*own, shape, rules, choice)

    def advance(self, num_steps: int) -> None:
        checked, self._seen = self.checked, None
        self._ahead.wait()
        state = checked.split.advance(
            checked.problem,
            checked.search,
            self.state,
            num_steps,
            self._rules(self.state.best_cost.dtype),
            checked.choice.implementation,
        )
        self.state, self._made = jax.block_until_ready(state), num_steps

    def look(self) -> Outcome:
        """Returns what there is to see after the last chunk, at which it looks once."""
        if self._seen is None:
            checked = self.checked
            seen = checked.split.look(checked.problem, checked.search, self.state)
            self.best.note(seen)
            self.step, self._seen = seen.step, seen
        return self._seen

    def status(self, limit: Status) -> Status:
        """Returns the status after a chunk; the target counts in exact costs."""
        seen = self.look()
        status, is_met = seen.status, self.best.meets_goal
        if status == Status.TARGET and not is_met:
            self._continue_below(seen)
            status = Status.RUNNING
        if status != Status.RUNNING:
            return status
        return Status.TARGET if limit != Status.RUNNING and is_met else limit

    def _continue_below(self, seen: Outcome) -> None:
        """Lets the run continue after a false hit.

        A float cost on the device is rounded, and may meet the target where the exact one does
        not: then the run continues towards a lower one. So it does after a hit whose solution the
        search has lost.
        """
        checked, num_searches = self.checked, self.checked.begin.num_searches
        if np.issubdtype(seen.cost.dtype, np.floating):
            lower = np.nextafter(seen.cost, np.array(-np.inf, seen.cost.dtype))
            limits = dataclasses.replace(checked.limits, target=lower)
            self.checked = checked = dataclasses.replace(checked, limits=limits)
        joined = checked.split.join(self.state, num_searches)
        joined = states.retargeted(checked.problem, checked.search, joined, checked.limits.target)
        self.state = checked.split.split(joined)

    def report(self, status: Status) -> Report:
        seen = self.look()
        num_moves = self._made * self.checked.begin.num_searches
        return Report(
            step=seen.step,
            seconds=self.timer.seconds,
            fun=self.best.fun,
            x=jax.tree.map(np.array, self.best.x),
            gap=self.best.gap,
            acceptance=seen.accepted / max(num_moves, 1),
            status=status,
        )

    def next_steps(self, made: int, seconds: float) -> int:
        limits = self.checked.limits
        # Where steps may be slow, the first chunk tells.
        is_fast = self.checked.choice.implementation in ("triton", "native")
        first = limits.check_every if is_fast else 1
        if limits.chunk_steps is not None:
            made, first = 0, limits.chunk_steps
        num_steps = self.timer.next_steps(self.step, made, seconds, first)
        if self._ask_after is not None:
            num_steps = min(num_steps, max(self._ask_after, 1))
            self._ask_after = None
        return num_steps

    def steered_by(self, callback: Callable[[Report], Any]) -> Callable[[Report], Any]:
        """Returns the callback as an observer: what it returns may steer the run."""

        def observe(report: Report) -> Any:
            answer = callback(report)
            if isinstance(answer, Steer):
                self._steer(answer)
            return answer

        return observe

    def _steer(self, steer: Steer) -> None:
        search, exchange, self._ask_after = steer
        check_steer(self.checked.problem, self.checked.search, self.checked.exchange, steer)
        self.checked = dataclasses.replace(self.checked, search=search, exchange=exchange)

    def result(self, status: Status) -> Result:
        """Returns the result of the run, which has ended."""
        seen, checked, best = self.look(), self.checked, self.best
        problem, search = checked.problem, checked.search
        state = checked.split.join(self.state, checked.begin.num_searches)
        solutions, costs = checked.split.all_best(seen, checked.begin.num_searches)
        ancestors = np.array(state.ancestor)
        if checked.original is not None:
            costs = checked.original.all_in_full(costs)
            solutions = checked.original.own(solutions)
        made, hit = seen.step, seen.first_hit or Hit(seen.step, seen.best_search)
        return Result(
            x=best.x,
            fun=best.fun,
            success=best.is_success(status, made),
            status=status,
            message=best.message(status, made),
            nit=made,
            nfev=(made - self.first_step) * len(costs) * search.evaluations_per_step(problem),
            gap=best.gap,
            first_hit=hit if best.meets_goal else None,
            feasible=math.isfinite(best.fun),
            history=self.history.lines,
            costs=costs,
            solutions=solutions,
            ancestors=ancestors,
            state=state._replace(status=jax.device_put(np.int32(status))),
            compile_seconds=self.timer.compile_seconds or 0.0,
            elapsed=self.timer.elapsed,
            env=environment.of(checked.split.devices) | {"implementation": str(checked.choice)},
            problem=problem,
            search=search,
            exchange=checked.exchange,
        )
