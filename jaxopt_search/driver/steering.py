"""What a callback may change during a run."""

from typing import NamedTuple

import jax

from jaxopt_search.driver.states import signature
from jaxopt_search.engine import starting
from jaxopt_search.guards import contracts
from jaxopt_search.types import Exchange, Problem, Search


class Steer(NamedTuple):
    """What a callback returns to continue with other settings, of the same types and shapes.

    Attributes:
      search: in place of the one so far.
      exchange: likewise.
      ask_after: the callback is called again after this many steps at the latest; None to leave
        that to the clock.

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.tsp_from_instance(js.datasets.grid_tsp(4, 4))
      >>> def at(temperature):
      ...     return js.simulated_annealing(js.Relocate(), temperature)
      >>> def cool(report):
      ...     return Steer(at(5000 / (report.step + 100)), exchange=None, ask_after=500)
      >>> js.solve(problem, at(50.0), 0, callback=cool, num_searches=8, max_steps=4000).fun
      160
    """

    search: Search
    exchange: Exchange | None
    ask_after: int | None = None


def check_steer(problem: Problem, search: Search, exchange: Exchange | None, after: Steer) -> None:
    """Refuses a `Steer` with which a run of a search and an exchange cannot continue.

    Raises:
      TypeError: for what is no search or exchange, or a search with states of another kind.
    """
    if jax.tree.structure((search, exchange)) == jax.tree.structure(after[:2]):
        return
    contracts.check_search(after.search, "the callback's search")
    contracts.check_exchange(after.exchange)
    if not _has_same_states(problem, search, after.search):
        kinds = [type(one).__name__ for one in (after.search, search)]
        raise TypeError(
            f"the callback's search is a {kinds[0]}, expected a {kinds[1]} with states of the"
            " same shapes"
        )


def _has_same_states(problem: Problem, search: Search, other: Search) -> bool:
    try:
        ours, theirs = (signature(starting.shape(problem, one, 1)) for one in (search, other))
        return ours == theirs
    except Exception:  # the other one is not for this problem
        return False
