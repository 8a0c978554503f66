"""The script of islands on the QAP: its tables by hand, and small runs."""

import math

import pytest

from experiments import common, qap_islands
from experiments import qap_islands_tables as tables
from experiments.paper_islands import INSTANCES, TABLE_1, TABLE_2, TABLE_3


def records(times, instance="kra30a", **settings):
    settings = {
        "islands": 1,
        "population": 128,
        "restarts": True,
        "mutation": 1.0,
        "local_steps": 0,
        "on": "all",
        "limit": 9,
    } | settings
    return [
        {
            "experiment": "qap_islands",
            "instance": instance,
            "seed": seed,
            "settings": settings,
            "reached": math.isfinite(time),
            "seconds": time if math.isfinite(time) else 9.0,
            "generations": 100,
        }
        for seed, time in enumerate(times)
    ]


def cells(text):
    return [line.split() for line in text.splitlines()]


def test_table_1_by_hand():
    """Successes, mean, shortest and longest, of runs that found it; then the paper's."""
    runs = records([math.inf, 2.0, 4.0], restarts=False) + records([1.0, 3.0, 8.0])
    row = cells(tables.table_1(runs))[1]
    assert row == ["kra30a", "2/3", "3", "2", "4", "3/3", "4", "1", "8", "1", "30", "10.03"]


def test_table_2_by_hand():
    """Gains over one island, and exponential times predict a gain of nearly p."""
    quantiles = [-10 * math.log(1 - (k + 0.5) / 200) for k in range(200)]
    runs = records(quantiles) + records([0.2, 0.4], islands=30)
    _, one, thirty = cells(tables.table_2(runs))
    assert one[:6] == ["kra30a", "1", "128", "1.0", "0", "200/200"]
    assert one[11:] == ["100", "34.25", "1", "-"]
    mean_of_one = sum(quantiles) / 200
    assert thirty[4:9] == ["0", "2/2", "0.3", "0.141", f"{mean_of_one / 0.3:.3g}"]
    assert float(thirty[9]) == pytest.approx(10 / 30, rel=0.02)
    assert float(thirty[10]) == pytest.approx(0.3 - 10 / 30, abs=0.01)
    assert thirty[11:] == ["100", "1.35", "25.4", "0.79"]


def test_what_did_not_end_has_no_mean():
    """A run that was cut off makes means and gains unknown, not short."""
    runs = records([1.0, math.inf]) + records([0.5], islands=30)
    _, one, thirty = cells(tables.table_2(runs))
    assert one[5:9] == ["1/2", "-", "-", "-"]
    assert one[11] == "-"
    assert thirty[8] == "-"


def test_table_2_keeps_kinds_of_islands_apart():
    """Those that differ in their size, say, have lines of their own; those of Table 1 none."""
    runs = records([1.0, 2.0]) + records([3.0, 5.0], population=32) + records([0.5], islands=30)
    runs += records([9.0], restarts=False)
    rows = cells(tables.table_2(runs))[1:]
    assert [row[1:3] + row[6:7] for row in rows] == [
        ["1", "32", "4"],
        ["1", "128", "1.5"],
        ["30", "128", "0.5"],
    ]


def test_table_3_by_hand():
    """Generations of all, times what one takes on a core; the shortest mean is the tuned size."""
    runs = records([1.0, 1.0], islands=30)
    for size, pace, generations in ((128, 0.01, (800, 600)), (512, 0.03, (50, 100))):
        runs += records([100 * pace] * 2, population=size, on="core")
        for run, made in zip(records([0.1, 0.1], population=size), generations, strict=True):
            runs.append(run | {"generations": made})
    runs += records([0.1], population=64, on="core") + records([0.1, math.inf], population=64)
    row = cells(tables.table_3(runs))[1]
    assert row == ["kra30a", "1", "2.25", "512", "7", "2.25", "7", "6.64", "1024", "21.45"]
    without_a_core = [run for run in runs if run["settings"]["on"] == "all"]
    row = cells(tables.table_3(without_a_core))[1]
    assert row == ["kra30a", "1", "-", "128", "-", "-", "-", "6.64", "1024", "21.45"]


def test_table_4_by_hand():
    """Gains over the fewest devices, with as many islands in all, and with as many on each."""
    exponential = [-10 * math.log(1 - (k + 0.5) / 200) for k in range(200)]
    runs = records(exponential)
    for islands, on, times in ((30, "1", (4.0, 6.0)), (60, "1", (4.0, 5.0)), (60, "2", (2.0, 3.0))):
        runs += records(times, islands=islands, on=on)
    for run in runs:
        run |= {"island": 3, "generations": 50 + run["seed"], "best_cost": 7.0}
    runs[-1]["generations"] += 1
    _, thirty, sixty, two = cells(tables.table_4(runs))
    assert thirty[1:] == ["30", "1", "2/2", "5", "1", "1", "1", "2/2"]
    assert sixty[1:7] == ["60", "1", "2/2", "4.5", "1", "1"]
    assert two[1:7] == ["60", "2", "2/2", "2.5", "1.8", "2"]
    assert float(two[7]) == pytest.approx(2, rel=0.1)
    assert two[8] == "1/2"


@pytest.mark.parametrize(
    ("report", "kept"),
    [(tables.table_1, ()), (tables.table_3, ("population",)), (tables.table_4, ())]
    + [(draw, ()) for draw in tables.FIGURES.values()],
)
def test_other_tables_refuse_several_kinds_of_islands(report, kept):
    for part, other in {"population": 32, "mutation": 0.1, "local_steps": 10}.items():
        runs = records([1.0, 2.0]) + records([3.0], **{part: other})
        if part in kept:
            report(runs)
        else:
            with pytest.raises(ValueError, match=rf"several kinds \(.*{part}.*expected one$"):
                report(runs)


def test_a_report_on_several_kinds_ends_with_one_line(tmp_path, capsys):
    out = tmp_path / "both.jsonl"
    for record in records([1.0]) + records([2.0], population=32):
        common.append(out, record)
    with pytest.raises(SystemExit):
        qap_islands.main(["--table", "4", "--report", str(out)])
    *_, last = capsys.readouterr().err.splitlines()
    assert last.endswith("[(32, 1.0, 0), (128, 1.0, 0)], expected one")


def test_the_papers_figures():
    """Its averages over the nine: speed-ups of 4.4 and 7.9 over one thread with a tuned size."""
    assert set(TABLE_1) == set(TABLE_2) == set(TABLE_3) == set(INSTANCES)
    pairs = [(TABLE_3[name].tuned, TABLE_2[name]) for name in INSTANCES]
    assert sum(t / ours.thirty for t, ours in pairs) / 9 == pytest.approx(4.4, abs=0.1)
    assert sum(t / ours.sixty for t, ours in pairs) / 9 == pytest.approx(7.9, abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(("table", "expected"), [(1, 4), (2, 4), (3, 10), (4, 4)])
def test_small_runs(table, expected, tmp_path, monkeypatch, capsys):
    """Every setting is run once per seed; the same command finds all of it in the file."""
    monkeypatch.setattr(common, "use_cpu_cores", lambda: None)
    monkeypatch.setattr(common, "data_folder", lambda data: None)
    out, plot = tmp_path / "runs.jsonl", tmp_path / "figure.png"
    flags = ["--table", str(table), "--islands", "1,3", "--sizes", "16", "--runs", "2"]
    flags += ["--devices", "1", "--generations", "3000", "--out", str(out)]
    assert qap_islands.main(flags) == 0
    printed = capsys.readouterr().out
    runs = common.read(out)
    assert len(runs) == expected
    searched = [run for run in runs if run["settings"]["on"] != "core"]
    assert all(run["reached"] and 0 < run["generations"] < 3000 for run in searched)
    assert qap_islands.main(flags) == 0
    assert capsys.readouterr().out == printed
    assert common.read(out) == runs
    pytest.importorskip("matplotlib")
    for figure in (5, 6) if table == 2 else ():
        shown = ["--report", str(out), "--table", str(table), "--figure", str(figure)]
        assert qap_islands.main([*shown, "--plot", str(plot)]) == 0
        assert plot.read_bytes().startswith(b"\x89PNG")
        plot.unlink()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--runs", "0"], "--runs: '0' holds 0"),
        (["--generations", "0"], "--generations: '0' holds 0"),
        (["--mutation", "2"], "mutation_rate is 2.0"),
        (["--instances", "nowhere"], "nowhere"),
    ],
)
def test_wrong_flags_end_with_one_line(flags, message, monkeypatch, capsys):
    monkeypatch.setattr(common, "use_cpu_cores", lambda: None)
    monkeypatch.setattr(common, "data_folder", lambda data: None)
    with pytest.raises(SystemExit):
        qap_islands.main(flags)
    assert message in capsys.readouterr().err
