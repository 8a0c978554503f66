"""Arrays and problems of the wrong kind, wherever they are handed in: one line that names them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from probes import annealing, refuses, small_tsp

import jaxopt_search as js
from jaxopt_search import checks
from jaxopt_search.problems import bounds
from jaxopt_search.problems.tsp.build import as_tsp, stack_of_coords

MATRIX = np.arange(16.0).reshape(4, 4) ** 2
COORDS = np.array([[0.0, 0], [1, 0], [1, 1.5], [0, 1]])

TAKERS = {
    "distances": (js.tsp, MATRIX),
    "coords": (js.tsp_from_coords, COORDS),
    "flow": (lambda data: js.qap(data, MATRIX), MATRIX),
    "distance": (lambda data: js.qap(MATRIX, data), MATRIX),
    "distances of solve_tsp": (lambda data: js.solve_tsp(data, max_steps=1), MATRIX),
    "coords of solve_tsp": (lambda data: js.solve_tsp(data, max_steps=1), COORDS),
    "coords of several": (lambda data: js.solve_tsp(data, max_steps=1), np.stack([COORDS] * 2)),
    "flow of solve_qap": (lambda data: js.solve_qap(data, MATRIX, max_steps=1), MATRIX),
    "partial_match": (
        lambda data: js.qap(MATRIX, MATRIX, partial_match=data),
        np.eye(2, dtype=int),
    ),
    "matrix of qubo": (js.qubo, MATRIX),
    "entries of qubo": (lambda data: js.qubo([1.0] * 4, entries=data), np.arange(8).reshape(4, 2)),
    "weights of max_cut": (js.max_cut, MATRIX + MATRIX.T),
    "costs": (lambda data: js.generalized_assignment(data, MATRIX, [9] * 4), MATRIX),
    "loads": (lambda data: js.generalized_assignment(MATRIX, data, [9] * 4), MATRIX),
    "capacities": (lambda data: js.generalized_assignment(MATRIX, MATRIX, data), np.arange(4)),
    "initial": (
        lambda data: js.solve(small_tsp(4), annealing(), 0, max_steps=1, initial=data),
        np.arange(4),
    ),
}


def deleted(array):
    array = jnp.asarray(array)
    array.delete()
    return array


def ragged(array):
    if array.ndim == 3:  # instances may differ in size
        return [*array[:-1].tolist(), ragged(array[-1])]
    *rows, last = array.tolist() if array.ndim > 1 else [array.tolist(), [0]]
    return [*rows, last[:-1]]


@pytest.mark.parametrize("name", TAKERS)
@pytest.mark.parametrize(
    ("spoil", "kind", "text"),
    [
        (lambda array: np.ma.masked_equal(array, array.flat[1]), ValueError, "masked entries"),
        (deleted, ValueError, "is an array that was deleted"),
        (ragged, ValueError, "is a ragged list"),
        (lambda array: jax.random.split(jax.random.key(0), array.shape), TypeError, "dtype key<"),
    ],
    ids=["masked", "deleted", "ragged", "keys"],
)
def test_arrays_without_values_are_refused(name, spoil, kind, text):
    """Masked, deleted, ragged, or of keys."""
    take, good = TAKERS[name]
    with refuses(kind, name.split()[0], text):
        take(spoil(good))


TRACED = ("distances", "coords", "flow", "distance")  # tests/problems/test_traced.py


@pytest.mark.parametrize(
    "name", [name for name in TAKERS if " of " not in name and name not in TRACED]
)
def test_traced_arrays_are_refused(name):
    """Other instances are made on the host."""
    take, good = TAKERS[name]
    with pytest.raises(RuntimeError, match="inside jit|outside jit") as caught:
        jax.jit(lambda data: take(data))(good)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("make", [np.asarray, np.ndarray.tolist], ids=["array", "list"])
def test_a_matrix_beyond_memory_is_refused_at_once(make, monkeypatch):
    """By its shape, before it is copied."""
    monkeypatch.setattr(bounds, "MAX_BYTES", 4 * 15)
    monkeypatch.setattr(checks, "plain_array", None)
    with refuses(ValueError, "a matrix of 4 cities takes"):
        js.solve_tsp(make(MATRIX))
    with refuses(ValueError, "flow of shape (4, 4) takes"):
        js.solve_qap(make(MATRIX), MATRIX)


UPPER = np.triu(MATRIX, 1)
PLACES = np.random.default_rng(0).random((3, 3))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ([[0, 5], [5, 0]], "data has shape (2, 2) and zeros on the diagonal"),
        (PLACES, "data has shape (3, 3), which may be places in space"),
        (COORDS[:, None], "coords are 4 instances of one city each"),
        (UPPER, "distances are 0 on one side of the diagonal; of a triangle pass d + d.T"),
    ],
)
def test_what_may_be_something_else_is_refused(data, text):
    """With the way out: nobody gets a tour of other distances than his."""
    with refuses(ValueError, text):
        js.solve_tsp(data, max_steps=1)


def test_what_is_meant_can_be_said():
    """A triangle of free ways, a matrix of three cities, and one instance of one city."""
    assert not js.tsp(UPPER, is_symmetric=False).is_symmetric
    assert as_tsp(PLACES, metric="MATRIX").n == 3
    for metric, cost in (("EUC_2D", 14), ("MATRIX", 10)):
        assert as_tsp([[0, 5], [5, 0]], metric).host.cost(np.arange(2)) == cost
    for distances in (np.ones((3, 3)) - np.eye(3), [[0, 1, 2], [3, 0, 4], [5, 6, 0]]):
        assert as_tsp(distances).host.cost(np.arange(3)) in (3, 10)
    assert [len(one) for one in stack_of_coords(COORDS[None, :1])] == [1]
