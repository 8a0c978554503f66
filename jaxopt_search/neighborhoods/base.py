"""What a search accepts as its neighborhood: one with deltas, or moves that are priced in full."""

from typing import Any

import jax

from jaxopt_search.neighborhoods.full_evaluation import FullEvaluation
from jaxopt_search.types import Enumerable, EnumerableMoves, Moves, Neighborhood


def as_neighborhood(neighborhood: Any) -> Neighborhood:
    """Returns a `Neighborhood`, or `FullEvaluation` of `Moves`.

    Raises:
      TypeError: if it is neither, or no pytree.
    """
    kind = type(neighborhood).__name__
    if isinstance(neighborhood, Moves):
        return FullEvaluation(neighborhood)
    if not isinstance(neighborhood, Neighborhood):
        raise TypeError(
            f"neighborhood is a {kind}, expected a js.Neighborhood, such as Relocate(), or js.Moves"
        )
    if jax.tree.leaves(neighborhood) == [neighborhood]:
        raise TypeError(
            f"neighborhood is a {kind}, expected a pytree; decorate the class with"
            " jax.tree_util.register_static or jaxopt_search.pytree"
        )
    return neighborhood


def is_enumerable(neighborhood: Neighborhood) -> bool:
    """Returns whether the moves stand in a table."""
    if isinstance(neighborhood, FullEvaluation):
        return isinstance(neighborhood.moves, EnumerableMoves)
    return isinstance(neighborhood, Enumerable)


def as_enumerable(neighborhood: Any) -> Enumerable:
    """Like `as_neighborhood`, but the moves must stand in a table.

    Raises:
      TypeError: if they do not, and as `as_neighborhood`.
    """
    neighborhood = as_neighborhood(neighborhood)
    if not is_enumerable(neighborhood):
        is_in_full = isinstance(neighborhood, FullEvaluation)
        kind = type(neighborhood.moves if is_in_full else neighborhood).__name__
        raise TypeError(
            f"neighborhood is a {kind}, expected a js.Enumerable, whose moves stand"
            " in a table, such as SwapTable()"
        )
    return neighborhood
