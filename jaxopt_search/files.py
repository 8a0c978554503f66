"""Files that are there whole or not at all, archives of arrays, and private folders."""

import contextlib
import errno
import io
import json
import math
import os
import pathlib
import secrets
import stat
import zipfile
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

from jaxopt_search.errors import CheckpointError

_HEADER = "header"
_KINDS = "biufc"  # of NumPy's dtypes: numbers

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_OTHERS_ENTER = stat.S_IXGRP | stat.S_IXOTH


def check_regular(path: str | os.PathLike) -> None:
    """Refuses a path before it is opened: opening a pipe would wait for someone to write to it.

    Raises:
      ValueError: if it is no regular file, nor a link to one.
      OSError: if there is none.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ValueError(f"{os.fspath(path)} is not a regular file")


@contextlib.contextmanager
def whole(path: pathlib.Path) -> Iterator[BinaryIO]:
    """Opens a file that takes its name, and the place of an old one, only once all is written.

    Its name survives a loss of power, too, where the system can do that.

    Raises:
      OSError: if it cannot be written; then nothing is left behind.
    """
    with beside(path) as (file, name):
        yield file
        file.flush()
        os.fsync(file.fileno())
        real = os.path.realpath(path)  # through a symbolic link
        os.replace(name, real)
    with contextlib.suppress(OSError):
        folder = os.open(os.path.dirname(real), os.O_RDONLY)
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


# Archives: arrays in an `.npz`, with a header of JSON. Nothing in them is ever executed, and no
# more memory is taken for one than it has bytes, whatever it says of its sizes.


def archive_path(path: Any, name: str = "path") -> pathlib.Path:
    """Returns the path of such a file, wherever the process goes from here."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"{name} is a {type(path).__name__}, expected a path that ends in .npz")
    if not os.fspath(path).endswith(".npz"):
        raise ValueError(f"{name} is {os.fspath(path)!r}, expected a path that ends in .npz")
    if "\0" in os.fspath(path):
        raise ValueError(f"{name} is {os.fspath(path)!r}, expected a path without NUL")
    return pathlib.Path(path).absolute()


def write_archive(
    path: pathlib.Path, header: dict[str, Any], arrays: dict[str, np.ndarray]
) -> None:
    """Writes a file, whole or not at all.

    Args:
      header: for JSON; `format` and `schema` tell what is in the file.

    Raises:
      OSError: if that cannot be done.
    """
    words = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with whole(path) as file:
        np.savez(file, allow_pickle=False, **{_HEADER: words}, **arrays)


@contextlib.contextmanager
def opened_archive(
    path: pathlib.Path, kind: str, schema: int
) -> Iterator[tuple[zipfile.ZipFile, dict[str, Any]]]:
    """Opens a file of a kind, and gives it and its header, for `array_of`.

    What goes wrong while it is read is an error in one line.

    Raises:
      OSError: if the file cannot be read.
    """
    try:
        check_regular(path)
        with zipfile.ZipFile(path) as file:
            if sum(one.file_size for one in file.infolist()) > os.path.getsize(path):
                raise ValueError("its parts are larger than the file")
            header = json.loads(array_of(file, _HEADER).tobytes())
            found = header["format"], header["schema"]
            if found != (kind, schema):
                raise ValueError(f"it is a {found[0]} of schema {found[1]}, expected {schema}")
            yield file, header
    except (CheckpointError, MemoryError):
        raise
    except Exception as cause:  # a torn file has many ways to fail
        if isinstance(cause, OSError) and cause.errno not in (None, errno.EINVAL):
            raise
        reason = (str(cause) or type(cause).__name__).splitlines()[0]
        raise CheckpointError(f"{path} holds no whole {kind} ({reason})") from None


def array_of(archive: zipfile.ZipFile, name: str, like: Any = None) -> np.ndarray:
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


# Folders that only their user can write to.


def cache_folder() -> pathlib.Path:
    """Returns `jaxopt_search` in XDG_CACHE_HOME or `~/.cache`; nothing is created.

    Raises:
      FileNotFoundError: neither is known.
    """
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        folder = pathlib.Path(base) if base else pathlib.Path.home() / ".cache"
    except RuntimeError:
        message = "no home folder found, expected the variable HOME or XDG_CACHE_HOME"
        raise FileNotFoundError(message) from None
    return folder / "jaxopt_search"


def private_folder(folder: pathlib.Path) -> pathlib.Path:
    """Returns `folder` without symbolic links, after checking that only this user can write there.

    It is created, with mode 0700, where it does not exist. Not checked: whether the owners and
    the groups of the folders above it can be trusted. Without POSIX owners (Windows) nothing but
    its being a folder is.

    Raises:
      PermissionError: others can write there, or this user cannot.
      OSError: it is not a folder, or cannot be created.
    """
    is_posix = hasattr(os, "getuid")
    if is_posix and folder.is_symlink() and folder.lstat().st_uid not in (0, os.getuid()):
        raise _refused(folder, "is a symbolic link of another user")
    folder = pathlib.Path(os.path.realpath(folder))
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is not a folder, expected one or a new name")
    for missing in reversed([folder, *folder.parents]):
        if not missing.is_dir():  # each is made private, which the umask might not do
            missing.mkdir(mode=0o700, exist_ok=True)
    if is_posix:
        _check_others(folder)
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise PermissionError(f"{folder} is not writable, expected a folder to write to")
    return folder


def _check_others(folder: pathlib.Path) -> None:
    """Refuses a folder to which others can write, or could: files of theirs are still there."""
    mode = folder.stat().st_mode
    if folder.stat().st_uid != os.getuid():
        raise _refused(folder, "belongs to another user")
    if mode & _OTHERS_WRITE:
        raise _refused(folder, f"is writable by others (mode {stat.S_IMODE(mode):04o})")
    for parent in folder.parents:  # where anyone could put another folder in the place of this one
        above = parent.stat().st_mode
        if above & stat.S_IWOTH and not above & stat.S_ISVTX:
            raise _refused(folder, f"is below {parent}, which anyone can write to")
    for entry in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):  # another process may delete it
            found = entry.lstat()
            is_open = mode & _OTHERS_ENTER and found.st_mode & _OTHERS_WRITE
            if (is_open and not entry.is_symlink()) or found.st_uid != os.getuid():
                raise _refused(folder, f"holds {entry.name}, which others wrote or can write")


def _refused(folder: pathlib.Path, reason: str) -> PermissionError:
    return PermissionError(f"{folder} {reason}, expected a folder that only you can write to")
