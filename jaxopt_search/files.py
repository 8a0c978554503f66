"""Files that are there whole or not at all."""

import contextlib
import os
import pathlib
import threading


def write_whole(path: pathlib.Path, data: bytes) -> None:
    """Writes a file beside its place and then puts it there, in place of one that there was.

    Raises:
      OSError: if that fails; then nothing is left behind.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        with part.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise
