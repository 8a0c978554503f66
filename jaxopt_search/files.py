"""Files that are there whole or not at all."""

import contextlib
import os
import pathlib
import secrets
from collections.abc import Iterator
from typing import BinaryIO


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
                return
            except FileExistsError:
                raise FileExistsError(f"{path} is there already") from None
            except OSError:  # a file system without links
                pass
        os.replace(name, real)


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
