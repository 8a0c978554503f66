"""Local search by a rule of acceptance of one's choice: annealing's step with another test."""

import dataclasses
from typing import Any

import jax

from jaxopt_search.backends import random
from jaxopt_search.checks import check_count, check_option
from jaxopt_search.neighborhoods.base import as_neighborhood
from jaxopt_search.pytrees import pytree
from jaxopt_search.searches.acceptance import Acceptance
from jaxopt_search.searches.annealing import AnnealingStep, Choose, KeepBest
from jaxopt_search.types import Neighborhood


@pytree
@dataclasses.dataclass(frozen=True, kw_only=True)
class LocalSearch(AnnealingStep):
    """Build it with `local_search`."""

    neighborhood: Neighborhood
    acceptance: Acceptance
    moves_per_search: int = dataclasses.field(metadata={"static": True})
    choose: Choose = dataclasses.field(metadata={"static": True})
    keep_best: KeepBest = dataclasses.field(metadata={"static": True})

    def rule(self) -> Acceptance:
        return self.acceptance


def local_search(
    neighborhood: Any,
    acceptance: Acceptance,
    *,
    moves_per_search: int = 1,
    choose: Choose = "best",
    keep_best: KeepBest = "light",
) -> LocalSearch:
    """Returns the search that prices `moves_per_search` moves a step and makes one if it passes.

    By `js.acceptance.metropolis(schedule)` it is `simulated_annealing`, bit for bit.

    Args:
      neighborhood: as in `simulated_annealing`.
      acceptance: the rule by which a move passes: `js.acceptance.threshold(schedule)`,
        `late_acceptance(length)`, `greedy()` or `metropolis(schedule)`, or one of your own, a
        subclass of `js.acceptance.Acceptance`.
      moves_per_search: M, the moves priced per step.
      choose: `"best"`: the cheapest move is put to the test. `"first"`: each move is, and the first
        that passes is made.
      keep_best: as in `simulated_annealing`.

    Raises:
      ValueError: if `moves_per_search`, `choose` or `keep_best` is out of range.
      TypeError: if `neighborhood` or `acceptance` is not of these kinds.

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.tsp_from_instance(js.datasets.grid_tsp(4, 4))
      >>> search = local_search(js.Relocate(), js.acceptance.late_acceptance(20))
      >>> js.solve(problem, search, key=0, num_searches=8, max_steps=4000).fun
      160
    """
    _check_rule(acceptance)
    moves_per_search = check_count("moves_per_search", moves_per_search, 1, random.MAX_SLOTS - 1)
    check_option("choose", choose, ("best", "first"))
    check_option("keep_best", keep_best, ("light", "standard"))
    return LocalSearch(
        neighborhood=as_neighborhood(neighborhood),
        acceptance=acceptance,
        moves_per_search=moves_per_search,
        choose=choose,
        keep_best=keep_best,
    )


def _check_rule(acceptance: Any) -> None:
    """Refuses what is no rule of acceptance, or no pytree."""
    name = type(acceptance).__name__
    if isinstance(acceptance, type):
        raise TypeError(f"acceptance is the class {acceptance.__name__}, expected an instance")
    if not isinstance(acceptance, Acceptance):
        raise TypeError(
            f"acceptance is a {name}, expected a js.acceptance.Acceptance, as threshold returns"
        )
    if jax.tree_util.all_leaves([acceptance]):
        raise TypeError(
            f"acceptance is a {name}, expected a pytree; decorate the class with"
            " jaxopt_search.pytree or jax.tree_util.register_static"
        )
