"""Processes that are killed at random moments, once in each kind of run."""

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
LIMIT = 540  # seconds, which only a busy machine takes
MOST_CHUNKS = kept_runs.CHUNKS // 5  # until a process is killed: far from the end
MOST_SECONDS = 0.02  # from then on: more than a chunk and its file take


def started(kind, *folders):
    """Returns a process that starts a run in each folder, or continues it from its file there."""
    command = [sys.executable, "-W", "ignore", kept_runs.__file__, kind, *map(str, folders)]
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count=1"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "XLA_FLAGS": flags}
    environment |= {"JAX_COMPILATION_CACHE_DIR": str(folders[0].parent / "programs")}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


@pytest.mark.slow
@pytest.mark.parametrize("kind", kept_runs.KINDS)
def test_killed_runs_end_as_if_nobody_had_killed_them(kind, tmp_path):
    """All that they find, bit for bit, is the same: files are old or new, never half."""
    broken, whole = tmp_path / "broken", tmp_path / "whole"
    broken.mkdir()
    whole.mkdir()
    generator = np.random.default_rng([SEED, *kind.encode()])
    process, most = started(kind, broken), generator.integers(1, MOST_CHUNKS)
    assert process.stdout is not None
    for _ in range(most):
        assert process.stdout.readline() == "written\n"
    time.sleep(generator.uniform(0, MOST_SECONDS))
    process.kill()
    said = process.communicate()[0].splitlines()
    assert process.returncode == -9
    assert most + said.count("written") < kept_runs.CHUNKS  # so the run was not over
    assert [path.stem for path in broken.glob("*.npz")] == [kind]
    process = started(kind, broken, whole)
    ends = process.communicate(timeout=LIMIT)[0].splitlines()
    assert process.returncode == 0
    found, expected = (line for line in ends if line.startswith(f"end {kind} "))
    assert found == expected
