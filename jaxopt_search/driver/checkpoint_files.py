"""Checkpoints in the hands of a user: the best of any, and what a loop of one's own keeps."""

import os
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search.driver import checkpoints
from jaxopt_search.driver.checkpoints import Identity, Snapshot
from jaxopt_search.driver.keeping import checked_path
from jaxopt_search.driver.states import leaves_by_path
from jaxopt_search.engine.fingerprints import fingerprint

_KINDS = "biufcV"  # of NumPy's dtypes: numbers; V are those that it does not know, such as bfloat16


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
    found, fun = checkpoints.read_best(checked_path(path, "path"))
    return found, fun


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
    checkpoints.write(checked_path(path, "path"), _identity(of), Snapshot(numbers, None, {}), False)


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
    return checkpoints.read(checked_path(path, "path"), _identity(of), lambda notes: shapes).state


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
