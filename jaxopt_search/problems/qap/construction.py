"""QAP: one good assignment within milliseconds, built on the host by NumPy.

Some assignments, greedy and random ones, are improved by the best swap of two facilities until none
helps, all side by side; the best of them is taken.
"""

from typing import NamedTuple

import numpy as np

from jaxopt_search.problems.qap.problem import QAP

_MOST_STARTS, _ENTRIES = 64, 40_000  # of the tables of all starts
_MOST_WORK = 3e7  # entries that all steps of a start look at; that takes a quarter of a second
_MOST_GREEDY = 300  # facilities of which one after the other is placed
_OF_ALL = 1e-9  # weight of the flow to all, compared with the flow to those placed
_LEAST_GAIN = 1e-12  # of the cost, which rounding stays below


class Matrices(NamedTuple):
    """What swaps are priced by, [n, n] float64 each.

    `flow_apart[i, j]` is `flow[i, i] + flow[j, j] - flow[i, j] - flow[j, i]`, and `distance_apart`
    likewise.
    """

    flow: np.ndarray
    distance: np.ndarray
    flow_apart: np.ndarray
    distance_apart: np.ndarray


def constructed_assignment(problem: QAP) -> np.ndarray:
    """Returns a good assignment, [n] int32; always the same, after a bounded number of operations.

    Args:
      problem: of which some facilities may be fixed.
    """
    flow, distance = (part.astype(np.float64) for part in problem.matrices_on_host())
    matrices = Matrices(flow, distance, _apart(flow), _apart(distance))
    free, fixed = problem.free_on_host()
    starts = _starts(matrices, free, fixed)
    ends = _descend(matrices, free, starts)
    costs = [(flow * distance[end[:, None], end]).sum() for end in ends]
    return ends[int(np.argmin(costs))].astype(np.int32)


def _apart(matrix: np.ndarray) -> np.ndarray:
    diagonal = matrix.diagonal()
    return diagonal[:, None] + diagonal - matrix - matrix.T


def _starts(matrices: Matrices, free: np.ndarray, fixed: np.ndarray) -> np.ndarray:
    """Returns [B, n] assignments: by sums, greedy if there are not too many, and random ones."""
    n, (flow, distance) = len(fixed), matrices[:2]
    num = int(np.clip(_ENTRIES // n**2, 2, _MOST_STARTS))
    starts = np.repeat(fixed[None], num, axis=0)
    by_flow = free[np.argsort(-(flow + flow.T).sum(axis=1)[free], kind="stable")]
    sums = (distance + distance.T).sum(axis=1)
    starts[0, by_flow] = np.sort(fixed[free])[np.argsort(sums[np.sort(fixed[free])], kind="stable")]
    starts[1] = _greedy(matrices, free, fixed) if n <= _MOST_GREEDY else starts[0]
    generator = np.random.default_rng(0)
    for start in starts[2:]:
        start[free] = generator.permutation(fixed[free])
    return starts


def _greedy(matrices: Matrices, free: np.ndarray, fixed: np.ndarray) -> np.ndarray:
    """Returns an assignment in which one facility after the other is placed where it costs least.

    The next one is always that with the largest flow to and from those placed; of equals, to all.
    """
    flow, distance = matrices[:2]
    n, assignment, both = len(fixed), fixed.copy(), flow + flow.T
    placed, taken = (np.setdiff1d(np.arange(n), some) for some in (free, fixed[free]))
    table = _table(matrices, placed, fixed[placed]) + np.outer(flow.diagonal(), distance.diagonal())
    near, locations = both[:, placed].sum(axis=1), np.zeros(n)
    near[placed], locations[taken] = -np.inf, np.inf
    near += _OF_ALL * both.sum(axis=1)
    for _ in free:
        facility = int(near.argmax())
        place = int((table[facility] + locations).argmin())
        assignment[facility], locations[place] = place, np.inf
        near += both[facility]
        near[facility] = -np.inf
        table += np.outer(flow[:, facility], distance[:, place])
        table += np.outer(flow[facility], distance[place])
    return assignment


def _table(matrices: Matrices, facilities: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Returns [n, n] the cost of each facility at each location, by its flows to and from some."""
    flow, distance = matrices[:2]
    return flow[:, facilities] @ distance[:, places].T + flow[facilities].T @ distance[places]


def _descend(matrices: Matrices, free: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Returns assignments that no swap makes cheaper, [B, n].

    The tables of the costs of each facility at the others' locations take O(n * n) to update,
    and all swaps are priced by them.
    """
    flow, distance, flow_apart, distance_apart = matrices
    ends, (_, n) = starts.copy(), starts.shape
    least = _LEAST_GAIN * float((np.abs(flow).max() * np.abs(distance).max()) * n**2)
    is_fixed = np.isin(np.arange(n), free, invert=True)
    forbidden = np.where(is_fixed[:, None] | is_fixed, np.inf, 0.0)
    going, now = np.arange(len(starts)), starts.copy()
    tables = np.stack([_table(matrices, np.arange(n), start)[:, start] for start in starts])
    apart = flow_apart * distance_apart[now[:, :, None], now[:, None]] + forbidden
    for _ in range(int(np.clip(_MOST_WORK // n**2, 1, 10 * n))):
        best, gain = _best_swaps(tables, apart)
        parts = going, now, tables, apart, best
        going, now, tables, apart, best = (part[gain > least] for part in parts)
        if not len(going):
            break
        r, s, each = best // n, best % n, np.arange(len(going))
        a, b = now[each, r], now[each, s]
        now[each, r], now[each, s] = b, a
        ends[going] = now
        left = np.stack([flow[:, r] - flow[:, s], flow[r].T - flow[s].T], axis=2)
        right = np.stack([distance[:, b] - distance[:, a], distance[b].T - distance[a].T], axis=2)
        swapped = tables[each, :, r]
        tables[each, :, r], tables[each, :, s] = tables[each, :, s], swapped
        tables += left.transpose(1, 0, 2) @ right[now.T, each].transpose(1, 2, 0)
        for one, place in ((r, b), (s, a)):
            row = flow_apart[one] * distance_apart[place[:, None], now] + forbidden[one]
            apart[each, one], apart[each, :, one] = row, row
    return ends


def _best_swaps(tables: np.ndarray, apart: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the best swap of each assignment, as an index [B] into [n, n], and what it gains."""
    num, n, _ = tables.shape
    own = tables[:, np.arange(n), np.arange(n)]
    deltas = tables + tables.transpose(0, 2, 1)
    # In place: they are large.
    deltas -= own[:, :, None]
    deltas -= own[:, None]
    deltas += apart
    deltas = deltas.reshape(num, -1)
    best = deltas.argmin(axis=1)
    return best, -deltas[np.arange(num), best]
