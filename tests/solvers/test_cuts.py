"""solve_qubo and solve_max_cut: known optima, and the sign of what is shown."""

import jax
import numpy as np
import pytest

import jaxopt_search as js

ROWS, COLUMNS = 4, 6
CELLS = np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS)
EDGES = np.concatenate(
    [np.stack([CELLS, np.roll(CELLS, 1, axis)], axis=-1).reshape(-1, 2) for axis in (0, 1)]
)
"""Of a torus with even sides, which two sides of a cut can part all."""


def test_the_heaviest_cut_of_a_torus():
    """A target from below ends the run, and a callback sees weights."""
    seen = []
    result = js.solve_max_cut(
        1,
        edges=EDGES,
        target=len(EDGES),
        max_steps=20_000,
        callback=lambda report: seen.append((report.fun, report.costs.max())),
    )
    assert result.fun == len(EDGES) and result.is_maximum and result.success
    assert (result.x[EDGES[:, 0]] != result.x[EDGES[:, 1]]).all()
    assert result.nit < 20_000 and result.costs.max() == len(EDGES)
    assert seen[-1] == (len(EDGES), len(EDGES)) and result.history[-1].best == len(EDGES)
    assert js.solve_max_cut(js.max_cut(1, edges=EDGES), max_steps=1000).fun == len(EDGES)


def test_cuts_of_sparse_graphs_are_improved_part_by_part():
    """Tori too large for one annealing: those are cut better than by the same steps of it alone."""
    how = {"max_steps": 200_000, "num_searches": 1, "devices": jax.devices()[:1]}
    tori = [js.datasets.toroidal_grid(40, 40, seed) for seed in (1, 2, 3, 4)]
    cuts = [js.solve_max_cut(torus, **how).fun for torus in tori]
    annealed = [-js.anneal(js.max_cut(torus), js.Flip(), **how).fun for torus in tori]
    assert sum(cuts) >= sum(annealed) + 10


def test_a_target_does_not_wait_for_a_long_limit():
    """The ground state of a small spin glass, which is found cold: soon, in one of the rounds."""
    torus = js.datasets.toroidal_grid(16, 16, seed=1)
    best = js.solve_max_cut(torus, max_steps=200_000)
    again = js.solve_max_cut(torus, max_steps=2_000_000, target=best.fun)
    assert again.fun == best.fun and again.nit < 300_000


@pytest.mark.parametrize("density", [0.05, 1.0])
def test_sums_are_as_low_as_turns_of_single_variables_find(density):
    """All assignments of one variable after the other, again and again."""
    generator, n = np.random.default_rng(2), 150
    matrix = generator.integers(-9, 10, (n, n)) * (generator.random((n, n)) < density)
    result = js.solve_qubo(matrix, max_steps=400, num_searches=4)
    assert result.fun == result.x @ matrix @ result.x
    both, x = matrix + matrix.T, np.zeros(n, int)
    for _ in range(50):
        for i in range(n):
            x[i] = both[i] @ x - 2 * matrix[i, i] * x[i] + matrix[i, i] < 0
    assert result.fun <= x @ matrix @ x


@pytest.mark.parametrize("unit", [1, 0.25, 10**12])
@pytest.mark.parametrize("offset", [7, 0.25, np.float32(0.75), 3 * 10**12])
def test_a_constant_is_part_of_all_costs(unit, offset):
    """Also beside a common divisor of large integers, and of the target."""
    matrix = unit * np.array([[-8, 9, 0], [0, -1, 9], [0, 0, -9]])
    problem, least = js.qubo(matrix, offset=offset), pytest.approx(-17 * unit + offset, rel=1e-15)
    result = js.solve_qubo(problem, max_steps=50, target=-17 * unit + offset + unit / 2)
    assert result.fun == least and result.status == js.Status.TARGET
    assert result.costs.min() == pytest.approx(result.fun, rel=1e-12)
    assert js.solve_qubo(problem, max_steps=50).fun == least


def test_unsigned_targets_of_a_maximum():
    """Their opposites would wrap: any solution met them."""
    edges = np.array([[0, 1], [1, 2], [2, 0]])
    cut = js.solve_max_cut(1, edges=edges, target=np.uint64(3), max_steps=20)
    ones = np.ones((4, 4), np.uint8)
    qap = js.solve_qap(ones, ones, maximize=True, target=np.uint64(17), max_steps=20)
    assert (cut.fun, cut.success, qap.fun, qap.success) == (2, False, 16, False)
    assert js.max_cut(1, edges=edges, best_known_cut=np.uint8(2)).host.best_known == -2
