"""The max-cut script: one-flip tabu search step by step, tables by hand, small runs."""

import numpy as np
import pytest

from experiments import common
from experiments.finite import compiled_coloring, compiled_maxcut, gset, maxcut, timed_runs
from jaxopt_search.datasets import random_graph, toroidal_grid


def gains(graph, sides):
    """Returns what each vertex's change of sides adds to the cut, in full."""
    now = compiled_maxcut.cut(graph, sides)
    flipped = np.eye(graph.n, dtype=sides.dtype) ^ sides
    return np.array([compiled_maxcut.cut(graph, each) - now for each in flipped])


def test_a_best_allowed_flip_is_made_each_step():
    """300 steps: the flip, its tenure and the best are those that full recomputation allows."""
    graph = random_graph(12, 0.5, seed=2, weights=(-1, 1, 3))
    around, one = compiled_coloring.neighbors(graph), compiled_maxcut.start(graph, seed=1)
    advance = compiled_maxcut.build(lambda fn: fn)
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


@pytest.fixture
def small(monkeypatch):
    """A small graph of known optimum."""
    graph = toroidal_grid(4, 4, seed=1, weights=(1,))
    monkeypatch.setitem(gset.GRAPHS, "G1", (32, lambda: graph))  # bipartite: all edges are cut
    monkeypatch.setattr(maxcut, "tenure", lambda n: (2, 4))


def test_small_runs_of_both_ways(tmp_path, in_python, small, capsys):
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
