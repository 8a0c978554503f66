"""New processes that are measured, what they find in their surroundings, and a busy machine."""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import jaxopt_search as js
from experiments import common
from experiments.first_call.cases import Arrays

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_WORKER = pathlib.Path(__file__).with_name("worker.py")
_OF_CACHES = ("JAX_COMPILATION_CACHE", "JAX_ENABLE_COMPILATION_CACHE", "JAX_PERSISTENT_CACHE")
_SPIN = "import os\nwhile os.getppid() == {}:\n    sum(range(100_000))"


class Call(NamedTuple):
    """A call of a solver: what it is given, and the seed."""

    arrays: Arrays
    seed: int


class Request(NamedTuple):
    """What a process is to do.

    Attributes:
      kind: "tsp", "qap" or "nqueens".
      calls: made one after the other; the last is measured.
      seconds: the limit of each.
      peer: module and name of a class of `experiments.packages`; None for our own solvers.
    """

    kind: str
    calls: Sequence[Call]
    seconds: float
    peer: tuple[str, str] | None = None


def answer(request: Request, cache: pathlib.Path | None = None) -> dict[str, Any]:
    """Returns what a new process answers, and its `process_seconds` as seen from here.

    Args:
      cache: folder of caches, those of JAX and of CUDA's compiler; None for none.

    Raises:
      ChildProcessError: if it fails, with the last line of what it wrote.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        sent = request._asdict() | {"calls": _on_disk(request.calls, folder)}
        has_function = hasattr(js, "enable_compilation_cache")
        sent["cache"] = str(cache / "jax") if cache and has_function else None
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-P", str(_WORKER)],
            input=json.dumps(sent),
            env=surroundings(cache, folder, with_variables=not has_function),
            capture_output=True,
            text=True,
        )
        seconds = time.perf_counter() - began
    if done.returncode:
        *_, last = done.stderr.strip().splitlines() or ["it wrote nothing"]
        raise ChildProcessError(f"a measured process ended with {done.returncode}: {last}")
    return json.loads(done.stdout.splitlines()[-1]) | {"process_seconds": seconds}


def surroundings(
    cache: pathlib.Path | None, folder: pathlib.Path, *, with_variables: bool
) -> dict[str, str]:
    """Returns the environment variables of a process: ours, but for caches.

    Args:
      cache: folder of caches, those of JAX and of CUDA's compiler; None for none.
      folder: an empty one, for CUDA where there is no other.
      with_variables: whether they turn JAX's cache on.
    """
    found = {name: text for name, text in os.environ.items() if not name.startswith(_OF_CACHES)}
    paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    found |= {
        "PYTHONPATH": os.pathsep.join(paths),
        "CUDA_CACHE_PATH": str((cache or folder) / "cuda"),
    }
    if cache and with_variables:
        found |= {
            "JAX_COMPILATION_CACHE_DIR": str(cache / "jax"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }
    return found


@contextlib.contextmanager
def busy_cores(num: int | None = None) -> Iterator[list[subprocess.Popen]]:
    """Keeps cores busy by processes, which end with this one, however it ends; yields them.

    Args:
      num: how many; None for all that this process may use.
    """
    words = [sys.executable, "-S", "-c", _SPIN.format(os.getpid())]
    spinning = [
        subprocess.Popen(words, stderr=subprocess.DEVNULL)  # Ctrl-C is for them, too
        for _ in range(num or common.num_cores())
    ]
    try:
        yield spinning
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def _on_disk(calls: Sequence[Call], folder: pathlib.Path) -> list[dict[str, Any]]:
    """Writes the arrays of calls into a folder, and returns the calls with their files."""
    written = []
    for number, call in enumerate(calls):
        file = folder / f"{number}.npz"
        np.savez(file, *call.arrays)
        written.append({"file": str(file), "seed": call.seed})
    return written
