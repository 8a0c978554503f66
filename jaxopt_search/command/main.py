"""`jaxopt-search`: which command runs, what it tells a person or a program, and how it ends.

What takes time to import is imported by the commands, after the arguments have been read.
"""

import contextlib
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

from jaxopt_search.command import flags
from jaxopt_search.interrupts import held_back

SUCCESS, NO_SUCCESS, USAGE, INTERRUPTED = 0, 1, 2, 130
"""Exit statuses: done; ran without success; bad arguments or input; Ctrl-C, as shells have it."""


def say(message: str) -> None:
    """Writes one line on standard error."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or none at all
        sys.stderr.write(f"{flags.PROGRAM}: {' '.join(message.split())}\n")


def tell(*lines: str) -> None:
    """Writes lines on standard output, and flushes it.

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
    """Returns the text of an error; of one of the system, the path and the reason."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error) or type(error).__name__
    reason = f"{error.strerror[:1].lower()}{error.strerror[1:]}"
    return reason if error.filename is None else f"{error.filename}: {reason}"


def status_of(result: Any, num_failed: int = 0) -> int:
    """Returns the exit status for a result of the library, and files that were not written."""
    if result.status.name == "INTERRUPTED":
        return INTERRUPTED
    return SUCCESS if result.success and not num_failed else NO_SUCCESS


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit status; whatever goes wrong in it is one line.

    Args:
      arguments: without the program's name; None for the arguments of the process.

    Raises:
      SystemExit: after `--help` and `--version`, with status 2 if an argument is wrong, and with
        status 1 if standard output cannot be written to.
    """
    try:
        args = flags.parser().parse_args(arguments)
    finally:
        tell()  # flushes the text of `--help`
    try:
        name = "solve" if args.command == "queens" else args.command
        with held_back():  # libraries that are being imported make other errors of Ctrl-C
            command = importlib.import_module(f"jaxopt_search.command.{name}")
        return command.run(args)
    except KeyboardInterrupt:
        say("interrupted before there was anything to keep")
        status = INTERRUPTED
    except (MemoryError, RuntimeError) as error:
        say(reason_of(error))
        status = NO_SUCCESS
    except (ValueError, TypeError, ImportError, OSError) as error:
        say(reason_of(error))
        status = USAGE
    if getattr(args, "coordinator", None) is not None:
        sys.stderr.flush()
        os._exit(status)  # the other processes may be gone, and JAX would wait for them
    return status
