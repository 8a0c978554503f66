"""Instances made inside `jit` and `vmap`, of coordinates and matrices that are being traced."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxopt_search as js

GENERATOR = np.random.default_rng(4)
POINTS = GENERATOR.random((2, 9, 2), np.float32)
INTEGERS = GENERATOR.integers(1, 90, (2, 9, 9))
SYMMETRIC = INTEGERS + INTEGERS.transpose(0, 2, 1)
STEPS = {"num_searches": 3, "max_steps": 60}


def annealed(key, problem, moves=None):
    search = js.simulated_annealing(moves or js.Relocate(), 0.1, moves_per_search=4)
    return js.run(key, problem, search, implementation="xla", **STEPS)


def with_exchange(key, problem):
    search = js.simulated_annealing(js.two_opt(problem, num_candidates=4), 0.1)
    crossover = js.edge_assembly(problem, num_candidates=4)
    exchange = js.recombine(every=10, alike=None, crossover=crossover)
    return js.run(key, problem, search, exchange=exchange, **STEPS)


def tabu(key, problem):
    return js.run(key, problem, js.tabu_search(js.SwapTable()), **STEPS)


in_the_plane = functools.partial(js.tsp_from_coords, storage="coordinates")


@pytest.mark.parametrize(
    ("build", "traced", "search", "given"),
    [
        (in_the_plane, {}, annealed, (POINTS,)),
        (js.tsp, {"is_symmetric": True}, with_exchange, (SYMMETRIC / np.float32(7),)),
        (js.tsp, {"is_symmetric": True}, annealed, (SYMMETRIC / np.float32(7),)),
        (js.tsp, {"is_symmetric": False}, annealed, (INTEGERS,)),
        (js.qap, {"is_symmetric": True}, tabu, (SYMMETRIC, SYMMETRIC)),
        (js.qap, {"is_symmetric": False}, tabu, (INTEGERS / np.float32(7), POINTS @ POINTS.mT)),
    ],
    ids=["coordinates", "crossover", "matrix", "one way", "QAP", "real QAP"],
)
def test_the_course_is_that_of_the_same_instance_outside(build, traced, search, given):
    """Bit for bit, in one `vmap` over instances and keys as one by one."""
    keys = jax.random.split(jax.random.key(0), 2)

    @jax.jit
    @jax.vmap
    def inside(key, arrays):
        return search(key, build(*arrays, **traced))

    outside = [
        search(key, build(*(each[i] for each in given), **traced)) for i, key in enumerate(keys)
    ]
    found = inside(keys, tuple(map(jnp.asarray, given)))
    chex.assert_trees_all_equal(found, jax.tree.map(lambda *each: jnp.stack(each), *outside))
    assert found.info.accepted.all()


def test_a_matrix_from_places():
    """The storage of distances changes no distance."""
    problem = jax.jit(lambda xy: js.tsp_from_coords(xy, storage="matrix"))(POINTS[0])
    assert problem.metric == "MATRIX" and problem.is_symmetric
    expected = in_the_plane(POINTS[0])
    a, b = np.indices((9, 9)).reshape(2, -1)
    np.testing.assert_array_equal(problem.distance(a, b), expected.distance(a, b))


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_what_is_on_the_diagonal_does_not_matter(bad):
    matrix = np.where(np.eye(9, dtype=bool), bad, SYMMETRIC[0]).astype(np.float32)
    problem = jax.jit(functools.partial(js.tsp, is_symmetric=True))(matrix)
    assert np.isfinite(problem.matrix).all()


def test_large_coordinates_that_are_close_together():
    """They are taken apart before they are rounded to float32."""
    near = np.array([[0, 0], [3, 0], [3, 4], [-1, 4]], np.int32)
    for far in (near + 2**30, near * 2**29):
        found = jax.jit(js.tsp_from_coords)(far).coords
        expected = (far.astype(np.int64) - far.min(axis=0)).T
        np.testing.assert_array_equal(np.stack([found.first, found.second]), expected)


def test_matrices_of_two_dtypes():
    """One of fractions makes both float32, also under strict promotion."""
    with jax.numpy_dtype_promotion("strict"):
        make = jax.jit(functools.partial(js.qap, is_symmetric=True))
        problem = make(
            jnp.asarray(SYMMETRIC[0], jnp.int32), jnp.asarray(SYMMETRIC[1] / 2, jnp.float32)
        )
    assert problem.flow.dtype == problem.distance.dtype == np.float32


def test_what_comes_out_of_a_function_can_be_searched():
    """But costs as the user counts them are known to the host only."""
    problem = jax.jit(js.tsp_from_coords)(POINTS[0])
    state = with_exchange(0, problem)
    tour, cost = js.best(problem, js.simulated_annealing(js.two_opt(problem), 0.1), state)
    assert float(cost) == pytest.approx(js.tsp_from_coords(POINTS[0]).host.cost(np.asarray(tour)))
    with pytest.raises(ValueError, match="on the device only"):
        js.solve(problem, js.simulated_annealing(js.Relocate(), 0.1), max_steps=1)


def test_an_instance_that_is_handed_in_has_its_own_candidates():
    """Compiled for one instance, a function sees nothing of it when it is called with another."""
    near = jax.jit(lambda problem: js.two_opt(problem, num_candidates=3).pairs)
    tours = jax.jit(lambda problem: js.curve_tours(0, problem, 2))
    for points in POINTS:
        problem = in_the_plane(points)
        chex.assert_trees_all_equal(near(problem), js.two_opt(problem, num_candidates=3).pairs)
        np.testing.assert_array_equal(tours(problem), js.curve_tours(0, problem, 2))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_cities(n):
    state = jax.jit(lambda xy: annealed(0, js.tsp_from_coords(xy)))(POINTS[0, :n])
    assert float(state.best_cost) == pytest.approx(in_the_plane(POINTS[0, :n]).cost(np.arange(n)))
    moves = jax.jit(lambda xy: js.two_opt(js.tsp_from_coords(xy)))(POINTS[0, :n])
    assert moves.pairs.size == n * max(min(10, n - 1), 1)


CANNOT = [
    (lambda xy: js.tsp_from_coords(xy, metric="EUC_2D"), "metric is 'EUC_2D', expected 'EUCLID'"),
    (lambda xy: js.tsp_from_coords(xy, best_known=3), "best_known is given, expected None"),
    (lambda xy: js.tsp_from_coords(xy[:, :1]), r"coords has shape \(9, 1\), expected \(n, 2\)"),
    (lambda xy: js.tsp_from_coords(xy * 1j), "coords has dtype complex64, expected real"),
    (lambda xy: js.tsp(xy @ xy.T), "is_symmetric is None, expected True or False"),
    (lambda xy: js.tsp(xy, is_symmetric=True), r"distances has shape \(9, 2\), expected"),
    (
        lambda xy: js.tsp(xy @ xy.T, is_symmetric=True, dtype="int32"),
        "dtype is 'int32', expected None or 'float32': distances may be fractional",
    ),
    (
        lambda xy: js.two_opt(js.tsp(xy @ xy.T, is_symmetric=False)),
        "asymmetric distances, expected symmetric",
    ),
]


@pytest.mark.parametrize(("make", "message"), CANNOT)
def test_what_cannot_be_done_with_tracers(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        jax.eval_shape(make, POINTS[0])


@pytest.mark.parametrize(
    ("build", "given"), [(js.tsp, (INTEGERS[0],)), (js.qap, (SYMMETRIC[0], INTEGERS[0]))]
)
def test_what_the_user_says_of_numbers_is_checked(build, given):
    with pytest.raises(ValueError, match="is_symmetric is True, expected None or False: "):
        build(*given, is_symmetric=True)
    same = (SYMMETRIC[0],) * len(given)
    assert [build(*same, is_symmetric=told).is_symmetric for told in (None, True, False)] == [
        True,
        True,
        False,
    ]
