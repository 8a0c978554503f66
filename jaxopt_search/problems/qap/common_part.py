"""What the entries of a QAP's matrices have in common, which all assignments share.

Where it is most of them, float32 is not spent on it.
"""

from typing import NamedTuple

import numpy as np

from jaxopt_search.problems.matrix_input import is_mostly_common, is_nearly_symmetric, largest_of


class Split(NamedTuple):
    """A matrix without the numbers that its entries have in common.

    Attributes:
      own: [n, n] float64, what is left.
      between: what was taken off all entries off the diagonal.
      within: what was taken off the diagonal.
    """

    own: np.ndarray
    between: float
    within: float

    def counted_in(self, unit: float) -> "Split":
        """Returns the same in multiples of `unit`."""
        return Split(self.own / unit, self.between / unit, self.within / unit)

    def is_nearly_symmetric(self) -> bool:
        """Returns whether `own` is; if anything was taken off, as exact as its largest entry."""
        is_split = self.between or self.within
        return is_nearly_symmetric(self.own, largest_of(self.own) if is_split else 0.0)


def split_off(matrix: np.ndarray) -> Split:
    """Returns a matrix without what its entries share, if that is most of them."""
    is_diagonal = np.eye(len(matrix), dtype=bool)
    within, between = _common(matrix.diagonal()), _common(matrix[~is_diagonal])
    own = matrix - np.where(is_diagonal, within, between)
    if is_mostly_common(largest_of(matrix), largest_of(own)):
        return Split(own, between, within)
    return Split(matrix, 0.0, 0.0)


def _common(values: np.ndarray) -> float:
    """Returns the least of some numbers if they differ little, else 0."""
    least, most = values.min(initial=np.inf).item(), values.max(initial=-np.inf).item()
    return least if max(most, -least) > 2 * (most - least) else 0.0


def shared_cost(flow: Split, distance: Split) -> float:
    """Returns what was taken off the cost of every assignment."""

    def of(a: float, b: float, number: int, sum_a: float, sum_b: float) -> float:
        return b * sum_a + a * sum_b + number * a * b

    n = len(flow.own)
    traces = [part.own.trace().item() for part in (flow, distance)]
    others = [part.own.sum().item() - part.own.trace().item() for part in (flow, distance)]
    return of(flow.between, distance.between, n * (n - 1), *others) + of(
        flow.within, distance.within, n, *traces
    )
