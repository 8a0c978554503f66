"""Instances are found; tables and progress lines say what they should."""

import os
import subprocess
import sys

import pytest

from experiments import common
from jaxopt_search import datasets


def test_instances_come_from_the_named_folder_or_are_generated(tmp_path, capsys):
    """Without a file the default is replaced, and said so; what was asked for by name is not."""
    generate = lambda: datasets.grid_tsp(2, 3)  # noqa: E731
    empty = str(tmp_path)
    (instance,) = common.find_instances(None, empty, "rd100", generate)
    assert instance.name == "grid-2x3-d10"
    assert capsys.readouterr().out.count("\n") == 1
    with pytest.raises(FileNotFoundError, match="rd100"):
        common.find_instances(["rd100"], empty, "rd100", generate)
    with pytest.raises(ValueError, match="expected an existing folder"):
        common.find_instances(None, str(tmp_path / "absent"), "rd100", generate)


def test_use_cpu_cores_gives_devices():
    """JAX has as many CPU devices as there are cores, in a new process."""
    code = "from experiments import common; common.use_cpu_cores(); import jax"
    env = {**os.environ, "XLA_FLAGS": "", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", f"{code}; print(jax.local_device_count())"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert int(done.stdout) == common.num_cores()
