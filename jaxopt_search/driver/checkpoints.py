"""Runs in files, from which they continue bit for bit after whatever has ended them.

A checkpoint is an `.npz` without pickle: the leaves of the run's state as on one device, and a
header of JSON. It is written to another file, which takes its place once it is whole, so that there
is always an old one or a new one.
"""

import errno
import io
import json
import os
import pathlib
import time
import warnings
import zipfile
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxopt_search import capabilities
from jaxopt_search.checks import check_number
from jaxopt_search.driver.fingerprints import fingerprint
from jaxopt_search.driver.states import leaves_by_path
from jaxopt_search.engine import starting
from jaxopt_search.engine.state import RunState
from jaxopt_search.errors import CheckpointError
from jaxopt_search.files import beside, whole
from jaxopt_search.guards import contracts
from jaxopt_search.types import Problem, Search

FORMAT, SCHEMA = "jaxopt_search checkpoint", 1
DEFAULT_SECONDS = 60.0
_HEADER, _MOST_HEADER = "header", 2**26
_NPY_HEADER = 2**12  # bytes in front of an array, amply
_COUNTS = {
    "instance": "the numbers of the problem",
    "configuration": "search, exchange and check_every, and max_steps in solve_tsp and solve_qap,",
}
_SHARE = 0.01  # of a run's time, at most, goes into checkpoints


class Identity(NamedTuple):
    """Fingerprints of what a run is about.

    Attributes:
      instance: of the problem.
      configuration: of the search, the exchange, and the steps between stop tests.
    """

    instance: str
    configuration: str


def identity_of(problem: Any, search: Any, exchange: Any, check_every: int) -> Identity:
    """Returns the fingerprints of a run."""
    original = capabilities.original(problem)
    units = None if original is None else repr((original.unit, original.offset))
    return Identity(
        fingerprint(problem, units), fingerprint(search, exchange, np.int32(check_every))
    )


class Checkpoint(NamedTuple):
    """What is kept of a run.

    Attributes:
      identity: of what it is about.
      state: leaves are NumPy's, as on one device.
      best: the best solution, a pytree of NumPy arrays.
      notes: numbers and lists for JSON: seconds of search, history and the like.
    """

    identity: Identity
    state: RunState
    best: Any
    notes: dict[str, Any]


class Keeper:
    """Writes checkpoints of a run into one file, now and then.

    Of several processes that share a run, only the lead writes.

    Raises:
      OSError: if nothing can be written there, or there is one that is not resumed.
    """

    def __init__(
        self,
        path: str | os.PathLike,
        every: float,
        resumed: pathlib.Path | None,
        writes: bool = True,
    ):
        self.path, self._every = checked_path(path), check_number("checkpoint_every", every, 0)
        self._last, self._took, self._has_failed = time.monotonic(), 0.0, False
        self._writes = writes
        if not writes:
            return
        self._is_new = not self.path.exists()
        if not self._is_new and not (resumed is not None and self.path.samefile(resumed)):
            raise FileExistsError(
                f"checkpoint {self.path} is there already; resume it or remove it"
            )
        with beside(self.path) as (file, _):
            file.write(b"is there a folder, and room?")

    @property
    def is_due(self) -> bool:
        """Whether it is time, which comes less often where checkpoints take long."""
        return time.monotonic() - self._last >= max(self._every, self._took / _SHARE)

    def write(self, make: Callable[[], Checkpoint]) -> None:
        """Writes what `make` returns; the first failure is a warning, and the run continues."""
        began = time.monotonic()
        checkpoint = make()
        if not self._writes:
            return
        try:
            write(self.path, checkpoint, self._is_new)
            self._is_new = False
        except OSError as error:
            if not self._has_failed:
                warnings.warn(f"no checkpoint was written: {error}", stacklevel=2)
            self._has_failed = True
        self._last = time.monotonic()
        self._took = self._last - began


def to_resume(resume: Any, checkpoint: Any) -> pathlib.Path | None:
    """Returns the checkpoint that a run continues; None for none.

    Args:
      resume: a path, or True for `checkpoint` if it is there.
    """
    if resume is None or resume is False:
        return None
    if resume is not True:
        return checked_path(resume, "resume")
    if checkpoint is None:
        raise ValueError("resume is True without a checkpoint, expected a path")
    path = checked_path(checkpoint)
    return path if path.exists() else None


def checked_path(path: Any, name: str = "checkpoint") -> pathlib.Path:
    """Returns the path of a checkpoint."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"{name} is a {type(path).__name__}, expected a path that ends in .npz")
    if not os.fspath(path).endswith(".npz"):
        raise ValueError(f"{name} is {os.fspath(path)!r}, expected a path that ends in .npz")
    return pathlib.Path(path)


def write(path: pathlib.Path, checkpoint: Checkpoint, is_new: bool) -> None:
    """Writes a checkpoint, whole or not at all.

    Args:
      is_new: whether there is no such file yet; one that has come since is not overwritten.

    Raises:
      OSError: if that cannot be done.
    """
    header = {"format": FORMAT, "schema": SCHEMA, "num_searches": len(checkpoint.state.index)}
    header |= checkpoint.identity._asdict() | {"notes": checkpoint.notes}
    arrays = {_HEADER: np.frombuffer(json.dumps(header).encode(), np.uint8)}
    arrays |= _named("state", checkpoint.state) | _named("best", checkpoint.best)
    with whole(path, is_new) as file:
        np.savez(file, allow_pickle=False, **arrays)


def _named(name: str, tree: Any) -> dict[str, Any]:
    """Returns the leaves of a pytree by their names in the file."""
    return {f"{name}.{path}".rstrip("."): leaf for path, leaf in leaves_by_path(tree)}


def read(path: pathlib.Path, problem: Problem, search: Search, identity: Identity) -> Checkpoint:
    """Returns the checkpoint of a run that is to be continued.

    Nothing in the file is executed, and no more memory is taken than the run needs.

    Args:
      problem: of the run that continues.
      search: likewise.
      identity: likewise.

    Raises:
      OSError: if the file cannot be read.
      CheckpointError: in one line, if it holds no whole checkpoint, or one of another run.
    """
    with path.open("rb"):  # what cannot be read at all says so by itself
        pass
    try:
        with zipfile.ZipFile(path) as archive:
            return _read(archive, problem, search, identity)
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


def _read(
    archive: zipfile.ZipFile, problem: Problem, search: Search, identity: Identity
) -> Checkpoint:
    header = json.loads(_array(archive, _HEADER, None).tobytes())
    if header["format"] != FORMAT:
        raise CheckpointError("it is of another format")
    if header["schema"] != SCHEMA:
        raise CheckpointError(f"it is of schema {header['schema']}, expected {SCHEMA}")
    for name, own in identity._asdict().items():
        if header[name] != own:
            raise CheckpointError(
                f"it is of {name} {header[name]}, expected {own}; {_COUNTS[name]} count"
            )
    num_searches = header["num_searches"]
    if type(num_searches) is not int or num_searches < 1:
        raise ValueError(f"num_searches is {num_searches!r}")
    state = _tree(archive, "state", starting.shape(problem, search, num_searches))
    best = _tree(archive, "best", _own_solution(problem))
    return Checkpoint(identity, state, best, header["notes"])


def _own_solution(problem: Problem) -> Any:
    """Returns the shape and dtype of a solution as the user has it."""
    shape, _ = contracts.check_problem(problem)
    original = capabilities.original(problem)
    if original is None or original.num_entries is None:
        return shape
    return jax.ShapeDtypeStruct((original.num_entries,), shape.dtype)


def _tree(archive: zipfile.ZipFile, name: str, shape: Any) -> Any:
    """Returns a pytree whose leaves are members of an archive.

    Args:
      shape: of the pytree: its leaves have shapes and dtypes.
    """
    found = [_array(archive, path, leaf) for path, leaf in _named(name, shape).items()]
    return jax.tree.unflatten(jax.tree.structure(shape), found)


def _array(archive: zipfile.ZipFile, name: str, shape: Any) -> np.ndarray:
    """Returns an array, after comparing what it says of its size with what is there.

    Args:
      shape: its shape and dtype; None for bytes of whatever number.
    """
    info = archive.getinfo(f"{name}.npy")
    most = _MOST_HEADER if shape is None else shape.size * shape.dtype.itemsize
    if info.compress_type != zipfile.ZIP_STORED or info.file_size > most + _NPY_HEADER:
        raise ValueError(f"{name} has {info.file_size} bytes, expected {most} and a header")
    file = io.BytesIO(archive.read(info))  # which compares checksums
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError(f"{name} is no array of NumPy's format 1.0")
    found_shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(file)
    rest = file.read()
    if dtype.kind == "V" and shape is not None and dtype.itemsize == shape.dtype.itemsize:
        dtype = shape.dtype  # such as bfloat16, which NumPy does not know
    wanted = ((len(rest),), np.dtype(np.uint8)) if shape is None else (shape.shape, shape.dtype)
    if (found_shape, dtype) != wanted or is_fortran:
        raise ValueError(f"{name} is {dtype} {found_shape}, expected {wanted[1]} {wanted[0]}")
    return np.frombuffer(rest, dtype).reshape(found_shape).copy()
