"""What a search accepts as its neighborhood: one with deltas, or moves that are priced in full."""

from typing import Any

import jax

from jaxopt_search import capabilities
from jaxopt_search.neighborhoods.full_evaluation import FullEvaluation

_NEIGHBORHOOD = ("num_words", "init", "solution", "snapshot", "propose", "delta", "commit")
_MOVES = ("num_words", "propose", "apply")
_TABLE = ("num_moves", "shape", "undone")


def as_neighborhood(neighborhood: Any) -> Any:
    """Returns `neighborhood`, or `FullEvaluation` of it if it has no `delta` of its own.

    Raises:
      TypeError: if it is no pytree or lacks a member, which the message names.
    """
    has_delta = not capabilities.missing(neighborhood, ("delta",))
    if lacks := capabilities.missing(neighborhood, _NEIGHBORHOOD if has_delta else _MOVES):
        has = "delta but no" if has_delta else "neither delta nor"
        raise TypeError(f"neighborhood is a {type(neighborhood).__name__} with {has} {lacks[0]}")
    if not has_delta:
        return FullEvaluation(neighborhood)
    if jax.tree.leaves(neighborhood) == [neighborhood]:
        raise TypeError(
            f"neighborhood is a {type(neighborhood).__name__}, expected a pytree; decorate the"
            " class with jax.tree_util.register_static or jaxopt_search.pytree"
        )
    return neighborhood


def as_enumerable(neighborhood: Any) -> Any:
    """Like `as_neighborhood`, but the moves must stand in a table: see `types.Enumerable`.

    Raises:
      TypeError: if they do not, and as `as_neighborhood`.
    """
    neighborhood = as_neighborhood(neighborhood)
    is_in_full = isinstance(neighborhood, FullEvaluation)
    part, needed = (neighborhood.moves, "move_at") if is_in_full else (neighborhood, "first")
    if lacks := capabilities.missing(part, (*_TABLE, needed)):
        raise TypeError(
            f"neighborhood is a {type(part).__name__} without {lacks[0]}, expected one whose moves"
            " stand in a table, such as SwapTable()"
        )
    return neighborhood
