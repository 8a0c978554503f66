"""`jaxopt-search`: which command runs, and what its end means to a shell.

What takes time to import is imported by the commands, after the arguments have been read.
"""

import importlib
import os
import sys
from collections.abc import Sequence

from jaxopt_search.command import flags
from jaxopt_search.command.endings import INTERRUPTED, NO_SUCCESS, USAGE, reason_of, say, tell
from jaxopt_search.interrupts import held_back


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit status; whatever goes wrong in it is one line.

    Args:
      arguments: without the program's name; None for those of the process.

    Raises:
      SystemExit: after `--help` and `--version`, with status 2 if an argument is wrong, and with
        status 1 if standard output cannot be written to.
    """
    try:
        args = flags.parser().parse_args(arguments)
    finally:
        tell()  # what was printed for `--help`
    try:
        name = "doctor" if args.command == "doctor" else "solve"
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
