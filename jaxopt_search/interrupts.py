"""Against crashes and hangs: Ctrl-C while JAX compiles, and JAX in a forked process.

Raised while JAX compiles, `KeyboardInterrupt` leaves parts of the compiler in the frames of its
traceback. If it is not caught, the process then sometimes ends in a segmentation fault; so it does
with JAX alone. So Ctrl-C, and SIGTERM where it counts as one, are held back until that is over.

In a forked process JAX's threads are gone, and whoever waits for them waits forever. JAX itself
warns only at the fork, in the parent.
"""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any


@contextlib.contextmanager
def noted() -> Iterator[Callable[[], bool]]:
    """Takes note of a Ctrl-C within the block; a second one raises `KeyboardInterrupt` at once.

    Only in the main thread, and only where Ctrl-C has Python's default handler: a user's own
    handlers are left alone. Yields a function that tells whether one has come.
    """
    has_come = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal has_come
        if has_come:
            raise KeyboardInterrupt
        has_come = True

    with _handled((signal.SIGINT, signal.SIGTERM), signal.default_int_handler, note):
        yield lambda: has_come


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Raises the `KeyboardInterrupt` of a Ctrl-C within the block at its end; a second one at once.

    Same conditions as `noted`.
    """
    with noted() as has_come:
        yield
    if has_come():
        raise KeyboardInterrupt


@contextlib.contextmanager
def sigterm_as_ctrl_c() -> Iterator[None]:
    """Lets SIGTERM raise `KeyboardInterrupt` within the block, where nobody else handles it."""
    with _handled((signal.SIGTERM,), signal.SIG_DFL, signal.default_int_handler):
        yield


@contextlib.contextmanager
def _handled(signals: tuple[int, ...], before: Any, handler: Any) -> Iterator[None]:
    """Replaces a handler of the signals, where they have it, in the block and the main thread."""
    is_main = threading.current_thread() is threading.main_thread()
    numbers = [number for number in signals if is_main and signal.getsignal(number) is before]
    try:
        for number in numbers:
            signal.signal(number, handler)
        yield
    finally:
        for number in numbers:
            signal.signal(number, before)


_is_orphan = False


def _in_child() -> None:
    """Notes in a forked child whether JAX had started in its parent."""
    global _is_orphan
    bridge = sys.modules.get("jax._src.xla_bridge")  # asking JAX by its public names starts it
    _is_orphan |= bool(getattr(bridge, "_backends", None))


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_in_child)


def refuse_orphans() -> None:
    """Refuses to work where JAX would hang.

    Raises:
      RuntimeError: in a process that was forked from one in which JAX had started.
    """
    if _is_orphan:
        raise RuntimeError(
            "this process was forked from one in which JAX had started, and would hang; start it"
            " with multiprocessing.get_context('spawn')"
        )
