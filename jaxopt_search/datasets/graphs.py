"""Graphs to color and to cut: queen, Mycielski and random graphs, and grids on a torus.

Random ones are drawn as by rudy, the generator of the G-set's graphs. So the same arguments give
the same graphs on any platform.
"""

import math
import numbers
from collections.abc import Iterable, Sequence

import numpy as np

from jaxopt_search.datasets.instances import GraphInstance

MAX_EDGES = 10**7
"""Most edges of a generated graph."""

_BITS = 2**31 - 1


def queen_graph(rows: int, columns: int) -> GraphInstance:
    """Returns the cells of a board, with edges where a queen could move from one to the other.

    A coloring with as many colors as the longer side has cells fills the board with placements of
    peaceful queens. These are the graphs `queenR_C` of DIMACS, whose files list each
    edge twice; the chromatic numbers of 5 x 5 to 9 x 9 are 5, 7, 7, 9 and 10.

    Args:
      rows, columns: at least 1 each; cell (r, c) is vertex `r * columns + c`.

    Raises:
      ValueError: an argument is out of range.

    Example:
      >>> graph = queen_graph(8, 8)
      >>> graph.n, len(graph.edges)
      (64, 728)
    """
    rows, columns = _integer("rows", rows, 1, 10**3), _integer("columns", columns, 1, 10**3)
    n = _integer("rows * columns", rows * columns, 1, 10**4)
    row, column = np.divmod(np.arange(n), columns)
    down, right = row[:, None] - row, column[:, None] - column
    is_move = (down == 0) | (right == 0) | (np.abs(down) == np.abs(right))
    return _instance(f"queen{rows}_{columns}", n, np.argwhere(np.triu(is_move, 1)))


def mycielski_graph(k: int) -> GraphInstance:
    """Returns Mycielski's graph without triangles that needs k + 1 colors, `mycielK` of DIMACS.

    It starts from one edge, which is `k = 1`. A step gives each vertex v a copy that is joined to
    the neighbors of v, and joins all copies to one more vertex (Mycielski, "Sur le coloriage des
    graphes", 1955); so k = 2 is the cycle of 5 vertices, and k = 3 the graph of Groetzsch.

    Args:
      k: 1 to 12.

    Raises:
      ValueError: `k` is out of range.

    Example:
      >>> graph = mycielski_graph(3)
      >>> graph.n, len(graph.edges)
      (11, 20)
    """
    k = _integer("k", k, 1, 12)
    n, edges = 2, np.array([[0, 1]])
    for _ in range(k - 1):
        to_copy = [edges + np.array(shift) for shift in ([0, n], [n, 0])]
        to_top = np.column_stack([np.arange(n, 2 * n), np.full(n, 2 * n)])
        n, edges = 2 * n + 1, np.concatenate([edges, *to_copy, to_top])
    return _instance(f"myciel{k}", n, edges)


def random_graph(n: int, density: float, seed: int, weights: Sequence[int] = (1,)) -> GraphInstance:
    """Returns a random graph with a given share of all edges, as rudy draws it.

    Edges are drawn until there are `n * (n - 1) / 2 * density` different ones, rounded to nearest:
    two vertices at a time, and again if they are equal or have an edge. Then the weights are
    drawn from the same seed. So graphs of the G-set (Helmberg and Rendl, "A spectral bundle method
    for semidefinite programming", 2000) are

    - G1 to G5: `random_graph(800, 0.06, seed)` with the seeds 8001 to 8005,
    - G6 to G10: the same with `weights=(-1, 1)`,
    - G43 to G47: `random_graph(1000, 0.02, seed)` with the seeds 10001 to 10005.

    The random numbers are from GB_FLIP and the graph is from GB_RAND (Knuth, "The Stanford
    GraphBase", 1993), on which rudy (Rinaldi, 1995) is built. Tests check the graphs' digests.

    Args:
      n: number of vertices, at least 1.
      density: the share of all edges, from 0 to 1.
      seed: 0 to 2**31 - 1.
      weights: what an edge's weight is drawn from, each equally likely.

    Raises:
      ValueError: an argument is out of range.

    Example:
      >>> graph = random_graph(800, 0.06, seed=8001)
      >>> graph.n, len(graph.edges)
      (800, 19176)
    """
    n = _integer("n", n, 1, 10**6)
    good = isinstance(density, numbers.Real) and not isinstance(density, bool)
    if not good or not 0 <= density <= 1:
        raise ValueError(f"density is {density!r}, expected a number from 0 to 1")
    wanted = math.floor(n * (n - 1) / 2 * float(density) + 0.5)
    _integer("number of edges", wanted, 0, MAX_EDGES)
    below = _Flip(seed).below
    pairs: dict[tuple[int, int], None] = {}  # a set that keeps the order
    while len(pairs) < wanted:
        u, v = below(n), below(n)
        if u != v:
            pairs[min(u, v), max(u, v)] = None
    name = f"random-{n}-d{float(density):g}"
    return _weighted(name, n, pairs, seed, weights)


def toroidal_grid(
    rows: int, columns: int, seed: int, weights: Sequence[int] = (-1, 1)
) -> GraphInstance:
    """Returns a grid whose opposite sides are joined, with random weights, as rudy draws them.

    Each vertex has four neighbors. Of the G-set (see `random_graph`), with n = 800, these are G11:
    `toroidal_grid(100, 8, seed=8001)`, G12: `(50, 16, seed=8002)` and G13: `(25, 32, seed=8003)`.

    Args:
      rows, columns: at least 3 each; cell (r, c) is vertex `r * columns + c`.
      seed: 0 to 2**31 - 1.
      weights: what an edge's weight is drawn from, each equally likely.

    Raises:
      ValueError: an argument is out of range.

    Example:
      >>> graph = toroidal_grid(100, 8, seed=8001)
      >>> graph.n, len(graph.edges), sorted(set(graph.weights.tolist()))
      (800, 1600, [-1, 1])
    """
    rows, columns = _integer("rows", rows, 3), _integer("columns", columns, 3)
    n = _integer("rows * columns", rows * columns, 9, MAX_EDGES // 2)
    cells = [divmod(cell, columns) for cell in range(n)]
    right = [(cell, r * columns + (c + 1) % columns) for cell, (r, c) in enumerate(cells)]
    down = [(cell, (r + 1) % rows * columns + c) for cell, (r, c) in enumerate(cells)]
    return _weighted(f"torus-{rows}x{columns}", n, right + down, seed, weights)


def _weighted(
    name: str, n: int, pairs: Iterable[tuple[int, int]], seed: int, weights: Sequence[int]
) -> GraphInstance:
    """Returns the graph of these edges, in the order in which they were made, with random weights.

    Weights are drawn for one vertex after the other, and each one's edges to later vertices, the
    last made first: the order of the GraphBase's lists of neighbors.
    """
    values = [_integer("a weight", value, -(2**31), 2**31 - 1) for value in weights]
    if not values:
        raise ValueError("weights is empty, expected at least one")
    later: list[list[int]] = [[] for _ in range(n)]
    for u, v in pairs:
        later[min(u, v)].append(max(u, v))
    edges = [(u, v) for u, others in enumerate(later) for v in reversed(others)]
    below = _Flip(seed).below
    drawn = [values[below(len(values))] for _ in edges]
    extra = "" if values == [1] else "-w" + ",".join(map(str, values))
    return _instance(f"{name}{extra}-s{seed}", n, edges, drawn)


def _instance(
    name: str, n: int, edges: Sequence | np.ndarray, weights: Sequence[int] | None = None
) -> GraphInstance:
    """Returns an instance with its edges in ascending order."""
    pairs = np.asarray(edges, np.int64).reshape(-1, 2)
    values = np.ones(len(pairs), np.int64) if weights is None else np.asarray(weights, np.int64)
    pairs = np.sort(pairs, axis=1)
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    return GraphInstance(name=name, n=n, edges=pairs[order], weights=values[order])


class _Flip:
    """Knuth's portable random numbers, GB_FLIP of "The Stanford GraphBase" (1993).

    A subtractive generator, x[k] = x[k - 24] - x[k - 55] modulo 2**31, that hands out each block of
    55 numbers from the last to the first.
    """

    def __init__(self, seed: int):
        shifted = _integer("seed", seed, 0, _BITS)
        table, previous, current, place = [0] * 55, shifted, 1, 21
        table[54] = shifted
        while place:
            table[place - 1] = current
            shifted = shifted >> 1 | (shifted & 1) << 30
            previous, current = current, (previous - current - shifted) & _BITS
            place = (place + 21) % 55
        self._block = np.array(table, np.int64)
        for _ in range(5):
            self._refill()
        self._left.pop()

    def below(self, m: int) -> int:
        """Returns a uniform number from 0 to m - 1."""
        limit = 2**31 - 2**31 % m  # what is at or above it would favor small remainders
        while True:
            if not self._left:
                self._refill()
            if (number := self._left.pop()) < limit:
                return number % m

    def _refill(self) -> None:
        block = self._block
        for start, stop, back in ((0, 24, -31), (24, 48, 24), (48, 55, 24)):
            block[start:stop] -= block[start - back : stop - back]
            block[start:stop] &= _BITS
        self._left = block.tolist()


def _integer(name: str, value: int, low: int, high: int | None = None) -> int:
    limits = f"at least {low}" if high is None else f"in {low}..{high}"
    good = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not good or value < low or (high is not None and value > high):
        raise ValueError(f"{name} is {value!r}, expected an integer {limits}")
    return int(value)
