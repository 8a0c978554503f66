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
from processes_alike import POINTS
from several_processes import CASES

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_REFUSING = ("refused_in_one", "other_calls_in_one", "without_memory_in_one", "places_in_one")
_LIMIT = 540  # seconds, of which a busy machine takes most for compiling

pytestmark = [pytest.mark.slow, pytest.mark.devices(4)]


def _free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.contextmanager
def started(num, num_devices, folder, *names):
    """Starts processes that make some calls; none of them is left in the end."""
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count={num_devices}"
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


def answers(processes):
    """Returns what each process found out, by the names of the cases."""
    outputs = [process.communicate(timeout=_LIMIT) for process in processes]
    for process, (_, errors) in zip(processes, outputs, strict=True):
        assert process.returncode == 0, errors[-3000:]
    return [dict(_lines(written)) for written, _ in outputs]


def _lines(written):
    """Returns the lines of JSON; XLA writes others."""
    return [json.loads(line) for line in written.splitlines() if line.startswith('["')]


def alone(name, folder, **options):
    """Returns what this process finds out, as JSON has it."""
    return json.loads(json.dumps(CASES[name](folder, **options)))


SAME = ("clocked", "stopped_by_one", "interrupted_in_one", "terminated_in_one")
SAME += ("terminated_late_in_one",)
IN_PARTS = ("first_finisher", "queens", "several_instances")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What two processes of two devices find out together, one after the other, and their folder.

    One start serves several tests, since it takes much of their time.
    """
    folder = tmp_path_factory.mktemp("processes")
    names = [f"{name}_in_parts" for name in IN_PARTS]
    with started(2, 2, folder, *names, "successors") as processes:
        return answers(processes), folder


@pytest.mark.parametrize("name", IN_PARTS)
def test_two_processes_make_the_run_of_one(name, found):
    """In two parts, of which one process can make the second one, too, from what they kept."""
    (first, second), folder = found
    expected = alone(name, folder)
    assert first[f"{name}_in_parts"] == second[f"{name}_in_parts"] == expected
    assert alone(name, folder, resume=folder / f"{name}.npz") == expected


def test_successors_are_those_of_one(found):
    (first, second), folder = found
    assert first["successors"] == second["successors"] == alone("successors", folder)


def test_processes_end_or_refuse_together(tmp_path):
    """By the lead's clock, and by what one of them wants or cannot do; others follow.

    So they do if one refuses a call or makes another one; each has its own devices for itself.
    """
    names = *SAME, "failed_in_one", *_REFUSING, "some_devices", "own_devices"
    with started(2, 2, tmp_path, *names) as processes:
        first, second = answers(processes)
    for name in SAME:
        assert first[name] == second[name], name
    assert first["clocked"][3] == "MAX_SECONDS" and first["clocked"][1] > 0
    assert first["stopped_by_one"][3] == "CALLBACK"
    assert first["interrupted_in_one"][3] == first["terminated_in_one"][3] == "INTERRUPTED"
    assert first["terminated_late_in_one"][3] == "MAX_STEPS"
    assert (tmp_path / "ended.npz").exists()
    assert first["failed_in_one"][1].startswith("a callback has failed in another process")
    assert second["failed_in_one"][0] == "ZeroDivisionError"
    assert first["some_devices"] == second["some_devices"]
    assert "1 of process 0, 2 of process 1" in first["some_devices"][1]
    assert first["own_devices"] and second["own_devices"]
    assert_refused(first, second)


def assert_refused(first, second):
    """Checks how all end if one of them refuses a call or makes another one."""
    for found in (first, second):
        for calls in found["other_calls_in_one"]:
            for kind, text in calls.values():
                assert kind == "ValueError"
                assert text.startswith("process 1 was called with other arguments than process 0")
    steps, resume = zip(first["refused_in_one"], second["refused_in_one"], strict=True)
    memory = first["without_memory_in_one"], second["without_memory_in_one"]
    cases = (*steps, "ValueError"), (*resume, "ValueError"), (*memory, "MemoryError")
    for told, found, expected in cases:
        for name, (kind, text) in found.items():
            assert kind == expected
            assert told[name] == ["RuntimeError", f"process 1 has refused this call: {text}"]
    places, others = first["places_in_one"], second["places_in_one"]
    assert places[0][0] == "ValueError" and "missing/tour.txt: cannot be written" in places[0][1]
    assert others[0] == ["RuntimeError", f"process 0 has refused this call: {places[0][1]}"]
    assert places[1] == ["RuntimeError", f"process 1 has refused this call: {others[1][1]}"]
    assert places[2] is others[2] is None


@pytest.mark.parametrize(("victim", "how"), [(0, "killed"), (1, "out of memory")])
def test_a_lost_process_ends_the_others(victim, how, tmp_path):
    """In time, and the checkpoint is whole; without the first one, JAX ends them itself."""
    (tmp_path / "victim").write_text(f"{victim} {how.replace(' ', '-')}")
    with started(2, 1, tmp_path, "lost") as processes:
        outputs = [process.communicate(timeout=_LIMIT) for process in processes]
    assert processes[victim].returncode == (-9 if how == "killed" else 3)
    if how != "killed":
        ((_, (kind, text)),) = _lines(outputs[victim][0])
        assert kind == "MemoryError" and "ran out of memory with num_searches=11" in text
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
    instance.write_text("\n".join(f"{x},{y}" for x, y in POINTS))
    port = _free_port()
    words = [sys.executable, "-m", "jaxopt_search", "solve", str(instance), "--steps", "200"]
    words += ["--searches", "4", "--no-cache", "--json", "--coordinator", f"127.0.0.1:{port}"]
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count=1"
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
    found = json.loads(written)  # and nothing else, whatever JAX writes
    assert (found["env"]["devices"], found["steps"]) == ("2 x cpu", 200)
    assert (lead.returncode, other.returncode) == (0, 0)
