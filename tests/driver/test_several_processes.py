"""Several processes make the run of one, bit for bit, and end together, however they end."""

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys

import pytest
import several_processes
from several_processes import CASES

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_SAME = ("first_finisher", "resampling", "islands", "one_liner", "queens", "several_instances")
_FEW = ("first_finisher", "islands")
_LIMIT = 240  # seconds, of which most go into compiling

pytestmark = [pytest.mark.slow, pytest.mark.devices(4)]


def _free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.contextmanager
def started(num, num_devices, folder, *names):
    """Starts processes that make some calls; none of them is left in the end."""
    flags = f"--xla_force_host_platform_device_count={num_devices}"
    paths = os.pathsep.join([str(_ROOT), str(_ROOT / "tests")])
    env = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "PYTHONPATH": paths}
    port, script = _free_port(), several_processes.__file__
    words = [sys.executable, "-u", script, str(port), str(num)]
    processes = [
        subprocess.Popen(
            [*words, str(number), str(num_devices), str(folder), *names],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=env,
        )
        for number in range(num)
    ]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


def answers(num, num_devices, folder, *names):
    """Returns what each process found out, by the names of the cases."""
    with started(num, num_devices, folder, *names) as processes:
        outputs = [process.communicate(timeout=_LIMIT) for process in processes]
    for process, (_, errors) in zip(processes, outputs, strict=True):
        assert process.returncode == 0, errors[-3000:]
    return [dict(_lines(written)) for written, _ in outputs]


def _lines(written):
    """Returns the lines of JSON; XLA writes others."""
    return [json.loads(line) for line in written.splitlines() if line.startswith('["')]


def alone(name, folder):
    """Returns what this process finds out, as JSON has it."""
    return json.loads(json.dumps(CASES[name](folder)))


def test_two_processes_make_the_run_of_one(tmp_path):
    """Whatever is spread over devices; checkpoints are continued by either."""
    together = tmp_path / "together"
    together.mkdir()
    names = [*_SAME, "successors", "broken", "continued"]
    first, second = answers(2, 2, together, *names)
    assert first == second
    for name in names:
        assert first[name] == alone(name, tmp_path), name
    assert alone("continued", together) == first["continued"]


def test_four_processes_make_the_run_of_one(tmp_path):
    found = answers(4, 1, tmp_path, *_FEW)
    for name in _FEW:
        assert all(one[name] == alone(name, tmp_path) for one in found), name


def test_processes_end_together(tmp_path):
    """By the lead's clock, by what one of them wants, and by what one of them refuses."""
    same = ["clocked", "stopped_by_one", "interrupted_in_one", "terminated_in_one", "some_devices"]
    names = [*same, "another_call_in_one", "refused_in_one", "own_devices", "first_finisher"]
    first, second = answers(2, 2, tmp_path, *names)
    for name in same:
        assert first[name] == second[name], name
    assert first["clocked"][3] == "MAX_SECONDS" and first["clocked"][1] > 0
    assert first["stopped_by_one"][3] == "CALLBACK"
    assert first["interrupted_in_one"][3] == first["terminated_in_one"][3] == "INTERRUPTED"
    assert (tmp_path / "ended.npz").exists()
    for found in (first, second):
        kind, text = found["another_call_in_one"]
        assert kind == "ValueError" and "process 1 was called with other arguments" in text
        assert found["own_devices"]
    assert first["refused_in_one"][0] == "RuntimeError"
    assert first["refused_in_one"][1].startswith("process 1 has refused this call")
    assert second["refused_in_one"][0] == "ValueError"
    assert "1 of process 0, 2 of process 1" in first["some_devices"][1]
    assert first["first_finisher"] == alone("first_finisher", tmp_path)  # after all of that


@pytest.mark.parametrize("victim", [1, 0])
def test_a_lost_process_ends_the_others(victim, tmp_path):
    """In time, and the checkpoint is whole; without the first one, JAX ends them itself."""
    (tmp_path / "victim").write_text(str(victim))
    with started(2, 1, tmp_path, "lost") as processes:
        outputs = [process.communicate(timeout=_LIMIT) for process in processes]
    assert processes[victim].returncode == -9
    written, errors = outputs[1 - victim]
    assert processes[1 - victim].returncode not in (0, -9)
    if victim == 1:
        ((_, (kind, text)),) = _lines(written)
        assert kind == "RuntimeError" and text.startswith("one of the 2 processes of this run")
    else:
        assert _lines(written) or "JAX distributed service detected fatal errors" in errors
    assert (tmp_path / "run.npz").exists()
    assert alone("rescued", tmp_path)[1] >= 90


def test_the_command_line_joins_processes(tmp_path):
    """The first one tells what all have found."""
    instance = tmp_path / "cities.csv"
    instance.write_text("\n".join(f"{x},{y}" for x, y in several_processes.POINTS))
    port = _free_port()
    words = [sys.executable, "-m", "jaxopt_search", "solve", str(instance), "--steps", "200"]
    words += ["--searches", "4", "--no-cache", "--json", "--coordinator", f"127.0.0.1:{port}"]
    flags = "--xla_force_host_platform_device_count=1"
    env = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(_ROOT)}
    lead, other = (
        subprocess.Popen(
            [*words, "--processes", "2", "--process", str(number)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=env,
        )
        for number in range(2)
    )
    written, _ = lead.communicate(timeout=_LIMIT)
    assert other.communicate(timeout=_LIMIT)[0].count("{") == 0
    found = json.loads(next(line for line in written.splitlines() if line.startswith("{")))
    assert (found["env"]["devices"], found["steps"]) == ("2 x cpu", 200)
    assert (lead.returncode, other.returncode) == (0, 0)
