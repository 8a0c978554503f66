"""Folders on the user's machine: where caches lie, and whether others can write there."""

import contextlib
import os
import pathlib
import stat

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_OTHERS_ENTER = stat.S_IXGRP | stat.S_IXOTH


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
    resolved = pathlib.Path(os.path.realpath(folder))
    _create(resolved)
    if is_posix:
        _check_owner(resolved)
        _check_parents(resolved)
        _check_entries(resolved)
    if not os.access(resolved, os.R_OK | os.W_OK | os.X_OK):
        raise PermissionError(f"{resolved} is not writable, expected a folder to write to")
    return resolved


def _create(folder: pathlib.Path) -> None:
    """Makes a folder and those above it, all of them private, which the umask might not do."""
    if folder.is_dir():
        return
    if folder.exists():
        raise NotADirectoryError(f"{folder} is not a folder, expected one or a new name")
    for missing in reversed([folder, *folder.parents]):
        if not missing.is_dir():
            missing.mkdir(mode=0o700, exist_ok=True)


def _check_owner(folder: pathlib.Path) -> None:
    found = folder.stat()
    if found.st_uid != os.getuid():
        raise _refused(folder, "belongs to another user")
    if found.st_mode & _OTHERS_WRITE:
        raise _refused(folder, f"is writable by others (mode {stat.S_IMODE(found.st_mode):04o})")


def _check_parents(folder: pathlib.Path) -> None:
    """Refuses where anyone could put another folder in the place of this one."""
    for parent in folder.parents:
        mode = parent.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise _refused(folder, f"is below {parent}, which anyone can write to")


def _check_entries(folder: pathlib.Path) -> None:
    """Refuses what others wrote while they could, and what they can still open for writing."""
    can_enter = folder.stat().st_mode & _OTHERS_ENTER
    for entry in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):  # another process may delete it
            found = entry.lstat()
            is_open = can_enter and not entry.is_symlink() and found.st_mode & _OTHERS_WRITE
            if is_open or found.st_uid != os.getuid():
                raise _refused(folder, f"holds {entry.name}, which others wrote or can write")


def _refused(folder: pathlib.Path, reason: str) -> PermissionError:
    return PermissionError(f"{folder} {reason}, expected a folder that only you can write to")
