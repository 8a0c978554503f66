"""Files of records: a JSON line per run, which several processes may add to.

A line is written at once and under a lock, so no process destroys what another one writes. Without
`fcntl`, as on Windows, only one process may write to a file.
"""

import json
import os
import pathlib
import sys
from collections.abc import Sequence
from typing import Any, BinaryIO

try:
    import fcntl
except ImportError:
    fcntl = None


def append(path: str | os.PathLike, record: dict[str, Any]) -> None:
    """Adds `record` to a file; it is on the disk when this returns.

    Half a line that a killed run left at the end of the file is cut off first.

    Raises:
      OSError: if it cannot be written; then it is printed on standard error.
    """
    path, line = pathlib.Path(path), json.dumps(record, default=_as_python) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
            _mend(file)
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        print(line, end="", file=sys.stderr)
        raise


def read(path: str | os.PathLike, experiments: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Returns the records of a file; none if there is no file.

    A run that was made more than once counts once, as it was made last: one of equal experiment,
    settings, instance, seed and repetition. A last line without an end is what a killed run leaves
    behind; it is left out if incomplete.

    Args:
      experiments: those whose records may be in the file; none for any.

    Raises:
      ValueError: if any other line is no such record, with its number.
    """
    path = pathlib.Path(path)
    *lines, last = path.read_bytes().split(b"\n") if path.exists() else [b""]
    if last and not _is_half(last):
        lines.append(last)
    records = {}
    for number, line in enumerate(lines, start=1):
        try:
            record = _parsed(line, experiments)
        except ValueError as error:
            raise ValueError(f"{path}:{number}: {error}") from error
        records[_identity(record)] = record
    return list(records.values())


def read_all(
    paths: Sequence[str | os.PathLike], experiments: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Returns the records of several files; a run that is in two of them counts as in the last.

    Raises:
      ValueError: if there is no such file, or nothing in it, or a line of it is no such record.
    """
    records = {}
    for path in paths:
        own = read(path, experiments)
        if not own:
            raise ValueError(f"{path} holds no records")
        records |= {_identity(record): record for record in own}
    return list(records.values())


class Runs:
    """The runs in a file of records, and those added to it.

    Attributes:
      path: the file, which is made; None to keep the records in memory only.
    """

    def __init__(self, path: str | os.PathLike | None, experiments: Sequence[str] = ()):
        self.path = path
        self._found: dict[str, dict[str, Any]] = {}
        if path is not None:
            pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
            pathlib.Path(path).open("ab").close()  # fails here, not after the first run
            self._found = {_name_of(record): record for record in read(path, experiments)}

    @property
    def records(self) -> list[dict[str, Any]]:
        """All of them, oldest first."""
        return list(self._found.values())

    def has(self, settings: dict[str, Any], instance: str, seed: int) -> bool:
        """Returns whether this run was made before."""
        return _name(settings, instance, seed) in self._found

    def add(self, record: dict[str, Any]) -> None:
        """Writes a finished run down."""
        if self.path is not None:
            append(self.path, record)
        record = json.loads(json.dumps(record, default=_as_python))
        self._found[_name_of(record)] = record

    def those(self, wanted: Sequence[tuple[dict[str, Any], str, int]]) -> list[dict[str, Any]]:
        """Returns the records of these settings, instances and seeds, as far as they are there."""
        names = dict.fromkeys(_name(*one) for one in wanted)
        return [self._found[name] for name in names if name in self._found]


def _name(settings: Any, instance: Any, seed: Any) -> str:
    return json.dumps([settings, instance, seed], sort_keys=True, default=_as_python)


def _name_of(record: dict[str, Any]) -> str:
    return _name(record["settings"], record.get("instance"), record.get("seed"))


def _identity(record: dict[str, Any]) -> Any:
    """Returns what tells a record from others."""
    return _name_of(record), record["experiment"], record.get("repetition")


def _mend(file: BinaryIO) -> None:
    """Ends an open file with a whole line."""
    file.seek(0)
    content = file.read()
    *_, last = content.rpartition(b"\n")
    if _is_half(last):
        file.truncate(len(content) - len(last))
    elif last:
        file.write(b"\n")


def _is_half(line: bytes) -> bool:
    """Returns whether a line is the beginning of a record, and not all of it."""
    try:
        json.loads(line)
    except ValueError:
        return line.startswith(b"{")
    return False


def _parsed(line: bytes, experiments: Sequence[str]) -> dict[str, Any]:
    try:
        record = json.loads(line.decode())
    except ValueError as error:
        raise ValueError(f"the line is not JSON ({error})") from error
    if not isinstance(record, dict) or not {"experiment", "settings"} <= set(record):
        raise ValueError("the line is no record of a run")
    if experiments and record["experiment"] not in experiments:
        expected = " or ".join(experiments)
        raise ValueError(f"the record is of {record['experiment']!r}, expected {expected}")
    return record


def _as_python(value: Any) -> Any:
    """Returns a numpy number as a Python one, for `json`."""
    return value.item()
