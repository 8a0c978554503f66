"""Results in files: `.npz`, arrays with a header of JSON; nothing in them is ever executed."""

import io
import json
import math
import os
import pathlib
import zipfile
import zlib
from typing import Any

import numpy as np

from jaxopt_search.files import check_regular, whole
from jaxopt_search.results.types import (
    History,
    Hit,
    QueensResult,
    Record,
    Result,
    StackedResult,
    Status,
)

_FORMAT = "jaxopt_search result"
_VERSION = 1
_KINDS = {kind.__name__: kind for kind in (Result, StackedResult, QueensResult)}
_LEFT_OUT = ("state", "problem", "search", "exchange")  # of classes of anyone's
_HEADER = "header"
_MOST_DEFLATED = 1032  # bytes that one byte of a file may stand for
_BAD = (
    *(OSError, ValueError, LookupError, TypeError, AttributeError, EOFError, OverflowError),
    *(RecursionError, NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error),
)


def save(result: Any, path: str | os.PathLike) -> None:
    """Writes a result; see `Result.save`."""
    path = _checked(path)
    header: dict[str, Any] = {"format": _FORMAT, "version": _VERSION, "kind": type(result).__name__}
    arrays: dict[str, np.ndarray] = {}
    for name, value in result._asdict().items():
        if name not in _LEFT_OUT:
            header[name] = _plain(name, value, arrays)
    content = np.array(json.dumps(header))
    with whole(path) as file:
        np.savez_compressed(file, allow_pickle=False, **{_HEADER: content}, **arrays)


def load_result(path: str | os.PathLike) -> Any:
    """Returns a result that `save` wrote: a `Result`, a `StackedResult` or a `QueensResult`.

    A `Result` comes back without its `state`, `problem`, `search` and `exchange`.

    Raises:
      OSError: if the file cannot be read.
      ValueError: in one line, if it holds no result, or only a part of one; or is no regular file.

    Example:
      >>> import pathlib, tempfile, jaxopt_search as js
      >>> result = js.solve_tsp([[0, 0], [2, 2], [0, 2], [2, 0]], max_steps=20)
      >>> path = pathlib.Path(tempfile.mkdtemp(), "tour.npz")
      >>> result.save(path)
      >>> js.load_result(path).fun
      8.0
    """
    path = _checked(path)
    check_regular(path)
    with path.open("rb"):  # what cannot be read at all says so by itself
        pass
    try:
        header, arrays = _read(path)
        if header.get("format") != _FORMAT or header["version"] != _VERSION:
            raise ValueError("it is of another format, or of another version")
        kind = _KINDS[header["kind"]]
        values = {
            name: _value(name, header[name], arrays)
            for name in kind._fields
            if name not in _LEFT_OUT
        }
    except _BAD as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ValueError(f"{path} holds no result that can be read: {reason}") from None
    return kind._make(values.get(name) for name in kind._fields)


def _checked(path: str | os.PathLike) -> pathlib.Path:
    path = pathlib.Path(path)
    if path.suffix != ".npz":
        raise ValueError(f"path is {str(path)!r}, expected a name that ends in .npz")
    if "\0" in str(path):
        raise ValueError(f"path is {str(path)!r}, expected a path without NUL")
    return path


def _plain(name: str, value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Returns a value for JSON; arrays are added to `arrays`, and their names are returned."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        arrays[name] = value
        return {"array": name}
    if isinstance(value, np.ndarray) and all(isinstance(one, int) for one in value.flat):
        return {"integers": value.tolist()}  # beyond int64
    if isinstance(value, list) and not isinstance(value, History):
        return {"list": [_plain(f"{name}.{i}", one, arrays) for i, one in enumerate(value)]}
    if isinstance(value, Status):
        return value.name
    is_plain = value is None or isinstance(value, bool | int | float | str | Hit | History)
    if is_plain or name == "env":
        return value
    is_array = isinstance(value, np.ndarray)
    kind = f"an array of dtype {value.dtype}" if is_array else f"a {type(value).__name__}"
    raise TypeError(f"{name} is {kind}, expected an array of numbers")


def _value(name: str, plain: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Returns what `_plain` stands for."""
    if name == "status":
        return Status[plain]
    if name == "first_hit":
        return plain and Hit(*plain)
    if name == "history":
        return History(Record(*line) for line in plain)
    if name == "env" or not isinstance(plain, dict):
        return plain
    if "array" in plain:
        return arrays[plain["array"]]
    if "integers" in plain:
        return np.array(plain["integers"], object)
    return [_value("", one, arrays) for one in plain["list"]]


def _read(path: pathlib.Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        packed, most = sum(info.compress_size for info in members), os.path.getsize(path)
        if packed > most or sum(info.file_size for info in members) > _MOST_DEFLATED * most:
            raise ValueError("its parts are larger than the file")
        arrays = {info.filename.removesuffix(".npy"): _array(archive, info) for info in members}
    return json.loads(arrays.pop(_HEADER).item()), arrays


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    """Returns an array, after comparing what it says of its size with what is there."""
    file = io.BytesIO(archive.read(info))
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError(f"{info.filename} is no array of NumPy's format 1.0")
    shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    size = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or size != len(file.getbuffer()) - file.tell():
        raise ValueError(f"{info.filename} says that it has {size} bytes, and has others")
    file.seek(0)
    return np.lib.format.read_array(file, allow_pickle=False)
