"""One run of `solve` on the host: its chunks, what is seen of it, and what is kept of it."""

import dataclasses
import json
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search.backends import Choice
from jaxopt_search.checks import MAX_INT32, check_count
from jaxopt_search.driver import ahead, checkpoints, environment, memory_use, starts, states
from jaxopt_search.driver.arguments import Checked, Kept, Resumption, Start
from jaxopt_search.driver.checkpoints import Identity, Snapshot
from jaxopt_search.driver.chunks import Timer
from jaxopt_search.driver.results import Best, Recorder, Report
from jaxopt_search.driver.steering import Steer, check_steer
from jaxopt_search.engine import room, starting, stepping
from jaxopt_search.engine.kept_programs import Program
from jaxopt_search.engine.outcome import Outcome
from jaxopt_search.engine.state import Rules, RunState, make_rules, with_all_limits, with_best
from jaxopt_search.problems.host import counted_in_full
from jaxopt_search.results import History, Hit, Record, Result, Status

_LONGEST_FIRST = ("steps", "exchange", "adoption", "start", "look")
"""Programs in the order in which they are traced, by how long they then compile."""


def _first_state(checked: Checked) -> RunState:
    """Returns the state before the first step."""
    problem, search, begin = checked.problem, checked.search, checked.begin
    if isinstance(begin, Resumption):
        state = checked.split.bring(begin.state)
        if begin.saved is not None:
            with checkpoints.notes_read():
                goal, patience = (begin.saved.notes[name] for name in ("goal", "patience"))
            if goal == checked.limits.goal:
                return _with_patience(state, patience, checked.limits.patience)
        return states.reopened(problem, search, state, checked.limits.target)
    solutions = None
    if begin.starts is not None:
        solutions = starts.for_all(problem, begin.key, begin.starts, begin.num_searches)
    key, solutions = checked.split.bring((begin.key, solutions))
    return starting.start(key, problem, search, solutions, begin.num_searches)


def _with_patience(state: RunState, old: int | None, new: int | None) -> RunState:
    """Returns a state that continues if another patience had ended it."""
    if old == new or int(state.status) != Status.PATIENCE:
        return state
    return state._replace(status=jnp.int32(Status.RUNNING))


class Run:
    """One call of `solve`: a `chunks.Chunked`.

    Attributes:
      checked: what is done; a callback may change the search and the exchange, and the target on
        the device may fall.
      state: of the searches, spread over the devices.
      step: steps made by each search at the last look.
      best: the best solution so far.
      history: lines on the chunks.
    """

    def __init__(
        self,
        checked: Checked,
        timer: Timer,
        note_needed: Callable[[int], None],
        callback: Callable[[Report], Any] | None = None,
    ):
        self.checked, self.timer, self._callback = checked, timer, callback
        self._given = checked.search, checked.exchange
        self._own_identity: Identity | None = None
        # A state of a user's is checked before anything is compiled for it; one in a checkpoint
        # comes to the device once there is room.
        is_given = isinstance(checked.begin, Resumption) and checked.begin.saved is None
        given = _first_state(checked) if is_given else None
        self._compile_ahead(note_needed)
        first = _first_state(self.checked) if given is None else given
        self.state = checked.split.split(jax.block_until_ready(first))
        self.step = self.first_step = int(self.state.step)
        self.best = Best(checked.problem, checked.limits)
        self.history = Recorder(checked.history_size)
        self._seen: Outcome | None = None  # after the last chunk
        self._made = 0  # steps of it
        self._ask_after: int | None = None
        if isinstance(checked.begin, Resumption) and checked.begin.saved is not None:
            self._recall(checked.begin.saved)

    def _recall(self, saved: Snapshot) -> None:
        """Continues from what a checkpoint knows besides the state."""
        notes, limits = saved.notes, self.checked.limits
        search, exchange = self.checked.split.bring(saved.state[1:])
        self.checked = dataclasses.replace(self.checked, search=search, exchange=exchange)
        with checkpoints.notes_read():
            self.timer.before = checkpoints.seconds_of(notes)
            self.first_step = check_count("first_step", notes["first_step"], 0, None)
            self.best.recall(saved.best, notes["fun"])
            self.history.recall(notes["history"])
            of_callback = notes["callback"]
            if notes["goal"] == limits.goal and limits.target is not None:
                target = limits.target.dtype.type(notes["target"])  # after false hits it is lower
                limits = dataclasses.replace(limits, target=target)
                self.checked = dataclasses.replace(self.checked, limits=limits)
        recall = getattr(self._callback, "recall", None)
        if recall is not None and of_callback is not None:
            recall(of_callback)

    def identity(self) -> Identity:
        """As it was given; with the search and exchange that hold, where these are of other kinds.

        For a run continues with numbers that a callback has changed, which a checkpoint keeps, but
        static parts are the caller's to give.
        """
        held = self.checked.search, self.checked.exchange
        if states.signature(held) != states.signature(self._given):
            return self._identity(*held)
        if self._own_identity is None:
            self._own_identity = self._identity(*self._given)
        return self._own_identity

    def _identity(self, search: Any, exchange: Any) -> Identity:
        every = self.checked.limits.check_every
        return checkpoints.identity_of(self.checked.problem, search, exchange, every)

    def snapshot(self) -> Snapshot:
        self.look()
        checked, limits = self.checked, self.checked.limits
        joined = checked.split.join(self.state, checked.begin.num_searches)
        notes = {
            "num_searches": checked.begin.num_searches,
            "seconds": self.timer.seconds,
            "first_step": self.first_step,
            "fun": self.best.fun,
            "goal": limits.goal,
            "patience": limits.patience,
            "target": None if limits.target is None else limits.target.item(),
            "history": self.history.notes(),
            "callback": self.callback_notes(),
            "env": environment.of(checked.split.devices),
        }
        held = jax.tree.map(jnp.asarray, (checked.search, checked.exchange))
        return Snapshot(jax.device_get(Kept(joined, *held)), self.best.x, notes)

    def callback_notes(self) -> Any:
        """Returns what the callback wants to be kept.

        Raises:
          TypeError: if JSON cannot hold it.
        """
        notes = getattr(self._callback, "notes", lambda: None)()
        try:
            json.dumps(notes)
        except (TypeError, ValueError) as error:
            raise TypeError(f"callback.notes() returns what JSON cannot hold: {error}") from None
        return notes

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

    def _programs(self) -> tuple[dict[str, Program], Program | None]:
        """Returns the programs of the run, by the moments of `room`, and what takes over later."""
        checked, begin = self.checked, self.checked.begin
        own = checked.problem, checked.search
        shape = starting.shape(*own, begin.num_searches)
        rules, choice = self._rules(shape.device_best.dtype), checked.choice.implementation
        programs, later = checked.split.programs(*own, shape, rules, choice)
        if isinstance(begin, Start):
            given = begin.starts and starts.shapes(begin.starts, begin.num_searches)
            key, given = checked.split.brought((begin.key, given))
            programs["start"] = starting.program(key, *own, given, begin.num_searches)
        return {name: programs[name] for name in sorted(programs, key=_LONGEST_FIRST.index)}, later

    def _compile_ahead(self, note_needed: Callable[[int], None]) -> None:
        """Compiles side by side, and refuses a run that then turns out not to fit.

        What turns out not to run in a kernel is run by XLA.

        Raises:
          MemoryError: with the sizes.
        """
        checked, devices = self.checked, self.checked.split.devices
        if not checked.split.compiles_ahead:
            self._build_starts()
            return
        programs, later = self._programs()
        ahead.compile_all(programs.values(), self._build_starts, later)
        parts = checked.problem, checked.search, checked.exchange
        shape = starting.shape(*parts[:2], checked.begin.num_searches)
        try:
            needed = memory_use.of_programs(programs, parts, shape, devices)
        except Exception:
            if not self._leaves_kernel():
                raise
            self._compile_ahead(note_needed)
            return
        note_needed(needed.total)
        room.check(parts, needed, checked.begin.num_searches, devices)

    def _leaves_kernel(self) -> bool:
        """Returns whether a kernel was chosen for what cannot run in one; then XLA is chosen."""
        checked = self.checked
        if checked.choice.implementation != "triton":
            return False
        reason = stepping.why_not_portable(checked.problem, checked.search)
        if reason:
            self.checked = dataclasses.replace(checked, choice=Choice("xla", reason))
        return bool(reason)

    def _build_starts(self) -> None:
        """Builds start solutions that were put off until programs compile."""
        begin = self.checked.begin
        if isinstance(begin, Start) and begin.starts is not None:
            begin = begin._replace(starts=begin.starts.built())
            self.checked = dataclasses.replace(self.checked, begin=begin)

    def advance(self, num_steps: int) -> None:
        checked, self._seen = self.checked, None
        state = checked.split.advance(
            checked.problem,
            checked.search,
            self.state,
            num_steps,
            self._rules(self.state.device_best.dtype),
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
        chunk_steps, exchange = self.checked.limits.chunk_steps, self.checked.exchange
        if chunk_steps is not None:
            num_steps = self.timer.next_steps(self.step, 0, seconds, chunk_steps)
        else:
            every = MAX_INT32 if exchange is None else int(jax.device_get(exchange.every))
            num_steps = self.timer.next_steps(self.step, made, seconds, every=every)
        if self._ask_after is not None:
            num_steps = min(num_steps, max(self._ask_after, 1))
            self._ask_after = None
        return num_steps

    def steered(self, report: Report) -> Any:
        """Asks the callback, an observer whose answer may steer the run."""
        assert self._callback is not None
        answer = self._callback(report)
        if isinstance(answer, Steer):
            return self._steer(answer)
        return answer

    def _steer(self, steer: Steer) -> None:
        search, exchange, self._ask_after = steer
        check_steer(self.checked.problem, self.checked.search, self.checked.exchange, steer)
        self.checked = dataclasses.replace(self.checked, search=search, exchange=exchange)

    def result(self, status: Status) -> Result:
        """Returns the result of the run, which has ended."""
        seen, checked, best = self.look(), self.checked, self.best
        problem, search = counted_in_full(checked.problem), checked.search
        state = checked.split.join(self.state, checked.begin.num_searches)
        state = with_best(problem, state, state.device_best)
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


def optimal_start(checked: Checked, timer: Timer) -> Result | None:
    """Returns the result of a run whose constructed start is proven optimal; None for any other.

    Nothing is compiled for it, and there is no state from which it could continue.
    """
    begin, original, limits = checked.begin, checked.original, checked.limits
    if original is None or limits.goal is None or not limits.is_optional:
        return None
    if not isinstance(begin, Start) or begin.starts is None or begin.starts.build is None:
        return None
    solutions = begin.starts.built().solutions
    costs = [original.cost(solution) for solution in solutions]
    number, best = costs.index(min(costs)), Best(checked.problem, limits)
    best.x, best.fun = np.array(original.own(solutions[number])), costs[number]
    if not best.meets_goal:
        return None
    return Result(
        x=best.x,
        fun=best.fun,
        success=True,
        status=Status.TARGET,
        message=best.message(Status.TARGET, 0),
        nit=0,
        nfev=0,
        gap=best.gap,
        first_hit=Hit(0, number),
        feasible=True,
        history=History([Record(0, 0.0, best.fun, 0.0)]),
        costs=np.array(costs),
        solutions=original.own(solutions),
        ancestors=np.arange(len(costs), dtype=np.int32),
        state=None,
        compile_seconds=0.0,
        elapsed=timer.elapsed,
        env=environment.of(checked.split.devices) | {"implementation": "none"},
        problem=counted_in_full(checked.problem),
        search=checked.search,
        exchange=checked.exchange,
    )
