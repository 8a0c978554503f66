"""The script of N-Queens: its tables by hand, small runs, and what it leaves out."""

import pytest

from experiments import common
from experiments.queens import __main__ as nqueens
from experiments.queens import runs as runs_of


@pytest.fixture
def script(tmp_path, monkeypatch, capsys):
    """Runs the script with flags, twice with the same file; returns what it printed and wrote."""
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
        return [line.split() for line in printed.splitlines()], runs

    return run


def test_a_run_of_threads(script):
    """The compiled loop, and each scheme by each number."""
    printed, runs = script("--figure", "3", "--sizes", "70", "--threads", "1,2")
    settings = [run["settings"] for run in runs if run["settings"]["scheme"] != "numba"]
    assert [(one["scheme"], one["num_threads"]) for one in settings] == [
        (name, count) for name in ("threads", "range_reduce", "fork_join") for count in (1, 2)
    ]
    assert len({run["attacks"] for run in runs}) == 1
    assert [row[1] for row in printed[1:]] == ["threads", "range_reduce", "fork_join"]


def test_a_run_of_annealing_to_the_end(script, in_python):
    """To valid placements, each search by itself; the temperature falls."""
    flags = ["--anneal", "30", "--runs", "2", "--temperature", "2", "--alpha", "0.5"]
    flags += ["--steps-per-temperature", "100"]
    printed, runs = script(*flags, "--schemes", "histogram,numba_histogram")
    assert [(row[1], row[-6]) for row in printed[1:]] == [
        ("histogram", "2/2"),
        ("numba_histogram", "2/2"),
    ]
    assert all(run["valid"] == 1 and run["settings"]["alpha"] == 0.5 for run in runs)


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
