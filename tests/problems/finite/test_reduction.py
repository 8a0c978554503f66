"""QUBOs of fewer variables: the same minimum by enumeration, and runs that show all variables."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxopt_search as js
from jaxopt_search.problems.finite.reduction import reduced
from jaxopt_search.problems.padding import list_room

TREE = np.stack([np.arange(1, 2000), np.arange(1, 2000) // 3], axis=1)


@pytest.mark.parametrize("kind", ["cut", "integer", "float"])
def test_the_minimum_is_that_of_all_variables(kind):
    """Random sparse problems of up to 11 variables; each solution costs what it stands for."""
    eliminated = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 12))
        entries, values = rng.integers(0, n, (2 * n, 2)), rng.integers(-3, 4, 2 * n)
        if kind == "cut":
            weights = np.triu(rng.integers(-2, 3, (n, n)) * (rng.random((n, n)) < 3 / n), 1)
            problem = js.max_cut(weights + weights.T, storage="sparse")
        else:
            values = values * 0.37 if kind == "float" else 2**40 * values
            how = {"num_variables": n, "storage": "sparse", "offset": 5}
            problem = js.qubo(values, entries=entries, **how)
        few = reduced(problem)
        eliminated += problem.n - few.n
        everything, some = (
            np.array(list(itertools.product((0, 1), repeat=m)), np.int32)
            for m in (problem.n, few.n)
        )
        least = min(map(problem.host.cost, everything))
        whole = few.host.own(some)
        for solution, own in zip(some, whole, strict=True):
            cost = few.host.in_full(few.device_cost(jnp.asarray(solution)).item())
            assert cost == pytest.approx(problem.host.cost(own), rel=1e-5, abs=1e-5)
            np.testing.assert_array_equal(few.host.check(own, "it"), solution)
        assert min(map(problem.host.cost, whole)) == pytest.approx(least, rel=1e-12)
        if few.host.is_optimal:
            assert few.host.best_known == least
    assert eliminated > 250


def test_runs_take_and_show_all_variables(tmp_path):
    """Start solutions, reports, results and checkpoints; a tree is solved without a search."""
    graph = js.datasets.random_graph(400, 0.01, seed=3)
    start = np.random.default_rng(0).integers(0, 2, graph.n)
    problem = js.max_cut(graph, storage="sparse")
    assert reduced(problem).n < graph.n
    shapes, path = [], tmp_path / "run.npz"
    how = {"max_steps": 400, "initial": start, "devices": jax.devices()[:1]}

    def stop(report):
        shapes.append((report.x.shape, report.solutions.shape[1:]))
        return report.step > 0

    js.solve_max_cut(problem, callback=stop, checkpoint=path, **how)
    assert set(shapes) == {((400,), (400,))}
    ends = [js.solve_max_cut(problem, resume=resume, **how) for resume in (None, path)]
    assert ends[0].fun == ends[1].fun == -problem.host.cost(ends[1].x)
    assert ends[0].fun > -problem.host.cost(start)

    tree = js.solve_max_cut(1, edges=TREE, max_steps=10)
    assert tree.fun == len(TREE) and tree.status == js.Status.TARGET and tree.nit == 0
    with pytest.raises(ValueError, match="not eliminated"):
        tree.problem.cost(tree.x)


def test_sizes_are_round():
    """So that similar instances share programs."""
    for seed in range(5):
        size = reduced(js.max_cut(js.datasets.random_graph(600, 0.005, seed + 1))).n
        assert list_room(size) == size < 600
