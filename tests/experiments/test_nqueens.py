"""The script of N-Queens: its tables by hand, small runs, and what it leaves out."""

import pytest

from experiments import common, nqueens
from experiments import nqueens_tables as tables


def record(kind, n, seconds, seed=0, **settings):
    return {
        "experiment": "nqueens",
        "instance": f"n{n}",
        "n": n,
        "seed": seed,
        "settings": settings | {"kind": kind},
        "seconds": seconds,
    }


def evaluated(scheme, n, seconds, placement="random", batch=1, **settings):
    return record(
        "evaluate", n, seconds, scheme=scheme, placement=placement, batch=batch, **settings
    )


def cells(text):
    return [line.split() for line in text.splitlines()]


def test_figure_1_by_hand():
    """A step of 8 us, one of 10 us and one of 2 us without evaluation: 75 % and 80 %."""
    runs = [record("anneal", 100, 2e-6, scheme="deltas")]
    runs += [record("anneal", 100, 1e-5, scheme="histogram")]
    runs += [
        record("anneal", 100, time, seed, scheme="serial") for seed, time in enumerate((9, 8, 1))
    ]
    for run in runs[2:]:
        run["seconds"] *= 1e-6
    runs.append(record("anneal", 300, 1e-3, scheme="serial"))
    header, small, large = cells(tables.figure_1(runs))
    assert header[:4] == ["n", "serial", "us/step", "serial"]
    assert small == ["100", "8", "75.0", "10", "80.0"]
    assert large == ["300", "1e+03", "-", "-", "-"]


def test_figure_2_by_hand():
    """Speed-ups over one thread, and the fastest number; those chosen by the scheme are no part."""
    runs = [evaluated("threads", 50, 9.0)]
    for count, seconds in ((1, 0.012), (2, 0.006), (4, 0.008)):
        runs.append(evaluated("threads", 50, seconds, num_threads=count))
    header, row = cells(tables.figure_2(runs))
    assert header == ["n", "one:", "ms", "1", "2", "4", "best"]
    assert row == ["50", "12", "1", "2", "1.5", "2"]
    assert tables.FIGURES[3] is tables.FIGURES[2]


SCHEMES = [
    evaluated("serial", 10, 0.008),
    evaluated("coarse", 10, 0.002),
    evaluated("coarse", 10, 77.0, placement="valid"),
    evaluated("histogram", 10, 77.0, batch=8),
    evaluated("subtasks", 10, 77.0, threshold=4),
    evaluated("threads", 10, 77.0, num_threads=4),
    evaluated("serial", 20, None),
    evaluated("coarse", 20, 0.004),
]


def test_figures_4_and_5_by_hand():
    """Schemes with their own settings, in their order; what was refused has no time."""
    assert cells(tables.figure_4(SCHEMES)) == [
        ["n", "serial", "coarse"],
        ["10", "8", "2"],
        ["20", "-", "4"],
    ]
    assert cells(tables.figure_5(SCHEMES))[1:] == [["10", "1", "4"], ["20", "-", "-"]]
    compiled = [*SCHEMES, evaluated("numba", 10, 0.004), evaluated("numba", 20, 0.002)]
    assert cells(tables.figure_5(compiled)) == [
        ["n", "numba", "serial", "coarse"],
        ["10", "1", "0.5", "2"],
        ["20", "1", "-", "0.5"],
    ]


def test_figure_6_by_hand():
    """Random placements take 25 % longer than valid ones; 45 pairs in 5 ms are 9000 a second."""
    runs = [evaluated("coarse", 10, 0.005), evaluated("coarse", 10, 0.004, placement="valid")]
    assert cells(tables.figure_6(runs))[1] == ["10", "5", "4", "25", "9e+03"]


def test_figure_7_by_hand():
    """Microseconds per step, and how often each is faster than the serial scheme."""
    times = {"deltas": 1e-6, "histogram": 4e-6, "coarse": 1e-5, "serial": 2e-5}
    runs = [record("anneal", 10, seconds, scheme=name) for name, seconds in times.items()]
    header, row = cells(tables.figure_7(runs))
    assert [name for name in header if name.endswith(":")] == [
        "serial:",
        "coarse:",
        "histogram:",
        "deltas:",
    ]
    assert row == ["10", "20", "10", "4", "1", "2", "5", "20"]


def test_thresholds_by_hand():
    """Beside the coarse scheme; the default threshold is none that was asked for."""
    runs = [evaluated("coarse", 2000, 0.003), evaluated("subtasks", 2000, 77.0)]
    runs += [evaluated("subtasks", 2000, 0.001 * k, threshold=k) for k in (4, 2)]
    runs += [evaluated("subtasks", 3000, 0.004, threshold=2)]
    assert cells(tables.table_thresholds(runs)) == [
        ["n", "coarse:", "ms", "2", "4"],
        ["2000", "3", "2", "4"],
        ["3000", "-", "4", "-"],
    ]


def test_batches_by_hand():
    """Single placements are no batch."""
    runs = [evaluated("histogram", 5, 2.5e-6, batch=8), evaluated("histogram", 5, 1.0)]
    assert cells(tables.table_batch(runs))[1:] == [["5", "histogram", "8", "2.5"]]


def test_solved_by_hand():
    """A run that found nothing is longer than all others, and its steps count."""
    runs = []
    for seed, (seconds, steps, reached) in enumerate(((0.003, 10, True), (0.001, 30, False))):
        runs.append(record("solve", 8, seconds, seed, search="annealing"))
        runs[-1] |= {"steps": steps, "reached": reached}
    for seed, seconds in enumerate((0.004, 0.001, 0.002)):
        runs.append(record("solve", 8, seconds, seed, search="min_conflicts"))
        runs[-1] |= {"steps": 5, "reached": True}
    assert cells(tables.table_solve(runs))[1:] == [
        ["8", "annealing", "1/2", "3", "inf", "inf", "20"],
        ["8", "min_conflicts", "3/3", "1", "2", "4", "5"],
    ]


def test_sets_by_hand():
    """Of three runs the one of median time; what was found too often or too late is not kept."""
    runs = []
    for seed, (seconds, repeated) in enumerate(((0.5, 3), (0.1, 4), (0.9, 5))):
        runs.append(record("set", 30, seconds, seed, solutions=200, distinct="symmetry"))
        runs[-1] |= {"found": 200, "repeated": repeated, "mean_difference": 0.96667}
    other = record("set", 30, 2.0, solutions=100, distinct="raw")
    runs.append(other | {"found": 100, "repeated": 0, "mean_difference": 1.0})
    assert cells(tables.table_set(runs))[1:] == [
        ["30", "symmetry", "3", "200", "3", "0.5", "400", "0.9667"],
        ["30", "raw", "1", "100", "0", "2", "50", "1.0000"],
    ]


@pytest.fixture
def script(tmp_path, monkeypatch, capsys):
    """Runs the script with flags, twice with the same file; returns what it printed and wrote."""
    monkeypatch.setattr(common, "use_cpu_cores", lambda: None)
    monkeypatch.setattr(nqueens, "_REPEATS", 1)
    out = tmp_path / "runs.jsonl"

    def run(*flags):
        flags = [*flags, "--out", str(out)]
        assert nqueens.main(flags) == 0
        printed, runs = capsys.readouterr().out, common.read(out)
        monkeypatch.setattr(nqueens, "measure", lambda job, seed: pytest.fail("measured again"))
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
    assert {*nqueens.evaluation.SCHEMES} <= schemes <= {"numba", *nqueens.evaluation.SCHEMES}
    assert len(runs) == 2 * 2 * len(schemes)
    assert len({(run["n"], run["seed"], run["attacks"]) for run in runs}) == 4
    assert all(run["seconds"] > 0 for run in runs)
    assert [row[0] for row in printed] == ["n", "9", "12"]
    assert all(float(cell) > 0 for row in printed[1:] for cell in row)


def test_a_run_of_thresholds(script, monkeypatch):
    """Those below the size, and the coarse scheme."""
    monkeypatch.setattr(nqueens, "THRESHOLDS", [4, 8, 16])
    printed, runs = script("--table", "3", "--sizes", "12")
    assert [run["settings"].get("threshold") for run in runs] == [None, 4, 8]
    assert len({run["attacks"] for run in runs}) == 1
    assert (printed[0], len(printed[1])) == (["n", "coarse:", "ms", "4", "8"], 4)


def test_a_run_of_batches(script):
    """Seconds are those of one placement; attacks are those of all."""
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
    monkeypatch.setattr(nqueens, "measure", measure)
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

    monkeypatch.setattr(nqueens, "measure", refuse)
    printed, runs = script("--figure", "4", "--sizes", "9", "--schemes", "fine_pairs")
    assert [(run["seconds"], run["refused"]) for run in runs] == [(None, "much too large")]
    assert printed[1] == ["9", "-"]


def test_the_drawings(script, tmp_path, capsys, monkeypatch):
    """Seconds by size, a line for each scheme."""
    pytest.importorskip("matplotlib")
    path = tmp_path / "made-up.jsonl"
    runs = [record("anneal", n, n * 1e-6, scheme="deltas") for n in (10, 20)]
    for run in (*SCHEMES, *runs, evaluated("threads", 10, 1.0, num_threads=1)):
        common.append(path, run)
    for figure in (2, 4, 6, 7):
        plot = tmp_path / f"{figure}.png"
        flags = ["--report", str(path), "--figure", str(figure), "--plot", str(plot)]
        assert nqueens.main(flags) == 0
        assert plot.read_bytes().startswith(b"\x89PNG")


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
    ],
)
def test_wrong_flags_end_with_one_line(flags, message, monkeypatch, capsys):
    monkeypatch.setattr(common, "use_cpu_cores", lambda: None)
    with pytest.raises(SystemExit):
        nqueens.main(flags)
    *_, line = capsys.readouterr().err.splitlines()
    assert message in line
