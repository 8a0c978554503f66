"""`solve`: a run in chunks, with all that needs a clock or a person.

How a run is cut into chunks changes none of its searches.
"""

import functools
import json
import math
import os
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search import contracts
from jaxopt_search.backends import Choice, Implementation, random
from jaxopt_search.checks import (
    MAX_INT32,
    check_count,
    check_number,
    check_option,
    highest_cost_that_meets,
)
from jaxopt_search.driver import checkpoints, chunks, starts
from jaxopt_search.driver.checkpoints import Identity, Snapshot
from jaxopt_search.driver.options import RunOptions, resolve
from jaxopt_search.driver.results import Best, Recorder, Report
from jaxopt_search.engine import memory, starting, stepping
from jaxopt_search.engine.compile import Program, compile_all
from jaxopt_search.engine.devices import Devices, find_devices, host_driver
from jaxopt_search.engine.fingerprints import environment, fingerprint
from jaxopt_search.engine.memory import MemoryEstimate
from jaxopt_search.engine.outcome import Outcome
from jaxopt_search.engine.split import DeviceSplit
from jaxopt_search.engine.state import (
    MAX_PATIENCE,
    Rules,
    RunState,
    check_interval,
    make_rules,
    with_best,
)
from jaxopt_search.problems.host import counted_in_full, counted_on_device
from jaxopt_search.results import Hit, Result, Status
from jaxopt_search.types import Exchange, Problem, Search

_OPTIMUM = "optimum"
_ROUNDING = 2.0**-20  # the relative error of a float cost on the device, amply


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
      implementation: how steps are run: `"cuda"` as a fused kernel, `"xla"`, or another of
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
        default_seconds=None,
    )
    with options.team.same_call():
        run = Run(
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
    return chunks.drive(run)


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
        contracts.check_exchange(after.exchange)
    states = [starting.shape(problem, one, 1) for one in (search, after.search)]
    if starts.signature(states[0]) != starts.signature(states[1]):
        kinds = [type(one).__name__ for one in (after.search, search)]
        raise TypeError(
            f"the callback's search is a {kinds[0]}, expected a {kinds[1]} with states of the"
            " same shapes"
        )


class SavedRun(NamedTuple):
    """What a checkpoint has of a run: its state, and the search and the exchange that hold."""

    run: RunState
    search: Any
    exchange: Any


class Run:
    """One call of `solve`, its arguments checked: a `chunks.Chunked`.

    It starts from a key and start solutions, or from a state.

    Attributes:
      options: what else the call asks for.
      problem: on the first device, like the search and the exchange, and counted as there.
      search, exchange: as given, until a callback changes them.
      num_searches: side by side.
      key: two uint32 words; None with a state.
      starts: start solutions; None for random ones, and with a state.
      state: of the searches, once it has begun spread over the devices; before, of the run that is
        continued, None for none.
      target: the goal of `best`, in the units and the dtype of the device, until a hit turns out to
        be false; None for none.
      patience, check_every, chunk_steps: as in `solve`.
      split: the devices over which the searches are spread.
      choice: how steps are run, unless it turns out not to compile.
      step: steps made by each search at the last look.
      best: the best solution so far.
      history: lines on the chunks.

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
        if patience is not None:
            patience = check_count("patience", patience, 1, MAX_PATIENCE)
        if chunk_steps is not None:
            chunk_steps = check_count("chunk_steps", chunk_steps)
        check_every = check_interval(search, check_every)
        check_every = check_count("check_every", check_every, 1, MAX_PATIENCE)
        if options.resume is None and state is None:
            num_searches = check_count("num_searches", num_searches, 1, None)
        elif options.resume is None:
            num_searches = starts.check_state(problem, search, state)
            state = state._replace(best_cost=state.device_best)  # counted as on the device
        problem = counted_on_device(problem)
        if options.resume is None:  # before the instance is brought to a device
            starting.check_room(problem, search, shape, num_searches, options.devices, exchange)
        search.check(problem, timer.max_steps)
        split = DeviceSplit(options.devices)
        problem, search, exchange = split.bring((problem, search, exchange))
        # A kernel takes a second to try. Where the run's own is made ahead, that tells as well.
        is_tried = implementation != "auto" or not split.compiles_ahead
        choice = stepping.choose(implementation, split.first, problem, search, is_tried=is_tried)
        self.options, self.timer, self.split, self.choice = options, timer, split, choice
        self.problem, self.search, self.exchange = problem, search, exchange
        self.patience, self.check_every, self.chunk_steps = patience, check_every, chunk_steps
        self._given, original = (search, exchange), problem.host
        self.key: random.Key | None = None
        self.starts: tuple[Any, bool] | None = None
        self._saved: Snapshot | None = None
        self._identity: Identity | None = None
        if options.resume is not None:

            def shapes_of(notes: dict[str, Any]) -> tuple[SavedRun, Any]:
                """Returns the shapes of the saved run and of its best solution."""
                num = check_count("num_searches", notes["num_searches"], 1, None)
                held = jax.eval_shape(lambda *parts: parts, search, exchange)
                best = shape
                if original is not None:  # the user's, of any solution
                    best = original.own(np.arange(shape.size, dtype=shape.dtype))
                return SavedRun(starting.shape(problem, search, num), *held), best

            self._saved = checkpoints.read(options.resume, self.identity(), shapes_of)
            state = self._saved.state.run
            num_searches = len(state.index)
        elif state is None:
            self.key = random.as_key(key)
            if initial is None and original is not None and original.starts is not None:
                initial = starts.FirstStarts(original.starts(problem, num_searches))
            if initial is not None:
                self.starts = starts.check_starts(problem, shape, num_searches, initial)
        self.num_searches: int = num_searches
        self.what = f"num_searches={num_searches}"
        self.state: Any = state
        self.target: Any = None if goal is None else target
        self.best = Best(problem, goal, is_optional)
        self.history = Recorder(options.history_size)
        self.observers: list[Callable[[Any], Any]] = [self.history.note]
        if options.callback is not None:
            self.observers.append(self.steered)
        self._seen: Outcome | None = None  # after the last chunk
        self._made = 0  # steps of it
        self._ask_after: int | None = None

    def _check_with_others(self) -> None:
        """Refuses a run that differs from those of other processes."""
        with self.options.team.same_call() as note:
            note(self.identity(), self.num_searches, self.choice.implementation)
            note(self.best.goal, self.best.is_optional, self.target)
            note(self.patience, self.chunk_steps)
            if self.state is None:
                note(fingerprint(self.key, self.starts))
            else:
                note(fingerprint(self.state), self._saved is None)

    def begin(self) -> None:
        if self.options.team.is_shared:
            self._check_with_others()
        # A state of a user's is checked before anything is compiled for it; one in a checkpoint
        # comes to the device once there is room.
        is_given = self.state is not None and self._saved is None
        first = self._first_state() if is_given else None
        self._compile_ahead()
        first = self._first_state() if first is None else first
        self.state = self.split.split(jax.block_until_ready(first))
        self.step = self.first_step = int(self.state.step)
        if self._saved is not None:
            self._recall(self._saved)
        if self.options.keeper is not None:
            self.callback_notes()  # before a search is lost because of them

    def _first_state(self) -> RunState:
        """Returns the state before the first step."""
        if self.key is not None:
            key, solutions = self.split.bring((self.key, self._start_solutions()))
            own = key, self.problem, self.search, solutions
            return starting.begin(*own, num_searches=self.num_searches)
        state: Any = self.split.bring(self.state)
        if self._saved is not None:
            with checkpoints.notes_read():
                goal, patience = (self._saved.notes[name] for name in ("goal", "patience"))
            if goal == self.best.goal:
                if patience != self.patience and int(state.status) == Status.PATIENCE:
                    return state._replace(status=jnp.int32(Status.RUNNING))
                return state
        return starts.reopened(self.problem, self.search, state, self.target)

    def _start_solutions(self) -> Any:
        if self.starts is None or self.key is None:
            return None
        return starts.for_all(self.problem, self.key, self.starts, self.num_searches)

    def _recall(self, saved: Snapshot) -> None:
        """Continues from the notes and the search in a checkpoint; the state is there already."""
        notes = saved.notes
        self.search, self.exchange = self.split.bring(saved.state[1:])
        with checkpoints.notes_read():
            self.timer.before = checkpoints.seconds_of(notes)
            self.first_step = check_count("first_step", notes["first_step"], 0, None)
            self.best.recall(saved.best, notes["fun"])
            self.history.recall(notes["history"])
            of_callback = notes["callback"]
            if notes["goal"] == self.best.goal and self.target is not None:
                self.target = self.target.dtype.type(notes["target"])  # lower after false hits
        recall = getattr(self.options.callback, "recall", None)
        if recall is not None and of_callback is not None:
            recall(of_callback)

    def identity(self) -> Identity:
        """As it was given, or with a search and an exchange of other kinds, as it was steered.

        For a run continues with numbers that a callback has changed, which a checkpoint keeps, but
        static parts are the caller's to give.
        """
        if self._identity is None:
            self._identity = checkpoints.identity_of(self.problem, *self._given, self.check_every)
        return self._identity

    def snapshot(self) -> Snapshot:
        self.look()
        notes = {
            "num_searches": self.num_searches,
            "seconds": self.timer.seconds,
            "first_step": self.first_step,
            "fun": self.best.fun,
            "goal": self.best.goal,
            "patience": self.patience,
            "target": None if self.target is None else self.target.item(),
            "history": self.history.notes(),
            "callback": self.callback_notes(),
            "env": environment(self.split.devices),
        }
        joined = self.split.join(self.state, self.num_searches)
        held = jax.tree.map(jnp.asarray, (self.search, self.exchange))
        return Snapshot(jax.device_get(SavedRun(joined, *held)), self.best.x, notes)

    def callback_notes(self) -> Any:
        """Returns the notes of the callback.

        Raises:
          TypeError: if JSON cannot hold it.
        """
        notes = getattr(self.options.callback, "notes", lambda: None)()
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
            patience=self.patience,
            check_every=self.check_every,
        )

    def _compile_ahead(self) -> None:
        """Compiles side by side, and refuses a run that then turns out not to fit.

        What turns out not to run in a kernel is run by XLA.

        Raises:
          MemoryError: with the sizes.
        """
        if not self.split.compiles_ahead:
            return
        own, split = (self.problem, self.search), self.split
        shape = starting.shape(*own, self.num_searches)
        rules = self._rules(shape.device_best.dtype)
        start = None
        if self.key is not None:
            start = self.key, jax.eval_shape(self._start_solutions)
        programs = split.programs(*own, shape, rules, self.choice.implementation, start)
        compile_all(programs.values())
        parts = self.problem, self.search, self.exchange
        try:
            needed = memory.estimate(parts, shape, split.devices, programs)
        except Exception:
            reason = ""
            if self.choice.implementation == "cuda":
                reason = stepping.why_not_portable(*own)
            if not reason:
                raise
            self.choice = Choice("xla", reason)
            self._compile_ahead()
            return
        memory.check_fit(parts, needed, self.num_searches, split.devices)

    def advance(self, num_steps: int) -> None:
        self._seen = None
        own, rules = (self.problem, self.search), self._rules(self.state.device_best.dtype)
        steps = self.split.steps(*own, self.state, num_steps, rules, self.choice.implementation)
        self.state, self._made = jax.block_until_ready(steps()), num_steps

    def look(self) -> Outcome:
        """Returns the outcome of the last chunk, at which it looks once."""
        if self._seen is None:
            seen = self.split.look(self.problem, self.search, self.state)
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
            problem, split = self.problem, self.split
            joined = split.join(self.state, self.num_searches)
            self.state = split.split(starts.retargeted(problem, self.search, joined, self.target))
            status = Status.RUNNING
        if status != Status.RUNNING:
            return status
        return Status.TARGET if limit != Status.RUNNING and is_met else limit

    def report(self, status: Status) -> Report:
        seen = self.look()
        num_moves = self._made * self.num_searches
        return Report(
            step=seen.step,
            seconds=self.timer.seconds,
            fun=self.best.fun,
            x=jax.tree.map(np.array, self.best.x),
            gap=self.best.gap,
            acceptance=seen.accepted / max(num_moves, 1),
            status=status,
            fetch=functools.partial(self._all_best, seen.step),
        )

    def _all_best(self, step: int) -> tuple[Any, np.ndarray]:
        """Returns the best solution of each search, and its cost, as the user counts them.

        Raises:
          RuntimeError: if the run is no longer at that step.
        """
        if step != self.step:
            raise RuntimeError(
                f"the solutions of step {step} are gone, ask for them in the callback"
            )
        solutions, costs = self.split.all_best(self.look(), self.num_searches)
        host = self.problem.host
        return (
            (solutions, costs) if host is None else (host.own(solutions), host.all_in_full(costs))
        )

    def next_steps(self, made: int, seconds: float) -> int:
        if self.chunk_steps is not None:
            num_steps = self.timer.next_steps(self.step, 0, seconds, self.chunk_steps)
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
        assert self.options.callback is not None
        answer = self.options.callback(report)
        if not isinstance(answer, Steer):
            return answer
        check_steer(self.problem, self.search, self.exchange, answer)
        self.search, self.exchange, self._ask_after = answer
        if starts.signature(self._given) != starts.signature(answer[:2]):
            self._given, self._identity = answer[:2], None
        return None

    def result(self, status: Status) -> Result:
        """Returns the result of the run, which has ended."""
        seen = self.look()
        problem = counted_in_full(self.problem)
        state = self.split.join(self.state, self.num_searches)
        state = with_best(problem, state, state.device_best)
        solutions, costs = self._all_best(seen.step)
        num_moves = (seen.step - self.first_step) * len(costs)
        hit = seen.first_hit or Hit(seen.step, seen.best_search)
        best = self.best
        return Result(
            x=best.x,
            fun=best.fun,
            success=best.is_success(status, seen.step),
            status=status,
            message=best.message(status, seen.step),
            nit=seen.step,
            nfev=num_moves * self.search.evaluations_per_step(problem),
            gap=best.gap,
            first_hit=hit if best.meets_goal else None,
            feasible=math.isfinite(best.fun),
            history=self.history.lines,
            costs=costs,
            solutions=solutions,
            ancestors=np.array(state.ancestor),
            state=state._replace(status=jax.device_put(np.int32(status))),
            compile_seconds=self.timer.compile_seconds or 0.0,
            elapsed=self.timer.elapsed,
            env=environment(self.split.devices) | {"implementation": str(self.choice)},
            problem=problem,
            search=self.search,
            exchange=self.exchange,
        )


@host_driver
def memory_estimate(
    problem: Problem,
    search: Search,
    num_searches: int = 128,
    *,
    exchange: Exchange | None = None,
    devices: Devices = None,
    implementation: Implementation = "auto",
) -> MemoryEstimate:
    """Returns how many bytes `solve` takes, and for what, on the device that holds most.

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
      >>> cities = jax.ShapeDtypeStruct((100, 2), jnp.float32)
      >>> problem = jax.eval_shape(lambda xy: js.tsp_from_coords(xy, metric="EUCLID"), cities)
      >>> search = js.simulated_annealing(js.Relocate(), 1.0)
      >>> needed = memory_estimate(problem, search, num_searches=1000)
      >>> needed.instance, needed.states // 10**6 >= 2
      (816, True)
    """
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
        start = random.as_key(0), None
        programs = split.programs(problem, search, shape, rules, chosen, start)
    return memory.estimate((problem, search, exchange), shape, split.devices, programs)
