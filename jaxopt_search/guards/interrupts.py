"""Ctrl-C while JAX compiles: held back until that is over.

Raised while JAX compiles, `KeyboardInterrupt` leaves parts of the compiler in the frames of its
traceback. If it is not caught, the process then sometimes ends in a segmentation fault; so it does
with JAX alone.
"""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Raises the `KeyboardInterrupt` of a Ctrl-C within the block at its end; a second one at once.

    Only in the main thread, and only where Ctrl-C has Python's default handler: a user's own
    handlers are left alone.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    has_come = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal has_come
        if has_come:
            raise KeyboardInterrupt
        has_come = True

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if has_come:
        raise KeyboardInterrupt
