"""Files of arrays, `.npz`, with a header of JSON; nothing in them is ever executed.

No more memory is taken for a file than it has bytes, whatever it says of its sizes; for one that is
packed, than its bytes can stand for.
"""

import contextlib
import errno
import io
import json
import math
import os
import pathlib
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from jaxopt_search.errors import CheckpointError
from jaxopt_search.files import check_regular, whole

_HEADER = "header"
_KINDS = "biufc"  # of NumPy's dtypes: numbers
_MOST_DEFLATED = 1032  # bytes that one byte of a file may stand for


def checked_path(path: Any, name: str = "path") -> pathlib.Path:
    """Returns the path of such a file, wherever the process goes from here."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"{name} is a {type(path).__name__}, expected a path that ends in .npz")
    if not os.fspath(path).endswith(".npz"):
        raise ValueError(f"{name} is {os.fspath(path)!r}, expected a path that ends in .npz")
    if "\0" in os.fspath(path):
        raise ValueError(f"{name} is {os.fspath(path)!r}, expected a path without NUL")
    return pathlib.Path(path).absolute()


def write(
    path: pathlib.Path,
    header: dict[str, Any],
    arrays: dict[str, np.ndarray],
    *,
    is_packed: bool = False,
) -> None:
    """Writes a file, whole or not at all.

    Args:
      header: for JSON; `format` and `schema` tell what is in the file.

    Raises:
      OSError: if that cannot be done.
    """
    words = np.frombuffer(json.dumps(header).encode(), np.uint8)
    save = np.savez_compressed if is_packed else np.savez
    with whole(path) as file:
        save(file, allow_pickle=False, **{_HEADER: words}, **arrays)


@contextlib.contextmanager
def opened(
    path: pathlib.Path, kind: str, schema: int, error: type[ValueError], is_packed: bool = False
) -> Iterator[tuple[zipfile.ZipFile, dict[str, Any]]]:
    """Opens a file of a kind, and gives it and its header, for `array`.

    What goes wrong while it is read is an error in one line.

    Raises:
      OSError: if the file cannot be read.
    """
    try:
        check_regular(path)
        with zipfile.ZipFile(path) as file:
            members, most = file.infolist(), os.path.getsize(path)
            packed = sum(one.compress_size for one in members)
            size = sum(one.file_size for one in members)
            if packed > most or size > most * (_MOST_DEFLATED if is_packed else 1):
                raise ValueError("its parts are larger than the file")
            header = json.loads(array(file, _HEADER).tobytes())
            if header["format"] != kind or header["schema"] != schema:
                found = header["format"], header["schema"]
                raise ValueError(f"it is a {found[0]} of schema {found[1]}, expected {schema}")
            yield file, header
    except (CheckpointError, MemoryError):
        raise
    except Exception as cause:  # a torn file has many ways to fail
        if isinstance(cause, OSError) and cause.errno not in (None, errno.EINVAL):
            raise
        reason = (str(cause) or type(cause).__name__).splitlines()[0]
        raise error(f"{path} holds no whole {kind} ({reason})") from None


def array(archive: zipfile.ZipFile, name: str, like: Any = None) -> np.ndarray:
    """Returns an array, after comparing what it says of its size with what is there."""
    file = io.BytesIO(archive.read(f"{name}.npy"))  # which compares checksums
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError(f"{name} is no array of NumPy's format 1.0")
    shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(file)
    rest = file.read()
    if like is not None and dtype.kind == "V" and dtype.itemsize == like.dtype.itemsize:
        dtype = like.dtype  # such as bfloat16, which NumPy does not know
    elif dtype.kind not in _KINDS:
        raise ValueError(f"{name} is {dtype}, expected numbers")
    if like is not None and (shape, dtype) != (like.shape, like.dtype):
        raise ValueError(f"{name} is {dtype} {shape}, expected {like.dtype} {like.shape}")
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(rest):
        raise ValueError(f"{name} is {dtype} {shape} and has {len(rest)} bytes")
    return np.frombuffer(rest, dtype).reshape(shape, order="F" if is_fortran else "C").copy()
