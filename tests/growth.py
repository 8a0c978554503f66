"""Whether runs of very many short chunks take ever more memory, on the host or on a device.

    python tests/growth.py
    python tests/growth.py --seconds 120

Each kind of run makes chunks of one step, for its share of the time, and tells now and then how
many arrays are alive, how many objects, and how much memory the process has. `test_growth.py` makes
shorter runs.
"""

import argparse
import gc
import pathlib
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple
from unittest import mock

import jax
import numpy as np

import jaxopt_search as js
from jaxopt_search.driver import chunks as driver_chunks
from jaxopt_search.driver.options import Timer

EVERY = 60
"""Chunks from one look to the next, unless told otherwise."""


class Look(NamedTuple):
    """What there is after some chunks.

    Attributes:
      arrays: of JAX that are alive.
      objects: of Python that the garbage collector knows.
      mib: of the process; 0 where the system does not tell.
    """

    chunks: int
    arrays: int
    objects: int
    mib: float


def _mib() -> float:
    path = pathlib.Path("/proc/self/statm")
    return int(path.read_text().split()[1]) * 4096 / 2**20 if path.exists() else 0.0


def looks(call: Callable[[], Any], every: int = EVERY) -> tuple[Any, list[Look]]:
    """Returns what a call returns that makes chunks of one step, and what it took meanwhile.

    Objects that are there before are left alone: to look through all of them each time is slow.

    Args:
      every: chunks from one look to the next.
    """
    found, chunks = list[Look](), 0

    def made(*arguments: Any) -> float:
        nonlocal chunks
        chunks += 1
        if chunks % every == 0:
            gc.collect()
            found.append(Look(chunks, len(jax.live_arrays()), len(gc.get_objects()), _mib()))
        return make(*arguments)

    make = driver_chunks._make_chunk
    gc.freeze()
    try:
        with (
            mock.patch.object(driver_chunks, "_make_chunk", made),
            mock.patch.object(Timer, "next_steps", lambda *_, **__: 1),
        ):
            return call(), found
    finally:
        gc.unfreeze()


XY = np.random.default_rng(0).random((3, 12, 2))
TSP = js.tsp_from_coords(XY[0])
ANNEALING = js.simulated_annealing(js.two_opt(TSP), 1.0)
HISTORY = 20


def _solve(options: dict[str, Any], **more: Any) -> Any:
    options = {"num_searches": 4, "history_size": HISTORY} | options | more
    return js.solve(TSP, ANNEALING, 0, **options)


def _queens(max_steps: int | None = None, max_seconds: float | None = None) -> None:
    """Makes many calls, since chunks of queens have a length of their own."""
    began, calls = time.monotonic(), 0
    while max_steps is None or calls < max_steps:
        if max_seconds is not None and time.monotonic() - began > max_seconds:
            break
        js.solve_nqueens(8, 12, calls, distinct="symmetry", devices=1, max_steps=10**6)
        calls += 1


def kinds(folder: pathlib.Path) -> dict[str, Callable[..., Any]]:
    """Returns calls that take limits, by name.

    Args:
      folder: for checkpoints.
    """
    every = {"checkpoint_every": 0.0, "callback": lambda report: report.step < 0}
    apart = js.recombine(every=3, crossover=js.edge_assembly(TSP))
    return {
        "plain": lambda **limits: _solve(limits),
        "checkpoint and callback": lambda **limits: _solve(
            limits, checkpoint=folder / f"{time.time_ns()}.npz", **every
        ),
        "exchange": lambda **limits: _solve(limits, exchange=js.broadcast_best(every=2)),
        "exchange of its own": lambda **limits: _solve(limits, exchange=apart),
        "several devices": lambda **limits: _solve(
            limits, exchange=js.ring(every=2), devices=min(2, jax.local_device_count())
        ),
        "several instances": lambda **limits: js.solve_tsp(XY, devices=1, **limits),
        "queens": _queens,
    }


def main() -> int:
    """Runs all kinds and prints what they took; 1 if one of them grew."""
    flags = argparse.ArgumentParser(description="Whether runs of short chunks grow.")
    flags.add_argument("--seconds", type=float, default=30.0, help="of all kinds together")
    seconds, has_grown = flags.parse_args().seconds, False
    with tempfile.TemporaryDirectory() as folder:
        found = kinds(pathlib.Path(folder))
        for name, call in found.items():
            _, seen = looks(lambda call=call: call(max_seconds=seconds / len(found)))
            early, late = seen[len(seen) // 4], seen[-1]
            print(f"{name}: {early} to {late}", flush=True)
            has_grown |= late.arrays > early.arrays
    return int(has_grown)


if __name__ == "__main__":
    sys.exit(main())
