"""The quickstart and the benchmark run, and their figures are what they say."""

import sys

import pytest

import jaxopt_search as js
from experiments import benchmark, common, quickstart
from jaxopt_search import parallel


@pytest.fixture(scope="module")
def outcome():
    instance = js.datasets.grid_tsp(4, 4, spacing=100, seed=0)
    return quickstart.Outcome(instance, js.solve_tsp(instance, max_steps=2000, devices=1))


def test_quickstart_reports_what_was_found(outcome):
    """The row and the record agree with the result, which for 16 cities is the optimum."""
    assert quickstart.row(outcome)[:5] == ["grid-4x4-d100-s0", "16", "1600", "1600", "0.00%"]
    record = quickstart.record(outcome, 3.0)
    assert (record["cost"], record["best_known"], record["steps"]) == (1600, 1600, 2000)
    assert record["moves"] == 2000 * record["settings"]["searches"] * 8


def test_quickstart_writes_pictures(outcome, tmp_path, capsys):
    """A tour and a convergence plot come out as PNG files."""
    pytest.importorskip("matplotlib")
    quickstart.save_plots([outcome], tmp_path)
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["convergence.png", "tour-grid-4x4-d100-s0.png"]
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in files)
    assert capsys.readouterr().out.count("plot written") == 2


def test_quickstart_does_without_matplotlib(outcome, tmp_path, monkeypatch, capsys):
    """Plots are skipped with the command that installs what is missing."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    quickstart.save_plots([outcome], tmp_path)
    assert 'pip install "jaxopt_search[plot]"' in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_quickstart_command(tmp_path, monkeypatch, capsys):
    """The whole command on one tiny instance prints the table and writes a record."""
    monkeypatch.setattr(quickstart, "instances", lambda: [js.datasets.planted_tsp(12, seed=0)])
    monkeypatch.setattr(common, "use_cpu_cores", lambda: None)
    assert quickstart.main(["--seconds", "1", "--out", str(tmp_path), "--devices", "1"]) == 0
    assert "planted-12-s0" in capsys.readouterr().out
    assert len(common.read(tmp_path / "runs.jsonl")) == 1


def test_benchmark_counts_steps_and_moves():
    """Median and spread of three repetitions, worked out by hand."""
    case = benchmark.Case(10, 2, 5, parallel.find_devices(1))
    timing = benchmark.Timing(1.5, 100, [1.0, 2.0, 0.5], 7)
    assert benchmark.row(case, timing)[4:] == ["100", "1e+03", "500 to 2e+03", "1.5"]
    assert [record["sses"] for record in benchmark.records(case, timing)] == [1000, 500, 2000]


@pytest.mark.parametrize(
    ("speed", "word"), [(5e7, ": holds"), (4.9e7, "does not hold")], ids=["fast", "slow"]
)
def test_benchmark_judges_the_claim(speed, word):
    """The median of the fastest case on 100 cities counts; other sizes do not."""
    case = benchmark.Case(100, 10, 10, parallel.find_devices(1))
    seconds = [100 / speed * 100 * factor for factor in (1.0, 1.0, 0.5)]
    records = benchmark.records(case, benchmark.Timing(1.0, 100, seconds, 7))
    assert word in benchmark.verdict(records)
    other = benchmark.records(case._replace(cities=50), benchmark.Timing(1.0, 100, [1e-9], 7))
    assert benchmark.verdict(other) == ""


def test_benchmark_command(tmp_path, monkeypatch, capsys):
    """One line per case, one record per repetition, on one device and on all."""
    monkeypatch.setattr(common, "use_cpu_cores", lambda: None)
    out = tmp_path / "speed.jsonl"
    command = "--cities 9 --searches 4 --moves 2 --repetitions 2 --seconds 0.01"
    assert benchmark.main([*command.split(), "--out", str(out)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum("1 x cpu" in line for line in lines) == 1
    assert sum("4 x cpu" in line for line in lines) == 1
    records = common.read(out)
    assert len(records) == 4
    assert all(record["sses"] == record["moves"] / record["seconds"] for record in records)
