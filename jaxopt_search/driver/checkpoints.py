"""Files from which runs continue, bit for bit: what is in them, and what is refused.

A checkpoint is an `.npz` without pickle: the leaves of what a run needs to continue and of the best
that it has found, and a header of JSON. It is written to another file, which takes its place once
it is whole, so that there is always an old one or a new one. Who writes when: `driver.keeping`.
"""

import ast
import contextlib
import errno
import functools
import io
import json
import math
import pathlib
import re
import zipfile
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxopt_search.checks import check_number
from jaxopt_search.driver import environment
from jaxopt_search.driver.states import leaves_by_path
from jaxopt_search.engine.fingerprints import fingerprint
from jaxopt_search.errors import CheckpointError
from jaxopt_search.files import check_regular, remove_abandoned, whole

FORMAT, SCHEMA = "jaxopt_search checkpoint", 1
_HEADER, _MOST_HEADER = "header", 2**26
_KEY = r"""\[(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\]"""  # of a dict, a string
_NPY_HEADER = 2**12  # bytes in front of an array, amply
_COUNTS = {
    "instance": "the numbers and the code of the problem count",
    "configuration": "the search, the exchange, check_every, distinct and such count, by values and"
    " code, and max_steps where it sets the pace",
}


class Identity(NamedTuple):
    """Fingerprints of what a run is about.

    Attributes:
      instance: of the problem.
      configuration: of what its searches do, such as the search, the exchange, and the steps
        between stop tests.
    """

    instance: str
    configuration: str


def identity_of(problem: Any, search: Any, exchange: Any, check_every: int) -> Identity:
    """Returns the fingerprints of a run of `solve`."""
    original = problem.host
    units = None if original is None else repr((original.unit, original.offset))
    return Identity(
        fingerprint(problem, units), fingerprint(search, exchange, np.int32(check_every))
    )


class Snapshot(NamedTuple):
    """What is kept of a run, whatever its kind.

    Attributes:
      state: what it continues from, a pytree of NumPy arrays, as on one device.
      best: the best that it has found, a pytree of NumPy arrays, as the user has solutions.
      notes: numbers and lists for JSON. `fun` is the cost of the best.
    """

    state: Any
    best: Any
    notes: dict[str, Any]


def write(path: pathlib.Path, identity: Identity, kept: Snapshot, is_new: bool) -> None:
    """Writes a checkpoint, whole or not at all.

    Args:
      identity: of what the run is about.
      is_new: whether there is no such file yet; one that has come since is not overwritten.

    Raises:
      OSError: if that cannot be done.
    """
    header = {"format": FORMAT, "schema": SCHEMA, **identity._asdict()}
    header |= {"versions": environment.of_host(), "notes": kept.notes}
    words = json.dumps(header).encode()
    if len(words) > _MOST_HEADER:
        raise OSError(errno.EFBIG, f"its notes have {len(words)} bytes, at most {_MOST_HEADER} fit")
    arrays = {_HEADER: np.frombuffer(words, np.uint8)}
    found = _named("state", kept.state) | _named("best", kept.best)
    arrays |= {name: np.asarray(leaf, order="C") for name, leaf in found.items()}
    with whole(path, is_new) as file:
        np.savez(file, allow_pickle=False, **arrays)
    remove_abandoned(path)


def _named(name: str, tree: Any) -> dict[str, Any]:
    """Returns the leaves of a pytree by their names in the file."""
    return {f"{name}.{path}".rstrip("."): leaf for path, leaf in leaves_by_path(tree)}


def read(
    path: pathlib.Path, identity: Identity, shapes_of: Callable[[dict[str, Any]], tuple[Any, Any]]
) -> Snapshot:
    """Returns what is kept of a run that is to be continued.

    Nothing in the file is executed, and no more memory is taken than the run needs.

    Args:
      identity: of the run that continues.
      shapes_of: maps the notes to the state and the best, of which only shapes and dtypes count.

    Raises:
      OSError: if the file cannot be read.
      CheckpointError: in one line, if it holds no whole checkpoint, or one of another run.
    """
    with _opened(path) as archive:
        header = _header(archive)
        for name, own in identity._asdict().items():
            if header[name] != own:
                raise CheckpointError(
                    f"it is of {name} {header[name]}, expected {own}; {_COUNTS[name]}; code counts"
                    f" as Python compiles it, which was {header['versions']['python']} there"
                )
        state, best = shapes_of(header["notes"])
        return Snapshot(
            _tree(archive, "state", state), _tree(archive, "best", best), header["notes"]
        )


def read_best(path: pathlib.Path) -> tuple[Any, Any]:
    """Returns the best that any run has kept, as `load_best` does, and the note of its cost.

    No more memory is taken than the file has bytes.

    Raises:
      OSError, CheckpointError: as `read`.
    """
    with _opened(path) as archive:
        fun = _header(archive)["notes"].get("fun")
        if fun is None:
            raise CheckpointError("it is of no run, and has no best solution")
        numbers = fun if isinstance(fun, list) else [fun]
        if not all(isinstance(number, int | float) for number in numbers):
            raise ValueError("its cost is no number")
        names = [name.removesuffix(".npy") for name in archive.namelist() if name[:4] == "best"]
        arrays = [_array(archive, name, None, path.stat().st_size) for name in names]
        return _in_dicts([name.removeprefix("best").lstrip(".") for name in names], arrays), fun


def _in_dicts(paths: list[str], leaves: list[Any]) -> Any:
    """Returns leaves by their paths where these lead through dicts only; else a list of several."""
    found: dict[str, Any] = {}
    for path, leaf in zip(paths, leaves, strict=True):
        keys = re.findall(_KEY, path)
        if not keys or "".join(keys) != path:
            return leaves[0] if len(leaves) == 1 else leaves
        *outer, last = [ast.literal_eval(key)[0] for key in keys]
        functools.reduce(lambda inner, key: inner.setdefault(key, {}), outer, found)[last] = leaf
    return found


@contextlib.contextmanager
def _opened(path: pathlib.Path) -> Iterator[zipfile.ZipFile]:
    """Opens a checkpoint; what goes wrong while it is read is raised as `read` says."""
    try:
        check_regular(path)
    except ValueError as error:
        raise CheckpointError(f"{error}, expected a checkpoint") from None
    with path.open("rb"):  # what cannot be read at all says so by itself
        pass
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(info.file_size for info in archive.infolist()) > path.stat().st_size:
                raise ValueError("its parts are larger than the file")
            yield archive
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from None
    except MemoryError:
        raise
    except Exception as error:  # a torn archive has many ways to fail
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        line = (str(error) or type(error).__name__).splitlines()[0]
        raise CheckpointError(
            f"{path} is no whole checkpoint ({line}), expected one that `checkpoint` wrote"
        ) from None


@contextlib.contextmanager
def notes_read() -> Iterator[None]:
    """Has notes that are not as they were written raise a `CheckpointError`."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        if isinstance(error, CheckpointError):
            raise
        raise CheckpointError(
            f"the notes of the checkpoint are damaged ({type(error).__name__}: {error}), expected"
            " those that `checkpoint` wrote"
        ) from None


def seconds_of(notes: dict[str, Any]) -> float:
    """Returns the seconds of search that notes tell of."""
    seconds = check_number("seconds", notes["seconds"], 0)
    if math.isinf(seconds):
        raise ValueError(f"seconds is {seconds}")
    return float(seconds)


def check_cost(noted: Any, exact: int | float) -> None:
    """Refuses a noted cost that the best solution does not have: float costs up to rounding."""
    is_close = isinstance(exact, float) and math.isclose(noted, exact, rel_tol=1e-3, abs_tol=1e-3)
    if not (noted == exact or is_close or (noted != noted and exact != exact)):
        raise ValueError(f"its best solution costs {exact}, and not {noted}")


def _header(archive: zipfile.ZipFile) -> dict[str, Any]:
    """Returns the header of a checkpoint of this format and schema."""
    found = _array(archive, _HEADER, None, _MOST_HEADER)
    header = json.loads(found.tobytes())
    if header["format"] != FORMAT:
        raise CheckpointError("it is of another format")
    if header["schema"] != SCHEMA:
        raise CheckpointError(f"it is of schema {header['schema']}, expected {SCHEMA}")
    return header


def _tree(archive: zipfile.ZipFile, name: str, shape: Any) -> Any:
    """Returns a pytree whose leaves are members of an archive.

    Args:
      shape: of the pytree: its leaves have shapes and dtypes.
    """
    found = [
        _array(archive, path, leaf, leaf.size * leaf.dtype.itemsize)
        for path, leaf in _named(name, shape).items()
    ]
    return jax.tree.unflatten(jax.tree.structure(shape), found)


def _array(archive: zipfile.ZipFile, name: str, shape: Any, most: int) -> np.ndarray:
    """Returns an array, after comparing what it says of its size with what is there.

    Args:
      shape: its shape and dtype; None for any numbers.
      most: bytes that it may have.
    """
    info = archive.getinfo(f"{name}.npy")
    if info.compress_type != zipfile.ZIP_STORED or info.file_size > most + _NPY_HEADER:
        raise ValueError(f"{name} has {info.file_size} bytes, expected {most} and a header")
    file = io.BytesIO(archive.read(info))  # which compares checksums
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError(f"{name} is no array of NumPy's format 1.0")
    found_shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(file)
    rest = file.read()
    if dtype.kind == "V" and shape is not None and dtype.itemsize == shape.dtype.itemsize:
        dtype = shape.dtype  # such as bfloat16, which NumPy does not know
    if shape is None:
        is_as_wanted = dtype.kind in "biuf" and math.prod(found_shape) * dtype.itemsize == len(rest)
        wanted = f"numbers in {len(rest)} bytes"
    else:
        is_as_wanted = (found_shape, dtype) == (shape.shape, shape.dtype)
        wanted = f"{shape.dtype} {shape.shape}"
    if not is_as_wanted or is_fortran:
        raise ValueError(f"{name} is {dtype} {found_shape}, expected {wanted}")
    return np.frombuffer(rest, dtype).reshape(found_shape).copy()
