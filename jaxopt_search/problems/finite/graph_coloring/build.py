"""Graph coloring instances from edges or an adjacency matrix, checked on the host."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search.backends import memory
from jaxopt_search.checks import MAX_INT32, check_count, plain_array
from jaxopt_search.problems.finite import vector
from jaxopt_search.problems.finite.graph_coloring.problem import Graph, GraphColoring
from jaxopt_search.problems.host import Original
from jaxopt_search.problems.matrix_input import on_device
from jaxopt_search.problems.padding import list_room


def graph_coloring(
    graph: Any, num_colors: int, *, num_vertices: int | None = None
) -> GraphColoring:
    """Returns the problem of coloring the vertices of a graph so that few neighbors are alike.

    The cost is the number of edges whose ends have the same color. A coloring of cost 0 is a proper
    one; `target=0` stops there.

    Args:
      graph: [m, 2] integers, edges as pairs of vertices from 0 on; an edge that is given twice,
        in either direction, counts once. Or an adjacency matrix, [n, n] of 0 and 1 or of booleans,
        symmetric and with an empty diagonal. A 2 x 2 array that could be either is a matrix.
      num_colors: k, at least 1.
      num_vertices: n, for edges: vertices above the highest in an edge have no neighbors. None for
        this highest vertex plus 1.

    Raises:
      ValueError: for anything else, edges from a vertex to itself, vertices out of range, a matrix
        that is not symmetric, entries that are not integers, or numbers out of range.

    Example:
      >>> problem = graph_coloring([[0, 1], [1, 2], [2, 3], [3, 0]], 2)
      >>> int(problem.cost(jax.numpy.array([0, 1, 0, 0])))
      2
    """
    num_colors = check_count("num_colors", num_colors)
    edges, n = _edges_of(graph, num_vertices)
    if n * num_colors > MAX_INT32:
        raise ValueError(
            f"num_colors is {num_colors}, expected at most {MAX_INT32 // n} for {n} vertices: the"
            f" vertices by colors are numbered in int32"
        )
    if len(edges) > MAX_INT32 // 2:
        raise ValueError(f"graph has {len(edges)} edges, expected at most {MAX_INT32 // 2}")
    both = np.concatenate([edges, edges[:, ::-1]])
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    degrees = np.bincount(both[:, 0], minlength=n)
    start = np.concatenate([[0], np.cumsum(degrees)])
    room = list_room(len(edges))
    own = Graph(
        start=on_device(start, jnp.int32),
        neighbors=_padded(both[:, 1], 2 * room),
        first=_padded(edges[:, 0], room),
        second=_padded(edges[:, 1], room),
        num_edges=on_device(len(edges), jnp.int32),
    )
    domains = np.full(n, num_colors)
    host = Original(
        cost=functools.partial(_cost_on_host, edges),
        check=functools.partial(vector.check_vector, domains),
    )
    return GraphColoring(
        domain_sizes=on_device(domains, jnp.int32),
        graph=own,
        n=n,
        max_domain=num_colors,
        max_degree=memory.power_of_two(max(int(degrees.max()), 1)),
        host=host,
    )


def _padded(values: np.ndarray, size: int) -> jax.Array:
    return jnp.asarray(np.pad(values, (0, size - len(values))), jnp.int32)


def _cost_on_host(edges: np.ndarray, coloring: np.ndarray) -> int:
    coloring = np.asarray(coloring)
    return int(np.sum(coloring[edges[:, 0]] == coloring[edges[:, 1]], dtype=np.int64))


def _edges_of(graph: Any, num_vertices: int | None) -> tuple[np.ndarray, int]:
    """Returns the edges of a graph, [m, 2] int64, each once, and how many vertices it has."""
    if num_vertices is not None:
        num_vertices = check_count("num_vertices", num_vertices)
    array = plain_array(graph, "graph")
    if array.size == 0 and array.shape in ((0,), (0, 2)):
        array = np.zeros((0, 2), np.int64)
    if array.dtype != np.bool_ and not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"graph has dtype {array.dtype}, expected integers")
    is_matrix = array.ndim == 2 and array.shape[0] == array.shape[1] != 2
    is_pairs = array.ndim == 2 and array.shape[1] == 2 and array.dtype != np.bool_
    if is_matrix or (array.shape == (2, 2) and (array.dtype == np.bool_ or _is_adjacency(array))):
        return _edges_of_matrix(array, num_vertices)
    if not is_pairs:
        raise ValueError(
            f"graph has shape {array.shape}, expected (m, 2), edges, or (n, n), a matrix"
        )
    return _edges_of_pairs(array, num_vertices)


def _is_adjacency(array: np.ndarray) -> bool:
    is_binary = ((array == 0) | (array == 1)).all()
    return bool(is_binary and (array == array.T).all() and not array.diagonal().any())


def _edges_of_matrix(matrix: np.ndarray, num_vertices: int | None) -> tuple[np.ndarray, int]:
    n = len(matrix)
    if num_vertices not in (None, n):
        raise ValueError(
            f"num_vertices is {num_vertices}, expected {n}, as the matrix has, or None"
        )
    check_count("the number of rows of graph", n)
    for found, expected in (
        ((matrix != 0) & (matrix != 1), "0 or 1"),
        (np.diag(matrix.diagonal() != 0), "0: no vertex is its own neighbor"),
    ):
        if found.any():
            i, j = np.argwhere(found)[0]
            raise ValueError(f"graph[{i}, {j}] is {matrix[i, j]}, expected {expected}")
    if (differs := matrix != matrix.T).any():
        i, j = np.argwhere(differs)[0]
        raise ValueError(
            f"graph[{i}, {j}] is {matrix[i, j]} and graph[{j}, {i}] is {matrix[j, i]}, expected a"
            " symmetric matrix"
        )
    return np.argwhere(np.triu(matrix)), n


def _edges_of_pairs(pairs: np.ndarray, num_vertices: int | None) -> tuple[np.ndarray, int]:
    if not len(pairs):
        if num_vertices is None:
            raise ValueError("graph has no edges, expected num_vertices, too")
        return pairs, num_vertices
    highest = int(pairs.max())
    n = highest + 1 if num_vertices is None else num_vertices
    if num_vertices is not None and highest == n and pairs.min() == 1:
        raise ValueError(f"graph counts vertices from 1, expected 0 to {n - 1}")
    most = min(n, MAX_INT32) - 1
    for found, expected in (
        ((pairs < 0) | (pairs > most), f"vertices 0 to {most}"),
        ((pairs[:, :1] == pairs[:, 1:]), "two different vertices"),
    ):
        if found.any():
            i = np.argwhere(found)[0][0]
            raise ValueError(f"graph[{i}] is {tuple(pairs[i].tolist())}, expected {expected}")
    return np.unique(np.sort(pairs.astype(np.int64), axis=1), axis=0), n
