"""A run of hundreds of short chunks takes no more memory than one of dozens."""

import gc
import pathlib
from typing import NamedTuple
from unittest import mock

import jax
import numpy as np
import pytest

import jaxopt_search as js
from jaxopt_search.driver.options import Timer

EVERY, STEPS, HISTORY = 30, 300, 20
XY = np.random.default_rng(0).random((12, 2))


class Look(NamedTuple):
    """What there is after some chunks: arrays that are alive, Python's objects, and memory."""

    chunks: int
    arrays: int
    objects: int
    mib: float


def look(chunks):
    gc.collect()
    path = pathlib.Path("/proc/self/statm")
    mib = int(path.read_text().split()[1]) * 4096 / 2**20 if path.exists() else 0.0
    return Look(chunks, len(jax.live_arrays()), len(gc.get_objects()), mib)


def looks(call):
    """Returns what a call returns that makes chunks of one step, and what it took meanwhile."""
    found, chunks, status = [], 0, Timer.status

    def ended(timer, step):
        nonlocal chunks
        chunks += 1
        if chunks % EVERY == 0:
            found.append(look(chunks))
        return status(timer, step)

    gc.freeze()  # to look through what is there before takes long
    try:
        with (
            mock.patch.object(Timer, "status", ended),
            mock.patch.object(Timer, "next_steps", lambda *_, **__: 1),
        ):
            return call(), found
    finally:
        gc.unfreeze()


def solve(**options):
    problem = js.tsp_from_coords(XY)
    search = js.simulated_annealing(js.two_opt(problem), 1.0)
    options = {"num_searches": 4, "history_size": HISTORY, "max_steps": STEPS} | options
    return js.solve(problem, search, 0, **options)


@pytest.mark.slow
def test_short_chunks_leave_nothing_behind(tmp_path):
    """Neither arrays nor objects, nor memory of the process beyond what comes and goes."""
    options = {"checkpoint": tmp_path / "run.npz", "checkpoint_every": 0.0}
    options |= {"callback": lambda report: False, "exchange": js.broadcast_best(every=2)}
    result, found = looks(lambda: solve(**options))
    assert len(found) >= 5
    early, late = found[len(found) // 4], found[-1]
    num_chunks = late.chunks - early.chunks
    assert late.arrays - early.arrays < 10 + 0.02 * num_chunks
    assert late.objects - early.objects < 40 + 0.1 * num_chunks
    assert late.mib - early.mib < 8
    assert len(result.history) <= HISTORY
