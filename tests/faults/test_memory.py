"""More searches than fit are refused by their number, before any memory is taken."""

import os
import subprocess
import sys
import types
from unittest import mock

import jax
import numpy as np
import pytest
from probes import annealing, refuses, small_tsp

import jaxopt_search as js
from jaxopt_search.driver.run import Run
from jaxopt_search.engine import memory

PROBLEM = small_tsp()
SEARCH = annealing()
CPU = jax.devices("cpu")[0]
MANY = 2**28  # times 8 cities are 2**31

CALLS = {
    "solve": lambda count: js.solve(PROBLEM, SEARCH, 0, num_searches=count, max_steps=1),
    "init": lambda count: js.init(0, PROBLEM, SEARCH, num_searches=count),
    "run": lambda count: js.run(0, PROBLEM, SEARCH, num_searches=count, max_steps=1),
    "stacked": lambda count: js.solve_tsp(
        np.eye(8)[None, :, :2], max_steps=1, num_searches=count, devices=1
    ),
    "queens": lambda count: js.solve_nqueens(8, num_searches=count),
}


@pytest.mark.parametrize("name", CALLS)
def test_more_than_an_array_can_index(name):
    """More searches than fit are refused everywhere, not only in `solve`."""
    with refuses(ValueError, f" elements in all, beyond {2**31 - 1}"):
        CALLS[name](MANY)


@pytest.mark.parametrize("name", CALLS)
def test_more_than_there_is_memory(name, monkeypatch):
    """Too large an instance is refused with the sizes, before anything is allocated."""
    monkeypatch.setattr(memory, "free_bytes", lambda device: 100 * 2**20)
    with refuses(MemoryError, "num_searches is 1000000", "GiB at least, and 0.1 GiB are free on"):
        CALLS[name](10**6)


def test_what_a_gpu_has_left():
    """A GPU tells its memory; what tells nothing is taken for large enough."""

    def gpu(stats):
        return types.SimpleNamespace(platform="gpu", process_index=0, memory_stats=lambda: stats)

    assert memory.free_bytes(gpu({"bytes_limit": 100, "bytes_in_use": 30})) == 70
    assert memory.free_bytes(gpu(None)) == float("inf")
    assert memory.free_bytes(gpu({})) == float("inf")


def test_what_a_machine_has_left(tmp_path, monkeypatch):
    """A CPU has what is left of the machine, its control group and the limit of the process."""
    assert 0 < memory.free_bytes(CPU) < 2**50
    (tmp_path / "self").mkdir()
    (tmp_path / "meminfo").write_text("MemTotal:  900 kB\nMemAvailable:     700 kB\n")
    (tmp_path / "self" / "cgroup").write_text("1:name=x:/y\n0::/some/group\n")
    (tmp_path / "self" / "status").write_text("VmSize:\t  20 kB\n")
    monkeypatch.setattr(memory, "_PROC", tmp_path)
    monkeypatch.setattr(memory, "_CGROUP", tmp_path)
    assert memory.free_bytes(CPU) == 700 * 1024
    group = tmp_path / "some" / "group"
    group.mkdir(parents=True)
    (group / "memory.current").write_text("5000\n")
    (group / "memory.stat").write_text("active_file 7\ninactive_file 1000\n")
    for limit, left in (("max", 700 * 1024), ("6000", 2000)):
        (group / "memory.max").write_text(f"{limit}\n")
        assert memory.free_bytes(CPU) == left
    limits = mock.Mock(RLIM_INFINITY=-1, getrlimit=lambda which: (21 * 1024, -1))
    monkeypatch.setitem(sys.modules, "resource", limits)
    assert memory.free_bytes(CPU) == 1024
    for file in ("meminfo", "self/cgroup", "self/status"):
        (tmp_path / file).unlink()
    limits.getrlimit = lambda which: (-1, -1)
    assert memory.free_bytes(CPU) == float("inf")


def test_another_way_to_say_it():
    """JAX has several texts for running out of memory."""
    with (
        pytest.raises(MemoryError, match="num_searches=7; use fewer"),
        memory.memory_errors_explained("num_searches=7"),
    ):
        raise jax.errors.JaxRuntimeError("INTERNAL: Error: Out of memory allocating 9 bytes.")


def test_out_of_memory_in_a_chunk(tmp_path, monkeypatch):
    """No more than the chunk is lost: the checkpoint has the one before, and is continued."""
    file, advance, made = tmp_path / "run.npz", Run.advance, []

    def fails_at_the_third(*args):
        made.append(args)
        if len(made) == 4:  # the first one compiles
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: no room")
        return advance(*args)

    options = {"num_searches": 4, "exchange": js.ring(every=5), "chunk_steps": 10}
    unbroken = js.solve(PROBLEM, SEARCH, 0, max_steps=60, **options)
    monkeypatch.setattr(Run, "advance", fails_at_the_third)
    with pytest.raises(MemoryError, match="num_searches=4; use fewer"):
        js.solve(PROBLEM, SEARCH, 0, max_steps=60, checkpoint=file, **options)
    monkeypatch.undo()
    options.pop("num_searches")
    kept = js.solve(PROBLEM, SEARCH, max_steps=20, resume=file, **options)
    assert kept.nit == 20
    resumed = js.solve(PROBLEM, SEARCH, max_steps=60, resume=file, **options)
    np.testing.assert_array_equal(resumed.costs, unbroken.costs)
    np.testing.assert_array_equal(resumed.solutions, unbroken.solutions)


SCRIPT = """
import resource, sys
import numpy as np
import jax
import jaxopt_search as js
from jaxopt_search.engine import memory

points = np.random.default_rng(0).random((200, 2))
problem = js.tsp_from_coords(points)
search = js.simulated_annealing(js.Relocate(), 1.0)
js.init(0, problem, search, num_searches=2)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
limit = used + 10**9
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for unknown in (False, True):
    if unknown:  # as on a machine that tells less than there is, or more
        memory.free_bytes = lambda device: float("inf")
    try:
        js.solve(problem, search, 0, num_searches=2**20, max_steps=1)
    except MemoryError as error:
        print(unknown, error, flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits are Linux's")
def test_a_process_with_little_memory(tmp_path):
    """Under `ulimit -v` nothing hangs or aborts, foreseen or not."""
    script = tmp_path / "small.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, script],
        env=os.environ | {"PYTHONPATH": os.getcwd()},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    foreseen, unforeseen = done.stdout.splitlines()
    assert foreseen.startswith("False num_searches is 1048576")
    assert unforeseen.startswith("True") and "num_searches=1048576" in unforeseen
