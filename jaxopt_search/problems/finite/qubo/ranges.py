"""Whether int32 or float32 holds the costs and deltas of a QUBO, and in which unit; on the host."""

import numpy as np

from jaxopt_search.checks import MAX_INT32
from jaxopt_search.problems.finite.qubo import entries
from jaxopt_search.problems.finite.qubo.terms import Terms
from jaxopt_search.problems.matrix_input import power_of_two

_FLOAT32 = np.finfo(np.float32)
_LEAST, _MOST = float(_FLOAT32.tiny / _FLOAT32.eps), float(_FLOAT32.max) / 8


def fitting(terms: Terms, unit: int, name: str) -> tuple[Terms, int]:
    """Returns integer terms with which all costs are int32, in a larger unit if necessary."""
    low, high, delta = _bounds(terms)
    if _fits(low, high, delta):
        return terms, unit
    divisor = int(np.gcd.reduce(np.concatenate([terms.linear, terms.values])))
    terms, unit = terms.over(divisor), unit * divisor
    if _fits(*_bounds(terms)):
        return terms, unit
    raise entries.beyond_int32(
        name,
        f"gives costs from {low * unit // divisor:.6g} to {high * unit // divisor:.6g} and moves"
        f" that change them by up to {delta * unit // divisor:.6g}",
    )


def _fits(low: int, high: int, delta: int) -> bool:
    # The largest int32 is left to null moves.
    return max(-low, high, delta) < MAX_INT32


def _bounds(terms: Terms) -> tuple[int, int, int]:
    """Returns a lower and an upper bound of costs, and an upper bound of changes by flips or swaps.

    At worst, all negative or all positive terms count. With sides -1 and 1 in place of 0 and 1 this
    gives other bounds, which are integer times a quarter; for cuts they are close.
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


def float_unit(terms: Terms) -> float:
    """Returns the power of two in which terms are counted: 1 where float32 holds their sums."""
    sizes = np.abs(np.concatenate([terms.linear, terms.values]))
    largest, total = sizes.max().item(), sizes.sum().item()
    if not largest or (largest >= _LEAST and total <= _MOST):
        return 1
    return power_of_two(largest)
