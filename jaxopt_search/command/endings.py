"""How a command ends: its status, and what it tells a person or a program."""

import argparse
import contextlib
import json
import math
import pathlib
import sys
from collections.abc import Callable
from typing import Any

from jaxopt_search.command.flags import PROGRAM

SUCCESS, NO_SUCCESS, USAGE, INTERRUPTED = 0, 1, 2, 130
"""Exit statuses: done; ran without success; bad arguments or input; Ctrl-C, as shells have it."""


def say(message: str) -> None:
    """Writes one line on standard error."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or none at all
        sys.stderr.write(f"{PROGRAM}: {' '.join(message.split())}\n")


class LostOutput(OSError):
    """Standard output cannot be written to: a full disk, or a reader that has left."""


def tell(lines: list[str]) -> None:
    """Writes lines on standard output.

    Raises:
      LostOutput: from the error that tells why.
    """
    try:
        print("\n".join(lines), flush=True)
    except OSError as error:
        raise LostOutput from error


def reason_of(error: Exception) -> str:
    """Returns what an error says; of one of the system, the path and the reason."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error) or type(error).__name__
    reason = f"{error.strerror[:1].lower()}{error.strerror[1:]}"
    return reason if error.filename is None else f"{error.filename}: {reason}"


def write_all(wanted: list[tuple[pathlib.Path | None, Callable[..., None]]], *what: Any) -> int:
    """Writes files after a run, each by `write(path, *what)`, and returns how many failed."""
    num_failed = 0
    for path, write in wanted:
        try:
            if path is not None:
                write(path, *what)
        except (OSError, ValueError) as error:
            say(f"{path} was not written: {reason_of(error)}")
            num_failed += 1
    return num_failed


def status_of(result: Any, num_failed: int) -> int:
    """Returns the exit status for a result of the library, and files that were not written."""
    if result.status.name == "INTERRUPTED":
        return INTERRUPTED
    return SUCCESS if result.success and not num_failed else NO_SUCCESS


def show(args: argparse.Namespace, facts: dict[str, Any], result: Any) -> None:
    """Writes what a run has found on standard output.

    Args:
      args: the flags; `json` for one object, `quiet` for nothing else.
      facts: for `json`.
      result: of the library, whose summary a person reads.
    """
    if args.json:
        tell([json.dumps(_plain(facts), allow_nan=False)])
    tell_person(args, str(result).splitlines())


def tell_person(args: argparse.Namespace, lines: list[str]) -> None:
    """Writes lines on standard output, unless that is for a program or for nobody."""
    if not args.json and not args.quiet:
        tell(lines)


def facts_of(result: Any) -> dict[str, Any]:
    """Returns what is known of every run, for JSON."""
    return {
        "status": result.status.name.lower(),
        "success": result.success,
        "message": result.message,
        "steps": result.nit,
        "compile_seconds": result.compile_seconds,
        "elapsed": result.elapsed,
        "env": result.env,
    }


def print_lines(lines: list[tuple[str, str]]) -> None:
    """Writes names and texts in two columns; no line for an empty text."""
    width = max(len(name) for name, _ in lines)
    tell([f"{name:<{width}}  {text}" for name, text in lines if text])


def _plain(value: Any) -> Any:
    """Returns what JSON can hold: null for what is not finite."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
