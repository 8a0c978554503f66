"""Programs compiled side by side, in threads: compiling leaves the interpreter to others."""

import contextlib
import contextvars
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax

from jaxopt_search.engine import kept_programs
from jaxopt_search.engine.fingerprints import settings
from jaxopt_search.engine.kept_programs import Job, Program
from jaxopt_search.engine.tracing import settings_left
from jaxopt_search.guards.interrupts import held_back


class _Compiler(threading.Thread):
    """Does a job: traces after others are traced, and compiles after they are compiled.

    It does nothing where the settings are not the same. Whoever waits for it waits for `is_over`: a
    `join` that Ctrl-C ends would have Python take the thread for ended, and not wait for it at
    exit.
    """

    def __init__(self, job: Job, settings: Any, after: Sequence["_Compiler"] = ()) -> None:
        super().__init__(name="compiles")
        self._job, self._settings, self._after = job, settings, after
        self.is_traced, self.is_over = threading.Event(), threading.Event()
        self._context = contextvars.copy_context()

    def run(self) -> None:
        self._context.run(self._do)

    def _do(self) -> None:
        for other in self._after:
            other.is_traced.wait()
        try:
            # Settings may be for the thread of the call only; then programs are others.
            with contextlib.suppress(Exception), settings_left():
                if settings() == self._settings:
                    self._job(self._once_traced)
        finally:
            self.is_traced.set()
            self.is_over.set()

    def _once_traced(self) -> None:
        self.is_traced.set()
        for other in self._after:
            other.is_over.wait()


class Ahead:
    """Compiles in threads, if there is more than one core.

    What goes wrong there is not told: whoever needs the program compiles it then, and meets the
    same error, or none.

    Args:
      jobs: what is done side by side.
      later: is done after them, and is not waited for. It is traced while they compile, so that
        Python is free for the run once they are done.

    Attributes:
      later: the threads that do it.
    """

    def __init__(self, jobs: Sequence[Job], later: Sequence[Job] = ()) -> None:
        own = settings() if jobs or later else {}
        is_off = getattr(jax.config, "jax_disable_jit", False)
        is_on = _num_cores() > 1 and not is_off
        self._threads = [_Compiler(job, own) for job in jobs if is_on]
        self.later = [_Compiler(job, own, self._threads) for job in later if is_on]
        for thread in self._threads + self.later:
            thread.start()
        _further[:] = [thread for thread in _further if thread.is_alive()] + self.later

    def wait(self) -> None:
        """Returns once all are compiled."""
        for thread in self._threads:
            thread.is_over.wait()


_further: list[_Compiler] = []


def compile_all(
    programs: Iterable[Program],
    meanwhile: Callable[[], object] = bool,
    later: Program | None = None,
) -> None:
    """Compiles programs side by side, the first of which takes longest.

    Args:
      meanwhile: is done while they compile.
      later: is compiled, too, but not waited for.
    """
    jobs = [job for program in programs for job in program.to_compile()]
    ahead = Ahead(jobs, later.to_compile() if later else ())
    for thread in ahead.later:
        assert later is not None
        later.await_from(thread)
    with held_back():
        with kept_programs.interpreter:
            meanwhile()
        ahead.wait()


def wait_for_later() -> None:
    """Returns once the programs are compiled, too, that nobody has waited for."""
    while _further:
        _further.pop().is_over.wait()


def _num_cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # not everywhere
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
