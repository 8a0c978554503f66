"""Who keeps a run, and when: checkpoints after chunks and at the end, however it ends."""

import contextlib
import os
import pathlib
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from jaxopt_search.checks import check_number
from jaxopt_search.driver import checkpoints
from jaxopt_search.driver.checkpoints import Identity, Snapshot
from jaxopt_search.driver.chunks import Chunked
from jaxopt_search.engine.processes import ALONE, Team
from jaxopt_search.files import beside
from jaxopt_search.guards.interrupts import held_back, noted, sigterm_as_ctrl_c

DEFAULT_SECONDS = 60.0
_SHARE = 0.01  # of a run's time, at most, goes into checkpoints


class Files(NamedTuple):
    """What a user says of checkpoints, as in `solve`."""

    checkpoint: Any = None
    checkpoint_every: Any = DEFAULT_SECONDS
    resume: Any = None

    def to_resume(self, team: Team = ALONE) -> pathlib.Path | None:
        """Returns the checkpoint that a run continues; None for none.

        Args:
          team: the processes that share the run; whether the file is there is up to their lead.
        """
        if self.resume is None or self.resume is False:
            return None
        if self.resume is not True:
            return checked_path(self.resume, "resume")
        if self.checkpoint is None:
            raise ValueError("resume is True without a checkpoint, expected a path")
        path = checked_path(self.checkpoint)
        return path if team.told(path.exists()) else None

    def keeper(self, resumed: pathlib.Path | None, team: Team) -> "Keeper | None":
        """Returns what writes checkpoints; None if nobody asks for any.

        Args:
          resumed: what `to_resume` returned, once: there may be a new file since.

        Raises:
          OSError: as `Keeper`.
        """
        if self.checkpoint is None:
            return None
        return Keeper(self.checkpoint, self.checkpoint_every, resumed, team)


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
            checkpoints.write(self.path, identity, kept, self._is_new)
            self._is_new = False
        except OSError as error:
            if not self._has_failed:
                warnings.warn(f"no checkpoint was written: {error}", stacklevel=3)
            self._has_failed = True


def checked_path(path: Any, name: str = "checkpoint") -> pathlib.Path:
    """Returns the path of a checkpoint."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"{name} is a {type(path).__name__}, expected a path that ends in .npz")
    if not os.fspath(path).endswith(".npz"):
        raise ValueError(f"{name} is {os.fspath(path)!r}, expected a path that ends in .npz")
    return pathlib.Path(path)


@contextlib.contextmanager
def kept_by(keeper: Keeper | None, run: Chunked) -> Iterator[list[Callable[[Any], None]]]:
    """Writes checkpoints at the end of the block, however it ends.

    Gives what writes them within the block: a list of an observer for `drive`, the last one.
    """
    if keeper is None:
        yield []
        return
    identity = run.identity()  # before anything is steered

    def keep(report: Any = None) -> None:
        if report is None or keeper.is_due:
            keeper.write(identity, run.snapshot)

    with sigterm_as_ctrl_c():
        try:
            yield [keep]
        except BaseException:
            if not keeper.team.is_shared:  # one process alone has not what all have
                with contextlib.suppress(Exception), held_back():  # the first one counts
                    keep()
            raise
        # An impatient person shall not lose the run. Of several processes, none shall go alone.
        with noted() if keeper.team.is_shared else held_back():
            keep()
