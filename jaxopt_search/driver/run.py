"""`solve`: a run in chunks, with all that needs a clock or a person.

How a run is cut into chunks changes none of its searches.
"""

import json
import math
import os
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search import contracts
from jaxopt_search.backends import Choice, Implementation
from jaxopt_search.checks import MAX_INT32, check_count
from jaxopt_search.driver import checkpoints, chunks, environment, starts
from jaxopt_search.driver.checkpoints import Identity, Snapshot
from jaxopt_search.driver.options import RunOptions, Timer, resolve
from jaxopt_search.driver.plan import Plan, SavedRun
from jaxopt_search.driver.results import Best, Recorder, Report
from jaxopt_search.engine import memory, starting, stepping
from jaxopt_search.engine.compile import Program, compile_all
from jaxopt_search.engine.devices import Devices, host_driver
from jaxopt_search.engine.memory import memory_errors_explained
from jaxopt_search.engine.outcome import Outcome
from jaxopt_search.engine.state import Rules, RunState, make_rules, with_best
from jaxopt_search.interrupts import held_back
from jaxopt_search.problems.host import counted_in_full
from jaxopt_search.results import History, Hit, Record, Result, Status
from jaxopt_search.types import Exchange, Problem, Search

_LONGEST_FIRST = ("steps", "exchange", "start", "look")
"""Programs in the order in which they are traced, by how long they then compile."""


@host_driver
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
    checkpoint: str | os.PathLike | None = None,
    checkpoint_every: float = checkpoints.DEFAULT_SECONDS,
    resume: str | os.PathLike | bool | None = None,
    devices: Devices = None,
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
      checkpoint: a new file that ends in `.npz`, into which the run is written now and then and at
        its end, also when Ctrl-C, SIGTERM or an error ends it; None for none. There is always a
        whole one: the old or the new.
      checkpoint_every: seconds between two of them, or more where they would take a hundredth of
        the time.
      resume: a checkpoint to continue, of the same problem, search and exchange; bit for bit as an
        unbroken run would, on any number of devices. It takes the place of `key`, `num_searches`
        and `initial`; `max_steps` and `max_seconds` count what was made before. True for that of
        `checkpoint`, if it is there.
      devices: None for the default device, `"all"`, a platform, a number, or a list. After
        `jax.distributed.initialize`, `"all"` and platforms mean those of all processes, each of
        which makes the same call.
      check_every: steps between stop tests; None for 100, or what the search asks for. First hits
        are exact whatever it is.
      chunk_steps: steps per chunk; None for chunks of half a second or less.
      callback: called with a `Report` after each chunk; True ends the run, a `Steer` changes
        its settings, None or False does neither. If it has `notes()`, which returns something for
        JSON, a checkpoint keeps that, and a run that resumes begins with `recall(notes)`.
      show_progress: whether to show on standard error where the run stands, also while programs
        compile: as a bar with tqdm (the extra `progress`), else as lines.
      history_size: lines of history kept; beyond, every other line is dropped, as often as needed.
      implementation: how steps are run: `"triton"` as a fused kernel, `"xla"`, or another of
        `backends.Implementation`; `"auto"` takes the fastest. `Result.env` tells what ran and why.

    Raises:
      ValueError: for arguments out of range, before anything is compiled.
      TypeError: likewise, for what is no problem, search, exchange, callback or state.
      CheckpointError: if the file to resume is no whole checkpoint, or one of another run.
      OSError: if a checkpoint cannot be written there; later, a warning says so.
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
    options = resolve(
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
    with options.team.same_call():
        plan = Plan(
            options,
            problem,
            search,
            key,
            num_searches=num_searches,
            target=target,
            patience=patience,
            exchange=exchange,
            initial=initial,
            state=state,
            check_every=check_every,
            chunk_steps=chunk_steps,
            implementation=implementation,
        )
    return execute(plan, options)


def execute(plan: Plan, options: RunOptions) -> Result:
    """Runs what is planned, in all processes that share the run.

    Raises:
      ValueError: if another process plans something else.
    """
    if options.team.is_shared:
        with options.team.same_call() as note:
            note(plan.words())
    found = None if options.keeper is not None else _optimal_start(plan, options)
    if found is not None:
        return found
    explained = memory_errors_explained(f"num_searches={plan.num_searches}")
    with explained as note_needed, chunks.watched(options) as watch:
        run = Run(plan, options, note_needed)
        observers: list[Callable[[Any], Any]] = [run.history.note]
        if options.callback is not None:
            observers.append(run.steered)
        if options.keeper is not None:
            run.callback_notes()  # before a search is lost because of them
        return run.result(chunks.drive(run, options, observers, watch))


class Steer(NamedTuple):
    """What a callback returns to continue with other settings, of the same types and shapes.

    Attributes:
      search: in place of the one so far.
      exchange: likewise.
      ask_after: the callback is called again after this many steps at the latest; None to leave
        that to the clock.

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.tsp_from_instance(js.datasets.grid_tsp(4, 4))
      >>> def at(temperature):
      ...     return js.simulated_annealing(js.Relocate(), temperature)
      >>> def cool(report):
      ...     return Steer(at(5000 / (report.step + 100)), exchange=None, ask_after=500)
      >>> js.solve(problem, at(50.0), 0, callback=cool, num_searches=8, max_steps=4000).fun
      160
    """

    search: Search
    exchange: Exchange | None
    ask_after: int | None = None


def check_steer(problem: Problem, search: Search, exchange: Exchange | None, after: Steer) -> None:
    """Refuses a `Steer` with which a run of a search and an exchange cannot continue.

    Raises:
      TypeError: for what is no search or exchange, or a search with states of another kind.
    """
    if jax.tree.structure((search, exchange)) == jax.tree.structure(after[:2]):
        return
    contracts.check_part(after.search, Search, "the callback's search")
    if after.exchange is not None:
        contracts.check_part(after.exchange, Exchange)
    try:
        ours, theirs = (
            starts.signature(starting.shape(problem, one, 1)) for one in (search, after.search)
        )
        has_same_states = ours == theirs
    except Exception:  # the other one is not for this problem
        has_same_states = False
    if not has_same_states:
        kinds = [type(one).__name__ for one in (after.search, search)]
        raise TypeError(
            f"the callback's search is a {kinds[0]}, expected a {kinds[1]} with states of the"
            " same shapes"
        )


class Run:
    """One call of `solve`: a `chunks.Chunked`.

    Attributes:
      plan: what is done.
      search, exchange: those of the plan, until a callback changes them.
      target: on the device; that of the plan, until a hit turns out to be false.
      choice: how steps are run; that of the plan, unless it turns out not to compile.
      state: of the searches, spread over the devices.
      step: steps made by each search at the last look.
      best: the best solution so far.
      history: lines on the chunks.
    """

    def __init__(self, plan: Plan, options: RunOptions, note_needed: Callable[[int], None]):
        self.plan, self.timer, self._callback = plan, options.timer, options.callback
        self.search, self.exchange = plan.search, plan.exchange
        self.target: Any = plan.target
        self.choice = plan.choice
        self._own_identity: Identity | None = None
        # A state of a user's is checked before anything is compiled for it; one in a checkpoint
        # comes to the device once there is room.
        is_given = plan.state is not None and plan.saved is None
        first = self._first_state() if is_given else None
        self._compile_ahead(note_needed)
        first = self._first_state() if first is None else first
        self.state = plan.split.split(jax.block_until_ready(first))
        self.step = self.first_step = int(self.state.step)
        self.best = Best(plan)
        self.history = Recorder(options.history_size)
        self._seen: Outcome | None = None  # after the last chunk
        self._made = 0  # steps of it
        self._ask_after: int | None = None
        if plan.saved is not None:
            self._recall(plan.saved)

    def _first_state(self) -> RunState:
        """Returns the state before the first step."""
        plan = self.plan
        if plan.key is not None:
            solutions = None
            if plan.starts is not None:
                built = plan.starts.built()
                solutions = starts.for_all(plan.problem, plan.key, built, plan.num_searches)
            key, solutions = plan.split.bring((plan.key, solutions))
            own = key, plan.problem, self.search, solutions
            with held_back():
                return jax.block_until_ready(starting.begin(*own, num_searches=plan.num_searches))
        state: Any = plan.split.bring(plan.state)
        if plan.saved is not None:
            with checkpoints.notes_read():
                goal, patience = (plan.saved.notes[name] for name in ("goal", "patience"))
            if goal == plan.goal:
                if patience != plan.patience and int(state.status) == Status.PATIENCE:
                    return state._replace(status=jnp.int32(Status.RUNNING))
                return state
        return starts.reopened(plan.problem, self.search, state, self.target)

    def _recall(self, saved: Snapshot) -> None:
        """Continues from what a checkpoint knows besides the state."""
        notes, plan = saved.notes, self.plan
        self.search, self.exchange = plan.split.bring(saved.state[1:])
        with checkpoints.notes_read():
            self.timer.before = checkpoints.seconds_of(notes)
            self.first_step = check_count("first_step", notes["first_step"], 0, None)
            self.best.recall(saved.best, notes["fun"])
            self.history.recall(notes["history"])
            of_callback = notes["callback"]
            if notes["goal"] == plan.goal and self.target is not None:
                self.target = self.target.dtype.type(notes["target"])  # lower after false hits
        recall = getattr(self._callback, "recall", None)
        if recall is not None and of_callback is not None:
            recall(of_callback)

    def identity(self) -> Identity:
        """As it was given; with the search and exchange that hold, where these are of other kinds.

        For a run continues with numbers that a callback has changed, which a checkpoint keeps, but
        static parts are the caller's to give.
        """
        plan = self.plan
        held, given = (self.search, self.exchange), (plan.search, plan.exchange)
        if starts.signature(held) != starts.signature(given):
            return checkpoints.identity_of(plan.problem, *held, plan.check_every)
        if self._own_identity is None:
            self._own_identity = checkpoints.identity_of(plan.problem, *given, plan.check_every)
        return self._own_identity

    def snapshot(self) -> Snapshot:
        self.look()
        plan = self.plan
        notes = {
            "num_searches": plan.num_searches,
            "seconds": self.timer.seconds,
            "first_step": self.first_step,
            "fun": self.best.fun,
            "goal": plan.goal,
            "patience": plan.patience,
            "target": None if self.target is None else self.target.item(),
            "history": self.history.notes(),
            "callback": self.callback_notes(),
            "env": environment.of(plan.split.devices),
        }
        joined = plan.split.join(self.state, plan.num_searches)
        held = jax.tree.map(jnp.asarray, (self.search, self.exchange))
        return Snapshot(jax.device_get(SavedRun(joined, *held)), self.best.x, notes)

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
        return make_rules(
            self.search,
            dtype,
            exchange=self.exchange,
            target=self.target,
            patience=self.plan.patience,
            check_every=self.plan.check_every,
        )

    def _compile_ahead(self, note_needed: Callable[[int], None]) -> None:
        """Compiles side by side, and refuses a run that then turns out not to fit.

        What turns out not to run in a kernel is run by XLA.

        Raises:
          MemoryError: with the sizes.
        """
        plan = self.plan
        if not plan.split.compiles_ahead:
            return
        own, split = (plan.problem, self.search), plan.split
        shape = starting.shape(*own, plan.num_searches)
        rules = self._rules(shape.device_best.dtype)
        programs = split.programs(*own, shape, rules, self.choice.implementation)
        if plan.key is not None:
            given = plan.starts and starts.shapes(plan.starts, plan.num_searches)
            key, given = split.brought((plan.key, given))
            static = {"num_searches": plan.num_searches}
            programs["start"] = Program(starting.begin, (key, *own, given), static)
        programs = {name: programs[name] for name in sorted(programs, key=_LONGEST_FIRST.index)}
        compile_all(programs.values(), plan.starts and plan.starts.built)
        parts = plan.problem, self.search, self.exchange
        try:
            needed = memory.estimate(parts, shape, split.devices, programs)
        except Exception:
            reason = ""
            if self.choice.implementation == "triton":
                reason = stepping.why_not_portable(*own)
            if not reason:
                raise
            self.choice = Choice("xla", reason)
            self._compile_ahead(note_needed)
            return
        note_needed(needed.total)
        memory.check_fit(parts, needed, plan.num_searches, split.devices)

    def advance(self, num_steps: int) -> None:
        self._seen = None
        state = self.plan.split.advance(
            self.plan.problem,
            self.search,
            self.state,
            num_steps,
            self._rules(self.state.device_best.dtype),
            self.choice.implementation,
        )
        self.state, self._made = jax.block_until_ready(state), num_steps

    def look(self) -> Outcome:
        """Returns what there is to see after the last chunk, at which it looks once."""
        if self._seen is None:
            seen = self.plan.split.look(self.plan.problem, self.search, self.state)
            self.best.note(seen)
            self.step, self._seen = seen.step, seen
        return self._seen

    def status(self, limit: Status) -> Status:
        """Returns the status after a chunk; the target counts in exact costs."""
        seen = self.look()
        status, is_met = seen.status, self.best.meets_goal
        if status == Status.TARGET and not is_met:
            # A float cost on the device is rounded, and may meet the target where the exact one
            # does not: then the run continues towards a lower one. So it does after a hit whose
            # solution the search has lost.
            if np.issubdtype(seen.cost.dtype, np.floating):
                self.target = np.nextafter(seen.cost, np.array(-np.inf, seen.cost.dtype))
            problem, split = self.plan.problem, self.plan.split
            joined = split.join(self.state, self.plan.num_searches)
            self.state = split.split(starts.retargeted(problem, self.search, joined, self.target))
            status = Status.RUNNING
        if status != Status.RUNNING:
            return status
        return Status.TARGET if limit != Status.RUNNING and is_met else limit

    def report(self, status: Status) -> Report:
        seen = self.look()
        num_moves = self._made * self.plan.num_searches
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
        if self.plan.chunk_steps is not None:
            num_steps = self.timer.next_steps(self.step, 0, seconds, self.plan.chunk_steps)
        else:
            exchange = self.exchange
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
        if not isinstance(answer, Steer):
            return answer
        check_steer(self.plan.problem, self.search, self.exchange, answer)
        self.search, self.exchange, self._ask_after = answer
        return None

    def result(self, status: Status) -> Result:
        """Returns the result of the run, which has ended."""
        seen, plan = self.look(), self.plan
        problem = counted_in_full(plan.problem)
        state = plan.split.join(self.state, plan.num_searches)
        state = with_best(problem, state, state.device_best)
        solutions, costs = plan.split.all_best(seen, plan.num_searches)
        ancestors = np.array(state.ancestor)
        if plan.original is not None:
            costs = plan.original.all_in_full(costs)
            solutions = plan.original.own(solutions)
        num_moves = (seen.step - self.first_step) * len(costs)
        return Result(
            **_ending(plan, self.timer, self.best, status, seen.step),
            nfev=num_moves * self.search.evaluations_per_step(problem),
            first_hit=(seen.first_hit or Hit(seen.step, seen.best_search))
            if self.best.meets_goal
            else None,
            history=self.history.lines,
            costs=costs,
            solutions=solutions,
            ancestors=ancestors,
            state=state._replace(status=jax.device_put(np.int32(status))),
            env=environment.of(plan.split.devices) | {"implementation": str(self.choice)},
            problem=problem,
            search=self.search,
            exchange=self.exchange,
        )


def _ending(plan: Plan, timer: Timer, best: Best, status: Status, made: int) -> dict[str, Any]:
    """Returns what a result says of the best solution, and how the run ended after its steps."""
    return {
        "x": best.x,
        "fun": best.fun,
        "success": best.is_success(status, made),
        "status": status,
        "message": best.message(status, made),
        "nit": made,
        "gap": best.gap,
        "feasible": math.isfinite(best.fun),
        "compile_seconds": timer.compile_seconds or 0.0,
        "elapsed": timer.elapsed,
    }


def _optimal_start(plan: Plan, options: RunOptions) -> Result | None:
    """Returns the result of a run whose constructed start is proven optimal; None for any other.

    Nothing is compiled for it, and there is no state from which it could continue.
    """
    is_built = plan.starts is not None and plan.starts.build is not None
    if plan.original is None or plan.goal is None or not (plan.is_optional and is_built):
        return None
    assert plan.starts is not None
    solutions = plan.starts.built().solutions
    costs = [plan.original.cost(solution) for solution in solutions]
    number, best = costs.index(min(costs)), Best(plan)
    best.x, best.fun = np.array(plan.original.own(solutions[number])), costs[number]
    if not best.meets_goal:
        return None
    return Result(
        **_ending(plan, options.timer, best, Status.TARGET, 0),
        nfev=0,
        first_hit=Hit(0, number),
        history=History([Record(0, 0.0, best.fun, 0.0)]),
        costs=np.array(costs),
        solutions=plan.original.own(solutions),
        ancestors=np.arange(len(costs), dtype=np.int32),
        state=None,
        env=environment.of(options.devices) | {"implementation": "none"},
        problem=counted_in_full(plan.problem),
        search=plan.search,
        exchange=plan.exchange,
    )
