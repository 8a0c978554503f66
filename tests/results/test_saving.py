"""Results that are saved and loaded."""

import functools
import io
import json
import os
import pathlib
import zipfile

import made
import numpy as np
import pytest

import jaxopt_search as js
from jaxopt_search.command import reading

OTHERS = ("state", "problem", "search", "exchange")


def assert_same(loaded, saved):
    assert type(loaded) is type(saved)
    for name, value in saved._asdict().items():
        back = getattr(loaded, name)
        if name in OTHERS:
            assert back is None
            continue
        assert type(back) is type(value), name
        if name == "x" and isinstance(value, list):
            assert [one.tolist() for one in back] == [one.tolist() for one in value]
            assert [one.dtype for one in back] == [one.dtype for one in value]
        elif name == "history":
            assert back == value and set(map(type, back)) <= {made.Record}
        elif isinstance(value, np.ndarray):
            assert back.dtype == value.dtype and back.shape == value.shape
            np.testing.assert_array_equal(back, value)
        else:
            assert back == value, name


@pytest.mark.parametrize(
    "result",
    [
        made.result(),
        made.result(fun=2**80, gap=None, first_hit=None, costs=np.array([0.1, 1e300])),
        made.result(fun=float("inf"), gap=float("inf"), history=made.History()),
        made.result(fun=2**2000, gap=None, costs=np.array([2**80, -(2**70)], object)),
        made.stacked(),
        made.stacked(fun=np.array([2**80, -(2**70)], object)),
        made.queens(),
        made.queens(solutions=np.zeros((0, 4), np.int16)),
    ],
    ids=str,
)
def test_a_result_comes_back(result, tmp_path):
    """Each of its fields, with its type, apart from objects of whatever classes."""
    path = tmp_path / "saved.npz"
    result.save(path)
    assert_same(js.load_result(path), result)
    assert os.listdir(tmp_path) == [path.name]


def test_an_old_file_stays_if_the_new_one_fails(tmp_path, monkeypatch):
    path = tmp_path / "saved.npz"
    made.queens().save(path)
    before = path.read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        made.result().save(path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == [path.name]


def test_solutions_that_are_no_arrays_are_refused(tmp_path):
    result = made.result(x={"a": np.zeros(2)})
    with pytest.raises(TypeError, match="x is a dict, expected an array"):
        result.save(tmp_path / "saved.npz")
    with pytest.raises(TypeError, match="x is an array of dtype object"):
        made.result(x=np.array([None])).save(tmp_path / "saved.npz")
    assert not os.listdir(tmp_path)


def test_other_names_and_missing_files(tmp_path):
    for call in (made.result().save, js.load_result):
        with pytest.raises(ValueError, match="expected a path that ends in .npz"):
            call(tmp_path / "saved.json")
    with pytest.raises(FileNotFoundError):
        js.load_result(tmp_path / "none.npz")
    with pytest.raises(FileNotFoundError):
        made.result().save(tmp_path / "none" / "saved.npz")


def with_header(**changes):
    """Returns a function that changes the header of a file; None takes a value out."""

    def change(path: pathlib.Path):
        with np.load(path) as file:
            arrays = dict(file)
        header = json.loads(arrays.pop("header").tobytes()) | changes
        header = {name: value for name, value in header.items() if value is not None}
        np.savez(path, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **arrays)

    return change


def flip(path: pathlib.Path):
    data = path.read_bytes()
    place = data.index(b"solutions.npy") + 60  # among its numbers
    path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])


BAD = {
    "empty": lambda path: path.write_bytes(b""),
    "a flipped bit": flip,
    "a pickle": lambda path: np.savez(path, header=np.array([{"a": 1}], object)),
    "of another format": with_header(format="tour"),
    "of schema 9": with_header(schema=9),
    "fields missing": with_header(nfev=None),
    "arrays missing": with_header(x={"array": "y"}),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_refused(name, tmp_path):
    """In one line with the file's name."""
    path = tmp_path / "saved.npz"
    made.result().save(path)
    BAD[name](path)
    with pytest.raises(ValueError, match="holds no whole jaxopt_search result") as caught:
        js.load_result(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_nothing_is_executed(tmp_path, monkeypatch):
    """A pickle in the place of an array is not opened."""
    monkeypatch.setattr("pickle.load", lambda *_, **__: pytest.fail("it was opened"))
    made.result().save(tmp_path / "saved.npz")
    with np.load(tmp_path / "saved.npz") as file:
        arrays = dict(file) | {"x": np.array([print], object)}
    with open(tmp_path / "saved.npz", "wb") as file:
        np.savez(file, **arrays)
    with pytest.raises(ValueError, match="x is object, expected numbers"):
        js.load_result(tmp_path / "saved.npz")


def test_what_declares_more_than_it_has_takes_no_memory(tmp_path):
    """Sizes that a file declares are compared with what it has, before memory is taken."""
    path = tmp_path / "saved.npz"
    made.result().save(path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    file = io.BytesIO()
    huge = {"descr": "<f8", "fortran_order": False, "shape": (2**40,)}
    np.lib.format.write_array_header_1_0(file, huge)
    with zipfile.ZipFile(path, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, file.getvalue() if name == "costs.npy" else part)
    with pytest.raises(ValueError, match="holds no whole .*costs is .* and has"):
        js.load_result(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes")
def test_only_regular_files_are_opened(tmp_path):
    """A pipe, to which nobody writes, blocks nothing; NUL in a path names the argument."""
    path = tmp_path / "pipe.npz"
    os.mkfifo(path)
    resume = functools.partial(js.solve_tsp, [[0, 0], [2, 2], [0, 2], [2, 0]], max_steps=5)
    for load in (
        *(js.load_result, js.load_best, lambda path: js.load_checkpoint(path, 0)),
        lambda path: resume(resume=path),
    ):
        with pytest.raises(ValueError, match="is not a regular file"):
            load(path)
        with pytest.raises(ValueError, match="(path|resume) is .*, expected a path without NUL"):
            load(str(path).replace("pipe", "pi\0pe"))
    os.mkfifo(tmp_path / "pipe.npy")
    with pytest.raises(ValueError, match="is not a regular file"):
        reading.read(str(tmp_path / "pipe.npy"))
