"""Processes that are killed at random moments, twenty times over all kinds of runs."""

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import time

import kept_runs
import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SEED = 23
KILLS = dict(zip(kept_runs.KINDS, (4, 4, 3, 3, 3, 3), strict=True))
MOST_CHUNKS = kept_runs.CHUNKS // 5  # until a process is killed: far from the end
MOST_SECONDS = 0.02  # from then on: more than a chunk and its file take


def started(folder, kind):
    """Returns a process that starts a run, or continues it from its file in the folder."""
    command = [sys.executable, "-W", "ignore", kept_runs.__file__, str(folder), kind]
    cache = folder.parent / "programs"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "XLA_FLAGS": ""}
    environment |= {"JAX_COMPILATION_CACHE_DIR": str(cache)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def ended(folder, kind):
    """Returns what a run says at its end."""
    process = started(folder, kind)
    said = process.communicate(timeout=300)[0].splitlines()
    assert process.returncode == 0
    return said[-1]


def killed(folder, kind, generator):
    """Returns how many checkpoints a process wrote until it was killed."""
    process, most = started(folder, kind), generator.integers(1, MOST_CHUNKS)
    assert process.stdout is not None
    for _ in range(most):
        assert process.stdout.readline() == "written\n"
    time.sleep(generator.uniform(0, MOST_SECONDS))
    process.kill()
    said = process.communicate()[0].splitlines()
    assert process.returncode == -9
    return most + said.count("written")


def course(folder, kind):
    """Returns the ends of a run that is left alone and of one that is killed, and its files."""
    generator = np.random.default_rng([SEED, *kind.encode()])
    folders = [folder / kind / name for name in ("whole", "broken")]
    for one in folders:
        one.mkdir(parents=True)
    whole = ended(folders[0], kind)
    written = [killed(folders[1], kind, generator) for _ in range(KILLS[kind])]
    assert len(list(folders[1].glob("*.npz"))) == 1
    return whole, ended(folders[1], kind), sum(written)


@pytest.mark.slow
def test_killed_runs_end_as_if_nobody_had_killed_them(tmp_path):
    """All that they find, bit for bit, is the same: files are old or new, never half."""
    assert sum(KILLS.values()) == 20
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = dict(zip(KILLS, pool.map(lambda kind: course(tmp_path, kind), KILLS), strict=True))
    for kind, (whole, broken, num_written) in found.items():
        assert whole.startswith(f"end {kind} ") and whole == broken
        assert num_written < kept_runs.CHUNKS  # so it was not over
