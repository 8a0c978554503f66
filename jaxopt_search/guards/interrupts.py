"""Ctrl-C, and SIGTERM where it counts as one, while JAX compiles: held back until that is over.

Raised while JAX compiles, `KeyboardInterrupt` leaves parts of the compiler in the frames of its
traceback. If it is not caught, the process then sometimes ends in a segmentation fault; so it does
with JAX alone.
"""

import contextlib
import signal
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
    numbers = _numbers_of(signal.default_int_handler)
    has_come = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal has_come
        if has_come:
            raise KeyboardInterrupt
        has_come = True

    with _handled(numbers, note, signal.default_int_handler):
        yield lambda: has_come


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Raises the `KeyboardInterrupt` of a Ctrl-C within the block at its end; a second one at once.

    For whom, `noted` says.
    """
    with noted() as has_come:
        yield
    if has_come():
        raise KeyboardInterrupt


@contextlib.contextmanager
def sigterm_as_ctrl_c() -> Iterator[None]:
    """Lets SIGTERM raise `KeyboardInterrupt` within the block, where nobody else handles it."""
    numbers = [number for number in _numbers_of(signal.SIG_DFL) if number == signal.SIGTERM]
    with _handled(numbers, signal.default_int_handler, signal.SIG_DFL):
        yield


def _numbers_of(handler: Any) -> list[int]:
    """Returns which signals have a handler; none, if this is not the main thread."""
    if threading.current_thread() is not threading.main_thread():
        return []
    both = (signal.SIGINT, signal.SIGTERM)
    return [number for number in both if signal.getsignal(number) is handler]


@contextlib.contextmanager
def _handled(numbers: list[int], handler: Any, afterwards: Any) -> Iterator[None]:
    try:
        for number in numbers:
            signal.signal(number, handler)
        yield
    finally:
        for number in numbers:
            signal.signal(number, afterwards)
