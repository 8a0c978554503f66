"""Result files survive a killed run; tables and progress lines say what they should."""

import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from experiments import common
from jaxopt_search import datasets


def record(seed, **others):
    return {"settings": {"moves": 12}, "instance": "x", "seed": seed, **others}


def test_append_then_read_gives_the_records_in_order(tmp_path):
    """Each record is one line; folders are made; numpy numbers become plain ones."""
    path = tmp_path / "new" / "runs.jsonl"
    for seed in range(3):
        common.append(path, record(seed, cost=np.int32(7), sec=np.float64(0.5)))
    assert common.read(path) == [record(seed, cost=7, sec=0.5) for seed in range(3)]
    assert len(path.read_text().splitlines()) == 3


def test_no_file_has_no_records(tmp_path):
    """A first run finds an empty history."""
    assert common.read(tmp_path / "absent.jsonl") == []


@pytest.mark.parametrize("num_bytes", range(1, 40, 6))
def test_half_a_last_line_is_left_out_and_then_cut_off(tmp_path, num_bytes):
    """Wherever the writing of the second line was killed, the first survives, and a third fits."""
    path = tmp_path / "runs.jsonl"
    common.append(path, record(0))
    half = json.dumps(record(1)).encode()[:num_bytes]
    path.write_bytes(path.read_bytes() + half)
    assert common.read(path) == [record(0)]
    common.append(path, record(2))
    assert common.read(path) == [record(0), record(2)]


def test_a_whole_last_line_without_its_end_is_kept(tmp_path):
    """Only the newline may be missing: that record counts, and the next one gets its own line."""
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps(record(0)))
    assert common.read(path) == [record(0)]
    common.append(path, record(1))
    assert common.read(path) == [record(0), record(1)]


def test_a_broken_line_in_the_middle_is_refused(tmp_path):
    """What no killed run leaves behind is reported with its line, not skipped."""
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps(record(0)) + "\n{broken\n" + json.dumps(record(1)) + "\n")
    with pytest.raises(ValueError, match=r"runs.jsonl:2"):
        common.read(path)


def test_runs_know_what_is_done(tmp_path):
    """A run is known by settings (in any order), instance and seed, also from another process."""
    path = tmp_path / "runs.jsonl"
    runs = common.Runs(path)
    first = {"settings": {"a": 1, "b": [2.5, None]}, "instance": "x", "seed": 0, "cost": 3}
    runs.add(first)
    runs.add(first | {"cost": 4})  # made twice: the first stays
    for known in (runs, common.Runs(path)):
        assert known.has({"b": [2.5, None], "a": 1}, "x", 0)
        assert not known.has({"b": [2.5, None], "a": 2}, "x", 0)
        assert not known.has({"b": [2.5, None], "a": 1}, "y", 0)
        assert not known.has({"b": [2.5, None], "a": 1}, "x", 1)
        assert known.records == [first]


def test_runs_without_a_file_stay_in_memory():
    """`path=None` writes nothing."""
    runs = common.Runs(None)
    runs.add(record(0))
    assert runs.has({"moves": 12}, "x", 0)


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


def test_the_data_folder_may_come_from_the_environment(tmp_path, monkeypatch):
    """The flag wins over the environment variable."""
    flag, variable = tmp_path / "flag", tmp_path / "variable"
    flag.mkdir()
    variable.mkdir()
    monkeypatch.setenv(common.DATA_VARIABLE, str(variable))
    assert common.data_folder(None) == variable
    assert common.data_folder(str(flag)) == flag


def test_markdown_tables_align():
    """Columns are padded, the rule says which side they align to."""
    text = common.table(["name", "value"], [["a", "1"], ["long name", "1.25"]], markdown=True)
    assert text.splitlines() == [
        "| name      | value |",
        "| --------- | ----: |",
        "| a         |     1 |",
        "| long name |  1.25 |",
    ]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_plain_in_a_file_and_in_place_on_a_terminal():
    """Counts include what was in the file before; the time left does not count it."""
    for stream in (io.StringIO(), Terminal()):
        progress = common.Progress(4, stream)
        progress.skip(2)
        progress.step(0, "third")
        progress.step(1, "third")
        progress.step(1, "fourth")
        text = stream.getvalue()
        assert text.startswith("2/4" if not stream.isatty() else "\r2/4")
        assert "4/4 runs" in text and text.endswith("\n")
        assert ("\r" in text) == stream.isatty()


def devices_with(flags, call):
    """Returns how many CPU devices a new process sees."""
    code = f"from experiments import common; {call}; import jax; print(jax.local_device_count())"
    env = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    return int(done.stdout)


def test_use_cpu_cores_gives_devices_unless_the_user_chose():
    """The number asked for becomes that of JAX's CPU devices; a flag that is set stays."""
    chosen = "--xla_force_host_platform_device_count=2"
    assert devices_with("", "common.use_cpu_cores(3)") == 3
    assert devices_with(chosen, "common.use_cpu_cores(3)") == 2
