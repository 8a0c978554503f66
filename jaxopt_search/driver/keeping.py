"""Which file keeps a run, and who writes it when; at the end of a run it is up to `calls`."""

import os
import pathlib
import time
import warnings
import zipfile
from collections.abc import Callable
from typing import Any, NamedTuple

from jaxopt_search.checks import check_number
from jaxopt_search.driver import checkpoints
from jaxopt_search.driver.checkpoints import Identity, Snapshot
from jaxopt_search.engine.processes import ALONE, Team
from jaxopt_search.files import beside

DEFAULT_SECONDS = 60.0
_SHARE = 0.01  # of a run's time, at most, goes into checkpoints


class Files(NamedTuple):
    """What a user says of checkpoints, as in `solve`."""

    checkpoint: Any = None
    checkpoint_every: Any = DEFAULT_SECONDS
    resume: Any = None

    def settled(self, team: Team = ALONE) -> "Files":
        """Returns these files with a path to resume from, or None, and what it says checked.

        Whether the file is there is up to the lead. To be asked once in a call: there may be a new
        file since.

        Args:
          team: the processes that share the run.

        Raises:
          ValueError, TypeError: if it is not said where, or not the same in all processes.
        """
        with team.same_call() as note:
            path = self._path_to_resume()
            note(path is None, self.resume is True)  # who asks the lead
        if self.resume is True and path is not None and not team.told(path.exists()):
            path = None
        return self._replace(resume=path)

    def _path_to_resume(self) -> pathlib.Path | None:
        if self.resume is None or self.resume is False:
            return None
        if self.resume is not True:
            return checked_path(self.resume, "resume")
        if self.checkpoint is None:
            raise ValueError("resume is True without a checkpoint, expected a path")
        return checked_path(self.checkpoint)

    def keeper(self, team: Team = ALONE) -> "Keeper | None":
        """Returns what writes checkpoints; None if nobody asks for any.

        Raises:
          OSError: as `Keeper`.
        """
        if self.checkpoint is None:
            return None
        return Keeper(self.checkpoint, self.checkpoint_every, self.resume, team)


class Keeper:
    """Writes checkpoints of a run into one file, now and then.

    Of several processes that share the run, the lead writes and says when.

    Attributes:
      team: these processes.

    Raises:
      OSError: if nothing can be written there, or there is one that is not resumed.
    """

    def __init__(
        self,
        path: str | os.PathLike,
        every: float,
        resumed: pathlib.Path | None,
        team: Team = ALONE,
    ):
        self.path, self._every = checked_path(path), check_number("checkpoint_every", every, 0)
        self._last, self._took, self._has_failed = time.monotonic(), 0.0, False
        self.team = team
        if not team.is_lead:
            return
        self._is_new = not self.path.exists()
        self._seen = _signature(self.path)
        if not self._is_new and not (resumed is not None and self.path.samefile(resumed)):
            raise FileExistsError(
                f"checkpoint {self.path} is there already; resume it or remove it"
            )
        with beside(self.path) as (file, _):
            file.write(b"is there a folder, and room?")

    @property
    def is_due(self) -> bool:
        """Whether it is time, which comes less often where checkpoints take long."""
        is_due = time.monotonic() - self._last >= max(self._every, self._took / _SHARE)
        return bool(self.team.told(is_due))

    def write(self, identity: Identity, make: Callable[[], Snapshot]) -> None:
        """Writes what `make` returns; the first failure is a warning, and the run continues."""
        began = time.monotonic()
        kept = make()
        if self.team.is_lead:
            self._write(identity, kept)
        self.team.told(0)  # nobody goes on before it is there
        self._last = time.monotonic()
        self._took = self._last - began

    def _write(self, identity: Identity, kept: Snapshot) -> None:
        try:
            if not self._is_new and _signature(self.path) not in (self._seen, None):
                raise FileExistsError(f"another run has written {self.path}")
            checkpoints.write(self.path, identity, kept, self._is_new)
        except OSError as error:
            if not self._has_failed:
                warnings.warn(f"no checkpoint was written: {error}", stacklevel=3)
            self._has_failed = True
        except KeyboardInterrupt:  # it may be there already
            self._note_written()
            raise
        else:
            self._has_failed = False
            self._note_written()

    def _note_written(self) -> None:
        self._seen = _signature(self.path)
        self._is_new = self._seen is None


def _signature(path: pathlib.Path) -> list[int] | None:
    """Returns the checksums in a checkpoint; None if there is no file."""
    if not path.is_file():
        return None
    try:
        with zipfile.ZipFile(path) as archive:
            return [info.CRC for info in archive.infolist()]
    except (OSError, zipfile.BadZipFile):
        return []


def checked_path(path: Any, name: str = "checkpoint") -> pathlib.Path:
    """Returns the path of a checkpoint, wherever the process goes from here."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"{name} is a {type(path).__name__}, expected a path that ends in .npz")
    if not os.fspath(path).endswith(".npz"):
        raise ValueError(f"{name} is {os.fspath(path)!r}, expected a path that ends in .npz")
    if "\0" in os.fspath(path):
        raise ValueError(f"{name} is {os.fspath(path)!r}, expected a path without NUL")
    return pathlib.Path(path).absolute()
