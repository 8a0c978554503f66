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


def started(folder, *kinds):
    """Returns a process that starts runs, or continues them from their files in the folder."""
    command = [sys.executable, "-W", "ignore", kept_runs.__file__, str(folder), *kinds]
    cache = folder.parent / "programs"
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count=1"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "XLA_FLAGS": flags}
    environment |= {"JAX_COMPILATION_CACHE_DIR": str(cache)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def ended(folder):
    """Returns what runs of all kinds say at their ends, made by one process."""
    process = started(folder, *KILLS)
    said = process.communicate(timeout=300)[0].splitlines()
    assert process.returncode == 0
    return [line for line in said if line != "written"]


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


def written_by_killed(folder, kind):
    """Returns how many checkpoints were written in all, by processes of which each was killed."""
    generator = np.random.default_rng([SEED, *kind.encode()])
    return sum(killed(folder, kind, generator) for _ in range(KILLS[kind]))


@pytest.mark.slow
def test_killed_runs_end_as_if_nobody_had_killed_them(tmp_path):
    """All that they find, bit for bit, is the same: files are old or new, never half."""
    assert sum(KILLS.values()) == 20
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    whole.mkdir()
    broken.mkdir()
    expected = ended(whole)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        num_written = list(pool.map(lambda kind: written_by_killed(broken, kind), KILLS))
    assert max(num_written) < kept_runs.CHUNKS  # so no run was over
    assert sorted(path.stem for path in broken.glob("*.npz")) == sorted(KILLS)
    assert ended(broken) == expected
    assert [line.rpartition(" ")[0] for line in expected] == [f"end {kind}" for kind in KILLS]
