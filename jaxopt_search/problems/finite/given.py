"""Graphs and quadratic forms as other libraries hold them; told by their methods, not imported."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np


class Entries(NamedTuple):
    """What `max_cut`, `graph_coloring` and `qubo` take, with a constant.

    Attributes:
      pairs: [k, 2] int64.
      values: [k], one each.
      number: of vertices or variables, numbered in the order in which the object has them.
      offset: what every solution costs besides.
    """

    pairs: np.ndarray
    values: np.ndarray
    number: int
    offset: Any = 0


def graph_of(graph: Any) -> Entries | None:
    """Returns the edges of a graph of `networkx`, or of an instance; None of anything else.

    An edge weighs its `weight`, or 1.
    """
    if hasattr(graph, "weights") and hasattr(graph, "edges") and hasattr(graph, "n"):
        return Entries(graph.edges, graph.weights, graph.n)
    if not (hasattr(graph, "number_of_nodes") and hasattr(graph, "edges")):
        return None
    if graph.is_directed():
        raise ValueError("graph is directed, expected one of undirected edges")
    place = {node: number for number, node in enumerate(graph.nodes)}
    found = list(graph.edges(data="weight", default=1))
    pairs = [(place[one], place[other]) for one, other, _ in found]
    values = np.array([weight for *_, weight in found])
    return Entries(np.array(pairs, np.int64).reshape(-1, 2), values, len(place))


def quadratic_of(form: Any) -> Entries | None:
    """Returns the entries of a binary quadratic model or a dict; None of anything else.

    A model has `linear`, `quadratic`, `offset` and `change_vartype`, as that of `dimod`. A dict has
    pairs of variables for keys, of which (i, i) are linear terms.
    """
    if isinstance(form, Mapping):
        place: dict[Any, int] = {}
        for key in form:
            if not isinstance(key, tuple) or len(key) != 2:
                raise ValueError(f"matrix has the key {key!r}, expected pairs of variables")
            for variable in key:
                place.setdefault(variable, len(place))
        pairs = [(place[one], place[other]) for one, other in form]
        values, offset = list(form.values()), 0
    elif hasattr(form, "quadratic") and hasattr(form, "linear"):
        form = form.change_vartype("BINARY", inplace=False)
        place = {variable: number for number, variable in enumerate(form.linear)}
        pairs = [(number, number) for number in place.values()]
        pairs += [(place[one], place[other]) for one, other in form.quadratic]
        values, offset = [*form.linear.values(), *form.quadratic.values()], form.offset
    else:
        return None
    if not place:
        raise ValueError("matrix has no variable, expected one or more")
    return Entries(np.array(pairs, np.int64), np.array(values), len(place), offset)
