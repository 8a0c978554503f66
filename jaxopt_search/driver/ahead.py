"""Programs compiled side by side, in threads: compiling leaves the interpreter to others."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Sequence

import jax

from jaxopt_search.engine import kept_programs
from jaxopt_search.engine.kept_programs import Program
from jaxopt_search.engine.program_names import settings
from jaxopt_search.guards.interrupts import held_back


class Ahead:
    """Compiles in threads, if there is more than one core.

    What goes wrong there is not told: whoever needs the program compiles it then, and meets the
    same error, or none.
    """

    def __init__(self, jobs: Sequence[Callable[[], object]]) -> None:
        self._settings = settings() if jobs else {}
        is_off = getattr(jax.config, "jax_disable_jit", False)
        self._threads = [
            threading.Thread(target=self._do, args=(job,), name="compiles")
            for job in (jobs if _num_cores() > 1 and not is_off else ())
        ]
        for thread in self._threads:
            thread.start()

    def _do(self, job: Callable[[], object]) -> None:
        # Settings may be for the thread of the call only; then programs are others.
        with contextlib.suppress(Exception):
            if settings() == self._settings:
                job()

    def wait(self) -> None:
        """Returns once all are compiled."""
        for thread in self._threads:
            thread.join()


def compile_all(programs: Iterable[Program], meanwhile: Callable[[], object] = bool) -> None:
    """Compiles programs side by side, the first of which takes longest.

    Args:
      meanwhile: is done while they compile.
    """
    ahead = Ahead([job for program in programs for job in program.to_compile()])
    with held_back():
        with kept_programs.interpreter:
            meanwhile()
        ahead.wait()


def _num_cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # not everywhere
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
