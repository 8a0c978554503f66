"""Generated instances: tours, assignments, quadratic forms, and graphs to color and to cut.

Some have an optimum that is known by construction. Random graphs are drawn as by rudy, the
generator of the G-set's graphs, so that the same arguments give the same graphs on any platform.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from jaxopt_search.checks import check_count, check_share
from jaxopt_search.datasets.instances import GraphInstance, QAPInstance, TSPInstance

__all__ = [
    "clustered_tsp",
    "grid_tsp",
    "mycielski_graph",
    "planar_union",
    "planted_qap",
    "planted_tsp",
    "queen_graph",
    "random_graph",
    "random_qubo",
    "toroidal_grid",
    "uniform_qap",
    "uniform_tsp",
]

MAX_SIZE = 10**9
"""Largest extent of generated coordinates."""

MAX_CITIES, MAX_FACILITIES = 10**8, 2**14
"""The most that are generated: their coordinates or matrices take some gigabytes."""

MAX_EDGES = 10**7
"""Most edges of a generated graph."""

MAX_VARIABLES = 2**14
"""Most variables of a QUBO that is made or read, whose matrix then takes one or two gigabytes."""

_BITS = 2**31 - 1
_MULTIPLIER, _PRIME = 16807, 2**31 - 1
"""Of the generator of Park and Miller, "Random number generators: good ones are hard to find"."""


def uniform_tsp(n: int, *, seed: int, size: int = 1_000_000) -> TSPInstance:
    """Returns n cities at independent uniform integer points of `[0, size)^2`, EUC_2D.

    This is the random uniform model of the DIMACS challenge (Johnson and McGeoch, 2002); the
    optimum is near `0.7124 * sqrt(n) * size` for large n.

    Raises:
      ValueError: an argument is out of range.

    Example:
      >>> instance = uniform_tsp(100, seed=0)
      >>> instance.name, instance.coordinates.shape
      ('uniform-100-s0', (100, 2))
    """
    n, size = check_count("n", n, 1, MAX_CITIES), check_count("size", size, 1, MAX_SIZE)
    points = _generator(seed).integers(0, size, (n, 2))
    extra = "" if size == 1_000_000 else f"-size{size}"
    return _points(f"uniform-{n}{extra}-s{seed}", points)


def clustered_tsp(n: int, *, seed: int) -> TSPInstance:
    """Returns n cities in normal clusters around uniform centers, EUC_2D, as DIMACS does.

    There are `max(1, n // 100)` centers in `[0, size)^2` with a size of 1,000,000. Each city takes
    a random one and adds a normal deviate of standard deviation `size / sqrt(n)` to each
    coordinate, which may leave the square.

    Raises:
      ValueError: an argument is out of range.

    Example:
      >>> instance = clustered_tsp(300, seed=0)
      >>> instance.name, instance.coordinates.shape
      ('clustered-300-c3-s0', (300, 2))
    """
    n, size = check_count("n", n, 1, MAX_CITIES), 1_000_000
    rng, count = _generator(seed), max(1, n // 100)
    centers = rng.integers(0, size, (count, 2))
    around = centers[rng.integers(0, count, n)]
    points = np.floor(around + rng.normal(0.0, size / np.sqrt(n), (n, 2)))
    return _points(f"clustered-{n}-c{count}-s{seed}", points)


def grid_tsp(rows: int, columns: int, *, spacing: int = 10, seed: int | None = None) -> TSPInstance:
    """Returns the cities of a `rows` x `columns` grid, EUC_2D, with the optimum known.

    Let n = rows * columns. No two cities are closer than `spacing`, so no tour is shorter than
    `n * spacing`. If n is even, a tour of unit steps exists (up and down the columns of the even
    side, and back along one row), so this is the optimum. If n is odd, color the grid like a
    chessboard: unit steps change color, and a closed walk of odd length cannot change color at each
    step. So some edge joins cities of one color; its displacement is not a unit step and has
    length at least `sqrt(2) * spacing`. Rounding to nearest is monotone, so no tour is shorter
    than `(n - 1) * spacing + floor(sqrt(2) * spacing + 0.5)`, and a tour with one diagonal has it.

    Args:
      rows, columns: at least 2 each.
      spacing: distance of neighbors.
      seed: shuffles the cities; None keeps them row by row.

    Raises:
      ValueError: an argument is out of range.

    Example:
      >>> grid_tsp(3, 3).best_known, grid_tsp(2, 3).best_known
      (94, 60)
    """
    rows, columns = check_count("rows", rows, 2, None), check_count("columns", columns, 2, None)
    n = check_count("rows * columns", rows * columns, 1, MAX_CITIES)
    spacing = check_count("spacing", spacing, 1, MAX_SIZE // max(rows, columns))
    points = spacing * np.indices((rows, columns)).reshape(2, n).T
    name = f"grid-{rows}x{columns}-d{spacing}"
    if seed is not None:
        points, name = _generator(seed).permutation(points), f"{name}-s{seed}"
    best = n * spacing
    if n % 2:
        best += int(np.floor(np.sqrt(2.0 * spacing**2) + 0.5)) - spacing
    return _points(name, points, best_known=best, is_optimal=True)


def planted_tsp(n: int, *, seed: int) -> TSPInstance:
    """Returns a random symmetric matrix with a hidden optimal tour.

    Distances are `u[i] + u[j] + s[i, j]` with positive potentials u and slacks s that are zero on a
    hidden tour and at least zero elsewhere. A tour meets each city twice, so it costs
    `2 * sum(u)` plus its slacks, and the hidden tour, which has none, is optimal.

    Potentials are uniform in `1..n`, other slacks in `0..n-1`: potentials mislead a greedy choice
    by distance, and each city has about as many small slacks elsewhere as on the tour.

    Raises:
      ValueError: an argument is out of range.

    Example:
      >>> instance = planted_tsp(50, seed=0)
      >>> instance.matrix.shape, instance.is_optimal
      ((50, 50), True)
    """
    n = check_count("n", n, 3, 2**15)
    rng = _generator(seed)
    potential = rng.integers(1, n + 1, n)
    slack = np.triu(rng.integers(0, n, (n, n)), 1)
    slack += slack.T
    tour = rng.permutation(n)
    following = np.roll(tour, -1)
    slack[tour, following] = slack[following, tour] = 0
    matrix = potential[:, None] + potential[None, :] + slack
    np.fill_diagonal(matrix, 0)
    return TSPInstance(
        name=f"planted-{n}-s{seed}",
        edge_weight_type="EXPLICIT",
        matrix=matrix,
        best_known=2 * int(potential.sum()),
        is_optimal=True,
    )


def uniform_qap(n: int, *, seed: int) -> QAPInstance:
    """Returns symmetric matrices, uniform in 0..99 off the diagonal, as Taillard's `tai*a` (1991).

    Raises:
      ValueError: an argument is out of range.

    Example:
      >>> instance = uniform_qap(12, seed=0)
      >>> instance.name, instance.flow.shape, instance.best_known
      ('uniform-qap-12-s0', (12, 12), None)
    """
    n = check_count("n", n, 1, MAX_FACILITIES)
    rng = _generator(seed)
    flow, distance = (np.triu(rng.integers(0, 100, (n, n)), 1) for _ in range(2))
    name = f"uniform-qap-{n}-s{seed}"
    return QAPInstance(name=name, flow=flow + flow.T, distance=distance + distance.T)


def planted_qap(rows: int, columns: int, *, seed: int) -> QAPInstance:
    """Returns a QAP on a grid of locations with Manhattan distances and a known optimum.

    The flow is a sum of parts, each of which the hidden assignment places as cheaply as any
    assignment can; then so does their sum. This is the idea of Li and Pardalos (Comput. Optim.
    Appl. 1, 1992) and Palubeckis (J. Global Optim. 15, 1999), with parts of our own:

    - a pair of facilities costs at least 1; in place they are neighbors;
    - three facilities with equal flows: the grid is bipartite, so three locations have at most two
      neighboring pairs, and the third pair is at distance 2 or more: at least 1 + 1 + 2 = 4. In
      place they are three cells in a row or in an L;
    - four facilities with equal flows: a graph of four vertices without triangles has at most
      four edges (Mantel), so the six distances are at least 4 * 1 + 2 * 2 = 8. In place they are a
      2 x 2 block;
    - the same flow between all pairs costs the same for every assignment.

    All parts have random weights, and facilities are numbered at random.

    Args:
      rows, columns: size of the grid, at least two cells.
      seed: seed of the generator.

    Raises:
      ValueError: an argument is out of range.

    Example:
      >>> instance = planted_qap(3, 4, seed=0)
      >>> instance.flow.shape, instance.is_optimal
      ((12, 12), True)
    """
    rows, columns = check_count("rows", rows, 1, None), check_count("columns", columns, 1, None)
    n = check_count("rows * columns", rows * columns, 2, MAX_FACILITIES)
    rng = _generator(seed)
    cells = np.indices((rows, columns)).reshape(2, n).T
    distance = np.abs(cells[:, None] - cells[None, :]).sum(-1)
    base = int(rng.integers(1, 10))
    in_place = np.full((n, n), base, np.int64)  # flow between the facilities at two locations
    for group in _groups(rows, columns):
        in_place[np.ix_(group, group)] += rng.integers(0, 10)
    np.fill_diagonal(in_place, 0)
    hidden = rng.permutation(n)  # location of each facility
    return QAPInstance(
        name=f"planted-qap-{rows}x{columns}-s{seed}",
        flow=in_place[np.ix_(hidden, hidden)],
        distance=distance,
        best_known=int((in_place * distance).sum()),
        is_optimal=True,
    )


def _groups(rows: int, columns: int) -> Iterator[list[int]]:
    """Yields the neighboring pairs, rows of three, Ls and 2 x 2 blocks of a grid, as cells."""
    block = [(0, 0), (0, 1), (1, 0), (1, 1)]
    straight = [(0, 0), (0, 1), (0, 2)]
    shapes = [block[:2], block[::2], straight, [(c, r) for r, c in straight], block]
    shapes += [[cell for cell in block if cell != corner] for corner in block]
    for shape in shapes:
        height, width = (1 + max(cell[axis] for cell in shape) for axis in (0, 1))
        for r, c in itertools.product(range(rows - height + 1), range(columns - width + 1)):
            yield [(r + dr) * columns + c + dc for dr, dc in shape]


def _points(name: str, points: np.ndarray, **fields) -> TSPInstance:
    coordinates = points.astype(np.float64)
    return TSPInstance(name=name, edge_weight_type="EUC_2D", coordinates=coordinates, **fields)


def _generator(seed: int) -> np.random.Generator:
    return np.random.default_rng(check_count("seed", seed, 0, None))


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
    rows, columns = check_count("rows", rows, 1, 10**3), check_count("columns", columns, 1, 10**3)
    n = check_count("rows * columns", rows * columns, 1, 10**4)
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
    k = check_count("k", k, 1, 12)
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
    - G22 to G26: `random_graph(2000, 0.01, seed)` with 20001 to 20005, but 2002 for G23,
    - G6 to G10, G27 to G31: the same with `weights=(-1, 1)`, and 20002 for G28,
    - G43 to G47: `random_graph(1000, 0.02, seed)` with 10001 to 10005,
    - G55, G60, G70: `random_graph(5000, 0.001, 50001)`, `(7000, 0.0007, 70001)` and
      `(10000, 0.0002, 100001)`; G56, G61: the first two with `weights=(-1, 1)`.

    `toroidal_grid` and `planar_union` make the others.

    The random numbers are from GB_FLIP and the graph is from GB_RAND (Knuth, "The Stanford
    GraphBase", 1993), on which rudy (Rinaldi, 1995) is built. Tests check digests of some of each
    kind.

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
    n = check_count("n", n, 1, 10**6)
    wanted = math.floor(n * (n - 1) / 2 * float(check_share("density", density)) + 0.5)
    check_count("number of edges", wanted, 0, MAX_EDGES)
    below = drawing(seed)
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

    Each vertex has four neighbors. Of the G-set (see `random_graph`) these are, as rows x columns
    and seed, G11 to G13: 100 x 8, 8001; 50 x 16, 8002; 25 x 32, 8003; G32 to G34: 100 x 20, 20003;
    80 x 25, 20002; 50 x 40, 20001; G57 and G62: 100 x 50 and 100 x 70, both 50001; G65: 100 x 80,
    80001; G66: 90 x 100, 90001; G67 and G72: 100 x 100, 100001 and 10001; G77: 140 x 100, 140001;
    G81: 200 x 100, 200001; with `weights=(1,)` and any seed, G48 to G50: 50 x 60, 30 x 100 and
    25 x 120.

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
    rows, columns = check_count("rows", rows, 3, None), check_count("columns", columns, 3, None)
    n = check_count("rows * columns", rows * columns, 9, MAX_EDGES // 2)
    cells = [divmod(cell, columns) for cell in range(n)]
    right = [(cell, r * columns + (c + 1) % columns) for cell, (r, c) in enumerate(cells)]
    down = [(cell, (r + 1) % rows * columns + c) for cell, (r, c) in enumerate(cells)]
    return _weighted(f"torus-{rows}x{columns}", n, right + down, seed, weights)


def planar_union(
    n: int, density: float, seeds: Sequence[int], weights: Sequence[int] = (1,), seed: int = 0
) -> GraphInstance:
    """Returns the union of random planar graphs on the same vertices, as rudy makes it.

    Each starts from a triangle. One vertex after the other goes into a random triangle, and is
    joined to its corners; then random edges are removed. Of the G-set (see `random_graph`) are

    - G14 to G17: `planar_union(800, 0.99, seeds)` with the seeds (8001, 8002), (8003, 8004), ...,
    - G18 to G21: the same with `weights=(-1, 1)` and the seeds 8001 to 8004 of the weights,
    - G35 to G42: both again with `n = 2000` and 20001 in place of 8001,
    - G51 to G54: `planar_union(1000, 1, seeds)` from the seeds (10001, 10002) on,
    - G58, G63: `planar_union(5000, 0.99, (50001, 50002))`, `(7000, 0.99, (70001, 70002))`,
    - G59, G64: the same with `weights=(-1, 1)` and the seeds 50001 and 70001 of the weights.

    Args:
      n: number of vertices, at least 3.
      density: the share of the `3 * n - 6` edges that each graph keeps at most, from 0 to 1.
      seeds: 0 to 2**31 - 1, one for each planar graph.
      weights: what an edge's weight is drawn from, each equally likely.
      seed: of the weights.

    Raises:
      ValueError: an argument is out of range.

    Example:
      >>> graph = planar_union(800, 0.99, seeds=(8001, 8002))
      >>> graph.n, len(graph.edges)
      (800, 4694)
    """
    n = check_count("n", n, 3, 10**6)
    if not len(seeds):
        raise ValueError("seeds is empty, expected at least one")
    percent = 100 * float(check_share("density", density))
    union, *others = (_planar(n, percent * (3 * n - 6) / 100, each) for each in seeds)
    for edges in others:
        # A union takes over lists of neighbors, in which the edge that was made last is in front.
        union = list(dict.fromkeys([*reversed(union), *reversed(edges)]))
    name = f"planar-{n}-d{float(density):g}-{'+'.join(map(str, seeds))}"
    return _weighted(name, n, union, seed, weights)


def _planar(n: int, most: float, seed: int) -> list[tuple[int, int]]:
    """Returns the edges of a random planar graph, in the order in which rudy makes them."""
    below = drawing(seed)
    triangles, edges = [(0, 1, 2)], [(0, 1), (0, 2), (1, 2)]
    for new in range(3, n):
        place = below(len(triangles))
        a, b, c = triangles[place]
        triangles[place] = a, b, new
        triangles += [(a, c, new), (b, c, new)]
        edges += [(a, new), (b, new), (c, new)]
    while len(edges) > most:
        removed = below(len(edges))
        edges[removed] = edges[-1]
        edges.pop()
    return edges


def random_qubo(n: int, density: float, seed: int) -> np.ndarray:
    """Returns the matrix of a random QUBO, to be maximized, as Palubeckis draws it.

    Entries are -100 to 100, each equally likely; on the diagonal all of them, elsewhere a share. So
    the instances of Palubeckis, "Multistart tabu search strategies for the unconstrained binary
    quadratic optimization problem", 2004, and "Iterated tabu search for the unconstrained binary
    quadratic optimization problem", 2006, are, of n = 3000, 4000 and 5000,

    - pN.1: `random_qubo(N, 0.5, seed=10 * N + 1000)`, such as p3000.1 with the seed 31000,
    - pN.2 and pN.3: `random_qubo(N, 0.8, seed)` with the seeds 1000 and 2000 above that,
    - pN.4 and pN.5: `random_qubo(N, 1, seed)` with the seeds 3000 and 4000 above it.

    The random numbers are those of Park and Miller, 1988, by which his program draws. The sums of
    pN.4 and pN.5 of N = 4000 and 5000 were not compared with published ones.

    Args:
      n: number of variables, at least 1.
      density: the share of entries beside the diagonal that are drawn, from 0 to 1.
      seed: 1 to 2**31 - 2.

    Returns:
      [n, n] int32, symmetric, so that the sum which a vector selects counts each pair twice.

    Raises:
      ValueError: an argument is out of range.

    Example:
      >>> random_qubo(4, 0.5, seed=1)[0].tolist()
      [-100, 51, 7, -91]
    """
    n = check_count("n", n, 1, MAX_VARIABLES)
    percent = 100 * float(check_share("density", density))
    state = check_count("seed", seed, 1, _PRIME - 1)
    powers = np.array([_MULTIPLIER])
    while len(powers) < 2 * n:
        powers = np.concatenate([powers, powers * powers[-1] % _PRIME])
    matrix = np.zeros((n, n), np.int32)
    for row in range(n):
        states = state * powers[: 2 * (n - row) - 1] % _PRIME
        share = states / 2**31
        value = (share * 201).astype(np.int32) - 100
        # Behind the entry of the diagonal stands for each other one a number that tells whether it
        # is drawn and, if so, one more: whatever stands behind one that tells so.
        is_drawn, place = (share * 100).astype(np.float32)[1:] <= percent, np.arange(len(share) - 1)
        last_not = np.maximum.accumulate(np.where(is_drawn, -1, place))
        telling = np.flatnonzero((place - np.r_[-1, last_not][:-1]) % 2 == 1)[: n - row - 1]
        (drawn,) = np.nonzero(is_drawn[telling])
        matrix[row, row] = value[0]
        matrix[row, row + 1 + drawn] = value[telling[drawn] + 2]
        used = telling[-1] + 1 + is_drawn[telling[-1]] if len(telling) else 0
        state = int(states[used])
    return matrix + np.triu(matrix, 1).T


def _weighted(
    name: str, n: int, pairs: Iterable[tuple[int, int]], seed: int, weights: Sequence[int]
) -> GraphInstance:
    """Returns the graph of these edges, in the order in which they were made, with random weights.

    Weights are drawn for one vertex after the other, and each one's edges to later vertices, the
    last made first: the order of the GraphBase's lists of neighbors.
    """
    values = [check_count("a weight", value, -(2**31), 2**31 - 1) for value in weights]
    if not values:
        raise ValueError("weights is empty, expected at least one")
    later: list[list[int]] = [[] for _ in range(n)]
    for u, v in pairs:
        later[min(u, v)].append(max(u, v))
    edges = [(u, v) for u, others in enumerate(later) for v in reversed(others)]
    below = drawing(seed)
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


def _flips(seed: int) -> Iterator[int]:
    """Yields Knuth's portable random numbers, GB_FLIP of "The Stanford GraphBase" (1993).

    A subtractive generator, x[k] = x[k - 24] - x[k - 55] modulo 2**31, that hands out each block of
    55 numbers from the last to the first.
    """
    table, previous, current, place = [0] * 55, seed, 1, 21
    table[54] = shifted = seed
    while place:
        table[place - 1] = current
        shifted = shifted >> 1 | (shifted & 1) << 30
        previous, current = current, (previous - current - shifted) & _BITS
        place = (place + 21) % 55
    block = np.array(table, np.int64)
    for number in itertools.count():
        for start, stop, back in ((0, 24, -31), (24, 48, 24), (48, 55, 24)):
            block[start:stop] -= block[start - back : stop - back]
            block[start:stop] &= _BITS
        if number >= 4:
            yield from reversed(block.tolist())


def drawing(seed: int) -> Callable[[int], int]:
    """Returns a function that returns uniform numbers from 0 to m - 1."""
    numbers = _flips(check_count("seed", seed, 0, _BITS))
    next(numbers)

    def below(m: int) -> int:
        limit = 2**31 - 2**31 % m  # numbers from there on would favor small remainders
        return next(number for number in numbers if number < limit) % m

    return below
