"""Python's search for cycles of garbage: put off while JAX traces.

Tracing makes hundreds of thousands of objects that live until it ends. To go through all of them
again and again finds nothing, and takes its time.
"""

import contextlib
import gc
import os
import threading
from collections.abc import Iterator

_lock = threading.Lock()
_holders: set[object] = set()


@contextlib.contextmanager
def put_off() -> Iterator[None]:
    """Leaves garbage alone within the block, in all threads, until the last such block ends.

    Where the user has turned collecting off, it stays off.
    """
    holder = object()
    try:
        with _lock:
            if _holders or gc.isenabled():
                _holders.add(holder)
                gc.disable()
        yield
    finally:
        with _lock:
            if holder in _holders:
                _holders.remove(holder)
                if not _holders:
                    gc.enable()


def _in_child() -> None:
    """Goes on collecting in a forked process, in which the threads that hold on are gone."""
    global _lock
    _lock = threading.Lock()
    if _holders:
        _holders.clear()
        gc.enable()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_in_child)
