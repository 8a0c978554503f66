"""New processes that are measured, and what they find in their surroundings."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from experiments.first_call.cases import Arrays

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_WORKER = pathlib.Path(__file__).with_name("worker.py")
_OF_CACHES = ("JAX_COMPILATION_CACHE", "JAX_ENABLE_COMPILATION_CACHE", "JAX_PERSISTENT_CACHE")


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
    """

    kind: str
    calls: Sequence[Call]
    seconds: float


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
        sent["cache"] = str(cache / "jax") if cache else None
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-P", str(_WORKER)],
            input=json.dumps(sent),
            env=surroundings(cache or folder),
            capture_output=True,
            text=True,
        )
        seconds = time.perf_counter() - began
    if done.returncode:
        *_, last = done.stderr.strip().splitlines() or ["it wrote nothing"]
        raise ChildProcessError(f"a measured process ended with {done.returncode}: {last}")
    return json.loads(done.stdout.splitlines()[-1]) | {"process_seconds": seconds}


def surroundings(cache: pathlib.Path) -> dict[str, str]:
    """Returns the environment variables of a process: ours, but for caches.

    Args:
      cache: folder of the cache of CUDA's compiler; an empty one for none.
    """
    found = {name: text for name, text in os.environ.items() if not name.startswith(_OF_CACHES)}
    paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return found | {
        "PYTHONPATH": os.pathsep.join(paths),
        "CUDA_CACHE_PATH": str(cache / "cuda"),
    }


def _on_disk(calls: Sequence[Call], folder: pathlib.Path) -> list[dict[str, Any]]:
    """Writes the arrays of calls into a folder, and returns the calls with their files."""
    written = []
    for number, call in enumerate(calls):
        file = folder / f"{number}.npz"
        np.savez(file, *call.arrays)
        written.append({"file": str(file), "seed": call.seed})
    return written
