"""One call of a solver, whatever it searches: its clock, its processes, its files, and its end."""

import contextlib
from collections.abc import Callable, Generator, Sequence
from typing import Any

import jax

from jaxopt_search.driver import chunks, progress
from jaxopt_search.driver.chunks import Chunked, Timer
from jaxopt_search.driver.keeping import Files, Keeper
from jaxopt_search.engine.processes import Team
from jaxopt_search.guards.interrupts import noted, sigterm_as_ctrl_c
from jaxopt_search.results import Status


class Call:
    """What each solver does around its run: `agreed`, then `running`, and in it `drive`.

    Attributes:
      timer: the clock.
      team: the processes that share the run.
      files: of checkpoints, as `Files.settled` returns them.
    """

    def __init__(self, timer: Timer, devices: tuple[jax.Device, ...], files: Files):
        self.timer, self.team = timer, Team(devices)
        self.files = files.settled(self.team)
        self._keeper: Keeper | None = None
        self._shown: list[Callable[[Any], None]] = []
        self._is_interrupted = chunks.never

    @contextlib.contextmanager
    def agreed(self) -> Generator[Callable[..., None]]:
        """Has all processes be about to do the same: `Team.same_call`.

        Raises:
          OSError: if no checkpoint can be written where it is wanted.
        """
        with self.team.same_call() as note:
            self._keeper = self.files.keeper(self.team)
            note(self._keeper is None, self.files.resume is None)
            yield note

    @contextlib.contextmanager
    def running(
        self, show_progress: bool, describe: progress.Describe = progress.describe
    ) -> Generator[None]:
        """Shows the run, and explains what goes wrong between processes; up to the result.

        A result takes all processes that share the run: until it is there, SIGTERM ends none of
        them alone where there is a checkpoint, and a first Ctrl-C none at all.
        """
        self.timer.share(self.team)
        is_kept, is_shared = self._keeper is not None, self.team.is_shared
        with (
            sigterm_as_ctrl_c() if is_kept else contextlib.nullcontext(),
            noted() if is_shared else contextlib.nullcontext(chunks.never) as self._is_interrupted,
            self.team.losses_explained(),
            progress.shown(show_progress, self.timer, describe) as self._shown,
        ):
            yield

    def drive(self, run: Chunked, observers: Sequence[Callable[[Any], Any]] = ()) -> Status:
        """Makes chunks of a run until it ends, keeps it, however it ends, and returns why it did.

        Args:
          observers: as `chunks.drive` has them.
        """
        status = self._kept(run, [*observers, *self._shown])
        if status == Status.INTERRUPTED:
            for show in self._shown:
                show(run.report(status))
        return status

    def _kept(self, run: Chunked, observers: Sequence[Callable[[Any], Any]]) -> Status:
        """Writes checkpoints after chunks and at the end.

        Who has ended the run by Ctrl-C does not wait for the last one after another Ctrl-C. Else
        the first one comes too late to end the run, and the second one ends the writing.
        """
        keeper = self._keeper
        if keeper is None:
            return chunks.drive(run, self.timer, observers, self._is_interrupted)
        run.identity()  # what has none is refused before a search

        def keep() -> None:
            keeper.write(run.identity(), run.snapshot)

        def keep_if_due() -> None:
            if keeper.is_due:
                keep()

        try:
            status = chunks.drive(run, self.timer, observers, self._is_interrupted, keep_if_due)
        except BaseException as error:
            if not self.team.is_shared:  # one process alone has not what all have
                is_interrupted = isinstance(error, KeyboardInterrupt)
                with contextlib.suppress(Exception), _patience(not is_interrupted):
                    keep()
            raise
        with _patience(status != Status.INTERRUPTED):
            keep()
        return status


def _patience(is_there: bool) -> contextlib.AbstractContextManager[Any]:
    """Has one Ctrl-C wait for the end of the block, or none."""
    return noted() if is_there else contextlib.nullcontext()
