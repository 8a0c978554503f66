"""How a command ends: its status, and what it tells a person or a program."""

import contextlib
import os
import sys
from typing import Any

from jaxopt_search.command.flags import PROGRAM

SUCCESS, NO_SUCCESS, USAGE, INTERRUPTED = 0, 1, 2, 130
"""Exit statuses: done; ran without success; bad arguments or input; Ctrl-C, as shells have it."""


def say(message: str) -> None:
    """Writes one line on standard error."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or none at all
        sys.stderr.write(f"{PROGRAM}: {' '.join(message.split())}\n")


def tell(*lines: str) -> None:
    """Writes lines on standard output, and what it still holds.

    Raises:
      SystemExit: if it cannot be written to: a full disk, or a reader that has left.
    """
    try:
        print("".join(f"{line}\n" for line in lines), end="", flush=True)
    except OSError as error:
        with contextlib.suppress(OSError, ValueError):  # or Python would try again at its end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            say(f"standard output: {reason_of(error)}")
        raise SystemExit(NO_SUCCESS) from None


def reason_of(error: Exception) -> str:
    """Returns what an error says; of one of the system, the path and the reason."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error) or type(error).__name__
    reason = f"{error.strerror[:1].lower()}{error.strerror[1:]}"
    return reason if error.filename is None else f"{error.filename}: {reason}"


def status_of(result: Any, num_failed: int = 0) -> int:
    """Returns the exit status for a result of the library, and files that were not written."""
    if result.status.name == "INTERRUPTED":
        return INTERRUPTED
    return SUCCESS if result.success and not num_failed else NO_SUCCESS
