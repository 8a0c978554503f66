"""New processes that are measured, and what they find in their surroundings."""

import json
import os
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from experiments import common
from experiments.first_call.cases import Arrays

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_WORKER = pathlib.Path(__file__).with_name("worker.py")
_DEVICE_OF_EACH_CORE = re.compile("--xla_force_host_platform_device_count=[0-9]+")
_OF_CACHES = ("JAX_COMPILATION_CACHE", "JAX_ENABLE_COMPILATION_CACHE", "JAX_PERSISTENT_CACHE")


Call = tuple[Arrays, int]
"""A call of a solver: what it is given, and the seed."""


def answer(
    kind: str, calls: Sequence[Call], seconds: float, cache: pathlib.Path | None = None
) -> dict[str, Any]:
    """Returns what a new process answers, and its `process_seconds` as seen from here.

    Args:
      kind: "tsp", "qap" or "nqueens".
      calls: made one after the other; the last is measured.
      seconds: the limit of each.
      cache: folder of caches, those of JAX and of CUDA's compiler; None for none.

    Raises:
      ChildProcessError: if it fails, with the last line of what it wrote.
    """
    sent = {"kind": kind, "calls": list(calls), "seconds": seconds}
    sent["cache"] = str(cache / "jax") if cache else None
    with tempfile.TemporaryDirectory() as empty:
        done, process_seconds = common.timed(
            subprocess.run,
            [sys.executable, "-P", str(_WORKER)],
            input=pickle.dumps(sent),
            env=surroundings(cache or pathlib.Path(empty)),
            capture_output=True,
        )
    if done.returncode:
        *_, last = done.stderr.decode().strip().splitlines() or ["it wrote nothing"]
        raise ChildProcessError(f"a measured process ended with {done.returncode}: {last}")
    return json.loads(done.stdout.splitlines()[-1]) | {"process_seconds": process_seconds}


def surroundings(cache: pathlib.Path) -> dict[str, str]:
    """Returns the environment variables of a process: ours, but for caches, and one CPU device.

    Args:
      cache: folder of the cache of CUDA's compiler; an empty one for none.
    """
    found = {name: text for name, text in os.environ.items() if not name.startswith(_OF_CACHES)}
    paths = filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")])
    found["XLA_FLAGS"] = _DEVICE_OF_EACH_CORE.sub("", found.get("XLA_FLAGS", "")).strip()
    return found | {"PYTHONPATH": os.pathsep.join(paths), "CUDA_CACHE_PATH": str(cache / "cuda")}
