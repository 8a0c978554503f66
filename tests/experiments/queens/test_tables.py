"""The tables and plots of the N-Queens experiment, by hand."""

import pytest

from experiments import common
from experiments.queens import plots, tables
from experiments.queens import script as nqueens


def cells(text):
    return [line.split() for line in text.splitlines()]


def record(kind, n, seconds, seed=0, **settings):
    return {
        "experiment": "nqueens",
        "instance": f"n{n}",
        "n": n,
        "seed": seed,
        "settings": settings | {"kind": kind},
        "seconds": seconds,
        "cores": 16,
        "env": {"devices": "1 x GPU"},
    }


def evaluated(scheme, n, seconds, placement="random", batch=1, **settings):
    return record(
        "evaluate", n, seconds, scheme=scheme, placement=placement, batch=batch, **settings
    )


def test_figure_1_by_hand():
    """Compared with the same step without evaluation: 75 and 90 % of 8 and 20 us."""
    times = {"coarse": 8, "nothing": 2, "numba": 20, "numba_nothing": 2, "deltas": 1}
    runs = [record("anneal", 100, 1e-6 * us, scheme=name) for name, us in times.items()]
    runs += [record("anneal", 100, 1e-6 * us, k, scheme="coarse") for k, us in ((1, 1), (2, 99))]
    runs.append(record("anneal", 300, 1e-3, scheme="coarse"))
    assert cells(tables.figure_1(runs)) == [
        ["scheme", "runs", "on", "100", "300"],
        ["numba", "1", "core", "90.0", "-"],
        ["coarse", "1", "x", "GPU", "75.0", "-"],
    ]


THREADS = [
    evaluated("threads", 50, 9.0),
    evaluated("numba", 50, 0.003),
    *(evaluated("threads", 50, 0.001 * k, num_threads=n) for n, k in ((1, 12), (2, 6), (4, 8))),
    evaluated("fork_join", 50, 0.001, num_threads=4),
    evaluated("threads", 90, 0.002, num_threads=1),
]


def test_figures_2_and_3_by_hand():
    """Speed-ups over the compiled loop; what was not measured is a dash and never the best."""
    assert cells(tables.figure_2(THREADS)) == [
        ["n", "scheme", "numba:", "ms", "x", "1", "x", "2", "x", "4"],
        ["50", "threads", "3", "0.25", "0.5", "0.375"],
        ["90", "threads", "-", "-", "-", "-"],
        ["50", "fork_join", "3", "-", "-", "3"],
    ]
    assert cells(tables.figure_3(THREADS))[1:] == [
        ["50", "threads", "2", "6", "2", "0.5"],
        ["90", "threads", "1", "2", "1", "-"],
        ["50", "fork_join", "4", "1", "-", "3"],
    ]


SCHEMES = [
    evaluated("serial", 10, 0.008),
    evaluated("coarse", 10, 0.002),
    evaluated("fork_join", 10, 0.004),
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
        ["scheme", "runs", "on", "10", "20"],
        ["serial", "1", "core", "8", "-"],
        ["fork_join", "16", "cores", "4", "-"],
        ["coarse", "1", "x", "GPU", "2", "4"],
    ]
    assert {tuple(row[-2:]) for row in cells(tables.figure_5(SCHEMES))[1:]} == {("-", "-")}
    compiled = [*SCHEMES, evaluated("numba", 10, 0.004), evaluated("numba", 20, 0.002)]
    assert cells(tables.figure_5(compiled))[1:] == [
        ["numba", "1", "core", "1", "1"],
        ["serial", "1", "core", "0.5", "-"],
        ["fork_join", "16", "cores", "1", "-"],
        ["coarse", "1", "x", "GPU", "2", "0.5"],
    ]


def test_figure_6_by_hand():
    """Random placements take 25 % longer than valid ones; 45 pairs in 5 ms are 9000 a second."""
    runs = [evaluated("coarse", 10, 0.005), evaluated("coarse", 10, 0.004, placement="valid")]
    assert cells(tables.figure_6(runs))[1] == ["10", "5", "4", "25", "9e+03"]


def test_figure_7_by_hand():
    """Microseconds per step, and how often each is faster than the compiled loop."""
    times = {"deltas": 1e-6, "histogram": 4e-6, "coarse": 1e-5, "numba": 2e-5, "nothing": 1e-7}
    runs = [record("anneal", 10, seconds, scheme=name) for name, seconds in times.items()]
    assert cells(tables.figure_7(runs)) == [
        ["scheme", "runs", "on", "10:", "us", "x", "at", "10"],
        ["numba", "1", "core", "20", "1"],
        ["coarse", "1", "x", "GPU", "10", "2"],
        ["histogram", "1", "x", "GPU", "4", "5"],
        ["deltas", "1", "x", "GPU", "1", "20"],
    ]


def annealed(scheme, seconds, steps, found, seed=0, searches=1, alpha=1.0):
    cooling = {"temperature": 0.5, "alpha": alpha, "steps_per_temperature": 7}
    run = record("anneal to the end", 8, seconds, seed, scheme=scheme, searches=searches, **cooling)
    return run | {"steps": steps, "found_after": found}


def test_annealed_by_hand():
    """Each search counts, and one that found nothing is missing; seconds of a step are of all."""
    runs = [
        annealed("coarse", 4.0, 2000, [[4.0, 2000], [1.0, 500]], searches=3),
        annealed("numba", 2.0, 1000, [[2.0, 1000]]),
        annealed("numba", 4.0, 4000, [[4.0, 4000]], 1),
        annealed("numba", 9.0, 3000, [], alpha=0.9),
    ]
    assert cells(tables.table_annealed(runs))[1:] == [
        ["8", "coarse", "1", "x", "GPU", "0.5", "3", "2/3", "1", "2.5", "4", "1,250", "2e+03"],
        ["8", "numba", "1", "core", "0.5", "1", "2/2", "2", "3", "4", "2,500", "1.5e+03"],
        [
            "8",
            "numba",
            "1",
            "core",
            "0.5",
            "x",
            "0.9",
            "every",
            "7",
            "1",
            "0/1",
            "-",
            "-",
            "-",
            "-",
            "3e+03",
        ],
    ]


def test_thresholds_by_hand():
    """With the coarse scheme; the default threshold does not count as a given one."""
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
    """Of three runs the one of median time; what was found too often or too late does not count."""
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


class Axes:
    """Keeps the points that are drawn, by their label."""

    def __init__(self):
        self.lines, self.labels = {}, {}

    def plot(self, xs, ys, style, label):
        self.lines[label] = dict(zip(xs, ys, strict=True))

    def set(self, **labels):
        self.labels = labels

    def legend(self):
        pass


def test_each_figure_draws_its_own():
    """Shares, speed-ups by number of threads, best numbers, seconds, speed-ups over the loop."""
    runs = [run for run in SCHEMES if run["settings"]["scheme"] != "threads"]
    runs += [evaluated("numba", 10, 0.004), *THREADS]
    times = {"coarse": 8e-6, "nothing": 2e-6, "numba": 2e-5, "deltas": 1e-6}
    runs += [record("anneal", 10, seconds, scheme=name) for name, seconds in times.items()]
    drawn = {}
    for figure, draw in plots.PLOTS.items():
        drawn[figure] = Axes()
        draw(runs)(drawn[figure])
    lines = {figure: axes.lines for figure, axes in drawn.items()}
    assert lines[1]["coarse"] == {10: 75.0}
    assert lines[2] == {"50 queens": {1: 0.25, 2: 0.5, 4: 0.375}, "90 queens": {}}
    assert lines[3]["best number of threads"] == {50: 2, 90: 1}
    assert lines[3]["speed-up over one thread"] == {50: 2.0, 90: 1.0}
    assert lines[4]["coarse"] == {10: 0.002, 20: 0.004}
    assert lines[5]["coarse"] == {10: 2.0}
    assert lines[6] == {"random": {10: 0.002, 20: 0.004}, "valid": {10: 77.0}}
    assert lines[7] == {name: {10: time} for name, time in times.items() if name != "nothing"}
    assert drawn[2].labels["xlabel"] == "threads"


def test_the_drawings(tmp_path):
    """They are written as pictures."""
    pytest.importorskip("matplotlib")
    path = tmp_path / "made-up.jsonl"
    for run in (*SCHEMES, *THREADS, record("anneal", 10, 1e-6, scheme="deltas")):
        common.append(path, run)
    for figure in range(1, 8):
        plot = tmp_path / f"{figure}.png"
        flags = ["--report", str(path), "--figure", str(figure), "--plot", str(plot)]
        assert nqueens.main(flags) == 0
        assert plot.read_bytes().startswith(b"\x89PNG")
