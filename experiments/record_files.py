"""Files of records: a JSON line per run, which several processes may add to.

A line is written at once and under a lock, so no process sees or destroys what another one has half
written. Without `fcntl`, as on Windows, only one process may write to a file.
"""

import contextlib
import errno
import json
import os
import pathlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

try:
    import fcntl
except ImportError:
    fcntl = None

_ALWAYS = ("experiment", "settings")
_OF_RUNS = ("settings", "instance", "seed")


def append(path: str | os.PathLike, record: dict[str, Any]) -> None:
    """Adds `record` to a file; it is on the disk when this returns.

    Half a line that a killed run left at the end of the file is cut off first.

    Raises:
      OSError: if it cannot be written; then it is printed on standard error.
    """
    with _printed_if_lost(record), _locked(path) as file:
        _add(file, record)


def read(
    path: str | os.PathLike,
    experiments: Sequence[str] = (),
    fields: Sequence[str] = _ALWAYS,
) -> list[dict[str, Any]]:
    """Returns the records of a file; none if there is no file.

    A run that was made more than once counts once, as it was made last: one of equal experiment,
    settings, instance, seed and repetition. Records without a seed all count. A last line without
    an end is what a killed run leaves behind; it is left out if incomplete.

    Args:
      experiments: those whose records may be in the file; none for any.
      fields: what each record has to have.

    Raises:
      ValueError: if any other line is no such record, with its number.
    """
    path = pathlib.Path(path)
    if not path.exists():
        return []
    *lines, last = path.read_bytes().split(b"\n")
    if last and not _is_half(last):
        lines.append(last)
    records = {}
    for number, line in enumerate(lines, start=1):
        try:
            record = _parsed(line, experiments, fields)
        except ValueError as error:
            raise ValueError(f"{path}:{number}: {error}") from error
        records[_identity(record) if "seed" in record else number] = record
    return list(records.values())


def read_all(
    paths: Sequence[str | os.PathLike], experiments: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Returns the records of several files; a run that is in two of them counts as in the last.

    Raises:
      ValueError: if there is no such file, or nothing in it, or a line of it is no such record.
    """
    records = {}
    for path in map(pathlib.Path, paths):
        if not path.is_file():
            raise ValueError(f"{path} is no regular file")
        own = read(path, experiments)
        if not own:
            raise ValueError(f"{path} holds no records")
        for number, record in enumerate(own):
            records[_identity(record) if "seed" in record else (path, number)] = record
    return list(records.values())


def check_writable(path: str | os.PathLike, experiments: Sequence[str] = ()) -> None:
    """Makes the file, if there is none, and checks that records can be added to it.

    Raises:
      ValueError: if they cannot, or a line is no record of these experiments.
    """
    path = pathlib.Path(path)
    try:
        if path.exists() and not path.is_file():
            raise ValueError(f"{path} is no regular file")
        with _locked(path):
            read(path, experiments)
    except OSError as error:
        raise ValueError(f"{path} cannot be written: {error.strerror}") from error


class Runs:
    """The runs in a file of records, and those added to it, also by other processes.

    Attributes:
      path: the file; None to keep the records in memory only.
      records: all of them, oldest first.
    """

    def __init__(self, path: str | os.PathLike | None):
        self.path = path
        self.records: list[dict[str, Any]] = []
        self._done: set[str] = set()
        self._stamp: tuple[int, int] | None = None
        if path is not None:
            check_writable(path)
            self._catch_up()

    def has(self, settings: dict[str, Any], instance: str, seed: int) -> bool:
        """Returns whether this run was made before."""
        self._catch_up()
        return _name(settings, instance, seed) in self._done

    def add(self, record: dict[str, Any]) -> None:
        """Writes a finished run down, unless it is there."""
        if self.path is None:
            self._take(json.loads(_line(record)))
            return
        with _printed_if_lost(record), _locked(self.path) as file:
            if not self.has(*(record[field] for field in _OF_RUNS)):
                _add(file, record)
                self._take(json.loads(_line(record)))
                self._stamp = _stamp(self.path)

    def those(self, wanted: Sequence[tuple[dict[str, Any], str, int]]) -> list[dict[str, Any]]:
        """Returns the records of these settings, instances and seeds."""
        names = {_name(*one) for one in wanted}
        return [r for r in self.records if _name(*(r[field] for field in _OF_RUNS)) in names]

    def _catch_up(self) -> None:
        """Takes over what other processes have written."""
        if self.path is None or (stamp := _stamp(self.path)) == self._stamp:
            return
        self._stamp = stamp
        for record in read(self.path, fields=(*_ALWAYS, *_OF_RUNS)):
            self._take(record)

    def _take(self, record: dict[str, Any]) -> None:
        name = _name(*(record[field] for field in _OF_RUNS))
        if name not in self._done:
            self._done.add(name)
            self.records.append(record)


def _stamp(path: str | os.PathLike) -> tuple[int, int] | None:
    """Returns what changes whenever a file does; None if there is no file."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_size, found.st_mtime_ns


def _name(settings: dict[str, Any], instance: str, seed: int) -> str:
    return json.dumps([settings, instance, seed], sort_keys=True, default=_as_python)


def _identity(record: dict[str, Any]) -> str:
    fields = ("experiment", *_OF_RUNS, "repetition")
    return json.dumps([record.get(field) for field in fields], sort_keys=True)


@contextlib.contextmanager
def _locked(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """Opens a file for reading and adding, which no other process does meanwhile."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b", buffering=0) as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file


def _add(file: BinaryIO, record: dict[str, Any]) -> None:
    """Writes a line at the end of an open file that is locked, or nothing."""
    _mend(file)
    size, line = file.seek(0, os.SEEK_END), _line(record)
    try:
        if file.write(line) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), file.name)
        os.fsync(file.fileno())
    except OSError:
        file.truncate(size)
        raise


def _mend(file: BinaryIO) -> None:
    """Ends an open file with a whole line."""
    file.seek(0)
    content = file.read()
    *_, last = content.rpartition(b"\n")
    if _is_half(last):
        file.truncate(len(content) - len(last))
    elif last:
        file.write(b"\n")


@contextlib.contextmanager
def _printed_if_lost(record: dict[str, Any]) -> Iterator[None]:
    try:
        yield
    except OSError:
        print(_line(record).decode(), end="", file=sys.stderr)
        raise


def _parsed(line: bytes, experiments: Sequence[str], fields: Sequence[str]) -> dict[str, Any]:
    try:
        record = json.loads(line.decode())
    except ValueError as error:
        raise ValueError(f"the line is not JSON ({error})") from error
    missing = [name for name in fields if not isinstance(record, dict) or name not in record]
    if missing:
        raise ValueError(f"the line is no record of a run: it has no {missing[0]!r}")
    if experiments and record["experiment"] not in experiments:
        expected = " or ".join(experiments)
        raise ValueError(f"the record is of {record['experiment']!r}, expected {expected}")
    return record


def _is_half(line: bytes) -> bool:
    """Returns whether a line is the beginning of a record, and not all of it."""
    if line and not line.strip(b"\0"):  # what a loss of power leaves
        return True
    if not line.startswith(b"{"):
        return False
    try:
        json.loads(line)
    except ValueError:
        return True
    return False


def _line(record: dict[str, Any]) -> bytes:
    return (json.dumps(record, default=_as_python) + "\n").encode()


def _as_python(value: Any) -> Any:
    """Returns a numpy number as a Python one, for `json`."""
    return value.item()
