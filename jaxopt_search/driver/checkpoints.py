"""Files from which runs continue, bit for bit: their content, and which are refused.

A checkpoint is an `.npz` without pickle: the leaves of what a run needs to continue and of the best
that it has found, and a header of JSON. It is written to another file, which takes its place once
it is whole, so that there is always an old one or a new one.
"""

import contextlib
import math
import os
import pathlib
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search.checks import check_number
from jaxopt_search.driver.starts import leaves_by_path
from jaxopt_search.engine.devices import ALONE, Team
from jaxopt_search.engine.fingerprints import environment, fingerprint
from jaxopt_search.errors import CheckpointError
from jaxopt_search.files import archive_path, array_of, beside, opened_archive, write_archive

DEFAULT_SECONDS = 60.0
SHARE = 0.01  # of a run's time, at most, goes into checkpoints
FORMAT, SCHEMA = "jaxopt_search checkpoint", 1
_OWN_LOOP = "a loop of one's own"
_COUNTS = {
    "instance": "the numbers of the problem count, and its class",
    "configuration": "the search, the exchange, check_every, distinct and such count, and max_steps"
    " where it sets the pace",
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


class Keeper:
    """Writes checkpoints of a run into one file, now and then.

    Of several processes that share the run, the lead writes and says when.

    Raises:
      OSError: if nothing can be written there, or there is one that is not resumed.
    """

    def __init__(self, path: Any, every: float, resumed: pathlib.Path | None, team: Team = ALONE):
        self.path = archive_path(path, "checkpoint")
        self._every = check_number("checkpoint_every", every, 0)
        self._last, self._took, self._has_failed = time.monotonic(), 0.0, False
        self._team = team
        if not team.is_lead:
            return
        self._seen = _signature(self.path)
        if self._seen is not None and not (resumed is not None and self.path.samefile(resumed)):
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
        """Writes the snapshot of `make`; a first failure is a warning, and the run continues."""
        began = time.monotonic()
        kept = make()
        if self._team.is_lead:
            is_there = True
            try:
                if _signature(self.path) not in (self._seen, None):
                    raise FileExistsError(f"another run has written {self.path}")
                write(self.path, identity, kept)
                self._has_failed = False
            except OSError as error:
                if not self._has_failed:
                    warnings.warn(f"no checkpoint was written: {error}", stacklevel=2)
                self._has_failed, is_there = True, False
            finally:  # also after Ctrl-C it may be there
                if is_there:
                    self._seen = _signature(self.path)
        self._team.told(0)  # all wait until it is there
        self._last = time.monotonic()
        self._took = self._last - began


def _signature(path: pathlib.Path) -> list[int] | None:
    """Returns the checksums in a checkpoint; None if there is no file."""
    if not path.exists():
        return None
    try:
        with zipfile.ZipFile(path) as archive:
            return [info.CRC for info in archive.infolist()]
    except (OSError, zipfile.BadZipFile):
        return []


def write(path: pathlib.Path, identity: Identity, kept: Snapshot) -> None:
    """Writes a checkpoint, whole or not at all.

    Args:
      identity: of what the run is about.

    Raises:
      OSError: if that cannot be done.
    """
    header = {"format": FORMAT, "schema": SCHEMA, **identity._asdict()}
    header |= {"versions": environment(), "notes": kept.notes}
    found = _named("state", kept.state) | _named("best", kept.best)
    arrays = {name: np.asarray(leaf, order="C") for name, leaf in found.items()}
    write_archive(path, header, arrays)


def _named(name: str, tree: Any) -> dict[str, Any]:
    """Returns the leaves of a pytree by their names in the file."""
    return {f"{name}.{path}".rstrip("."): leaf for path, leaf in leaves_by_path(tree)}


def read(
    path: pathlib.Path, identity: Identity, shapes_of: Callable[[dict[str, Any]], tuple[Any, Any]]
) -> Snapshot:
    """Returns the snapshot in a file, to continue its run; nothing in the file is executed.

    Args:
      identity: of the run that continues.
      shapes_of: maps the notes to the state and the best, of which only shapes and dtypes count.

    Raises:
      OSError: if the file cannot be read.
      CheckpointError: in one line, if it holds no whole checkpoint, or one of another run.
    """
    with opened_archive(path, FORMAT, SCHEMA) as (file, header):
        for name, own in identity._asdict().items():
            if header[name] != own:
                raise CheckpointError(
                    f"{path} is of {name} {header[name]}, expected {own}; {_COUNTS[name]};"
                    f" functions count as Python {header['versions']['python']} compiles them"
                )
        shapes = shapes_of(header["notes"])
        state, best = (
            jax.tree.unflatten(
                jax.tree.structure(shape),
                [array_of(file, path, leaf) for path, leaf in _named(name, shape).items()],
            )
            for name, shape in zip(("state", "best"), shapes, strict=True)
        )
        return Snapshot(state, best, header["notes"])


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


def note_in(path: pathlib.Path, name: str) -> Any:
    """Returns a note of a checkpoint by its name; None if there is none, or the file is bad."""
    try:
        with opened_archive(path, FORMAT, SCHEMA) as (_, header):
            return header["notes"].get(name)
    except (OSError, CheckpointError):
        return None


def load_best(path: str | os.PathLike) -> tuple[Any, Any]:
    """Returns the best solution in a checkpoint and its cost, whatever run the checkpoint is of.

    For `initial=` of another run: with another search, other settings, an instance that has changed
    a little, another version. `resume=` refuses all these. Whether the solution suits the new
    problem is for that run to check, which computes its cost again. Nothing in the file
    is executed, and no more memory is taken than it has bytes.

    Args:
      path: of a file that `checkpoint=` has written.

    Returns:
      The solution: one array, or a list of the arrays of several instances, or of a solution that
      is a pytree, which `initial=` takes as well; of queens all placements, [B, n]. And the cost:
      of `maximize=True` with the opposite sign, of several instances a list, of queens 0.

    Raises:
      OSError: if the file cannot be read.
      CheckpointError: if it is damaged, no checkpoint of a run, or of a schema to come.

    Example:
      >>> import pathlib, tempfile
      >>> import jaxopt_search as js
      >>> corners = [[0, 0], [2, 2], [0, 2], [2, 0], [1, 3]]
      >>> problem, search = js.tsp_from_coords(corners), js.simulated_annealing(js.Relocate(), 1.0)
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     path = pathlib.Path(folder, "run.npz")
      ...     first = js.solve(problem, search, 0, num_searches=4, max_steps=50, checkpoint=path)
      ...     tour, length = load_best(path)
      >>> length == first.fun, sorted(tour.tolist())
      (True, [0, 1, 2, 3, 4])
    """
    path = archive_path(path)
    with opened_archive(path, FORMAT, SCHEMA) as (file, header):
        fun = header["notes"].get("fun")
        if fun is None:
            raise CheckpointError(f"{path} is of no run, and has no best solution")
        costs = fun if isinstance(fun, list) else [fun]
        if not all(isinstance(cost, int | float) for cost in costs):
            raise ValueError("its cost is no number")
        names = [name.removesuffix(".npy") for name in file.namelist()]
        names = [name for name in names if name.startswith("best")]
        leaves = [array_of(file, name) for name in names]
    return leaves[0] if names == ["best"] else leaves, fun


def save_checkpoint(path: str | os.PathLike, state: Any, *, of: Any = None) -> None:
    """Writes the state of a loop of your own, whole or not at all.

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
    identity, path = Identity(fingerprint(of), _OWN_LOOP), archive_path(path)
    write(path, identity, Snapshot(numbers, None, {}))


def load_checkpoint(path: str | os.PathLike, like: Any, *, of: Any = None) -> Any:
    """Returns the state that `save_checkpoint` wrote: a pytree of NumPy arrays.

    Nothing in the file is executed, and no more memory is taken than it has bytes.

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
      ...         print(str(error).partition("rounds.npz ")[2][:14])
      is of instance
    """
    shapes = jax.tree.map(
        lambda leaf: leaf if hasattr(leaf, "dtype") else np.asarray(leaf), _checked(like)
    )
    identity, path = Identity(fingerprint(of), _OWN_LOOP), archive_path(path)
    return read(path, identity, lambda notes: (shapes, None)).state


def _checked(state: Any) -> Any:
    """Returns a pytree whose leaves hold numbers."""
    for path, leaf in leaves_by_path(state):
        dtype = getattr(leaf, "dtype", None) or np.asarray(leaf).dtype
        is_key = jnp.issubdtype(dtype, jax.dtypes.prng_key)
        if is_key or dtype.kind not in "biufcV":  # V: such as bfloat16
            name = f"state{path if path.startswith('[') else '.' + path}".rstrip(".")
            kind = "a key" if is_key else f"a {type(leaf).__name__}"
            raise TypeError(f"{name} is {kind}, expected numbers")
    return state
