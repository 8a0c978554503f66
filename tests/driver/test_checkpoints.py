"""Checkpoints: a run continues bit for bit, whatever ended it; files are whole, or refused."""

import io
import json
import os
import signal
import subprocess
import sys
import time
import warnings
import zipfile

import chex
import numpy as np
import pytest
from cases import matrix_tsp, small_qap

import jaxopt_search as js
from jaxopt_search.driver import checkpoints

COOLING = js.geometric(300.0, 0.95, 20)
PROBLEM = matrix_tsp(14)
SEARCH = js.simulated_annealing(js.Relocate(), COOLING)
FAST = {"num_searches": 5, "check_every": 12, "checkpoint_every": 0}
RARELY = {"checkpoint_every": 1000}
RUNS = {
    "annealing": (PROBLEM, SEARCH, js.broadcast_best(every=7)),
    "floats": (matrix_tsp(14, dtype=np.float64), SEARCH, js.resample(COOLING, every=9)),
    "tabu": (small_qap(7), js.tabu_search(js.SwapTable()), js.recombine(every=11)),
    "islands": (small_qap(6), js.genetic(population_size=4), js.ring(every=5)),
    "colors": (
        js.graph_coloring([[0, 1], [1, 2], [2, 3], [3, 0], [0, 2]], 3),
        js.simulated_annealing(js.Assign(), 1.0),
        None,
    ),
}


def solve(kind, max_steps, **options):
    problem, search, exchange = RUNS[kind]
    options = FAST | {"key": 3, "exchange": exchange, "devices": 1} | options
    return js.solve(problem, search, max_steps=max_steps, **options)


@pytest.mark.devices(3)
@pytest.mark.parametrize("kind", RUNS)
def test_a_run_continues_as_if_it_had_not_been_broken(kind, tmp_path):
    """Twice, in chunks of other sizes, on other devices, and whatever key is given."""
    path = tmp_path / "run.npz"
    whole = solve(kind, 100)
    solve(kind, 21, checkpoint=path, chunk_steps=8)
    solve(kind, 50, resume=path, checkpoint=path, devices=3, key=9, num_searches=1)
    found = solve(kind, 100, resume=path, devices=2)
    chex.assert_trees_all_equal(*(end.state._replace(info=None) for end in (whole, found)))
    for name in ("fun", "nit", "nfev", "first_hit", "gap", "status"):
        assert getattr(whole, name) == getattr(found, name), name
    for name in ("x", "costs", "solutions", "ancestors"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(found, name))
    assert [line.step for line in found.history][:2] == [0, 8]


@pytest.mark.parametrize("cut", [20, 21, 23])
def test_a_target_is_met_at_the_same_step(cut, tmp_path):
    """By step 20, which the test of step 24 finds out; it may be another target, too."""
    path, options = tmp_path / "run.npz", {"target": 2990}
    search = js.simulated_annealing(js.Relocate(), 300.0, moves_per_search=2)

    def run(**more):
        return js.solve(PROBLEM, search, 3, **FAST | options | more)

    whole = run(max_steps=100)
    assert (whole.status, whole.nit) == (js.Status.TARGET, 24)
    run(max_steps=cut, checkpoint=path)
    found = run(max_steps=100, resume=path)
    assert (found.nit, found.first_hit) == (whole.nit, whole.first_hit)
    chex.assert_trees_all_equal(*(end.state._replace(info=None) for end in (whole, found)))
    assert run(resume=path, target=10**9).nit == cut


def test_the_best_solution_is_in_the_file(tmp_path):
    """Whatever the searches forget."""
    path = tmp_path / "run.npz"
    first = solve("annealing", 40, checkpoint=path)
    with np.load(path, allow_pickle=False) as file:
        np.testing.assert_array_equal(file["best"], first.x)
        notes = json.loads(file["header"].tobytes())["notes"]
    assert notes["fun"] == first.fun and notes["seconds"] > 0


def test_seconds_count_on(tmp_path, monkeypatch):
    """What is left of a limit, and what was searched before."""
    path = tmp_path / "run.npz"
    solve("annealing", 10, checkpoint=path, callback=lambda report: time.sleep(0.05))
    reports = []
    result = solve("annealing", None, resume=path, max_seconds=0.04, callback=reports.append)
    assert (result.nit, result.status) == (10, js.Status.MAX_SECONDS)
    assert reports[0].seconds > 0.1


def test_other_runs_are_refused(tmp_path):
    """With both fingerprints; an instance of other numbers is another one."""
    path = tmp_path / "run.npz"
    solve("annealing", 5, checkpoint=path)

    def refused(match, problem=PROBLEM, search=SEARCH, **options):
        with pytest.raises(js.CheckpointError, match=match) as caught:
            js.solve(problem, search, max_steps=9, resume=path, **FAST | options)
        assert "\n" not in str(caught.value)

    numbers = r"[0-9a-f]{16}, expected [0-9a-f]{16}"
    exchange = {"exchange": js.broadcast_best(every=7)}
    refused(f"instance {numbers}", matrix_tsp(14, seed=5), **exchange)
    refused(
        f"configuration {numbers}", search=js.simulated_annealing(js.Relocate(), 1.0), **exchange
    )
    refused(f"configuration {numbers}", exchange=js.broadcast_best(every=8))
    refused(f"configuration {numbers}", check_every=13, **exchange)
    with pytest.raises(ValueError, match="initial is given with resume, expected None"):
        solve("annealing", 9, resume=path, initial=np.arange(14))


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def written(path, found):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in found.items():
            archive.writestr(name, data)


def npy(array, allow_pickle=False):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=allow_pickle)
    return file.getvalue()


def with_header(found, **changes):
    file = io.BytesIO(found["header.npy"])
    header = json.loads(np.load(file).tobytes()) | changes
    return found | {"header.npy": npy(np.frombuffer(json.dumps(header).encode(), np.uint8))}


FORGERIES = {
    "a part is missing": lambda found: {k: v for k, v in found.items() if k != "best.npy"},
    "objects": lambda found: found | {"best.npy": npy(np.array([print]), allow_pickle=True)},
    "floats": lambda found: found | {"best.npy": npy(np.arange(14.0))},
    "too long": lambda found: found | {"best.npy": npy(np.arange(10**6, dtype=np.int32))},
    "a schema to come": lambda found: with_header(found, schema=2),
    "another format": lambda found: with_header(found, format="a result"),
    "searches without end": lambda found: with_header(found, num_searches=10**15),
    "searches below 0": lambda found: with_header(found, num_searches=-1),
    "no json": lambda found: found | {"header.npy": npy(np.zeros(9, np.uint8))},
    "four terabytes": lambda found: (
        found | {"best.npy": found["best.npy"].replace(b"(14,), }    ", b"(10000000,), }"[:13])}
    ),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_forged_files_are_refused(forgery, tmp_path):
    """In one line that names the file."""
    path = tmp_path / "run.npz"
    solve("annealing", 5, checkpoint=path)
    forged = FORGERIES[forgery](members(path))
    assert forged != members(path)
    written(path, forged)
    with pytest.raises(js.CheckpointError, match=r"run\.npz") as caught:
        solve("annealing", 9, resume=path)
    assert "\n" not in str(caught.value)


def test_damaged_files_are_refused(tmp_path):
    """Cut anywhere, or with a bit that flipped, unless that changes nothing that counts."""
    path, damaged = tmp_path / "run.npz", tmp_path / "damaged.npz"
    solve("annealing", 5, checkpoint=path)
    good, generator = path.read_bytes(), np.random.default_rng()
    problem, search, exchange = RUNS["annealing"]
    identity = checkpoints.identity_of(problem, search, exchange, 12)
    expected = checkpoints.read(path, problem, search, identity)
    for size in generator.integers(0, len(good), 20):
        damaged.write_bytes(good[:size])
        with pytest.raises(js.CheckpointError, match="is no whole checkpoint"):
            checkpoints.read(damaged, problem, search, identity)
    num_refused = 0
    for place in generator.integers(0, len(good), 300):
        data = bytearray(good)
        data[place] ^= 1 << generator.integers(8)
        damaged.write_bytes(data)
        try:
            found = checkpoints.read(damaged, problem, search, identity)
        except js.CheckpointError:
            num_refused += 1
        else:
            chex.assert_trees_all_equal(expected, found)
    assert num_refused > 100
    damaged.write_bytes(b"no archive at all")
    with pytest.raises(js.CheckpointError, match="is no whole checkpoint"):
        solve("annealing", 9, resume=damaged)


def test_places_where_nothing_can_be_written(tmp_path):
    """Are refused at the start, before anything is compiled; and files that are not there."""
    with pytest.raises(FileNotFoundError):
        solve("annealing", 9, checkpoint=tmp_path / "none" / "run.npz")
    with pytest.raises(FileNotFoundError):
        solve("annealing", 9, resume=tmp_path / "run.npz")
    with pytest.raises(
        ValueError, match=r"checkpoint is 'run', expected a path that ends in \.npz"
    ):
        solve("annealing", 9, checkpoint="run")
    with pytest.raises(TypeError, match="resume is a int, expected a path"):
        solve("annealing", 9, resume=3)
    with pytest.raises(ValueError, match="resume is True without a checkpoint"):
        solve("annealing", 9, resume=True)
    with pytest.raises(ValueError, match="checkpoint_every is -1"):
        solve("annealing", 9, checkpoint=tmp_path / "run.npz", checkpoint_every=-1)


def test_a_checkpoint_is_not_overwritten_by_another_run(tmp_path):
    """It is continued, if that is asked for; then nothing is lost by asking again."""
    path, options = tmp_path / "run.npz", {"checkpoint": tmp_path / "run.npz"}
    first = solve("annealing", 30, resume=True, **options)
    with pytest.raises(FileExistsError, match=r"run\.npz is there already; resume it or remove it"):
        solve("annealing", 30, **options)
    again = solve("annealing", 30, resume=True, **options)
    assert (again.nit, again.fun, again.success) == (30, first.fun, True)
    assert solve("annealing", 60, resume=path, checkpoint=tmp_path / "more.npz").nit == 60
    assert solve("annealing", 40, resume=True, **options).nit == 40


def test_a_disk_that_becomes_full(tmp_path, monkeypatch):
    """The run goes on, warns once, and the last good file stays."""
    path = tmp_path / "run.npz"
    solve("annealing", 5, checkpoint=path)
    good = path.read_bytes()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoints.np, "savez", full)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = solve("annealing", 30, checkpoint=path, resume=True, chunk_steps=5)
    assert [str(one.message) for one in caught] == [
        "no checkpoint was written: [Errno 28] No space left on device"
    ]
    assert result.nit == 30 and path.read_bytes() == good
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_with_a_checkpoint(number, tmp_path):
    """And with the best so far; afterwards they do what they did."""
    path = tmp_path / "run.npz"

    def kill(report):
        if report.step >= 20:
            os.kill(os.getpid(), number)

    before = signal.getsignal(number)
    result = solve("annealing", 100, checkpoint=path, **RARELY, chunk_steps=10, callback=kill)
    assert (result.status, result.nit) == (js.Status.INTERRUPTED, 20)
    assert signal.getsignal(number) is before
    found, whole = solve("annealing", 100, resume=path), solve("annealing", 100)
    chex.assert_trees_all_equal(*(end.state._replace(info=None) for end in (whole, found)))


def test_an_error_of_a_callback_loses_nothing(tmp_path):
    path = tmp_path / "run.npz"

    def fail(report):
        if report.step >= 20:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        solve("annealing", 100, checkpoint=path, **RARELY, chunk_steps=10, callback=fail)
    assert solve("annealing", 20, resume=path).nit == 20


def test_checkpoints_take_a_hundredth_of_the_time(tmp_path, monkeypatch):
    """However often they are wanted."""
    clock = iter(np.arange(0, 1000, 0.25))
    monkeypatch.setattr(checkpoints.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(checkpoints, "write", lambda path, checkpoint: None)
    keeper = checkpoints.Keeper(tmp_path / "run.npz", 0, None)
    keeper.write(None)  # takes a quarter of a second
    waits = 0
    while not keeper.is_due:
        waits += 1
    assert 95 <= waits <= 100


RUN = """
import sys
import jaxopt_search as js
problem = js.tsp_from_instance(js.datasets.grid_tsp(6, 6, spacing=10))
search = js.simulated_annealing(js.Relocate(), js.geometric(20.0, 0.9999))
options = {"exchange": js.broadcast_best(every=30), "chunk_steps": 200, "num_searches": 8}
print("ready", flush=True)
result = js.solve(
    problem, search, 3, max_steps=40_000, checkpoint=sys.argv[1], checkpoint_every=0,
    callback=lambda report: print(report.step, flush=True), resume=True, **options,
)
print("x", result.fun, result.x.tolist(), result.costs.tolist())
"""


@pytest.mark.slow
def test_kill_9(tmp_path):
    """At random moments, three times; then to the end, as a run does that nobody kills."""
    path, generator = tmp_path / "run.npz", np.random.default_rng()

    def start(path):
        command = [sys.executable, "-W", "ignore", "-c", RUN, str(path)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ))

    undisturbed = start(tmp_path / "whole.npz").communicate(timeout=120)[0]
    for _ in range(3):
        process = start(path)
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip().isdigit() and generator.random() < 0.05:
                break
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert path.exists()
    end = start(path).communicate(timeout=120)[0]
    assert end.splitlines()[-1] == undisturbed.splitlines()[-1]
