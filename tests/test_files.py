"""Folders for caches: where they are, and which are refused."""

import os
import pathlib
import stat

import pytest

from jaxopt_search import files

pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="Windows has other owners")


def refuses(folder, *reasons, error=PermissionError):
    """Whether a folder is refused on one line that has its path and these words."""
    with pytest.raises(error) as caught:
        files.private_folder(folder)
    message = str(caught.value)
    assert "\n" not in message
    assert all(reason in message for reason in (str(folder), *reasons))
    return True


@pytest.mark.parametrize("base", [None, "somewhere"])
def test_the_cache_is_below_the_users(base, monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    if base:
        monkeypatch.setenv("XDG_CACHE_HOME", base)
    else:
        monkeypatch.delenv("XDG_CACHE_HOME")
    assert files.cache_folder() == pathlib.Path(base or "/home/me/.cache", "jaxopt_search")


def test_a_new_folder_is_private(tmp_path):
    """With those above it, whatever the umask; and accepted the next time."""
    folder = tmp_path / "a" / "b"
    before = os.umask(0)
    try:
        assert files.private_folder(folder) == folder
    finally:
        os.umask(before)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (folder, folder.parent)] == [0o700] * 2
    assert files.private_folder(folder) == folder


def test_writable_by_others(tmp_path):
    for mode in (0o770, 0o702, 0o1777):
        tmp_path.chmod(mode)
        assert refuses(tmp_path, f"is writable by others (mode {mode:04o})")
    tmp_path.chmod(0o755)
    assert files.private_folder(tmp_path) == tmp_path


def test_below_a_folder_for_all(tmp_path):
    """Anyone could put another folder there, unless the sticky bit forbids it."""
    folder = tmp_path / "between" / "mine"
    files.private_folder(folder)
    tmp_path.chmod(0o777)
    assert refuses(folder, f"below {tmp_path}, which anyone can write to")
    tmp_path.chmod(0o1777)
    assert files.private_folder(folder) == folder


def test_files_that_others_can_write(tmp_path):
    """They matter where others can enter the folder."""
    (tmp_path / "program").touch()
    (tmp_path / "program").chmod(0o664)
    tmp_path.chmod(0o711)
    assert refuses(tmp_path, "holds program")
    tmp_path.chmod(0o700)
    assert files.private_folder(tmp_path) == tmp_path


@pytest.mark.skipif(getattr(os, "getuid", int)() != 0, reason="only root can give files away")
def test_given_away(tmp_path):
    """As before, with real owners."""
    folder, link = tmp_path / "folder", tmp_path / "link"
    folder.mkdir(0o700)
    link.symlink_to(folder)
    os.lchown(link, 12345, 12345)
    assert refuses(link, "is a symbolic link of another user")
    (folder / "program").touch()
    os.chown(folder / "program", 12345, 12345)
    assert refuses(folder, "holds program, which others wrote or can write")
    os.chown(folder, 12345, 12345)
    assert refuses(folder, "belongs to another user")


def test_not_a_folder(tmp_path):
    """A file, something below a file, and a link to itself."""
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert refuses(tmp_path / "file", "is not a folder", error=NotADirectoryError)
    for name in ("file/below", "loop"):
        with pytest.raises(OSError, match=str(tmp_path)) as caught:
            files.private_folder(tmp_path / name)
        assert "\n" not in str(caught.value)
