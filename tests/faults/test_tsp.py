"""What bad, odd and tiny TSP instances get."""

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from probes import MATRIX_OF_FOUR, annealing, changed, refuses, shortest

import jaxopt_search as js
from jaxopt_search.problems.tsp.build import as_tsp


def solve(problem, **options):
    options = {"max_steps": 200, "num_searches": 4} | options
    return js.solve(problem, annealing(3.0), 0, **options)


@pytest.mark.parametrize(
    ("matrix", "kind", "text"),
    [
        (changed(2, 3, np.nan), ValueError, "distance[2,3] is NaN"),
        (np.ones((5, 3)), ValueError, "shape (5, 3), expected (n, n)"),
        (
            np.where(MATRIX_OF_FOUR == 7, "x", MATRIX_OF_FOUR.astype(object)),
            TypeError,
            "dtype object",
        ),
        (
            MATRIX_OF_FOUR * (2**31 - 1) + 1,
            ValueError,
            "beyond int32 (2147483647); use dtype='float32' for",
        ),
        (changed(0, 1, 2**63, np.uint64), ValueError, "holds 9223372036854775808"),
        (np.ones((5, 2)), ValueError, "use tsp_from_coords"),
    ],
)
def test_bad_matrix_is_refused(matrix, kind, text):
    """A matrix that is no distance matrix is refused by name, value and expectation."""
    with refuses(kind, text):
        js.tsp(matrix)


PLACES = np.random.default_rng(0).random((12, 2))


@pytest.mark.parametrize(
    ("data", "options", "fun"),
    [
        ([[0, 0], [10, 0]], {}, 20),
        ([[0, 0], [3, 4.6]], {"metric": "EUC_2D"}, 10),
        ([[0, 7], [5, 0]], {"metric": "MATRIX"}, 12),
        (js.tsp([[0, 7], [5, 0]]), {}, 12),
        ([[0, 1, 2], [1, 0, 3], [2, 3, 0]], {}, 6),
        ([[5, 6]], {}, 0),
    ],
)
def test_two_by_two_is_two_cities(data, options, fun):
    """[n, 2] are coordinates, also for n = 2, unless something says otherwise."""
    problem = as_tsp(data, **options)
    assert problem.host.cost(np.arange(problem.n)) == pytest.approx(fun)


@pytest.mark.parametrize(
    ("data", "options", "text"),
    [
        (
            MATRIX_OF_FOUR,
            {"metric": "EUCLIDEAN"},
            "metric is 'EUCLIDEAN', expected one of None, MATRIX, EU",
        ),
        (MATRIX_OF_FOUR, {"metric": "EUC_2D"}, "coords has shape (4, 4), expected (n, 2)"),
        (MATRIX_OF_FOUR, {"dtype": "int64"}, "dtype is 'int64'"),
        (
            js.tsp(MATRIX_OF_FOUR),
            {"metric": "MATRIX"},
            "metric is given with a TSP, expected None",
        ),
        (PLACES[None], {"metric": "EUC_2D"}, "metric is 'EUC_2D', expected None for several"),
    ],
)
def test_metric_and_dtype_have_to_suit_the_data(data, options, text):
    """What the data is said to be, and what it is."""
    with refuses(ValueError, text):
        js.solve_tsp(data, max_steps=1, **options)


def test_diagonal_is_ignored():
    """What stands on the diagonal changes nothing, and there is no warning."""
    matrix = MATRIX_OF_FOUR.astype(float)
    np.fill_diagonal(matrix, np.nan)
    problem, expected = js.tsp(matrix), js.tsp(MATRIX_OF_FOUR)
    assert problem.matrix.dtype == jnp.int32
    np.testing.assert_array_equal(problem.matrix, expected.matrix)
    assert problem.host.note == ""


def test_negative_distances():
    """They mostly mean "no edge": refused, unless asked for. The bound takes their size."""
    with refuses(ValueError, "distance[3,1] is -1", "forbidden='inf'", "allow_negative=True"):
        js.solve_tsp(changed(3, 1, -1), max_steps=1)
    matrix = -MATRIX_OF_FOUR
    result = solve(js.tsp(matrix, allow_negative=True))
    assert result.fun == shortest(matrix)
    with refuses(ValueError, "beyond int32"):
        js.tsp(changed(0, 1, -(2**31) + 1, np.int64), allow_negative=True)


def test_minutes_of_60_or_more_are_named():
    """Decimal degrees are not what GEO means, and the result says so; DDD.MM it takes as it is."""
    coords = np.array([[48.51, 2.21], [45.46, 4.5], [43.17, -5.59], [50.38, 3.03]])
    assert "minutes" not in as_tsp(coords, metric="GEO").host.note
    coords[2, 1] = -5.6
    assert "coords[2,1] is -5.6" in as_tsp(coords, metric="GEO").host.note


def test_nearly_symmetric():
    """A relative asymmetry of 1e-7 is averaged out with a note; one of 1e-3 is data."""
    noisy = MATRIX_OF_FOUR + 0.25 * (MATRIX_OF_FOUR > 0)
    noisy[0, 1] *= 1 + 1e-7
    problem = js.tsp(noisy)
    assert problem.is_symmetric
    assert "symmetrized" in problem.host.note
    noisy[0, 1] *= 1 + 1e-3
    assert not js.tsp(noisy).is_symmetric


def test_moves_that_reverse_want_symmetric_distances():
    """Their price would be that of other tours; the error names a move that will do."""
    problem = js.tsp(changed(0, 1, 9))
    with refuses(
        ValueError, "problem has asymmetric distances, expected symmetric ones; use three"
    ):
        js.two_opt(problem)


@pytest.mark.parametrize(
    "dtype",
    [np.uint8, np.float16, ml_dtypes.bfloat16, np.uint64],
    ids=lambda dtype: dtype.__name__,
)
def test_narrow_types_are_widened(dtype):
    """Sums and differences beyond the range of the input's type are exact."""
    matrix = (MATRIX_OF_FOUR * 16).astype(dtype)  # 112 is the largest; tours reach 352
    problem, tour = js.tsp(matrix), np.array([2, 0, 3, 1])
    expected = int((MATRIX_OF_FOUR * 16)[tour, np.roll(tour, -1)].sum())
    assert problem.matrix.dtype == jnp.int32
    assert int(problem.cost(jnp.asarray(tour))) == expected == problem.host.cost(tour)
    assert type(problem.host.cost(tour)) is int


def test_float16_fractions_do_not_overflow():
    """`float16` distances that are no integers are summed in float32."""
    n = 40
    matrix = np.full((n, n), 3000.5).astype(np.float16)
    matrix[0, 1] = 1.5
    problem = js.tsp(matrix)
    assert problem.matrix.dtype == jnp.float32
    assert float(problem.cost(jnp.arange(n))) == float(matrix[2, 3]) * (n - 1) + 1.5


@pytest.mark.parametrize(
    ("matrix", "fun"),
    [([[7]], 0), ([[0, 2], [5, 0]], 7), ([[0, 2, 4], [8, 0, 9], [1, 7, 0]], 12)],
    ids=["n=1", "n=2", "n=3 asymmetric"],
)
def test_tiny_instances(matrix, fun):
    """Up to three cities the answer is exact; without a choice there are no steps."""
    problem, search = js.tsp(matrix), annealing(1.0)
    result = js.solve(problem, search, 0, max_steps=50, num_searches=4)
    assert (result.fun, result.status) == (fun, js.Status.MAX_STEPS)
    assert sorted(result.x.tolist()) == list(range(len(matrix)))
    assert result.nit == (0 if problem.is_trivial else 50)
