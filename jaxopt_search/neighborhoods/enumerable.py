"""Neighborhoods whose moves are all looked at in every step: see `types.Enumerable`."""

from typing import Any

from jaxopt_search.neighborhoods.full_evaluation import as_neighborhood


def as_enumerable(neighborhood: Any) -> Any:
    """Returns `neighborhood`, if it enumerates its moves.

    Raises:
      TypeError: if it does not, or is no neighborhood.
    """
    neighborhood = as_neighborhood(neighborhood)
    for name in ("num_moves", "shape", "first", "undone"):
        if not hasattr(neighborhood, name):
            raise TypeError(
                f"neighborhood is a {type(neighborhood).__name__} without {name}, expected one that"
                " enumerates its moves, such as SwapTable()"
            )
    return neighborhood
