"""How placements of queens are searched for side by side, by their size and platform."""

from typing import NamedTuple

from jaxopt_search.neighborhoods.queen_swap import QueenSwap
from jaxopt_search.problems import padding
from jaxopt_search.searches.min_conflicts import MinConflicts, min_conflicts

_PLACED_AT_ONCE = 2 * 10**8
"""Queens of all searches together."""
_MORE = 8
"""From one number of searches to the next: of few, so that few programs are compiled."""


class Plan(NamedTuple):
    """How placements are searched for.

    Attributes:
      num_searches: side by side, on each device, if as many placements are wanted.
      least_searches: if few are wanted.
      moves_per_search: priced per step.
      temperature: all the time the same.
      steps: between two looks.
      tries: of `greedy_placement`, by which searches start; 0 for random placements.
    """

    num_searches: int
    least_searches: int
    moves_per_search: int
    temperature: float
    steps: int
    tries: int


def plan_of(n: int, platform: str) -> Plan:
    """Returns how placements of n queens are searched for on a device of this platform.

    What is compiled for depends on the capacity only.
    """
    temperature, capacity = 0.4 if n < 16 else 0.1, padding.capacity_for(n)
    if platform == "cpu":
        num_searches = min(max(200_000 // capacity, 16), 1024)
        return Plan(num_searches, 4, 64, temperature, max(32, n * 3 // 10), 16)
    num_searches, moves = min(16_896, _PLACED_AT_ONCE // capacity), 16 if capacity <= 64 else 32
    return Plan(num_searches, 132, moves, temperature, max(32, n * 7 // 10), 0)


def num_searches_for(plan: Plan, wanted: int) -> int:
    """Returns the searches on each device that are to find as many placements."""
    number = plan.least_searches
    while number < wanted:
        number *= _MORE
    return min(number, plan.num_searches)


def search_of(plan: Plan) -> MinConflicts:
    """Returns the search of a plan."""
    return min_conflicts(QueenSwap(), plan.temperature, moves_per_search=plan.moves_per_search)
