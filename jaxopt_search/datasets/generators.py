"""Random instances, and instances whose optimum is known by construction."""

import itertools
import numbers

import numpy as np

from jaxopt_search.datasets.instances import QAPInstance, TSPInstance

MAX_SIZE = 10**9
"""Largest extent of generated coordinates."""

MAX_CITIES, MAX_FACILITIES = 10**8, 2**14
"""The most that are generated: their coordinates or matrices take some gigabytes."""


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
    n, size = _integer("n", n, 1, MAX_CITIES), _integer("size", size, 1, MAX_SIZE)
    points = _generator(seed).integers(0, size, (n, 2))
    extra = "" if size == 1_000_000 else f"-size{size}"
    return _points(f"uniform-{n}{extra}-s{seed}", points)


def clustered_tsp(
    n: int, *, seed: int, num_clusters: int | None = None, size: int = 1_000_000
) -> TSPInstance:
    """Returns n cities in normal clusters around uniform centers, EUC_2D, as DIMACS does.

    Each city takes a random center and adds a normal deviate of standard deviation
    `size / sqrt(n)` to each coordinate; coordinates may leave `[0, size)`.

    Args:
      n: number of cities.
      seed: seed of the generator.
      num_clusters: number of centers, by default `max(1, n // 100)`.
      size: extent of the square that holds the centers.

    Raises:
      ValueError: an argument is out of range.

    Example:
      >>> instance = clustered_tsp(300, seed=0)
      >>> instance.name, instance.coordinates.shape
      ('clustered-300-c3-s0', (300, 2))
    """
    n, size = _integer("n", n, 1, MAX_CITIES), _integer("size", size, 1, MAX_SIZE)
    count = max(1, n // 100) if num_clusters is None else num_clusters
    count = _integer("num_clusters", count, 1, n)
    rng = _generator(seed)
    centers = rng.integers(0, size, (count, 2))
    around = centers[rng.integers(0, count, n)]
    points = np.floor(around + rng.normal(0.0, size / np.sqrt(n), (n, 2)))
    extra = "" if size == 1_000_000 else f"-size{size}"
    return _points(f"clustered-{n}-c{count}{extra}-s{seed}", points)


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
    rows, columns = _integer("rows", rows, 2), _integer("columns", columns, 2)
    n = _integer("rows * columns", rows * columns, 1, MAX_CITIES)
    spacing = _integer("spacing", spacing, 1, MAX_SIZE // max(rows, columns))
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
    n = _integer("n", n, 3, 2**15)
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
    n = _integer("n", n, 1, MAX_FACILITIES)
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
    rows, columns = _integer("rows", rows, 1), _integer("columns", columns, 1)
    n = _integer("rows * columns", rows * columns, 2, MAX_FACILITIES)
    rng = _generator(seed)
    cells = np.indices((rows, columns)).reshape(2, n).T
    distance = np.abs(cells[:, None] - cells[None, :]).sum(-1)
    base = int(rng.integers(1, 10))
    in_place = np.full((n, n), base, np.int64)  # flow between the facilities at two locations
    for group in _groups(rows, columns):
        weight = int(rng.integers(0, 10))
        for i, j in itertools.combinations(group, 2):
            in_place[i, j] += weight
            in_place[j, i] += weight
    np.fill_diagonal(in_place, 0)
    hidden = rng.permutation(n)  # location of each facility
    return QAPInstance(
        name=f"planted-qap-{rows}x{columns}-s{seed}",
        flow=in_place[np.ix_(hidden, hidden)],
        distance=distance,
        best_known=int((in_place * distance).sum()),
        is_optimal=True,
    )


def _groups(rows: int, columns: int):
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
    return np.random.default_rng(_integer("seed", seed, 0))


def _integer(name: str, value: int, low: int, high: int | None = None) -> int:
    limits = f"at least {low}" if high is None else f"in {low}..{high}"
    good = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not good or value < low or (high is not None and value > high):
        raise ValueError(f"{name} is {value!r}, expected an integer {limits}")
    return int(value)
