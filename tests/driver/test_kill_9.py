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
KILLS = 1
MOST_CHUNKS = kept_runs.CHUNKS // 5  # until a process is killed: far from the end
MOST_SECONDS = 0.02  # from then on: more than a chunk and its file take


def started(folder, kind):
    """Returns a process that starts a run, or continues it from its file in the folder."""
    command = [sys.executable, "-W", "ignore", kept_runs.__file__, str(folder), kind]
    cache = folder.parent / "programs"
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count=1"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "XLA_FLAGS": flags}
    environment |= {"JAX_COMPILATION_CACHE_DIR": str(cache)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def ended(folder, kind):
    """Returns what a run says at its end."""
    process = started(folder, kind)
    *_, last = process.communicate(timeout=LIMIT)[0].splitlines()
    assert process.returncode == 0
    return last


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


@pytest.mark.slow
@pytest.mark.parametrize("kind", kept_runs.KINDS)
def test_killed_runs_end_as_if_nobody_had_killed_them(kind, tmp_path):
    """All that they find, bit for bit, is the same: files are old or new, never half."""
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    whole.mkdir()
    broken.mkdir()
    expected = ended(whole, kind)
    generator = np.random.default_rng([SEED, *kind.encode()])
    num_written = sum(killed(broken, kind, generator) for _ in range(KILLS))
    assert num_written < kept_runs.CHUNKS  # so the run was not over
    assert [path.stem for path in broken.glob("*.npz")] == [kind]
    assert ended(broken, kind) == expected
    assert expected.startswith(f"end {kind} ")
