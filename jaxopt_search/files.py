"""Files that are there whole or not at all."""

import contextlib
import os
import pathlib
import secrets
from collections.abc import Iterator
from typing import BinaryIO


@contextlib.contextmanager
def whole(path: pathlib.Path) -> Iterator[BinaryIO]:
    """Opens a file that takes its name, and the place of an old one, only once all is written.

    Raises:
      OSError: if it cannot be written; then nothing is left behind.
    """
    with beside(path) as (file, name):
        yield file
        file.flush()
        os.fsync(file.fileno())
        os.replace(name, os.path.realpath(path))  # through a symbolic link


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
