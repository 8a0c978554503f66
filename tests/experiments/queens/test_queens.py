"""The script of N-Queens: its tables by hand, small runs, and what it leaves out."""

import functools
import importlib.util
import time
from typing import NamedTuple

import numpy as np
import pytest

import jaxopt_search as js
from experiments import common
from experiments.queens import annealing as nqueens_annealing
from experiments.queens import compiled as compiled_queens
from experiments.queens import runs as runs_of
from experiments.queens import script as nqueens
from jaxopt_search.engine import device_split


def cells(text):
    return [line.split() for line in text.splitlines()]


HAS_NUMBA = importlib.util.find_spec("numba") is not None


def as_it_is(function):
    """Compiles nothing: what the tests do without numba."""
    return function


@pytest.fixture
def without_numba(monkeypatch):
    """Compiled loops as plain Python, whether numba is installed or not."""
    monkeypatch.setattr(nqueens.importlib.util, "find_spec", lambda name: name)
    for name in ("counter", "annealer"):
        build = functools.partial(getattr(compiled_queens, f"build_{name}"), as_it_is)
        monkeypatch.setattr(compiled_queens, name, build)


def test_what_belongs_to_the_cpu_runs_there(monkeypatch, tmp_path, capsys):
    """Each record has the device of its own row, whatever JAX's default one is."""
    places = {"cpu": Device("cpu", "EPYC"), None: Device("gpu", "H200")}
    monkeypatch.setattr(device_split, "find_devices", lambda devices: (places[devices],))
    monkeypatch.setattr(common, "use_cpu_cores", lambda: None)
    monkeypatch.setattr(nqueens.importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(runs_of, "measure", lambda job, seed: {"seconds": 1.0, "attacks": 0})
    out = str(tmp_path / "runs.jsonl")
    for flags in (["--figure", "4"], ["--figure", "7"]):
        assert nqueens.main([*flags, "--sizes", "9", "--limit", "9e9", "--out", out]) == 0
    found = {}
    for run in common.read(out):
        found.setdefault(run["env"]["devices"], set()).add(run["settings"]["scheme"])
        assert run["cores"] > 0 and run["cpu"]
    on_threads = {"threads", "range_reduce", "fork_join"}
    assert found == {
        "1 x EPYC": {"numba", "numba_histogram", "numba_nothing", "serial", *on_threads},
        "1 x H200": {"fine_pairs", "fine_index", "coarse", "subtasks", "histogram"}
        | {"nothing", "deltas"},
    }
    places["cpu"] = None
    monkeypatch.setattr(device_split, "find_devices", functools.partial(refuse, "cpu"))
    with pytest.raises(SystemExit):
        nqueens.main(["--figure", "4"])
    assert "JAX_PLATFORMS leaves out the CPU" in capsys.readouterr().err


class Device(NamedTuple):
    platform: str
    device_kind: str


def refuse(name, devices):
    """Stands for `find_devices` where there are no devices of that name."""
    if devices == name:
        raise ValueError
    return (Device("gpu", "H200"),)


@pytest.fixture
def script(tmp_path, monkeypatch, capsys):
    """Runs the script with flags, twice with the same file; returns what it printed and wrote."""
    monkeypatch.setattr(common, "use_cpu_cores", lambda: None)
    monkeypatch.setattr(runs_of, "_REPEATS", 1)
    out = tmp_path / "runs.jsonl"

    def run(*flags):
        flags = [*flags, "--out", str(out)]
        assert nqueens.main(flags) == 0
        printed, runs = capsys.readouterr().out, common.read(out)
        monkeypatch.setattr(runs_of, "measure", lambda job, seed: pytest.fail("measured again"))
        assert nqueens.main(flags) == 0
        assert (capsys.readouterr().out, common.read(out)) == (printed, runs)
        assert nqueens.main([*flags[:-2], "--report", str(out)]) == 0
        assert capsys.readouterr().out == printed
        return cells(printed), runs

    return run


@pytest.mark.slow
def test_a_run_of_all_schemes(script):
    """Each is measured once per seed, and all count the same attacks."""
    printed, runs = script("--figure", "4", "--sizes", "9,12", "--runs", "2")
    schemes = {run["settings"]["scheme"] for run in runs}
    compiled = {"numba", "numba_histogram"} if HAS_NUMBA else set()
    assert schemes == {*nqueens.evaluation.SCHEMES, *compiled}
    assert len(runs) == 2 * 2 * len(schemes)
    assert len({(run["n"], run["seed"], run["attacks"]) for run in runs}) == 4
    assert all(run["seconds"] > 0 for run in runs)
    assert (printed[0][-2:], {row[0] for row in printed[1:]}) == (["9", "12"], schemes)
    assert all(float(cell) > 0 for row in printed[1:] for cell in row[-2:])


def test_a_run_of_placements(script):
    """Hoffman's have no attack; random ones have some."""
    printed, runs = script("--figure", "6", "--sizes", "20")
    found = {run["settings"]["placement"]: run["attacks"] for run in runs}
    assert found["valid"] == 0 < found["random"]
    assert (printed[0][0], printed[1][0]) == ("n", "20")


def test_a_run_of_threads(script):
    """The compiled loop, and each scheme by each number."""
    printed, runs = script("--figure", "3", "--sizes", "70", "--threads", "1,2")
    settings = [run["settings"] for run in runs if run["settings"]["scheme"] != "numba"]
    assert [(one["scheme"], one["num_threads"]) for one in settings] == [
        (name, count) for name in ("threads", "range_reduce", "fork_join") for count in (1, 2)
    ]
    assert len({run["attacks"] for run in runs}) == 1
    assert [row[1] for row in printed[1:]] == ["threads", "range_reduce", "fork_join"]


def test_a_run_of_steps(script, without_numba, monkeypatch):
    """With and without evaluation; what is free takes less."""
    schemes = "numba,numba_nothing,histogram,nothing"
    monkeypatch.setattr(nqueens, "_STEPS", dict.fromkeys(schemes.split(","), 10))
    printed, runs = script("--figure", "1", "--sizes", "30", "--schemes", schemes)
    seconds = {run["settings"]["scheme"]: run["seconds"] for run in runs}
    assert seconds["numba"] > 2 * seconds["numba_nothing"]
    assert [row[0] for row in printed[1:]] == ["numba", "histogram"]
    assert 50 < float(printed[1][-1]) <= 100


def test_an_evaluation_of_nothing_leaves_the_rest():
    """A step without evaluation proposes, tests and makes moves as any other does."""
    cooling = compiled_queens.Cooling(1e9)
    free, counted = (
        nqueens_annealing.start(30, name, cooling, 0) for name in ("nothing", "histogram")
    )
    for annealing in (free, counted):
        annealing.advance(7)
    assert free.steps == counted.steps == 7
    np.testing.assert_array_equal(
        *(one.state.searches.representation.solution for one in (free, counted))
    )


def test_a_run_of_annealing_to_the_end(script, without_numba):
    """To valid placements, each search by itself; the temperature falls."""
    flags = ["--anneal", "30", "--runs", "2", "--temperature", "2", "--alpha", "0.5"]
    flags += ["--steps-per-temperature", "100"]
    printed, runs = script(*flags, "--schemes", "histogram,numba_histogram")
    assert [(row[1], row[-6]) for row in printed[1:]] == [
        ("histogram", "2/2"),
        ("numba_histogram", "2/2"),
    ]
    assert all(run["valid"] == 1 and run["settings"]["alpha"] == 0.5 for run in runs)


def test_searches_side_by_side_are_timed_one_by_one(monkeypatch):
    """Each by the look that finds it; one that never does costs the limit."""

    class Annealing:
        steps = 0

        def advance(self, steps, target):
            self.steps += steps
            time.sleep(0.02)

        def attacks(self):
            return np.array([self.steps < 2000, 3, self.steps < 1000]).astype(int)

        def solutions(self):
            return np.array([js.hoffman(8), np.arange(8), np.arange(8)])

    outcome = nqueens_annealing.to_the_end(Annealing(), 0.1)
    assert [steps for _, steps in outcome["found_after"]] == [2000, 1000]
    assert outcome["valid"] == 1
    assert outcome["seconds"] > 0.1 > outcome["found_after"][0][0] > outcome["found_after"][1][0]


def test_a_run_of_thresholds(script, monkeypatch):
    """Those below the size, and the coarse scheme."""
    monkeypatch.setattr(nqueens, "THRESHOLDS", [4, 8, 16])
    printed, runs = script("--table", "3", "--sizes", "12")
    assert [run["settings"].get("threshold") for run in runs] == [None, 4, 8]
    assert len({run["attacks"] for run in runs}) == 1
    assert (printed[0], len(printed[1])) == (["n", "coarse:", "ms", "4", "8"], 4)


def test_a_run_of_batches(script):
    """Seconds are per placement; attacks are of all together."""
    printed, runs = script("--batch", "9", "--size", "40")
    assert printed[1][:3] == ["9", "histogram", "40"]
    assert 40 < runs[0]["attacks"] < 40 * 36


@pytest.mark.slow
def test_a_run_to_valid_placements(script, monkeypatch):
    """By annealing and by min-conflicts, each from random starts."""
    monkeypatch.setattr(nqueens, "_SOLVED_BY", nqueens._SOLVED_BY | {"moves_per_search": 8})
    printed, runs = script("--solve", "8", "--runs", "2")
    assert [row[:3] for row in printed[1:]] == [
        ["8", "annealing", "2/2"],
        ["8", "min_conflicts", "2/2"],
    ]
    assert all(0 < run["steps"] <= 8000 and run["seconds"] > 0 for run in runs)


@pytest.mark.slow
def test_a_run_for_a_set(script):
    """Valid placements, as many as were asked for, as different as random ones."""
    printed, runs = script("--set", "8", "--solutions", "12", "--distinct", "symmetry")
    assert printed[1][:4] == ["8", "symmetry", "1", "12"]
    assert (runs[0]["found"], runs[0]["valid"]) == (12, 12)
    assert 0.75 < runs[0]["mean_difference"] < 1


@pytest.fixture
def measured(monkeypatch):
    """What is measured, by its own clock: n**2 milliseconds."""
    jobs = []

    def measure(job, seed):
        jobs.append((job.settings["scheme"], job.n))
        return {"seconds": 1e-3 * job.n**2, "attacks": 0}

    monkeypatch.setattr(common, "use_cpu_cores", lambda: None)
    monkeypatch.setattr(runs_of, "measure", measure)
    return jobs


@pytest.mark.parametrize("figure", ["4", "7"])
def test_what_takes_too_long_is_left_out(figure, measured, tmp_path):
    """Judging by a smaller size, also where that was measured by an earlier command.

    Of figure 7 a step of 20 queens takes 0.4 s, 200 of which are too many for two seconds.
    """
    flags = ["--figure", figure, "--schemes", "coarse", "--sizes", "10,20,100"]
    flags += ["--limit", "2", "--out", str(tmp_path / "runs.jsonl")]
    for _ in range(2):
        assert nqueens.main(flags) == 0
    expected = [("coarse", 10), ("coarse", 20)] if figure == "4" else [("coarse", 10)]
    assert measured == expected


def test_what_does_not_fit_is_written_down(monkeypatch, script):
    """Its reason is in the file, and its time is a dash."""

    def refuse(job, seed):
        raise MemoryError("much too large")

    monkeypatch.setattr(runs_of, "measure", refuse)
    printed, runs = script("--figure", "4", "--sizes", "9", "--schemes", "fine_pairs")
    assert [(run["seconds"], run["refused"]) for run in runs] == [(None, "much too large")]
    assert printed[1] == ["fine_pairs", "1", "x", "cpu", "-"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--figure", "8"], "invalid choice: 8"),
        (["--table", "2"], "invalid choice: 2"),
        (["--sizes", "0"], "--sizes: '0' holds 0"),
        (["--runs", "0"], "--runs: '0' holds 0"),
        (["--limit", "0"], "--limit: '0' is not made of numbers above 0"),
        (["--limit", "nan"], "is not made of numbers above 0"),
        (["--set", "8", "--distinct", "all"], "invalid choice: 'all'"),
        (["--set", "8", "--solutions", "0"], "--solutions: '0' holds 0"),
        (["--schemes", "nosuch"], "nosuch"),
        (["--batch", "x"], "--batch: invalid"),
        (["--solve", "8,-1"], "--solve: '8,-1' holds -1"),
        (["--anneal", "8", "--alpha", "2"], "alpha is 2.0, expected a cooling constant"),
        (["--anneal", "8", "--temperature", "0"], "--temperature: '0' is not made of numbers"),
        (["--anneal", "8", "--schemes", "deltas"], "deltas is no full evaluation"),
        (["--figure", "2", "--threads", "0"], "--threads: '0' holds 0"),
    ],
)
def test_wrong_flags_end_with_one_line(flags, message, monkeypatch, capsys):
    monkeypatch.setattr(common, "use_cpu_cores", lambda: None)
    with pytest.raises(SystemExit):
        nqueens.main(flags)
    *_, line = capsys.readouterr().err.splitlines()
    assert message in line
