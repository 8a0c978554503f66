"""The linear terms and couplings that a matrix, or the cut of a graph, stands for; on the host."""

from typing import NamedTuple

import numpy as np

from jaxopt_search.problems.finite.qubo.entries import Given


class Terms(NamedTuple):
    """Linear terms, [n], and couplings of variables `first < second`, each pair once."""

    linear: np.ndarray
    first: np.ndarray
    second: np.ndarray
    values: np.ndarray

    def over(self, unit: int | float) -> "Terms":
        """Returns the terms in multiples of `unit`: for integers, a common divisor."""
        divide = np.floor_divide if self.linear.dtype.kind == "i" else np.divide
        return self._replace(linear=divide(self.linear, unit), values=divide(self.values, unit))


def terms_of_matrix(given: Given) -> Terms:
    """Returns the terms of `x @ Q @ x`, in which a variable's square is the variable itself."""
    n, rows, columns, values, *_ = given
    linear, is_linear = np.zeros(n, values.dtype), rows == columns
    np.add.at(linear, rows[is_linear], values[is_linear])
    others = (part[~is_linear] for part in (rows, columns, values))
    return Terms(linear, *_merged(n, *others))


def terms_of_cut(given: Given) -> Terms:
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
    return Terms(linear, first, second, 2 * sums)


def _merged(
    n: int, rows: np.ndarray, columns: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns pairs `first < second` with the sums of their values; zero sums are left out."""
    pair = np.minimum(rows, columns) * n + np.maximum(rows, columns)
    pair, inverse = np.unique(pair, return_inverse=True)
    sums = np.zeros(pair.size, values.dtype)
    np.add.at(sums, inverse, values)
    pair, sums = pair[sums != 0], sums[sums != 0]
    return pair // n, pair % n, sums


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


def cost_of(terms: Terms, unit: int, solution: np.ndarray) -> int | float:
    """Returns the cost of a solution, exactly for integer terms.

    Args:
      unit: the terms are in multiples of it; 1 for floats.
    """
    ones = np.asarray(solution) == 1
    pairs = terms.values[ones[terms.first] & ones[terms.second]]
    return sum((terms.linear[ones].sum().item(), pairs.sum().item())) * unit
