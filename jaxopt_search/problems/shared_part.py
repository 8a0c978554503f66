"""What all solutions of a float instance share: left out on the device where it is most of a cost.

Users meet this without knowing, as with times since 1970 in place of distances, or the costs of
visits in the distances from and to each city. float32 has better uses.
"""

import numpy as np

from jaxopt_search.problems.bounds import largest_of

_MOSTLY = 256  # times as large as the rest
_SAMPLED_CITIES = 256


def is_mostly_shared(whole: float, left: float) -> bool:
    """Returns whether numbers have most of their size in common.

    Args:
      whole: the largest of them.
      left: the largest one after the common part is taken off; if 0, nothing needs the precision.
    """
    return whole > _MOSTLY * left > 0


def of_entries(matrix: np.ndarray) -> tuple[float, float]:
    """Returns the number shared by all entries off the diagonal, and by those on it; mostly 0."""
    between, within = map(_common, (matrix[~np.eye(len(matrix), dtype=bool)], matrix.diagonal()))
    left = largest_of(without_entries(matrix, between, within))
    return (between, within) if is_mostly_shared(largest_of(matrix), left) else (0.0, 0.0)


def _common(values: np.ndarray) -> float:
    """Returns the least of some numbers if they differ little, else 0."""
    least, most = values.min(initial=np.inf).item(), values.max(initial=-np.inf).item()
    return least if max(most, -least) > 2 * (most - least) else 0.0


def without_entries(matrix: np.ndarray, between: float, within: float) -> np.ndarray:
    """Returns the matrix after numbers are taken off all entries, and off those on the diagonal."""
    return matrix - np.where(np.eye(len(matrix), dtype=bool), within, between)


def of_cities(matrix: np.ndarray, allowed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the amounts each city adds to all distances from it, and to it, [n] each.

    All tours share the sum, because they leave each city once and come to it once. Without it, the
    shortest distance is 0. Zeros if it is not most of the distances.
    """
    nothing = np.zeros(len(matrix))
    is_known = allowed & ~np.eye(len(matrix), dtype=bool)
    if not is_known.any():
        return nothing, nothing
    for leaving, coming in ((nothing, nothing), _medians(matrix, is_known)):
        left = without_cities(matrix, leaving, coming)
        least = left.min(where=is_known, initial=np.inf)
        if is_mostly_shared(largest_of(matrix), left.max(where=is_known, initial=least) - least):
            return leaving + least / 2, coming + least / 2
    return nothing, nothing


def _medians(matrix: np.ndarray, is_known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the typical costs of leaving each city and of coming to it, [n] each."""
    some = np.arange(len(matrix))[:: max(1, len(matrix) // _SAMPLED_CITIES)]
    # Rows are compared with one of them, because their own numbers may differ much.
    one = is_known.sum(axis=1).argmax()
    is_in_both = is_known[:, some] & is_known[one, some]
    leaving = _row_medians(matrix[:, some] - matrix[one, some], is_in_both)
    coming = _row_medians((matrix[some] - leaving[some, None]).T, is_known[some].T)
    if np.array_equal(matrix, matrix.T):
        leaving = coming = (leaving + coming) / 2
    return leaving, coming


def _row_medians(matrix: np.ndarray, is_known: np.ndarray) -> np.ndarray:
    """Returns the median of what is known of each row, the lower one of two; 0 for nothing."""
    ordered, num = np.sort(np.where(is_known, matrix, np.inf), axis=1), is_known.sum(axis=1)
    middle = np.take_along_axis(ordered, np.maximum(num - 1, 0)[:, None] // 2, axis=1)[:, 0]
    return np.where(num > 0, middle, 0.0)


def without_cities(matrix: np.ndarray, leaving: np.ndarray, coming: np.ndarray) -> np.ndarray:
    """Returns distances after what is shared is taken off; 0 on the diagonal."""
    left = matrix - (leaving[:, None] + coming)
    np.fill_diagonal(left, 0)
    return left
