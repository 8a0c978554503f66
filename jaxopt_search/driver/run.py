"""`solve`: a run in chunks, with all that needs a clock or a person.

Wall-clock limits, progress, callbacks, Ctrl-C and history live here and in `chunks`. How a run is
cut into chunks changes none of its searches.
"""

import os
from collections.abc import Callable
from typing import Any, Literal

from jaxopt_search.backends import Implementation
from jaxopt_search.driver import arguments, keeping
from jaxopt_search.driver.arguments import Arguments
from jaxopt_search.driver.calls import Call
from jaxopt_search.driver.chunks import Timer
from jaxopt_search.driver.keeping import Files
from jaxopt_search.driver.results import Report
from jaxopt_search.driver.running import Run, optimal_start
from jaxopt_search.engine import device_split
from jaxopt_search.engine.state import RunState
from jaxopt_search.engine.tracing import host_driver
from jaxopt_search.guards.capacity import memory_errors_explained
from jaxopt_search.results import Result
from jaxopt_search.types import Exchange, Problem, Search


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
    checkpoint_every: float = keeping.DEFAULT_SECONDS,
    resume: str | os.PathLike | bool | None = None,
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
    call = Call(
        Timer(), device_split.find_devices(devices), Files(checkpoint, checkpoint_every, resume)
    )
    with call.agreed() as note:
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
                resume=call.files.resume,
                devices=call.team.devices,
                check_every=check_every,
                chunk_steps=chunk_steps,
                callback=callback,
                history_size=history_size,
                implementation=implementation,
            )
        )
        if call.team.is_shared:
            note(arguments.words_of(checked), callback is None)
    call.timer.limit(checked.limits.max_steps, checked.limits.max_seconds)
    found = None if checkpoint is not None else optimal_start(checked, call.timer)
    if found is not None:
        return found
    explained = memory_errors_explained(f"num_searches={checked.begin.num_searches}")
    with explained as note_needed, call.running(show_progress):
        run = Run(checked, call.timer, note_needed, callback)
        observers: list[Callable[[Any], Any]] = [run.history.note]
        if callback is not None:
            observers.append(run.steered)
        if checkpoint is not None:
            run.callback_notes()  # before a search is lost because of them
        return run.result(call.drive(run, observers))
