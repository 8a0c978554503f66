"""QUBO and maximum-cut instances from matrices, sparse ones included, or from lists of entries.

Everything is checked here, on the host, before anything is compiled.
"""

import functools
from typing import Any, Literal, NamedTuple, TypeAlias

import jax.numpy as jnp
import numpy as np

from jaxopt_search.checks import (
    MAX_INT32,
    check_best_known,
    check_count,
    check_option,
    plain_array,
)
from jaxopt_search.guards.forks import refuse_orphans
from jaxopt_search.problems.finite import vector
from jaxopt_search.problems.finite.couplings import couplings
from jaxopt_search.problems.finite.qubo import QUBO
from jaxopt_search.problems.host import Original
from jaxopt_search.problems.matrix_input import (
    DType,
    is_integral,
    largest_of,
    power_of_two,
    real_array,
    refuse_first,
    unit_note,
)

Storage: TypeAlias = Literal["auto", "dense", "sparse"]

_FLOAT32 = np.finfo(np.float32)
_LEAST, _MOST = float(_FLOAT32.tiny / _FLOAT32.eps), float(_FLOAT32.max) / 8
_MAX_BYTES = 2**30
_SPARSE_BELOW = 1 / 8  # of all pairs: then lists of neighbors are shorter to go through
_SAFE = 2**59  # sums up to this, a few times over, are int64


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
    `problem.host.unit`, in which temperatures are to be given then. So it does with a common
    divisor of integers where they are too large. Costs and targets are in full, always.

    To maximize, negate the matrix.

    Args:
      matrix: [n, n] real numbers, or a sparse matrix of SciPy's; with `entries`, their values, [k]
        numbers.
      entries: [k, 2] integers, rows and columns of what is not 0; values of equal ones add up.
      num_variables: n, where there are `entries`; None for the largest of them plus 1.
      dtype: `"float32"` to give up exactness where an integer instance is too large for int32.
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
    given = _given((matrix, entries, num_variables), ("matrix", "entries", "num_variables"), dtype)
    return _build(_terms(given), given.unit, "matrix", dtype, best_known, storage)


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
    the cut, the sum of the weights of all edges between the sides: so the weight of the best cut of
    a run is `-result.fun`, and a `target` is negative, too. Weights may be negative.

    Args:
      weights: [n, n] real numbers, symmetric with a zero diagonal, or a sparse matrix of SciPy's;
        with `edges`, [m] numbers, or one for all edges.
      edges: [m, 2] integers, the ends of edges, each edge once.
      num_vertices: n, where there are `edges`; None for the largest of them plus 1.
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
    given = _given((weights, edges, num_vertices), ("weights", "edges", "num_vertices"), dtype)
    best_known = None if best_known_cut is None else -best_known_cut
    return _build(_cut_terms(given), given.unit, "weights", dtype, best_known, storage)


class _Given(NamedTuple):
    """The entries of a matrix [n, n].

    Attributes:
      n: its size.
      rows, columns: [k] int64.
      values: [k] int64 or float64, in multiples of `unit`.
      unit: a common divisor of integers whose sums int64 could not hold; mostly 1.
      is_list: whether they were given as a list.
    """

    n: int
    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    unit: int
    is_list: bool


class _Terms(NamedTuple):
    """Linear terms, [n], and couplings of variables `first < second`, each pair once."""

    linear: np.ndarray
    first: np.ndarray
    second: np.ndarray
    values: np.ndarray

    def over(self, unit: int | float) -> "_Terms":
        """Returns the terms in multiples of `unit`, of integers a common divisor."""
        divide = np.floor_divide if self.linear.dtype.kind == "i" else np.divide
        return self._replace(linear=divide(self.linear, unit), values=divide(self.values, unit))


def _given(arguments: tuple[Any, Any, Any], names: tuple[str, str, str], dtype: Any) -> _Given:
    """Returns the entries of a user's matrix or list, all finite.

    Args:
      arguments: the matrix, or the values and the entries, and n or None.
      names: of these.
      dtype: of the device, or None.
    """
    (values, entries, number), (name, entries_name, number_name) = arguments, names
    if entries is not None:
        n, rows, columns = _listed(entries, number, entries_name, number_name)
        array = _numbers(values, name)
        if array.shape not in ((), rows.shape):
            raise ValueError(f"{name} has shape {array.shape}, expected {rows.shape}, as entries")
        values = np.broadcast_to(array, rows.shape)
    elif number is not None:
        raise ValueError(f"{number_name} is {number!r} without {entries_name}, expected None")
    elif hasattr(values, "tocoo"):
        sparse = values.tocoo()
        n, rows, columns = _square(sparse.shape, name), sparse.row, sparse.col
        values = real_array(_numbers(sparse.data, name), name)
    else:
        matrix = real_array(_numbers(values, name), name)
        n = _square(matrix.shape, name)
        refuse_first(matrix, ~np.isfinite(matrix), name)
        rows, columns = np.nonzero(matrix)
        values = matrix[rows, columns]
    refuse_first(values, ~np.isfinite(values), name)
    values, unit = _summable(values, name, dtype)
    rows, columns = rows.astype(np.int64), columns.astype(np.int64)
    return _Given(n, rows, columns, values, unit, is_list=entries is not None)


def _numbers(values: Any, name: str) -> np.ndarray:
    """Returns int64 or float64, with truth values as 0 and 1."""
    array = plain_array(values, name)
    return real_array(array.astype(np.int8) if array.dtype == np.bool_ else array, name)


def _square(shape: tuple[int, ...], name: str) -> int:
    if len(shape) != 2 or shape[0] != shape[1] or not shape[0]:
        raise ValueError(f"{name} has shape {tuple(shape)}, expected (n, n) with n >= 1")
    return shape[0]


def _listed(
    entries: Any, number: Any, name: str, number_name: str
) -> tuple[int, np.ndarray, np.ndarray]:
    """Returns n, and the rows and columns of listed entries."""
    pairs = plain_array(entries, name)
    if pairs.shape == (0,):
        pairs = pairs.reshape(0, 2).astype(np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(f"{name} has shape {pairs.shape}, expected (k, 2)")
    if not np.issubdtype(pairs.dtype, np.integer):
        raise ValueError(f"{name} has dtype {pairs.dtype}, expected integers")
    least, most = (pairs.min().item(), pairs.max().item()) if pairs.size else (0, -1)
    n = check_count(number_name, max(most + 1, 1) if number is None else number)
    if least < 0 or most >= n:
        raise ValueError(f"{name} holds {least if least < 0 else most}, expected 0 to {n - 1}")
    return n, pairs[:, 0], pairs[:, 1]


def _summable(values: np.ndarray, name: str, dtype: Any) -> tuple[np.ndarray, int]:
    """Returns values whose sums int64 or float64 holds, and the unit in which they are counted."""
    if dtype == "int32" and not is_integral(values):
        raise ValueError("dtype is 'int32', expected None or 'float32' for fractional numbers")
    largest = largest_of(values) if values.size else 0
    if is_integral(values) and dtype != "float32":
        values = values.astype(np.int64)
        if largest * values.size < _SAFE:
            return values, 1
        unit = int(np.gcd.reduce(values))
        if largest // unit * values.size < _SAFE:
            return values // unit, unit
        raise _beyond_int32(name, f"holds {largest}")
    most = float(np.finfo(np.float64).max) / (8 * max(values.size, 1))
    if largest > most:
        raise ValueError(
            f"{name} reaches {largest:.6g}, expected up to {most:.6g} for float64 sums; multiply by"
            " a constant"
        )
    return values.astype(np.float64), 1


def _beyond_int32(name: str, what: str) -> ValueError:
    return ValueError(
        f"{name} {what}, beyond int32 ({MAX_INT32}); use dtype='float32' for inexact costs"
    )


def _merged(
    n: int, rows: np.ndarray, columns: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns pairs `first < second` with the sums of their values; those of 0 are left out."""
    pair = np.minimum(rows, columns) * n + np.maximum(rows, columns)
    pair, inverse = np.unique(pair, return_inverse=True)
    sums = np.zeros(pair.size, values.dtype)
    np.add.at(sums, inverse, values)
    pair, sums = pair[sums != 0], sums[sums != 0]
    return pair // n, pair % n, sums


def _terms(given: _Given) -> _Terms:
    """Returns the terms of `x @ Q @ x`, in which a variable's square is the variable itself."""
    n, rows, columns, values, *_ = given
    linear, is_linear = np.zeros(n, values.dtype), rows == columns
    np.add.at(linear, rows[is_linear], values[is_linear])
    others = (part[~is_linear] for part in (rows, columns, values))
    return _Terms(linear, *_merged(n, *others))


def _cut_terms(given: _Given) -> _Terms:
    """Returns the terms of minus the cut: of an edge `2 * x[i] * x[j] - x[i] - x[j]`, weighted."""
    n, rows, columns, values, _, is_list = given
    loops = rows[(rows == columns) & (is_list | (values != 0))]
    if loops.size:
        raise ValueError(f"weights have a loop at vertex {loops[0]}, expected none")
    if is_list:
        _refuse_twice(n, rows, columns)
        first, second, sums = _merged(n, rows, columns, values)
    else:
        first, second, sums = _symmetric(n, rows, columns, values)
    linear = np.zeros(n, values.dtype)
    for end in (first, second):
        np.subtract.at(linear, end, sums)
    return _Terms(linear, first, second, 2 * sums)


def _refuse_twice(n: int, rows: np.ndarray, columns: np.ndarray) -> None:
    pair = np.minimum(rows, columns) * n + np.maximum(rows, columns)
    pair, counts = np.unique(pair, return_counts=True)
    if (counts > 1).any():
        i, j = divmod(pair[counts > 1][0].item(), n)
        raise ValueError(f"edges hold {i}-{j} twice, expected each edge once")


def _symmetric(
    n: int, rows: np.ndarray, columns: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the upper triangle of a matrix that is symmetric but for rounding noise."""
    sides = (rows < columns, rows > columns)
    (*upper, above), (*lower, below) = (
        _merged(n, rows[side], columns[side], values[side]) for side in sides
    )
    is_same = all(map(np.array_equal, upper, lower))
    if not is_same or (np.abs(above - below) > 1e-6 * np.maximum(np.abs(above), 0)).any():
        raise ValueError("weights are asymmetric, expected a symmetric matrix")
    exact = above if above.dtype.kind == "i" else above / 2 + below / 2
    return upper[0], upper[1], exact


def _build(
    terms: _Terms, unit: int, name: str, dtype: Any, best_known: Any, storage: Storage
) -> QUBO:
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
    if terms.linear.dtype.kind == "i":
        on_device, counted_in = _fitting(terms, unit, name)
        cost, note = functools.partial(_exact_cost, on_device, counted_in), ""
        device_dtype = jnp.int32
    else:
        counted_in = _float_unit(terms)
        cost, note = functools.partial(_float_cost, terms), unit_note(counted_in)
        on_device, device_dtype = terms.over(counted_in), jnp.float32
    refuse_orphans()
    linear, first, second, values = on_device
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
        host=host,
    )


def _fitting(terms: _Terms, unit: int, name: str) -> tuple[_Terms, int]:
    """Returns integer terms with which all costs are int32, in a larger unit if they must."""
    low, high, delta = _bounds(terms)
    if _fits(low, high, delta):
        return terms, unit
    divisor = int(np.gcd.reduce(np.concatenate([terms.linear, terms.values])))
    terms, unit = terms.over(divisor), unit * divisor
    if _fits(*_bounds(terms)):
        return terms, unit
    raise _beyond_int32(
        name,
        f"gives costs from {low * unit // divisor:.6g} to {high * unit // divisor:.6g} and moves"
        f" that change them by up to {delta * unit // divisor:.6g}",
    )


def _fits(low: int, high: int, delta: int) -> bool:
    # The largest int32 is left to null moves.
    return max(-low, high, delta) < MAX_INT32


def _bounds(terms: _Terms) -> tuple[int, int, int]:
    """Returns what no cost is below, none is above, and no flip or swap changes it by more than.

    Either all negative, or all positive terms count. With sides -1 and 1 in place of 0 and 1 the
    same gives other bounds, four times of which is integer; for cuts these are close.
    """
    linear, first, second, values = terms
    negative, positive, coupled = (np.zeros_like(linear) for _ in range(3))
    for end in (first, second):
        np.add.at(negative, end, np.minimum(values, 0))
        np.add.at(positive, end, np.maximum(values, 0))
    coupled = negative + positive

    def total(values: np.ndarray) -> int:
        return int(values.sum())

    low = total(np.minimum(linear, 0)) + total(np.minimum(values, 0))
    high = total(np.maximum(linear, 0)) + total(np.maximum(values, 0))
    middle = 2 * total(linear) + total(values)
    spread = total(np.abs(2 * linear + coupled)) + total(np.abs(values))
    low, high = max(low, -((spread - middle) // 4)), min(high, (middle + spread) // 4)
    flips = np.maximum(np.abs(linear + negative), np.abs(linear + positive))
    largest = np.sort(flips)[-2:]
    return low, high, max(int(flips.max()), min(int(largest.sum()), high - low))


def _float_unit(terms: _Terms) -> float:
    """Returns the power of two in which terms are counted: 1 where float32 holds their sums."""
    sizes = np.abs(np.concatenate([terms.linear, terms.values]))
    largest, total = sizes.max().item(), sizes.sum().item()
    if not largest or (largest >= _LEAST and total <= _MOST):
        return 1
    return power_of_two(largest)


def _parts(terms: _Terms, solution: np.ndarray) -> tuple[Any, Any]:
    ones = np.asarray(solution) == 1
    pairs = terms.values[ones[terms.first] & ones[terms.second]]
    return terms.linear[ones].sum().item(), pairs.sum().item()


def _exact_cost(terms: _Terms, unit: int, solution: np.ndarray) -> int:
    return sum(_parts(terms, solution)) * unit


def _float_cost(terms: _Terms, solution: np.ndarray) -> float:
    return sum(_parts(terms, solution))
