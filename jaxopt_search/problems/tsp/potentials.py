"""What leaving a city, and coming to it, adds to all its distances, and so to every tour.

Where that is most of the distances, it is left out on the device: float32 has better uses.
"""

import numpy as np

from jaxopt_search.problems.matrix_input import is_mostly_common, largest_of

_SAMPLED_CITIES = 256


def shared(matrix: np.ndarray, allowed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns what each city adds to all distances from it, and to those to it, [n] each.

    All tours share the sum, because they leave each city once and come to it once. Without it, the
    shortest distance is 0. Zeros if it is not most of the distances.
    """
    nothing = np.zeros(len(matrix))
    is_known = allowed & ~np.eye(len(matrix), dtype=bool)
    if not is_known.any():
        return nothing, nothing
    for leaving, coming in ((nothing, nothing), _medians(matrix, is_known)):
        left = taken_off(matrix, leaving, coming)
        least = left.min(where=is_known, initial=np.inf)
        if is_mostly_common(largest_of(matrix), left.max(where=is_known, initial=least) - least):
            return leaving + least / 2, coming + least / 2
    return nothing, nothing


def _medians(matrix: np.ndarray, is_known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns what leaving each city and coming to it typically cost, [n] each."""
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


def taken_off(matrix: np.ndarray, leaving: np.ndarray, coming: np.ndarray) -> np.ndarray:
    """Returns the matrix after what is shared is taken off; 0 on the diagonal."""
    left = matrix - (leaving[:, None] + coming)
    np.fill_diagonal(left, 0)
    return left
