"""What is given as a graph or as a quadratic form: matrices, lists, and what other libraries hold.

Their objects are told by their methods, not imported.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from jaxopt_search.checks import check_count, plain_array, real_array
from jaxopt_search.problems import bounds
from jaxopt_search.problems.matrix_input import (
    DType,
    check_below,
    has_exact_costs,
    integer_pairs,
    refuse_first,
)

_SAFE = 2**59  # sums up to this, a few times over, are int64


def entries_of(
    values: Any, entries: Any, number: Any, names: tuple[str, str, str], dtype: DType | None
) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
    """Returns the entries of a matrix or list: n, rows, columns, and finite values.

    The values are int64 or float64, of which sums also fit; or Python integers.

    Args:
      values: the matrix, or with `entries` the values of these.
      number: n, or None.
      names: of these three arguments.
    """
    name, entries_name, number_name = names
    if entries is None and number is not None:
        raise ValueError(f"{number_name} is {number!r} without {entries_name}, expected None")
    is_sparse = entries is None and hasattr(values, "tocoo")
    given = values.tocoo() if is_sparse else values
    array = plain_array(given.data if is_sparse else given, name)
    array = real_array(array.astype(np.int8) if array.dtype == np.bool_ else array, name)
    if entries is not None:
        pairs = integer_pairs(entries, entries_name)
        highest = pairs.max().item() if pairs.size else 0
        n = check_count(number_name, max(highest, 0) + 1 if number is None else number)
        check_below(pairs, entries_name, n, n)
        rows, columns = pairs.T
        if array.shape not in ((), rows.shape):
            raise ValueError(f"{name} has shape {array.shape}, expected {rows.shape}, as entries")
        array = np.broadcast_to(array, rows.shape)
    else:
        shape = tuple(given.shape) if is_sparse else array.shape
        if len(shape) != 2 or shape[0] != shape[1] or not shape[0]:
            raise ValueError(
                f"{name} has shape {shape}, expected (n, n) with n >= 1; pairs are {entries_name}="
            )
        n = shape[0]
    refuse_first(array, ~np.isfinite(array), name)
    if entries is None:
        places = np.nonzero(array)
        rows, columns = (each[places] for each in (given.row, given.col)) if is_sparse else places
        array = array[places]
    largest, kind = bounds.largest_of(array) if array.size else 0, np.float64
    if has_exact_costs(dtype, "numbers", array):
        kind = np.int64 if largest * array.size < _SAFE else object
    else:
        most = bounds.MAX_FLOAT32 / (8 * max(array.size, 1))
        bounds.check_floats(largest, most, f"numbers in {name}")
    return n, rows.astype(np.int64), columns.astype(np.int64), array.astype(kind)


def edges_of(
    n: int, rows: np.ndarray, columns: np.ndarray, values: np.ndarray, name: str, is_matrix: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the edges `first < second` of a graph, and their weights.

    Args:
      n: the number of vertices.
      rows, columns, values: [k], its entries, as `entries_of` returns them.
      name: of what they are from.
      is_matrix: whether they have each edge both ways; else those given twice add up.
    """
    own = rows[rows == columns]
    if own.size:
        raise ValueError(f"{name} has a loop at vertex {own[0]}, expected none")
    first, second, sums = merged_pairs(n, rows, columns, values)
    if not is_matrix:
        return first, second, sums
    # Symmetric but for rounding noise.
    is_exact = values.dtype.kind in "iO"
    noise = 0 if is_exact else 1e-6 * np.abs(values).max(initial=0)
    *_, apart = merged_pairs(n, rows, columns, np.where(rows < columns, values, -values))
    if (np.abs(apart) > noise).any():
        raise ValueError(f"{name} is asymmetric, expected a symmetric matrix")
    return first, second, sums // 2 if is_exact else sums / 2


def merged_pairs(
    n: int, rows: np.ndarray, columns: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns pairs `first < second` with the sums of their values; zero sums are left out."""
    pair = np.minimum(rows, columns) * n + np.maximum(rows, columns)
    pair, inverse = np.unique(pair, return_inverse=True)
    sums = np.zeros(pair.size, values.dtype)
    np.add.at(sums, inverse, values)
    pair, sums = pair[sums != 0], sums[sums != 0]
    return pair // n, pair % n, sums


class Entries(NamedTuple):
    """What `max_cut`, `graph_coloring` and `qubo` take, with a constant.

    Attributes:
      pairs: [k, 2] int64.
      values: [k], one each.
      number: of vertices or variables, numbered in the order in which the object has them.
      offset: a constant added to every cost.
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

    A model has `linear`, `quadratic`, `offset` and `change_vartype`, as in `dimod`. A dict has
    pairs of variables for keys, of which (i, i) are linear terms.
    """
    is_matrix = hasattr(form, "tocoo")  # SciPy's dok_matrix is a dict, too
    if not is_matrix and isinstance(form, Mapping):
        place: dict[Any, int] = {}
        for key in form:
            if not isinstance(key, tuple) or len(key) != 2:
                raise ValueError(f"matrix has the key {key!r}, expected pairs of variables")
            for variable in key:
                place.setdefault(variable, len(place))
        pairs = [(place[one], place[other]) for one, other in form]
        values, offset = list(form.values()), 0
    elif hasattr(form, "quadratic") and hasattr(form, "linear"):
        change: Any = form.change_vartype
        model = change("BINARY", inplace=False)
        place = {variable: number for number, variable in enumerate(model.linear)}
        pairs = [(number, number) for number in place.values()]
        pairs += [(place[one], place[other]) for one, other in model.quadratic]
        values, offset = [*model.linear.values(), *model.quadratic.values()], model.offset
    else:
        return None
    if not place:
        raise ValueError("matrix has no variable, expected one or more")
    return Entries(np.array(pairs, np.int64), np.array(values), len(place), offset)
