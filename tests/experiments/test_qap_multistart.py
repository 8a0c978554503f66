"""The script of multi-start searches on the QAP: its tables by hand, and small runs."""

import sys

import pytest

from experiments import common, qap_multistart
from experiments import qap_multistart_tables as tables
from experiments.paper_multistart import TABLE_1


def record(way="1 core", searches=1, seconds=1.0, steps=10, algorithm="ts"):
    settings = {"algorithm": algorithm, "way": way, "searches": searches}
    gaps = {"mean_gap": 0.02, "best_gap": 0.01}
    fields = {"instance": "tai30a", "settings": settings, "seconds": seconds, "steps": steps}
    return {**fields, **gaps, "moves_priced": 435 * steps * searches}


def reached(seconds, is_there=True):
    settings = {"gap": 0.0, "seconds": 9}
    fields = {"instance": "a", "seconds": seconds, "reached": is_there, "settings": settings}
    return {**fields, "best_gap": 0.0 if is_there else 0.01, "env": {"devices": "cpu"}}


def cells(text):
    return [line.split() for line in text.splitlines()]


def test_table_1_by_hand():
    """Seconds per step and search, moves per second, and speed-ups, ours and the paper's."""
    rows = cells(tables.table_1([record(searches=4), record("gpu", searches=8, seconds=0.1)]))
    assert rows[1][3:11] == ["core", "4", "10", "1", "2.5e+04", "1.74e+04", "1", "2.00%"]
    assert rows[2][3:11] == ["8", "10", "0.1", "1.25e+03", "3.48e+05", "20", "2.00%", "1.00%"]
    assert rows[2][11:] == ["3.9", "10.8"]
    assert TABLE_1["sa", "tai100a"] == (13960.69, 3459.15, 2426.11)


def test_figure_2_by_hand():
    """Speed-ups over the core's step; a dash for what was not measured."""
    rows = cells(tables.figure_2([record(), record("both", 1, 0.5), record("both", 4, 0.4)]))
    assert rows == [["searches", "1", "core", "both"], ["1", "1", "2"], ["4", "-", "10"]]


def test_times_to_targets_by_hand():
    """Quantiles of the times, in which a run that did not get there counts as endless."""
    runs = [reached(k) for k in (3.0, 1.0, 2.0)] + [reached(9.0, False)]
    header, row = cells(tables.targets(runs))
    assert row == ["a", "0.00%", "3/4", "1.000", "2.000", "-", "0.250%", "cpu"]
    assert header[-1] == "on"


@pytest.mark.slow
def test_a_small_table_and_figure(tmp_path, monkeypatch, capsys):
    """Every algorithm and way is measured once; the same command finds all of it in the file."""
    monkeypatch.setitem(sys.modules, "numba", None)  # as if it were not installed
    monkeypatch.setattr(common, "use_cpu_cores", lambda: None)
    monkeypatch.setattr(common, "data_folder", lambda data: None)
    out = tmp_path / "runs.jsonl"
    flags = ["--searches", "2", "--steps", "20", "--out", str(out)]
    assert qap_multistart.main(["--table", "1", *flags]) == 0
    printed = capsys.readouterr().out
    runs = common.read(out)
    assert {run["settings"]["algorithm"] for run in runs} == {"hc", "sa", "ts"}
    assert len(runs) == 6
    for first, second in zip(runs[::2], runs[1::2], strict=True):  # a core, and all devices
        names = ("steps", "moves_priced", "moves_made", "mean_gap", "status")
        assert [first[name] for name in names] == [second[name] for name in names]
    assert [run["status"] for run in runs] == ["LOCAL_OPTIMA"] * 2 + ["MAX_STEPS"] * 4
    assert qap_multistart.main(["--table", "1", *flags]) == 0
    assert capsys.readouterr().out.splitlines()[-7:] == printed.splitlines()[-7:]
    assert len(common.read(out)) == 6
    assert qap_multistart.main(["--report", str(out)]) == 0
    assert capsys.readouterr().out.splitlines() == printed.splitlines()[-7:]


@pytest.mark.slow
def test_a_small_figure_and_targets(tmp_path, monkeypatch, capsys, data_dir):
    """All models on one device; runs to the best known cost, and pictures of both."""
    monkeypatch.setattr(common, "use_cpu_cores", lambda: None)
    plots = [tmp_path / "figure.png", tmp_path / "targets.png"]
    figure = ["--figure", "2", "--instances", "nug12", "--searches", "1,3", "--steps", "5"]
    aim = ["--targets", "nug12", "--runs", "2", "--seconds", "20"]
    for flags, plot in zip((figure, aim), plots, strict=True):
        data = ["--data", str(data_dir), "--plot", str(plot)]
        assert qap_multistart.main([*flags, *data]) == 0
        assert plot.stat().st_size > 1000
    printed = capsys.readouterr().out
    assert "algorithmic" in printed and "iteration" in printed
    assert "2/2" in printed


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["--runs", "2,3"], "--runs: '2,3' is a list"),
        (
            ["--targets", "nug12", "--seconds", "nan"],
            "--seconds: 'nan' is not made of",
        ),
        (["--instances", "rd100"], "a TSP instance, expected a quadratic assignment problem"),
    ],
)
def test_bad_flags_are_refused(flags, text, monkeypatch, capsys, data_dir):
    """In one line."""
    monkeypatch.setattr(common, "use_cpu_cores", lambda: None)
    with pytest.raises(SystemExit):
        qap_multistart.main([*flags, "--data", str(data_dir)])
    assert text in capsys.readouterr().err
