"""Files that are there whole or not at all, and that can be read at once."""

import contextlib
import os
import pathlib
import re
import secrets
import stat
from collections.abc import Iterator
from typing import BinaryIO

_ABANDONED = 3600.0  # seconds in which nobody has written


def check_regular(path: str | os.PathLike) -> None:
    """Refuses a path before it is opened: opening a pipe would wait for someone to write to it.

    Raises:
      ValueError: if it is no regular file, nor a link to one.
      OSError: if there is none.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ValueError(f"{os.fspath(path)} is not a regular file")


@contextlib.contextmanager
def whole(path: pathlib.Path, is_new: bool = False) -> Iterator[BinaryIO]:
    """Opens a file that takes its name, and the place of an old one, only once all is written.

    Args:
      is_new: whether an old one is left as it is.

    Raises:
      FileExistsError: if there is an old one that is to be left.
      OSError: if it cannot be written; then nothing is left behind.
    """
    with beside(path) as (file, name):
        yield file
        file.flush()
        os.fsync(file.fileno())
        real = os.path.realpath(path)  # through a symbolic link
        if is_new:
            try:
                os.link(name, real)
                sync_folder(real)
                return
            except FileExistsError:
                raise FileExistsError(f"{path} is there already") from None
            except OSError:  # a file system without links
                pass
        os.replace(name, real)
        sync_folder(real)


def sync_folder(path: str | os.PathLike) -> None:
    """Has the name of a file survive a loss of power, where the system can do that."""
    with contextlib.suppress(OSError):
        folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextlib.contextmanager
def beside(path: pathlib.Path) -> Iterator[tuple[BinaryIO, str]]:
    """Opens a file in the same folder, and removes it in the end if it is still there."""
    real = os.path.realpath(path)
    name = f"{real}.{secrets.token_hex(4)}.part"
    try:
        with open(name, "xb") as file:
            yield file, name
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)


def remove_abandoned(path: pathlib.Path) -> None:
    """Removes what processes that were killed have left beside a file, which was just written.

    That is parts of it to which nobody has written for an hour, by the clock of the file system. A
    process that still writes to its part keeps it; one that slept for longer gets an `OSError` at
    its end, and the file stays whole.
    """
    real = pathlib.Path(os.path.realpath(path))
    part = re.compile(re.escape(real.name) + r"\.[0-9a-f]{8}\.part")
    with contextlib.suppress(OSError):
        now = real.stat().st_mtime
        for one in real.parent.iterdir():
            if part.fullmatch(one.name) and one.stat().st_mtime < now - _ABANDONED:
                one.unlink()
