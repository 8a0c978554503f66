"""QAP: one assignment within milliseconds, on the host: large flows to short distances."""

import numpy as np

from jaxopt_search.problems.qap.problem import QAP


def constructed_assignment(problem: QAP) -> np.ndarray:
    """Returns an assignment, [n] int32: facilities by their flows, to locations by distances.

    The facility with the largest flow to and from all others is at the location with the smallest
    distances, and so on.

    Args:
      problem: of which some facilities may be fixed.
    """
    flow, distance = (part.astype(np.float64) for part in problem.matrices_on_host())
    free, assignment = problem.free_on_host()
    by_flow = free[np.argsort(-(flow + flow.T).sum(axis=1)[free], kind="stable")]
    places, sums = np.sort(assignment[free]), (distance + distance.T).sum(axis=1)
    assignment[by_flow] = places[np.argsort(sums[places], kind="stable")]
    return assignment
