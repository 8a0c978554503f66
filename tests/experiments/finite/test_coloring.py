"""The coloring script: TabuCol step by step against recomputation, tables by hand, small runs."""

import numpy as np

from experiments import common
from experiments.finite import coloring, compiled_coloring
from jaxopt_search.datasets import random_graph


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
    advance = compiled_coloring.build(lambda fn: fn)
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


def test_small_runs_of_all_ways(tmp_path, in_python, capsys):
    """All color two graphs, and keep records; the same command finds all of it in the file."""
    out = tmp_path / "runs.jsonl"
    flags = ["--graphs", "myciel3", "--ways", "ours,tabu,numba", "--seeds", "2", "--searches", "4"]
    flags += ["--seconds", "60", "--devices", "1", "--out", str(out)]
    assert coloring.main(flags) == 0
    runs = common.read(out)
    assert [(run["settings"]["way"], run["seed"]) for run in runs] == [
        *[("ours", 0), ("ours", 1), ("tabu", 0), ("tabu", 1), ("numba", 0), ("numba", 1)]
    ]
    for run in runs:
        assert run["conflicts"] == 0 and 0 <= run["first_step"] <= run["steps"]
        assert run["course"][-1][1] == 0
        assert run["seconds"] < 60
    assert [run["searches"] for run in runs] == [4, 4, 4, 4, 1, 1]
    assert coloring.main(flags) == 0
    assert common.read(out) == runs
    capsys.readouterr()
    assert coloring.main(["--report", str(out), "--markdown"]) == 0
    assert capsys.readouterr().out.count("| myciel3") == 3
