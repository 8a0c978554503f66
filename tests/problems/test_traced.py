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

in_the_plane = functools.partial(js.tsp_from_coords, storage="coordinates")


@pytest.mark.parametrize(
    ("build", "traced", "given"),
    [
        (js.tsp, {"is_symmetric": True}, (SYMMETRIC / np.float32(7),)),
        (js.tsp, {"is_symmetric": False}, (INTEGERS,)),
        (js.qap, {"is_symmetric": True}, (SYMMETRIC, SYMMETRIC)),
        (js.qap, {"is_symmetric": False}, (INTEGERS / np.float32(7), POINTS @ POINTS.mT)),
    ],
    ids=["matrix", "one way", "QAP", "real QAP"],
)
def test_an_instance_is_that_made_outside(build, traced, given):
    """Bit for bit, in one `vmap` over instances as one by one; candidates of moves, too."""

    def made(*arrays):
        problem = build(*arrays, **traced)
        has_moves = isinstance(problem, js.TSP) and problem.is_symmetric
        moves = js.two_opt(problem, num_candidates=4).candidates if has_moves else None
        return jax.tree.leaves(problem), moves

    outside = [made(*(each[i] for each in given)) for i in range(2)]
    found = jax.jit(jax.vmap(made))(*map(jnp.asarray, given))
    chex.assert_trees_all_equal(found, jax.tree.map(lambda *each: jnp.stack(each), *outside))


def test_the_course_is_that_of_the_same_instance_outside():
    """Bit for bit, in one `vmap` over instances and keys as one by one."""
    keys = jax.random.split(jax.random.key(0), 2)

    def annealed(key, points):
        problem = in_the_plane(points)
        search = js.simulated_annealing(js.two_opt(problem, num_candidates=4), 0.1)
        return js.run(key, problem, search, implementation="xla", num_searches=3, max_steps=60)

    outside = [annealed(key, points) for key, points in zip(keys, POINTS, strict=True)]
    found = jax.jit(jax.vmap(annealed))(keys, POINTS)
    chex.assert_trees_all_equal(found, jax.tree.map(lambda *each: jnp.stack(each), *outside))
    assert found.info.accepted.all()


def test_a_matrix_from_places():
    """The storage of distances changes no distance."""
    problem = jax.jit(lambda xy: js.tsp_from_coords(xy, storage="matrix"))(POINTS[0])
    assert problem.metric == "MATRIX" and problem.is_symmetric
    expected = in_the_plane(POINTS[0])
    a, b = np.indices((9, 9)).reshape(2, -1)
    np.testing.assert_array_equal(problem.distance(a, b), expected.distance(a, b))


def test_what_is_on_the_diagonal_does_not_matter():
    for bad in (np.inf, np.nan):
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


def test_costs_in_full_are_known_to_the_host_only():
    """So `solve` refuses what comes out of a function; on the device it costs what it costs."""
    problem, tour = jax.jit(js.tsp_from_coords)(POINTS[0]), np.arange(9)[::-1]
    expected = js.tsp_from_coords(POINTS[0]).host.cost(tour)
    assert float(problem.cost(jnp.asarray(tour))) == pytest.approx(expected)
    with pytest.raises(ValueError, match="on the device only"):
        js.solve(problem, js.simulated_annealing(js.Relocate(), 0.1), max_steps=1)


def test_an_instance_that_is_handed_in_has_its_own_candidates():
    """Compiled for one instance, a function sees nothing of it when it is called with another."""
    near = jax.jit(lambda problem: js.two_opt(problem, num_candidates=3).candidates)
    for points in POINTS:
        problem = in_the_plane(points)
        chex.assert_trees_all_equal(near(problem), js.two_opt(problem, num_candidates=3).candidates)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_cities(n):
    def made(xy):
        problem = js.tsp_from_coords(xy)
        search = js.simulated_annealing(js.Relocate(), 0.1)
        jax.eval_shape(lambda: js.run(0, problem, search, num_searches=3, max_steps=60))
        return problem.cost(jnp.arange(n)), js.two_opt(problem).candidates

    cost, pairs = jax.jit(made)(POINTS[0, :n])
    assert float(cost) == pytest.approx(in_the_plane(POINTS[0, :n]).host.cost(np.arange(n)))
    assert pairs.size == n * max(min(10, n - 1), 1)


CANNOT = [
    (lambda xy: js.tsp_from_coords(xy, metric="EUC_2D"), "metric is 'EUC_2D', expected 'EUCLID'"),
    (lambda xy: js.tsp_from_coords(xy[:, :1]), r"coords has shape \(9, 1\), expected \(n, 2\)"),
    (lambda xy: js.tsp(xy @ xy.T), "is_symmetric is None, expected one of True, False"),
    (
        lambda xy: js.tsp(xy @ xy.T, is_symmetric=True, dtype="int32"),
        "dtype is 'int32', expected None or 'float32': distances may be fractional",
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
    assert not build(*given, is_symmetric=False).is_symmetric
