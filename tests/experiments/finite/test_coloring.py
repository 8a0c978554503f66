"""The coloring script: TabuCol step by step against recomputation, tables by hand, small runs."""

import numpy as np
import pytest

import jaxopt_search as js
from experiments import common, one_core
from experiments.finite import coloring, compiled_coloring, timed_runs
from jaxopt_search.datasets import mycielski_graph, queen_graph, random_graph


def plain(fn):
    return fn


def conflicts(graph, colors):
    low, high = graph.edges.T
    return int((colors[low] == colors[high]).sum())


def moves(graph, colors):
    """Returns {(vertex, color): change} of all moves of vertices in conflict, priced in full."""
    adjacent, now = graph.matrix() != 0, conflicts(graph, colors)
    found = {}
    for v in range(graph.n):
        if not (adjacent[v] & (colors == colors[v])).any():
            continue
        for color in set(range(3)) - {int(colors[v])}:
            after = colors.copy()
            after[v] = color
            found[v, color] = conflicts(graph, after) - now
    return found


def test_tabucol_makes_a_best_allowed_move_each_step():
    """300 steps: the move, its tenure and the best are those that full recomputation allows."""
    graph = random_graph(14, 0.5, seed=3)
    around, one = compiled_coloring.neighbors(graph), compiled_coloring.start(graph, 3, seed=1)
    advance = compiled_coloring.build(plain)
    forbidden, ties = 0, 0
    for step in range(300):
        colors, until, best = one.colors.copy(), one.until.copy(), int(one.numbers[2])
        now, in_conflict = conflicts(graph, colors), {v for v, _ in moves(graph, colors)}
        assert (one.numbers[1], one.numbers[4]) == (now, len(in_conflict))
        assert set(one.bad[: one.numbers[4]].tolist()) == in_conflict
        allowed = {
            move: change
            for move, change in moves(graph, colors).items()
            if until[move] < step or now + change < best
        }
        forbidden += len(allowed) < len(moves(graph, colors))
        assert advance(around.first, around.vertex, one, 1, 0, (2, 4, 50)) == 1
        changed = np.flatnonzero(one.colors != colors)
        if not allowed:
            assert not len(changed)
            continue
        (v,) = changed
        least = min(allowed.values())
        assert allowed[v, one.colors[v]] == least
        ties += list(allowed.values()).count(least) > 1
        tenure = one.until[v, colors[v]] - step - len(in_conflict) * 50 // 100
        assert 2 <= tenure <= 4
        assert one.numbers[2] == min(best, now + least) == conflicts(graph, one.best)
    assert forbidden > 50 and ties > 50


def test_tabucol_ends_at_its_target():
    graph = mycielski_graph(3)
    around, one = compiled_coloring.neighbors(graph), compiled_coloring.start(graph, 4, seed=0)
    advance = compiled_coloring.build(plain)
    made = advance(around.first, around.vertex, one, 5000, 0, compiled_coloring.TENURE)
    assert made < 5000 and conflicts(graph, one.best) == 0
    assert advance(around.first, around.vertex, one, 5, 0, compiled_coloring.TENURE) == 0


def test_neighbors_agree_with_the_edges():
    graph = random_graph(9, 0.6, seed=5, weights=(-2, 7))
    around, matrix = compiled_coloring.neighbors(graph), graph.matrix()
    for v in range(9):
        part = slice(around.first[v], around.first[v + 1])
        np.testing.assert_array_equal(around.vertex[part], np.flatnonzero(matrix[v]))
        np.testing.assert_array_equal(around.weight[part], matrix[v][matrix[v] != 0])


def test_the_cases_have_their_sizes_and_colors():
    """Known sizes and chromatic numbers; random graphs differ by seed."""
    sizes = {name: case.make(0).n for name, case in coloring.CASES.items()}
    assert sizes == {
        **{f"queen{k}_{k}": k * k for k in range(5, 10)},
        "myciel3": 11,
        "myciel4": 23,
        "myciel5": 47,
        "myciel6": 95,
        "G250": 250,
        "G500": 500,
    }
    colors = [case.num_colors for case in coloring.CASES.values()]
    assert colors == [5, 7, 7, 9, 10, 4, 5, 6, 7, 28, 49]
    one, other = (coloring.CASES["G250"].make(seed).edges for seed in (0, 1))
    assert len(one) == len(other) == 15562 + 1 and (one != other).any()
    assert coloring.CASES["queen6_6"].make(0).name == queen_graph(6, 6).name


def test_searches_by_size():
    """As many as fit, within bounds; the largest of the script's graphs have fewer."""
    found = [timed_runs.num_searches(*size) for size in ((25, 5), (250, 28), (500, 49), (9999, 99))]
    assert found == [1056, 599, 171, 132]


def record(seed, conflicts=0, seconds=2.0, steps=1000, way="ours", **fields):
    settings = {"graph": "G250", "colors": 28, "way": way, "seconds": 9.0, "searches": 4}
    return {
        "experiment": "coloring",
        "instance": f"g{seed}",
        "seed": seed,
        "settings": settings,
        "vertices": 250,
        "edges": 7,
        "conflicts": conflicts,
        "seconds": seconds,
        "steps": steps,
        "first_step": None if conflicts else steps - 10,
        "env": {"devices": "1 x gpu", "cpu": "EPYC"},
        **fields,
    }


def test_table_by_hand():
    """Medians in which a run without a coloring counts as endless, and what was left."""
    runs = [record(0), record(1, seconds=4.0, steps=3000), record(2, conflicts=1, seconds=9.0)]
    runs += [record(0, conflicts=3, way="numba"), record(1, conflicts=2, way="numba")]
    note, body = coloring.table(runs).split("\n\n")
    assert note == "ours: 1 x gpu; numba: 1 core, EPYC"
    _, ours, core = (line.split() for line in body.splitlines())
    assert ours == ["G250", "250", "7", "28", "ours", "4", "2/3", "4", "-", "2990", "3e+03", "1"]
    assert core == ["G250", "250", "7", "28", "numba", "4", "0/2", "-", "-", "-", "2e+03", "2,3"]


def test_a_start_that_is_a_coloring_needs_no_step():
    """Of this many random starts, one may be proper."""
    row = coloring.table([record(0, steps=0, seconds=0.01, first_step=0)]).splitlines()[-1].split()
    assert row[6:] == ["1/1", "0.01", "0.01", "0", "-", "-"]


@pytest.fixture
def in_python(monkeypatch):
    """Lets a core run what numba would compile, whether it is installed or not."""
    monkeypatch.setattr(one_core, "has_numba", lambda: True)
    monkeypatch.setattr(compiled_coloring, "compiled", lambda: compiled_coloring.build(plain))
    monkeypatch.setattr(common, "use_cpu_cores", lambda: None)


def test_small_runs_of_both_ways(tmp_path, in_python, capsys):
    """Both color two graphs, and keep records; the same command finds all of it in the file."""
    out = tmp_path / "runs.jsonl"
    flags = ["--graphs", "myciel3", "--ways", "ours,numba", "--seeds", "2", "--searches", "4"]
    flags += ["--seconds", "60", "--devices", "1", "--out", str(out)]
    assert coloring.main(flags) == 0
    printed = capsys.readouterr().out
    runs = common.read(out)
    assert [(run["settings"]["way"], run["seed"]) for run in runs] == [
        *[("ours", 0), ("ours", 1), ("numba", 0), ("numba", 1)]
    ]
    for run in runs:
        assert run["conflicts"] == 0 and 0 <= run["first_step"] <= run["steps"]
        assert run["course"][-1][1] == 0
        assert run["seconds"] < 60
    assert [run["settings"]["searches"] for run in runs] == [4, 4, 1, 1]
    assert coloring.main(flags) == 0
    assert capsys.readouterr().out.splitlines()[-3:] == printed.splitlines()[-3:]
    assert len(common.read(out)) == 4
    assert coloring.main(["--report", str(out), "--markdown"]) == 0
    assert capsys.readouterr().out.count("| myciel3") == 2


def test_the_search_is_the_documented_one():
    """Vertices in conflict only, one range of tenures, and no move preferred for its age."""
    found = coloring.search()
    assert isinstance(found.neighborhood, js.Guided)
    assert found.neighborhood.heuristic == js.successors.ConflictsOnly()
    assert (found.tenure, found.aspiration_age, found.ties) == ((0, 9), 2**30, "random")
    assert float(found.tenure_per_cost) == 1


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["--graphs", "queen4_4"], "'queen4_4' is not among queen5_5,"),
        (["--ways", "gpu"], "'gpu' is not among ours,numba"),
        (["--seconds", "0"], "'0' is not made of numbers above 0"),
    ],
)
def test_bad_flags_are_refused(flags, text, monkeypatch, capsys):
    monkeypatch.setattr(common, "use_cpu_cores", lambda: None)
    with pytest.raises(SystemExit):
        coloring.main(flags)
    assert text in capsys.readouterr().err


def test_a_core_without_numba_is_refused(monkeypatch):
    monkeypatch.setattr(one_core, "has_numba", lambda: False)
    with pytest.raises(ValueError, match="numba is not installed"):
        timed_runs.check_ways(["ours", "numba"])
