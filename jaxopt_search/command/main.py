"""`jaxopt-search`: which command runs, and what its end means to a shell.

What takes time to import is imported by the commands, after the arguments have been read.
"""

import argparse
import contextlib
import importlib
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from jaxopt_search.command import flags
from jaxopt_search.command.endings import INTERRUPTED, NO_SUCCESS, USAGE, LostOutput, reason_of, say


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit status.

    Args:
      arguments: without the program's name; None for those of the process.

    Raises:
      SystemExit: after `--help` and `--version`, and with status 2 if an argument is wrong.
    """
    try:
        try:
            return _run(flags.parser().parse_args(arguments))
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except OSError as error:
        _drop_output()
        cause = error.__cause__ or error
        if isinstance(cause, OSError) and not isinstance(cause, BrokenPipeError):
            say(f"standard output: {reason_of(cause)}")
        return NO_SUCCESS


def _run(args: argparse.Namespace) -> int:
    """Returns the status of a command; whatever goes wrong in it is one line."""
    try:
        return _dispatch(args)
    except KeyboardInterrupt:
        say("interrupted before there was anything to keep")
        return _left(args, INTERRUPTED)
    except LostOutput:
        raise
    except (MemoryError, RuntimeError) as error:
        say(reason_of(error))
        return _left(args, NO_SUCCESS)
    except (ValueError, TypeError, ImportError, OSError) as error:
        say(_with_line(reason_of(error)))
        return _left(args, USAGE)


def _dispatch(args: argparse.Namespace) -> int:
    with _ended_by_ctrl_c():
        name = "doctor" if args.command == "doctor" else "solve"
        command = importlib.import_module(f"jaxopt_search.command.{name}")
    return command.run(args)


@contextlib.contextmanager
def _ended_by_ctrl_c() -> Iterator[None]:
    """Has Ctrl-C end the process at once: libraries being imported make other errors of it."""

    def end(*_: Any) -> None:
        say("interrupted before there was anything to keep")
        os._exit(INTERRUPTED)

    handler = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or handler is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _left(args: argparse.Namespace, status: int) -> int:
    """Returns a status or, of one of several processes, ends this one with it at once.

    After an error the others may be gone, and JAX would wait for them.
    """
    if getattr(args, "coordinator", None) is not None:
        sys.stderr.flush()
        os._exit(status)
    return status


def _with_line(message: str) -> str:
    """Returns the message of a reader, `FILE:3: ...`, as `FILE: line 3: ...`."""
    return re.sub(r"\A([^\n]*?):(\d+): ", r"\1: line \2: ", message)


def _drop_output() -> None:
    """Lets Python end without a word about what nobody reads any more."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
