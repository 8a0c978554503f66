"""Instances are found; tables and progress lines say what they should."""

import io
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


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_plain_in_a_file_and_in_place_on_a_terminal(monkeypatch):
    """Counts include what was in the file before; the time left does not count it."""
    monkeypatch.setitem(sys.modules, "tqdm", None)
    for stream in (io.StringIO(), Terminal()):
        progress = common.Progress(4, stream)
        progress.skip(2)
        progress.step("third")
        progress.step("fourth")
        text = stream.getvalue()
        assert text.startswith("3/4" if not stream.isatty() else "\r3/4")
        assert "4/4 runs" in text and text.endswith("\n")
        assert ("\r" in text) == stream.isatty()


def test_use_cpu_cores_gives_devices():
    """JAX has as many CPU devices as there are cores, in a new process."""
    code = "from experiments import common; common.use_cpu_cores(); import jax"
    env = {**os.environ, "XLA_FLAGS": "", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", f"{code}; print(jax.local_device_count())"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert int(done.stdout) == common.num_cores()
