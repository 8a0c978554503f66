"""Instances as data, as the readers, the generators and `load` return them."""

import dataclasses
import hashlib
from typing import Any

import numpy as np

from jaxopt_search.checks import (
    check_option,
    check_permutation,
    check_places,
    check_shape,
    check_square,
)
from jaxopt_search.datasets import distances

MAX_FLOAT = 1e12
"""Largest coordinate or distance that is no integer: squares stay finite and sums fit 64 bits."""


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class TSPInstance:
    """A travelling salesman instance, mostly with integer distances.

    Attributes:
      name: name of the instance.
      edge_weight_type: "EXPLICIT" if `matrix` is given, else a key of `distances.EDGE_WEIGHTS`.
      coordinates: [n, 2] float64, or None.
      matrix: [n, n] int64 or float64, zero diagonal, or None.
      best_known: length of the best known tour, None if there is none on record.
      is_optimal: whether `best_known` is proved optimal.

    Example:
      >>> corners = np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 4.0], [3.0, 0.0]])
      >>> instance = TSPInstance(name="corners", edge_weight_type="EUC_2D", coordinates=corners)
      >>> instance.n, instance.tour_length(np.array([0, 2, 1, 3])), instance.distances()[0].tolist()
      (4, 14, [0, 5, 4, 3])
    """

    name: str
    edge_weight_type: str
    coordinates: np.ndarray | None = None
    matrix: np.ndarray | None = None
    best_known: int | None = None
    is_optimal: bool = False

    def __post_init__(self):
        if (self.matrix is None) == (self.coordinates is None):
            raise ValueError("expected matrix or coordinates, one of the two")
        kinds = tuple(distances.EDGE_WEIGHTS) if self.matrix is None else ("EXPLICIT",)
        check_option("edge_weight_type", self.edge_weight_type, kinds)
        if self.matrix is None:
            _check_array("coordinates", self.data, "float64")
            check_places(self.data, "coordinates")
            return
        _check_array("matrix", self.data, "int64", "float64")
        check_square(self.data, "matrix")
        if self.data.diagonal().any():
            raise ValueError("matrix has a nonzero diagonal, expected zeros")

    @property
    def data(self) -> Any:
        """The matrix or the coordinates, whichever is given."""
        return self.matrix if self.coordinates is None else self.coordinates

    @property
    def n(self) -> int:
        """The number of cities."""
        return len(self.data)

    def distances(self) -> np.ndarray:
        """Returns the [n, n] distances, int64 or float64; computed by each call if need be."""
        if self.matrix is not None:
            return self.matrix
        return distances.distance_matrix(self.data, self.edge_weight_type)

    def tour_length(self, tour: np.ndarray) -> int | float:
        """Returns the length of the closed tour: of integers exact, as a Python integer.

        Args:
          tour: [n] integers, a permutation of `0..n-1`.

        Raises:
          ValueError: `tour` is not a permutation.
        """
        tour = check_permutation(tour, "tour", self.n)
        if self.matrix is not None:
            return sum(self.matrix[tour, np.roll(tour, -1)].tolist())
        return distances.tour_length(self.data, self.edge_weight_type, tour)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class QAPInstance:
    """A quadratic assignment instance with integer matrices.

    The cost of an assignment `p` is the sum over all `i`, `j`, the diagonal included, of
    `flow[i, j] * distance[p[i], p[j]]`.

    Attributes:
      name: name of the instance.
      flow: [n, n] int64 between facilities; the first matrix of a QAPLIB file.
      distance: [n, n] int64 between locations; the second matrix of a QAPLIB file.
      best_known: cost of the best known assignment, None if there is none on record.
      is_optimal: whether `best_known` is proved optimal.

    Example:
      >>> flow, distance = np.array([[0, 5], [1, 0]]), np.array([[0, 3], [2, 0]])
      >>> instance = QAPInstance(name="two", flow=flow, distance=distance)
      >>> instance.cost(np.array([0, 1])), instance.cost(np.array([1, 0]))
      (17, 13)
    """

    name: str
    flow: np.ndarray
    distance: np.ndarray
    best_known: int | None = None
    is_optimal: bool = False

    def __post_init__(self):
        for what, matrix in (("flow", self.flow), ("distance", self.distance)):
            _check_array(what, matrix, "int64")
            check_square(matrix, what)
        check_shape(self.distance, "distance", self.flow.shape, " as flow has")

    @property
    def n(self) -> int:
        """The number of facilities."""
        return len(self.flow)

    def cost(self, assignment: np.ndarray) -> int:
        """Returns the exact cost of an assignment, as a Python integer.

        Args:
          assignment: [n] integers, the location of each facility: a permutation of `0..n-1`.

        Raises:
          ValueError: `assignment` is not a permutation.
        """
        p = check_permutation(assignment, "assignment", self.n)
        flow, placed = self.flow, self.distance[np.ix_(p, p)]
        largest = [max(abs(int(each.max())), abs(int(each.min()))) for each in (flow, placed)]
        if self.n**2 * largest[0] * largest[1] >= 2**63:
            flow, placed = flow.astype(object), placed.astype(object)
        return int((flow * placed).sum())


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class GraphInstance:
    """An undirected graph without loops, with integer weights on its edges.

    Attributes:
      name: name of the instance.
      n: number of vertices, which are 0 to n - 1.
      edges: [m, 2] int64, each edge once, its smaller vertex first.
      weights: [m] int64, of the edges; ones where a graph has no weights.

    Example:
      >>> edges, weights = np.array([[0, 1], [1, 2]]), np.array([1, -1])
      >>> GraphInstance(name="path", n=3, edges=edges, weights=weights).matrix().tolist()
      [[0, 1, 0], [1, 0, -1], [0, -1, 0]]
    """

    name: str
    n: int
    edges: np.ndarray
    weights: np.ndarray

    def __post_init__(self):
        _check_array("edges", self.edges, "int64")
        _check_array("weights", self.weights, "int64")
        if self.weights.ndim != 1 or self.edges.shape != (len(self.weights), 2):
            shapes = f"{self.edges.shape} and weights {self.weights.shape}"
            raise ValueError(f"edges has shape {shapes}, expected (m, 2) and (m,)")
        low, high = self.edges.T
        if ((low < 0) | (low >= high) | (high >= self.n)).any():
            raise ValueError(f"edges has a pair (i, j) without 0 <= i < j < n, where n is {self.n}")
        if len(np.unique(low * self.n + high)) < len(low):
            raise ValueError("edges has a pair twice, expected each edge once")

    def matrix(self) -> np.ndarray:
        """Returns the [n, n] int64 weights, symmetric, 0 where there is no edge."""
        weights = np.zeros((self.n, self.n), np.int64)
        low, high = self.edges.T
        weights[low, high] = weights[high, low] = self.weights
        return weights


def digest(instance: TSPInstance | QAPInstance | GraphInstance) -> str:
    """Returns 32 hexadecimal digits of SHA-256 over the numbers of an instance.

    Neither the layout of its file nor its name nor a best known cost changes them.
    """
    if isinstance(instance, QAPInstance):
        kind, arrays = "QAP", (instance.flow, instance.distance)
    elif isinstance(instance, GraphInstance):
        kind, arrays = f"graph {instance.n}", (instance.edges, instance.weights)
    else:
        kind, arrays = instance.edge_weight_type, (instance.data,)
    found = hashlib.sha256(kind.encode())
    for array in arrays:
        found.update(repr(array.shape).encode())
        # Adding 0 makes one of the two zeros of floats.
        found.update((array + 0).astype(array.dtype.newbyteorder("<"), order="C").tobytes())
    return found.hexdigest()[:32]


def _check_array(what: str, array: Any, *dtypes: str) -> None:
    """Refuses what is no array of these dtypes, and floats that are not finite or too large."""
    if not isinstance(array, np.ndarray) or array.dtype not in dtypes:
        kind = getattr(array, "dtype", type(array).__name__)
        raise ValueError(f"{what} is {kind}, expected an array of {' or '.join(dtypes)}")
    bad = array[~(np.abs(array) <= MAX_FLOAT)] if array.dtype.kind == "f" else array[:0]
    if bad.size:
        raise ValueError(f"{what} holds {bad.flat[0]}, expected values within +-1e12")
