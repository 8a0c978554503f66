"""The crossovers of permutations, under the name that they had before there were others."""

from jaxopt_search.crossovers.permutations import Parents, Room, ox, ox_rows, pmx, pmx_rows

__all__ = ["Parents", "Room", "ox", "ox_rows", "pmx", "pmx_rows"]
