"""Tours along a space-filling curve."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxopt_search as js
from jaxopt_search.problems.tsp import curves


@pytest.mark.parametrize("bits", [1, 2, 5])
def test_each_step_along_the_curve_is_to_a_neighbor(bits):
    """Through all cells of a grid, each once: what makes it Hilbert's curve."""
    x, y = np.indices((2**bits, 2**bits), np.uint32).reshape(2, -1) << (16 - bits)
    order = np.argsort(curves._along_curve(jnp.asarray(x), jnp.asarray(y)))
    steps = np.abs(np.diff(np.stack([x, y]).astype(np.int64)[:, order])) >> (16 - bits)
    assert (steps.sum(axis=0) == 1).all()


def test_tours_are_short_and_differ():
    """Evenly spread cities: 1.3 to 1.6 times the shortest, which is near 0.7124 sqrt(n A)."""
    n = 3000
    problem = js.tsp_from_coords(np.random.default_rng(5).random((n, 2)))
    tours = np.asarray(js.curve_tours(0, problem, 6))
    assert (np.sort(tours) == np.arange(n)).all()
    costs = np.array([problem.host.cost(tour) for tour in tours])
    assert ((costs / (0.7124 * n**0.5) > 1.3) & (costs / (0.7124 * n**0.5) < 1.6)).all()
    after = np.take_along_axis(np.roll(tours, -1, axis=1), np.argsort(tours, axis=1), axis=1)
    shared = (after[0] == after[1:]).mean(axis=1)
    assert (shared < 0.7).all()


def test_a_tour_goes_by_its_number_only():
    """As a search does, so that the number of devices changes none."""
    problem = js.tsp_from_coords(np.random.default_rng(1).random((50, 2)))
    few, many = js.curve_tours(3, problem, 2), js.curve_tours(3, problem, 5)
    np.testing.assert_array_equal(few, many[:2])
    assert not np.array_equal(js.curve_tours(4, problem, 2), few)


@pytest.mark.parametrize(
    "coords",
    [
        [[5.0, 5.0]],
        [[0, 0], [0, 0], [0, 0]],
        [[1e9, 1e9], [1e9 + 1, 1e9], [1e9, 1e9 + 1]],
        [[0, k] for k in range(3)],
        [[1e-9 * k, 0] for k in range(3)],
    ],
    ids=["one", "one place", "far away", "a line", "tiny"],
)
def test_awkward_cities(coords):
    problem = js.tsp_from_coords(coords)
    tours = np.asarray(js.curve_tours(0, problem, 3))
    assert (np.sort(tours) == np.arange(len(coords))).all()
    assert tours.dtype == np.int32


def test_wrong_arguments():
    with pytest.raises(ValueError, match="no coordinates"):
        js.curve_tours(0, js.tsp([[0, 1], [1, 0]]), 2)
    with pytest.raises(ValueError, match="num_tours is 0"):
        js.curve_tours(0, js.tsp_from_coords([[0, 1], [1, 0]]), 0)
