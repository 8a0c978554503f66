"""The benchmarks run, and their figures are what they say."""

import json

import pytest

from experiments import common
from experiments.benchmark import bandwidth
from experiments.benchmark import script as benchmark
from experiments.benchmark import tables as benchmark_tables
from jaxopt_search.backends import Choice
from jaxopt_search.engine import device_split

NATIVE = Choice("native")


def test_benchmark_counts_steps_and_moves():
    """Median and spread of three repetitions, worked out by hand."""
    case = benchmark.Case(10, 2, 5, device_split.find_devices(1))
    timing = benchmark.Timing(1.5, 100, [1.0, 2.0, 0.5], 7, NATIVE)
    records = benchmark.records(case, timing)
    assert [record["sses"] for record in records] == [1000, 500, 2000]
    expected = ["native", "1e+04", "1e+03", "500 to 2e+03", "1.5"]  # 1 s for 100 steps
    assert benchmark_tables.row(records)[5:] == expected


def test_benchmark_tells_what_ran_and_why():
    """What ran is recorded, not what was requested; the reason comes with it, but is no setting."""
    case = benchmark.Case(10, 2, 5, device_split.find_devices(1), "two_opt", "auto")
    timing = benchmark.Timing(1.5, 100, [1.0], 7, Choice("xla", "too large"))
    (record,) = benchmark.records(case, timing)
    assert record["settings"]["implementation"] == "xla"
    assert record["settings"]["neighborhood"] == "two_opt"
    assert record["env"]["implementation"] == "xla (too large)"
    assert {"jax", "devices"} <= set(record["env"])


@pytest.mark.parametrize(
    ("speed", "word"), [(5e7, ": holds"), (4.9e7, "does not hold")], ids=["fast", "slow"]
)
def test_benchmark_judges_the_claim(speed, word):
    """The median of the fastest case on 100 cities counts; other sizes and moves do not."""
    case = benchmark.Case(100, 10, 10, device_split.find_devices(1))
    seconds = [100 / speed * 100 * factor for factor in (1.0, 1.0, 0.5)]
    records = benchmark.records(case, benchmark.Timing(1.0, 100, seconds, 7, NATIVE))
    assert word in benchmark_tables.verdict(records)
    timing = benchmark.Timing(1.0, 100, [1e-9], 7, NATIVE)
    for other in (case._replace(cities=50), case._replace(neighborhood="two_opt")):
        assert benchmark_tables.verdict(benchmark.records(other, timing)) == ""


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


@pytest.mark.parametrize("implementation", ["native", "xla"])
def test_benchmark_runs_as_asked(implementation, tmp_path, monkeypatch, capsys):
    """The flags reach the table and the records."""
    monkeypatch.setattr(common, "use_cpu_cores", lambda: None)
    monkeypatch.setattr(benchmark, "_PILOT_STEPS", 10)
    out = tmp_path / "speed.jsonl"
    command = "--cities 9 --searches 4 --moves 2 --devices 1 --repetitions 1 --seconds 0.01"
    flags = ["--neighborhood", "two_opt", "--implementation", implementation, "--out", str(out)]
    assert benchmark.main([*command.split(), *flags]) == 0
    printed = capsys.readouterr().out
    assert "medians of 1 repetitions" in printed
    assert benchmark.main(["--report", str(out)]) == 0
    (line,) = capsys.readouterr().out.splitlines()[1:]
    assert line in printed and line.split()[0] == "two_opt" and implementation in line
    (record,) = common.read(out)
    assert record["settings"]["neighborhood"] == "two_opt"
    assert record["settings"]["implementation"] == implementation
    assert record["env"]["implementation"] == implementation


def test_benchmark_refuses_what_cannot_run(monkeypatch, capsys):
    """A kernel for GPUs on a CPU ends the command with one line, before anything is measured."""
    monkeypatch.setattr(common, "use_cpu_cores", lambda: None)
    with pytest.raises(SystemExit) as stopped:
        benchmark.main(["--implementation", "triton", "--cities", "9"])
    assert stopped.value.code == 2
    assert "implementation is 'triton'" in capsys.readouterr().err


def sweep():
    """Returns records of 2 x 2 x 1 sizes, three repetitions each at 1, 2 and 6 times a speed."""
    measured = []
    for searches, moves in ((8, 2), (4, 2), (4, 3), (8, 3)):
        case = benchmark.Case(9, searches, moves, device_split.find_devices(1))
        seconds = [1.0, 0.5, 1 / 6]
        measured += benchmark.records(case, benchmark.Timing(1.0, 10, seconds, 7, NATIVE))
    return json.loads(json.dumps(measured))


def test_benchmark_curves_differ_in_one_size():
    """Worked out by hand: moves/s are 10 steps x searches x moves, times 1, 2 and 6."""
    measured = sweep()
    assert benchmark_tables.curves(measured, "searches") == {
        "moves per search 2": [(4, 80, 160, 480), (8, 160, 320, 960)],
        "moves per search 3": [(4, 120, 240, 720), (8, 240, 480, 1440)],
    }
    assert {label: [point.size for point in points] for label, points in
            benchmark_tables.curves(measured, "cities").items()} == {
        "searches 8, moves per search 2": [9], "searches 4, moves per search 2": [9],
        "searches 4, moves per search 3": [9], "searches 8, moves per search 3": [9],
    }  # fmt: skip
    one_line = [record for record in measured if record["settings"]["moves"] == 2]
    assert list(benchmark_tables.curves(one_line, "searches")) == [""]


def test_benchmark_draws_each_size_on_log_axes(tmp_path):
    """Three panels; the lines go through the medians; a size measured once warns of nothing."""
    pytest.importorskip("matplotlib")
    drawn = []

    def draw(ax):
        benchmark_tables.draw(sweep(), ax)
        drawn.extend(ax.figure.axes)

    common.save_plot(tmp_path / "speed.png", draw, (12, 5))
    assert (tmp_path / "speed.png").read_bytes().startswith(b"\x89PNG")
    assert [panel.get_xlabel() for panel in drawn] == ["searches", "moves per search", "cities"]
    assert all(panel.get_xscale() == panel.get_yscale() == "log" for panel in drawn)
    line = drawn[0].get_lines()[0]
    assert (list(line.get_xdata()), list(line.get_ydata())) == ([4, 8], [160, 320])


def test_benchmark_plot_flag(tmp_path, monkeypatch, capsys):
    """The command measures and draws."""
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(common, "use_cpu_cores", lambda: None)
    monkeypatch.setattr(
        benchmark, "measure", lambda case, *_: benchmark.Timing(1, 9, [1], 7, NATIVE)
    )
    assert benchmark.main(["--plot", str(tmp_path / "new" / "speed.png"), "--cities", "9"]) == 0
    assert "plot written" in capsys.readouterr().out
    assert (tmp_path / "new" / "speed.png").exists()


def test_bandwidth_is_measured_and_kept(tmp_path, capsys):
    out = tmp_path / "bandwidth.jsonl"
    assert bandwidth.main(["--mebibytes", "1", "--out", str(out)]) == 0
    (record,) = common.read(out)
    assert len(record["bytes_per_s"]) == 5
    assert all(rate > 1e7 for rate in record["bytes_per_s"])
    assert "bytes/s read and written" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        bandwidth.main(["--mebibytes", "0"])
