"""Checkpoints where nothing can be written, and files that claim more than they hold."""

import os
import pathlib
import struct
import zipfile

import numpy as np
import pytest
from probes import line, walk

import jaxopt_search as js
from jaxopt_search.driver import run as driver_run

resource = pytest.importorskip("resource")  # not on Windows


def solve(max_steps, **options):
    return js.solve(line(), walk(), 3, num_searches=5, max_steps=max_steps, **options)


@pytest.mark.parametrize("place", ["missing", "a file", "read-only", "full"])
def test_what_cannot_be_written_is_told_before_anything_is_compiled(place, tmp_path, monkeypatch):
    """As an error of the system's own, and nothing is left in the folder."""
    monkeypatch.setattr(driver_run, "Run", lambda *_: pytest.fail("the run has begun"))
    folder = tmp_path / "folder"
    if place == "a file":
        folder.touch()
    elif place != "missing":
        folder.mkdir()
    if place == "read-only":
        folder.chmod(0o500)
        if os.access(folder, os.W_OK):  # root may write anywhere but where the system lets nobody
            folder = pathlib.Path("/sys")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    if place == "full":
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        with pytest.raises(OSError) as caught:
            solve(9, checkpoint=folder / "run.npz")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not isinstance(caught.value, FileExistsError)
    assert place in ("a file", "missing") or not list(folder.glob("*.part"))


def test_what_killed_processes_have_left_is_removed(tmp_path):
    """Once it is old: another process may be writing. Files of other names stay."""
    path, names = tmp_path / "run.npz", ["run.npz.01234567.part", "run.npz.89abcdef.part"]
    names += ["run.npz.mine.part", "other_run.npz.01234567.part", "run2npz.01234567.part"]
    for name in names:
        (tmp_path / name).touch()
        if name != names[1]:
            os.utime(tmp_path / name, (0, 0))
    solve(5, checkpoint=path)
    assert sorted(one.name for one in tmp_path.iterdir()) == sorted([path.name, *names[1:]])


def test_a_small_file_that_claims_terabytes(tmp_path):
    """Its header and the archive's list agree; what counts is what the run would have."""
    path, size = tmp_path / "run.npz", 10**12
    solve(5, checkpoint=path)
    with zipfile.ZipFile(path) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    header = f"{{'descr': '<i4', 'fortran_order': False, 'shape': ({size},), }}".encode()
    header += b" " * (117 - len(header)) + b"\n"
    found["best.npy"] = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + b"\0" * 8
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in found.items():
            archive.writestr(name, data)
    with pytest.raises(MemoryError), np.load(path) as arrays:
        arrays["best"]  # what the library has to do better
    with pytest.raises(
        js.CheckpointError, match=rf"best is int32 \({size},\), expected int32"
    ) as e:
        solve(9, resume=path)
    assert "\n" not in str(e.value)
