"""The script of N-Queens: its tables by hand, small runs, and what it leaves out."""

import functools
import importlib.util
import time
from typing import NamedTuple

import numpy as np
import pytest
from queens import slow_count

import jaxopt_search as js
from experiments import common
from experiments.queens import annealing as nqueens_annealing
from experiments.queens import compiled as compiled_queens
from experiments.queens import script as nqueens
from experiments.queens import tables
from jaxopt_search.engine import device_split


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


def cells(text):
    return [line.split() for line in text.splitlines()]


def test_figure_1_by_hand():
    """Each beside the same step without evaluation: 75 and 90 % of 8 and 20 us, on each device."""
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


@pytest.mark.parametrize("evaluation", ["pairs", "diagonals"])
def test_compiled_loops_count_attacks(evaluation):
    """Of random placements, crowded ones, and rows that are no permutations."""
    count = compiled_queens.build_counter(as_it_is, evaluation)
    for n in (1, 2, 5, 12, 40):
        rows = [np.arange(n), np.zeros(n), *np.random.default_rng(n).integers(0, n, (5, n))]
        for row in rows:
            assert count(row.astype(np.int32)) == slow_count(row.astype(np.int32))


@pytest.mark.skipif(not HAS_NUMBA, reason="numba is not installed")
def test_numba_keeps_the_course_of_plain_loops():
    """Of 300 steps of annealing with cooling, and of its counts."""
    outcomes = []
    for anneal, count in (
        (compiled_queens.annealer("diagonals"), compiled_queens.counter("pairs")),
        (
            compiled_queens.build_annealer(as_it_is, "pairs"),
            compiled_queens.build_counter(as_it_is, "diagonals"),
        ),
    ):
        queens = np.random.default_rng(3).permutation(30).astype(np.int32)
        cooling = compiled_queens.Cooling(2.0, 0.5, 100)
        end = anneal(queens, count(queens), -1, cooling, 0, 300, 77)
        assert end[0] == slow_count(queens)
        outcomes.append((end, queens.tolist()))
    assert outcomes[0] == outcomes[1]


def test_compiled_annealing_accepts_by_its_temperature():
    """Hot, it makes any swap; cold, none that is worse, and it ends at the target."""
    anneal = compiled_queens.build_annealer(as_it_is, "pairs")
    for seed in (1, 2, 3):
        queens = np.random.default_rng(seed).permutation(12).astype(np.int32)
        cooling, before, random = compiled_queens.Cooling(1e9, 1e-30, 20), slow_count(queens), seed
        attacks, courses = before, []
        for step in range(200):
            old = queens.copy()
            attacks, after, random = anneal(queens, attacks, -1, cooling, step, step + 1, random)
            assert (attacks, after) == (slow_count(queens), step + 1)
            assert np.count_nonzero(queens != old) in ((2,) if step < 20 else (0, 2))
            courses.append(attacks)
        assert (np.diff(courses[19:]) <= 0).all()
        end = anneal(queens, attacks, attacks, cooling, 200, 300, random)
        assert end == (attacks, 200, random)
        queens = np.arange(12, dtype=np.int32)
        attacks, steps, _ = anneal(queens, 66, 20, compiled_queens.Cooling(0.1), 0, 10_000, seed)
        assert attacks <= 20 and steps < 10_000


def test_what_belongs_to_the_cpu_runs_there(monkeypatch, tmp_path, capsys):
    """Each record has the device of its own row, whatever JAX's default one is."""
    places = {"cpu": Device("cpu", "EPYC"), None: Device("gpu", "H200")}
    monkeypatch.setattr(device_split, "find_devices", lambda devices: (places[devices],))
    monkeypatch.setattr(common, "use_cpu_cores", lambda: None)
    monkeypatch.setattr(nqueens.importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(nqueens, "measure", lambda job, seed: {"seconds": 1.0, "attacks": 0})
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
    assert printed[1] == ["fine_pairs", "1", "x", "cpu", "-"]


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
    for figure, draw in tables.PLOTS.items():
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
