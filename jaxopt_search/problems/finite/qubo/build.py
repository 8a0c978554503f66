"""QUBO and maximum-cut instances from matrices, sparse ones included, or from lists of entries.

Everything is checked on the host, before anything is compiled.
"""

import functools
from typing import Any, Literal, TypeAlias

import jax.numpy as jnp
import numpy as np

from jaxopt_search.checks import check_best_known, check_option
from jaxopt_search.guards.forks import refuse_orphans
from jaxopt_search.problems.finite import vector
from jaxopt_search.problems.finite.qubo import ranges
from jaxopt_search.problems.finite.qubo.couplings import couplings
from jaxopt_search.problems.finite.qubo.entries import given_entries
from jaxopt_search.problems.finite.qubo.problem import QUBO
from jaxopt_search.problems.finite.qubo.terms import Terms, cost_of, terms_of_cut, terms_of_matrix
from jaxopt_search.problems.host import Original
from jaxopt_search.problems.matrix_input import DType, unit_note

Storage: TypeAlias = Literal["auto", "dense", "sparse"]
_MAX_BYTES = 2**30
_SPARSE_BELOW = 1 / 8  # of all pairs: lists of neighbors are then faster


def qubo(
    matrix: Any,
    *,
    entries: Any = None,
    num_variables: int | None = None,
    dtype: DType | None = None,
    best_known: float | None = None,
    storage: Storage = "auto",
) -> QUBO:
    """Returns the QUBO that minimizes `x @ Q @ x` over vectors x of zeros and ones.

    Q may be asymmetric: `Q[i, j] + Q[j, i]` is what counts. Its diagonal holds the linear terms.
    Integers, and floats that are all integral, make an exact integer instance. Floats are of any
    size: where float32 could not hold their sums, the device counts in a power of two,
    `problem.host.unit`; temperatures are then in this unit. Integers that are too large are
    counted in a common divisor in the same way. Costs and targets are always in full.

    To maximize, negate the matrix.

    Args:
      matrix: [n, n] real numbers, or a sparse matrix from SciPy; with `entries`, [k] numbers, their
        values.
      entries: [k, 2] integers, rows and columns of what is not 0; values of repeated ones add up.
      num_variables: n, if there are `entries`; None for the largest of them plus 1.
      dtype: `"float32"` to give up exactness if an integer instance is too large for int32.
      best_known: the best-known cost, for `Result.gap`.
      storage: `"dense"` for a matrix on the device, `"sparse"` for lists of neighbors, `"auto"` for
        these where less than an eighth of all pairs have a coupling.

    Raises:
      ValueError: for a wrong shape, NaN, infinity, or numbers too large or too small.
      TypeError: for entries that are not real numbers.

    Example:
      >>> problem = qubo([[-1, 2, 0], [0, -1, 2], [0, 0, -1]])
      >>> int(problem.cost(jnp.array([1, 0, 1])))
      -2
    """
    check_option("dtype", dtype, (None, "int32", "float32"))
    check_best_known(best_known)
    given = given_entries(
        (matrix, entries, num_variables), ("matrix", "entries", "num_variables"), dtype
    )
    return _build(terms_of_matrix(given), given.unit, "matrix", best_known, storage)


def max_cut(
    weights: Any,
    *,
    edges: Any = None,
    num_vertices: int | None = None,
    dtype: DType | None = None,
    best_known_cut: float | None = None,
    storage: Storage = "auto",
) -> QUBO:
    """Returns the maximum-cut problem of a graph: two sides with the most weight between them.

    A solution is [n] int32 of the sides, 0 or 1, of the vertices. Its cost is *minus* the weight of
    the cut, the sum of the weights of all edges between the sides. So the best cut of a run weighs
    `-result.fun`, and a `target` is also negative. Weights may be negative.

    Args:
      weights: [n, n] real numbers, symmetric with a zero diagonal, or a sparse matrix from SciPy;
        with `edges`, [m] numbers, or one for all edges.
      edges: [m, 2] integers, the ends of edges, each edge once.
      num_vertices: n, if there are `edges`; None for the largest of them plus 1.
      dtype: as in `qubo`.
      best_known_cut: the weight of the best known cut, for `Result.gap`.
      storage: as in `qubo`.

    Raises:
      ValueError: as `qubo`, and for weights that are asymmetric, loops and edges given twice.
      TypeError: as `qubo`.

    Example:
      >>> import jaxopt_search as js
      >>> problem = max_cut(1, edges=[[0, 1], [1, 2], [2, 3], [3, 0], [0, 2]])
      >>> result = js.solve(problem, js.tabu_search(js.Assign()), 0, num_searches=2, max_steps=20)
      >>> result.fun, -problem.host.cost(result.x)
      (-4, 4)
    """
    check_option("dtype", dtype, (None, "int32", "float32"))
    check_best_known(best_known_cut)
    given = given_entries(
        (weights, edges, num_vertices), ("weights", "edges", "num_vertices"), dtype
    )
    best_known = None if best_known_cut is None else -best_known_cut
    return _build(terms_of_cut(given), given.unit, "weights", best_known, storage)


def _build(terms: Terms, unit: int, name: str, best_known: float | None, storage: Storage) -> QUBO:
    n, is_dense = terms.linear.size, _is_dense(terms, name, storage)
    if terms.linear.dtype.kind == "i":
        counted, counted_in = ranges.fitting(terms, unit, name)
        cost, note = functools.partial(cost_of, counted, counted_in), ""
        device_dtype = jnp.int32
    else:
        counted_in = ranges.float_unit(terms)
        cost, note = functools.partial(cost_of, terms, 1), unit_note(counted_in)
        counted, device_dtype = terms.over(counted_in), jnp.float32
    refuse_orphans()
    linear, first, second, values = counted
    sizes = np.full(n, 2, np.int32)
    host = Original(
        cost=cost,
        check=functools.partial(vector.check_vector, sizes),
        unit=counted_in,
        best_known=best_known,
        note=note,
    )
    return QUBO(
        linear=jnp.asarray(linear, device_dtype),
        couplings=couplings(n, first, second, values, device_dtype, is_dense),
        domain_sizes=jnp.asarray(sizes),
        n=n,
        device_units=host.units,
        host=host,
    )


def _is_dense(terms: Terms, name: str, storage: Storage) -> bool:
    """Returns whether couplings are stored as a matrix, or refuses too many of them."""
    check_option("storage", storage, ("auto", "dense", "sparse"))
    n, num_pairs = terms.linear.size, terms.values.size
    is_dense = storage == "dense"
    if storage == "auto":
        is_dense = num_pairs >= _SPARSE_BELOW * n * (n - 1) / 2 and 4 * n * n <= _MAX_BYTES
    size = 4 * n * n if is_dense else 16 * (n + num_pairs)
    if size > _MAX_BYTES:
        raise ValueError(
            f"{name} has {n} variables and {num_pairs} pairs, expected fewer: it takes"
            f" {size / 2**30:.1f} GiB on each device, and 1 GiB is the limit"
        )
    return is_dense
