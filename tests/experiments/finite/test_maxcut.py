"""The max-cut script: one-flip tabu search step by step, tables by hand, small runs."""

import numpy as np
import pytest

import jaxopt_search as js
from experiments import common, one_core
from experiments.finite import compiled_coloring, compiled_maxcut, maxcut, timed_runs
from experiments.finite.paper import BEST
from jaxopt_search.datasets import random_graph, toroidal_grid


def plain(fn):
    return fn


def gains(graph, sides):
    """Returns what each vertex's change of sides adds to the cut, in full."""
    now = compiled_maxcut.cut(graph, sides)
    flipped = np.eye(graph.n, dtype=sides.dtype) ^ sides
    return np.array([compiled_maxcut.cut(graph, each) - now for each in flipped])


def test_cuts_by_hand():
    graph = toroidal_grid(3, 3, seed=0, weights=(1,))
    sides = np.array([0, 1, 0, 1, 0, 1, 0, 1, 0])
    assert compiled_maxcut.cut(graph, sides) == 12
    assert compiled_maxcut.cut(graph, 0 * sides) == 0


def test_a_best_allowed_flip_is_made_each_step():
    """300 steps: the flip, its tenure and the best are those that full recomputation allows."""
    graph = random_graph(12, 0.5, seed=2, weights=(-1, 1, 3))
    around, one = compiled_coloring.neighbors(graph), compiled_maxcut.start(graph, seed=1)
    advance = compiled_maxcut.build(plain)
    forbidden, aspired = 0, 0
    for step in range(300):
        sides, best = one.sides.copy(), int(one.numbers[2])
        full, now = gains(graph, sides), compiled_maxcut.cut(graph, sides)
        np.testing.assert_array_equal(one.gains, full)
        assert one.numbers[1] == now
        is_free = one.until < step
        is_allowed = is_free | (now + full > best)
        forbidden += not is_free.all()
        assert advance(*around, one, 1, 10**9, 2, 5) == 1
        changed = np.flatnonzero(one.sides != sides)
        if not is_allowed.any():
            assert not len(changed)
            continue
        (v,) = changed
        assert is_allowed[v] and full[v] == full[is_allowed].max()
        aspired += not is_free[v]
        assert 2 <= one.until[v] - step <= 5
        assert one.numbers[2] == max(best, now + full[v]) == compiled_maxcut.cut(graph, one.best)
    assert forbidden > 200


def test_it_ends_at_its_target():
    """The best cut of nine vertices, by trying all."""
    graph = random_graph(9, 0.7, seed=4, weights=(-1, 2))
    every = (np.arange(2**9)[:, None] >> np.arange(9)) & 1
    optimum = max(compiled_maxcut.cut(graph, sides) for sides in every)
    around, one = compiled_coloring.neighbors(graph), compiled_maxcut.start(graph, seed=0)
    made = compiled_maxcut.build(plain)(*around, one, 5000, optimum, 1, 3)
    assert made < 5000 and compiled_maxcut.cut(graph, one.best) == optimum


def test_the_graphs_have_the_published_figures():
    """Sizes of the G-set; that the graphs are identical is tested in tests/datasets."""
    assert set(maxcut.GRAPHS) == set(BEST)
    expected = {"G1": (800, 19176, {1}), "G7": (800, 19176, {-1, 1})}
    expected |= {"G12": (800, 1600, {-1, 1}), "G43": (1000, 9990, {1})}
    for name, (n, edges, weights) in expected.items():
        graph = maxcut.GRAPHS[name]()
        assert (graph.n, len(graph.edges), set(graph.weights.tolist())) == (n, edges, weights)
    assert maxcut.GRAPHS["G1"]().name.endswith("s8001")
    assert maxcut.GRAPHS["G10"]().name.endswith("s8005")
    assert maxcut.GRAPHS["G13"]().name == "torus-25x32-w-1,1-s8003"


def record(seed, cut=11624, course=((0.5, -11600), (1.5, -11624)), way="ours", **fields):
    settings = {"graph": "G1", "way": way, "seconds": 9.0, "searches": 4}
    return {
        "experiment": "maxcut",
        "instance": "G1",
        "seed": seed,
        "settings": settings,
        "vertices": 800,
        "edges": 19176,
        "cut": cut,
        "seconds": 2.0,
        "steps": 1000,
        "course": course,
        "env": {"devices": "1 x gpu", "cpu": "EPYC"},
        **fields,
    }


def test_table_by_hand():
    """Gaps below the published best, and when runs came within 0.1 % of it and to it."""
    runs = [record(0), record(1, 11612, [(0.25, -11612)]), record(2, 11613, [(3.0, -11613)])]
    runs += [record(0, 11000, [(0.1, -11000)], "numba")]
    note, body = maxcut.table(runs).split("\n\n")
    assert note == "ours: 1 x gpu; numba: 1 core, EPYC"
    _, ours, core = (line.split() for line in body.splitlines())
    # 0.1 % below 11624 is 11612.4.
    assert ours[:9] == ["G1", "800", "19176", "11624", "ours", "4", "11624", "11616.3", "0.066%"]
    assert ours[9:] == ["2/3", "3", "1/3", "-", "2e+03"]
    assert core == [
        "G1",
        "800",
        "19176",
        "11624",
        "numba",
        "4",
        "11000",
        "11000.0",
        "5.368%",
        "0/1",
        "-",
        "0/1",
        "-",
        "2e+03",
    ]


@pytest.fixture
def in_python(monkeypatch):
    """Lets a core run what numba would compile, on a small graph of known optimum."""
    graph = toroidal_grid(4, 4, seed=1, weights=(1,))
    monkeypatch.setattr(maxcut, "GRAPHS", {"G1": lambda: graph})
    monkeypatch.setitem(maxcut.BEST, "G1", 32)  # bipartite: all edges are cut
    monkeypatch.setattr(maxcut, "tenure", lambda n: (2, 4))
    monkeypatch.setattr(one_core, "has_numba", lambda: True)
    monkeypatch.setattr(compiled_maxcut, "compiled", lambda: compiled_maxcut.build(plain))
    monkeypatch.setattr(common, "use_cpu_cores", lambda: None)


def test_small_runs_of_both_ways(tmp_path, in_python, capsys):
    """Both find the best cut and keep records; the same command finds all of it in the file."""
    out = tmp_path / "runs.jsonl"
    flags = ["--graphs", "G1", "--ways", "ours,numba", "--seeds", "1", "--searches", "3"]
    flags += ["--seconds", "60", "--devices", "1", "--out", str(out)]
    assert maxcut.main(flags) == 0
    printed = capsys.readouterr().out
    ours, core = common.read(out)
    for run in (ours, core):
        assert run["cut"] == 32 and 0 <= run["first_step"] <= run["steps"]
        assert timed_runs.seconds_to(run, -32) == run["course"][-1][0] <= run["seconds"] < 60
    assert (ours["settings"]["searches"], core["settings"]["searches"]) == (3, 1)
    assert maxcut.main(flags) == 0
    assert capsys.readouterr().out.splitlines()[-3:] == printed.splitlines()[-3:]
    assert maxcut.main(["--report", str(out), "--markdown"]) == 0
    assert capsys.readouterr().out.count("| G1 ") == 2


def test_the_search_is_the_documented_one():
    found = maxcut.search(800)
    assert isinstance(found.neighborhood, js.Assign)
    assert (found.tenure, found.aspiration_age, found.ties) == ((26, 53), 2**30, "random")


def test_a_core_ends_when_its_time_is_over(monkeypatch):
    """After the chunk in which it ends, with what was found until then."""
    clock = iter([0.0, 0.4, 0.8, 1.2])
    monkeypatch.setattr(timed_runs.time, "perf_counter", lambda: next(clock))
    costs = iter([5, 5, 3])
    found = timed_runs.on_a_core(lambda steps: steps, lambda: next(costs), 1.0, 0)
    assert found["course"] == [[0.4, 5], [1.2, 3]] and found["first_step"] is None
    assert found["steps"] == 3 * 5000 and found["seconds"] == 1.2


@pytest.mark.parametrize(
    ("flags", "text"),
    [(["--graphs", "G14"], "'G14' is not among G1,"), (["--seeds", "0"], "holds 0")],
)
def test_bad_flags_are_refused(flags, text, monkeypatch, capsys):
    monkeypatch.setattr(common, "use_cpu_cores", lambda: None)
    with pytest.raises(SystemExit):
        maxcut.main(flags)
    assert text in capsys.readouterr().err
