"""Files from which runs continue, bit for bit: what is in them, and what is refused.

A checkpoint is an `.npz` without pickle: the leaves of what a run needs to continue and of the best
that it has found, and a header of JSON. It is written to another file, which takes its place once
it is whole, so that there is always an old one or a new one.
"""

import ast
import contextlib
import errno
import functools
import io
import json
import math
import os
import pathlib
import re
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search.checks import check_number
from jaxopt_search.driver import environment
from jaxopt_search.driver.starts import leaves_by_path
from jaxopt_search.engine.fingerprints import fingerprint
from jaxopt_search.engine.processes import ALONE, Team
from jaxopt_search.errors import CheckpointError
from jaxopt_search.files import beside, check_regular, remove_abandoned, whole

DEFAULT_SECONDS = 60.0
SHARE = 0.01  # of a run's time, at most, goes into checkpoints
FORMAT, SCHEMA = "jaxopt_search checkpoint", 1
_HEADER, _MOST_HEADER = "header", 2**26
_KINDS = "biufcV"  # of NumPy's dtypes: numbers; V are those that it does not know, such as bfloat16
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


def checked_path(path: Any, name: str = "checkpoint") -> pathlib.Path:
    """Returns the path of a checkpoint, wherever the process goes from here."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"{name} is a {type(path).__name__}, expected a path that ends in .npz")
    if not os.fspath(path).endswith(".npz"):
        raise ValueError(f"{name} is {os.fspath(path)!r}, expected a path that ends in .npz")
    if "\0" in os.fspath(path):
        raise ValueError(f"{name} is {os.fspath(path)!r}, expected a path without NUL")
    return pathlib.Path(path).absolute()


def path_to_resume(resume: Any, checkpoint: Any) -> pathlib.Path | None:
    """Returns the checkpoint to continue from, as `solve` takes it; None for none.

    Raises:
      ValueError, TypeError: if it is not said where it is.
    """
    if resume is None or resume is False:
        return None
    if resume is not True:
        return checked_path(resume, "resume")
    if checkpoint is None:
        raise ValueError("resume is True without a checkpoint, expected a path")
    return checked_path(checkpoint)


class Keeper:
    """Writes checkpoints of a run into one file, now and then.

    Of several processes that share the run, the lead writes and says when.

    Raises:
      OSError: if nothing can be written there, or there is one that is not resumed.
    """

    def __init__(self, path: Any, every: float, resumed: pathlib.Path | None, team: Team = ALONE):
        self.path, self._every = checked_path(path), check_number("checkpoint_every", every, 0)
        self._last, self._took, self._has_failed = time.monotonic(), 0.0, False
        self._team = team
        if not team.is_lead:
            return
        self._is_new = not self.path.exists()
        self._seen = _signature(self.path)
        if not self._is_new and not (resumed is not None and self.path.samefile(resumed)):
            raise FileExistsError(
                f"checkpoint {self.path} is there already; resume it or remove it"
            )
        with beside(self.path) as (file, _):
            file.write(b"is there a folder, and room?")

    @property
    def is_due(self) -> bool:
        """Whether it is time, which comes less often where checkpoints take long."""
        is_due = time.monotonic() - self._last >= max(self._every, self._took / SHARE)
        return bool(self._team.told(is_due))

    def write(self, identity: Identity, make: Callable[[], Snapshot]) -> None:
        """Writes what `make` returns; the first failure is a warning, and the run continues."""
        began = time.monotonic()
        kept = make()
        if self._team.is_lead:
            self._write(identity, kept)
        self._team.told(0)  # all wait until it is there
        self._last = time.monotonic()
        self._took = self._last - began

    def _write(self, identity: Identity, kept: Snapshot) -> None:
        try:
            if not self._is_new and _signature(self.path) not in (self._seen, None):
                raise FileExistsError(f"another run has written {self.path}")
            write(self.path, identity, kept, self._is_new)
            self._has_failed = False
        except OSError as error:
            if not self._has_failed:
                warnings.warn(f"no checkpoint was written: {error}", stacklevel=3)
            self._has_failed = True
            return
        except KeyboardInterrupt:  # it may be there already
            self._note_written()
            raise
        self._note_written()

    def _note_written(self) -> None:
        self._seen = _signature(self.path)
        self._is_new = self._seen is None


def _signature(path: pathlib.Path) -> list[int] | None:
    """Returns the checksums in a checkpoint; None if there is no file."""
    if not path.is_file():
        return None
    try:
        with zipfile.ZipFile(path) as archive:
            return [info.CRC for info in archive.infolist()]
    except (OSError, zipfile.BadZipFile):
        return []


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
    """Returns a pytree whose leaves are members of an archive, of shapes and dtypes like these."""
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


def load_best(path: str | os.PathLike) -> tuple[Any, Any]:
    """Returns the best solution in a checkpoint and its cost, whatever run the checkpoint is of.

    For `initial=` of another run: with another search, other settings, an instance that has changed
    a little, another version. `resume=` refuses all these. Whether the solution suits the new
    problem is for that run to check, and what it costs there is computed anew. Nothing in the file
    is executed, and no more memory is taken than it has bytes.

    Args:
      path: of a file that `checkpoint=` has written.

    Returns:
      The solution as `Result.x` has it, dicts included; of tuples and classes the list of its
      arrays, which `initial=` takes as well; of
      several instances as `StackedResult.x` has them; of queens all placements, [B, n]. And the
      cost: of `maximize=True` with the opposite sign, of several instances a list, of queens 0.

    Raises:
      OSError: if the file cannot be read.
      CheckpointError: if it is damaged, no checkpoint of a run, or of a schema to come.

    Example:
      >>> import pathlib, tempfile
      >>> import jaxopt_search as js
      >>> corners = [[0, 0], [2, 2], [0, 2], [2, 0], [1, 3]]
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     path = pathlib.Path(folder, "run.npz")
      ...     first = js.solve_tsp(corners, max_steps=50, checkpoint=path)
      ...     tour, length = load_best(path)
      >>> other = js.solve_tsp(corners, metric="CEIL_2D", max_steps=0, initial=tour)
      >>> length == first.fun, bool((tour == first.x).all()), other.fun
      (True, True, 10)
    """
    found = checked_path(path, "path")
    with _opened(found) as archive:
        fun = _header(archive)["notes"].get("fun")
        if fun is None:
            raise CheckpointError("it is of no run, and has no best solution")
        costs = fun if isinstance(fun, list) else [fun]
        if not all(isinstance(cost, int | float) for cost in costs):
            raise ValueError("its cost is no number")
        names = [name.removesuffix(".npy") for name in archive.namelist() if name[:4] == "best"]
        arrays = [_array(archive, name, None, found.stat().st_size) for name in names]
        return _in_dicts([name.removeprefix("best").lstrip(".") for name in names], arrays), fun


def save_checkpoint(path: str | os.PathLike, state: Any, *, of: Any = None) -> None:
    """Writes what a loop of your own needs to continue, whole or not at all.

    For loops on the host that no `solve` drives: rounds of `successors.generate`, or of `run` and
    `advance`. An old file is replaced once the new one is on the disk, so that a process which is
    killed at any moment leaves one of them. How often that pays is up to the loop: a file takes as
    long as the disk does.

    Args:
      path: ends in `.npz`.
      state: a pytree of arrays and numbers: solutions, the number of the round, and keys as
        `jax.random.key_data` has them.
      of: a pytree of what the loop is about, such as `(problem, search)`: `load_checkpoint` refuses
        the file where this is not equal.

    Raises:
      OSError: if the file cannot be written; the old one is then as it was.
      TypeError: if a leaf of the state holds no numbers.

    Example:
      >>> import pathlib, tempfile
      >>> import jax, jax.numpy as jnp
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     path = pathlib.Path(folder, "rounds.npz")
      ...     for number in range(3):
      ...         save_checkpoint(path, (number + 1, jnp.arange(4) * number), of="doubling")
      ...     number, array = load_checkpoint(path, (0, jnp.zeros(4, int)), of="doubling")
      >>> int(number), array.tolist()
      (3, [0, 2, 4, 6])
    """
    numbers = jax.tree.map(np.asarray, _checked(state))
    write(checked_path(path, "path"), _identity(of), Snapshot(numbers, None, {}), False)


def load_checkpoint(path: str | os.PathLike, like: Any, *, of: Any = None) -> Any:
    """Returns what `save_checkpoint` wrote: a pytree of NumPy arrays.

    Nothing in the file is executed, and no more memory is taken than `like` has.

    Args:
      path: of the file.
      like: a pytree of the structure, shapes and dtypes of the state, such as the first one.
      of: as it was given to `save_checkpoint`.

    Raises:
      OSError: if the file cannot be read.
      CheckpointError: in one line, if it is damaged, or of another `of` or other shapes.

    Example:
      >>> import pathlib, tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     path = pathlib.Path(folder, "rounds.npz")
      ...     save_checkpoint(path, {"round": 7}, of=1.5)
      ...     try:
      ...         load_checkpoint(path, {"round": 0}, of=2.5)
      ...     except ValueError as error:
      ...         print(str(error).partition("rounds.npz: ")[2][:17])
      it is of instance
    """
    shapes = jax.tree.map(_shape, _checked(like)), None
    return read(checked_path(path, "path"), _identity(of), lambda notes: shapes).state


def _identity(of: Any) -> Identity:
    return Identity(fingerprint(of), "a loop of one's own")


def _checked(state: Any) -> Any:
    """Returns a pytree whose leaves hold numbers."""
    for path, leaf in leaves_by_path(state):
        dtype = getattr(leaf, "dtype", None) or np.asarray(leaf).dtype
        is_key = jnp.issubdtype(dtype, jax.dtypes.prng_key)
        if is_key or dtype.kind not in _KINDS:
            name = f"state{path if path.startswith('[') else '.' + path}".rstrip(".")
            kind = "a key" if is_key else f"a {type(leaf).__name__}"
            raise TypeError(f"{name} is {kind}, expected numbers")
    return state


def _shape(leaf: Any) -> Any:
    if hasattr(leaf, "dtype"):
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)
    return np.asarray(leaf)
