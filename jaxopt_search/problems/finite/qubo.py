"""Quadratic unconstrained binary optimization (QUBO), with the maximum cut of a graph as a case.

Kochenberger et al., "The unconstrained binary quadratic programming problem: a survey", Journal of
Combinatorial Optimization 28 (2014). Flips are priced in O(1) from what each variable would add if
it were 1, which a flip changes in O(degree): Glover and Hao, "Efficient evaluations for solving
large 0-1 unconstrained quadratic optimisation problems", International Journal of Metaheuristics 1
(2010). Instances are checked on the host, before anything is compiled.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.backends import floats, loops, memory
from jaxopt_search.backends.memory import load, store
from jaxopt_search.checks import check_number, check_option, check_vector
from jaxopt_search.interrupts import refuse_orphans
from jaxopt_search.problems import bounds
from jaxopt_search.problems.finite.entries import (
    edges_of,
    entries_of,
    graph_of,
    merged_pairs,
    quadratic_of,
)
from jaxopt_search.problems.finite.vector import (
    FiniteProblem,
    NeighborLists,
    neighbor_lists,
)
from jaxopt_search.problems.host import SAME, Original, Units
from jaxopt_search.problems.matrix_input import DType, refuse_options
from jaxopt_search.pytrees import pytree, static

Storage: TypeAlias = Literal["auto", "dense", "sparse"]

_TILE = 256  # entries of a row of a matrix that a kernel handles at once
_SPARSE_BELOW = 1 / 8  # of all pairs: lists of neighbors are then faster


@pytree
@dataclasses.dataclass(frozen=True, eq=False)
class Dense:
    """Couplings as a matrix.

    Attributes:
      matrix: [n, n] int32 or float32, symmetric, 0 on the diagonal.
    """

    matrix: jax.Array

    def terms(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns the pairs of variables that have a coupling, first < second, [m], and these.

        On the host.
        """
        matrix = np.asarray(self.matrix)
        first, second = np.nonzero(np.triu(matrix))
        return first, second, matrix[first, second]

    def sums(self, factors: jax.Array, *, below: bool = False) -> jax.Array:
        """Returns [n], the sums of the couplings of each variable times factors.

        Args:
          factors: [n], of the dtype of the couplings.
          below: whether only variables of lower numbers count.
        """
        matrix = jnp.tril(self.matrix, -1) if below else self.matrix
        return floats.matmul(matrix, factors[:, None])[:, 0]

    def weighted(self, values: jax.Array) -> jax.Array:
        """Returns [n] float32, the sums of the couplings of each variable times these values.

        Args:
          values: [n] float32.
        """
        matrix = self.matrix.astype(jnp.float32)
        return jnp.matmul(matrix, values, precision=lax.Precision.HIGHEST)

    def norm(self) -> jax.Array:
        """Returns `floats.norm` of the couplings, each counted twice, [] float32."""
        return floats.norm(self.matrix.astype(jnp.float32))

    def least(self, values: jax.Array) -> jax.Array:
        """Returns [n] int32, the least value of each variable and of those coupled with it.

        Args:
          values: [n] int32.
        """
        of_others = jnp.where(self.matrix != 0, values, values.size)
        return jnp.minimum(values, of_others.min(axis=1))

    def between(self, first: jax.Array, second: jax.Array) -> jax.Array:
        """Returns the coupling of two different variables, elementwise; portable."""
        return load(self.matrix, (first, second))

    def add_row(self, sums: Any, variable: jax.Array, factor: jax.Array, where: jax.Array) -> Any:
        """Returns the sums plus `factor` times a row, if `where` holds; portable.

        Args:
          sums: [n] buffer.
          variable: [] int32, the row.
          factor: [] -1, 0 or 1, so that products are exact.
          where: [] bool.
        """
        if not memory.is_in_kernel():
            # A slice is read faster than elements by their numbers.
            row = lax.dynamic_index_in_dim(self.matrix, variable, keepdims=False)
            return jnp.where(where, sums + row * factor, sums)
        n = sums.shape[0]

        def add(index: jax.Array, is_inside: jax.Array, sums: Any) -> Any:
            place = jnp.minimum(index, n - 1)
            changed = load(sums, place) + load(self.matrix, (variable, place)) * factor
            return store(sums, place, changed, is_inside & where)

        return memory.each_index(jnp.int32(n), n, add, sums, _TILE)


@pytree
@dataclasses.dataclass(frozen=True, eq=False)
class Sparse:
    """Couplings by lists of neighbors.

    Attributes:
      lists: of each variable's neighbors.
      values: [m] int32 or float32, the couplings to them.
    """

    lists: NeighborLists
    values: jax.Array

    def terms(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Like `Dense.terms`."""
        starts, second = np.asarray(self.lists.starts), np.asarray(self.lists.neighbors)
        first = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        second, values = (part[: len(first)] for part in (second, np.asarray(self.values)))
        once = first < second
        return first[once], second[once], values[once]

    def sums(self, factors: jax.Array, *, below: bool = False) -> jax.Array:
        """Like `Dense.sums`; each row is added up in the order of its list."""
        variable = lax.iota(jnp.int32, factors.shape[0])
        start, end = self.lists.starts[:-1], self.lists.starts[1:]

        def add(k: jax.Array, sums: jax.Array) -> jax.Array:
            at = start + k
            counts = at < end
            neighbor = load(self.lists.neighbors, at, counts)
            if below:
                counts = counts & (neighbor < variable)
            term = load(self.values, at, counts) * load(factors, neighbor, counts)
            return sums + jnp.where(counts, term, jnp.zeros_like(term))

        return loops.fori_loop(0, self.lists.max_degree, add, jnp.zeros_like(factors))

    def weighted(self, values: jax.Array) -> jax.Array:
        """Like `Dense.weighted`."""
        return Sparse(self.lists, self.values.astype(jnp.float32)).sums(values)

    def norm(self) -> jax.Array:
        """Like `Dense.norm`."""
        return floats.norm(self.values.astype(jnp.float32))

    def least(self, values: jax.Array) -> jax.Array:
        """Like `Dense.least`."""
        return self.lists.least(values)

    def between(self, first: jax.Array, second: jax.Array) -> jax.Array:
        """Like `Dense.between`; O(log(max_degree))."""
        place, is_coupled = self.lists.find(first, second)
        value = load(self.values, place)
        return jnp.where(is_coupled, value, jnp.zeros_like(value))

    def add_row(self, sums: Any, variable: jax.Array, factor: jax.Array, where: jax.Array) -> Any:
        """Like `Dense.add_row`; O(degree)."""
        start, end = self.lists.range_of(variable)

        def add(index: jax.Array, is_inside: jax.Array, sums: Any) -> Any:
            neighbor = load(self.lists.neighbors, start + index, is_inside)
            change = load(self.values, start + index, is_inside) * factor
            changed = load(sums, neighbor, is_inside) + change
            return store(sums, neighbor, changed, is_inside & where)

        return memory.each_index(end - start, self.lists.max_degree, add, sums)


class Fields(NamedTuple):
    """What makes moves of a QUBO cheap.

    Attributes:
      fields: [n] int32 or float32, what each variable adds to the cost if it is 1 and the others
        stay as they are.
    """

    fields: Any


@pytree
@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class QUBO(FiniteProblem):
    """A QUBO instance on the device. Build it with `qubo` or `max_cut`.

    A solution is [n] int32 of zeros and ones. Its cost is the sum of the linear terms of the ones
    and of the couplings of each pair of ones.

    Attributes:
      linear: [n] int32 or float32.
      couplings: of pairs of variables, of this dtype: a matrix or lists of neighbors.
      domain_sizes: [n] int32, all 2.
      n: the number of variables.
      device_units: how `device_cost` counts.
      host: the instance as it was given.
    """

    linear: jax.Array = dataclasses.field(repr=False)
    couplings: Dense | Sparse = dataclasses.field(repr=False)
    domain_sizes: jax.Array = dataclasses.field(repr=False)
    n: int = static()
    device_units: Units = static(default=SAME)
    host: Original = static(repr=False)

    max_domain = 2

    def picture(self, solution: np.ndarray, coords: Any = None) -> Callable[[Any], Any]:
        from jaxopt_search.results import plotting

        given = self.host.as_given
        first, second, _ = (self if given is None else given.whole).couplings.terms()
        edges = np.stack([first, second], axis=1)
        return functools.partial(plotting.plot_graph, edges, solution, coords=coords)

    def device_cost(self, solution: jax.Array) -> jax.Array:
        """Returns the cost in the device's units; mostly the same as `cost`.

        O(n * n), or O(n * max_degree) with lists of neighbors. Integers may wrap on the way; the
        result is exact.

        Returns:
          [] int32 or float32.
        """
        ones = jnp.asarray(solution, self.linear.dtype)
        added = self.linear + self.couplings.sums(ones, below=True)
        return floats.total(jnp.where(solution == 1, added, jnp.zeros_like(added)))

    def fields_of(self, values: jax.Array) -> jax.Array:
        """Returns what each variable would add to the cost if it were 1, [n] float32.

        Args:
          values: [n] float32, the others, from 0 to 1.
        """
        return self.linear.astype(jnp.float32) + self.couplings.weighted(values)

    def deltas_in_turn(self, solution: jax.Array, is_flipped: jax.Array) -> jax.Array:
        """Returns the change in cost by each flip, as some variables are flipped one by one.

        Args:
          is_flipped: [n] bool.

        Returns:
          [n] int32 or float32, after the flips of lower numbers; 0 for the other variables.
        """
        steps = jnp.where(is_flipped, 1 - 2 * solution, 0).astype(self.linear.dtype)
        return steps * (self.tally(solution).fields + self.couplings.sums(steps, below=True))

    def tally(self, solution: jax.Array) -> Fields:
        """Returns the fields of all variables."""
        return Fields(self.linear + self.couplings.sums(solution.astype(self.linear.dtype)))

    def assign_delta(
        self, solution: Any, tally: Fields, variable: jax.Array, value: jax.Array
    ) -> jax.Array:
        """Returns the change in cost if a variable gets a value, O(1); portable, elementwise."""
        field = load(tally.fields, variable)
        return _step(load(solution, variable), value, field.dtype) * field

    def swap_values_delta(
        self, solution: Any, tally: Fields, first: jax.Array, second: jax.Array
    ) -> jax.Array:
        """Returns the change in cost if two variables exchange their values; portable, elementwise.

        O(1), or O(log(max_degree)) with lists of neighbors.
        """
        a, b = load(solution, first), load(solution, second)
        gained, lost = load(tally.fields, first), load(tally.fields, second)
        coupling = self.couplings.between(first, second)
        # Of the field of the one that becomes 1, the coupling to the one that was 1 goes.
        change = _step(a, b, gained.dtype) * (gained - lost) - coupling
        return jnp.where(a == b, jnp.zeros_like(change), change)

    def assigned(
        self, solution: Any, tally: Fields, variable: jax.Array, value: jax.Array, where: jax.Array
    ) -> Fields:
        """Returns the fields after an assignment, if `where` holds; O(degree), portable."""
        step = _step(load(solution, variable), value, self.linear.dtype)
        return Fields(self.couplings.add_row(tally.fields, variable, step, where))


def _step(before: jax.Array, after: jax.Array, dtype: Any) -> jax.Array:
    """Returns by how much a variable grows: -1, 0 or 1."""
    return (after - before).astype(dtype)


def qubo(
    matrix: Any,
    *,
    entries: Any = None,
    num_variables: int | None = None,
    offset: float = 0,
    dtype: DType | None = None,
    best_known: float | None = None,
    storage: Storage = "auto",
) -> QUBO:
    """Returns the QUBO that minimizes `x @ Q @ x` over vectors x of zeros and ones.

    Q may be asymmetric: `Q[i, j] + Q[j, i]` is what counts. Its diagonal holds the linear terms.
    Integers, and floats that are all integral, make an exact integer instance. Integers that
    are too large are counted in a common divisor, `problem.host.unit`; temperatures are then in
    this unit. Costs and targets are always in full.

    To maximize, negate the matrix.

    Args:
      matrix: [n, n] real numbers, or a sparse matrix from SciPy; with `entries`, [k] numbers, their
        values. Or a dict from pairs of variables to numbers, or a binary quadratic model as of
        `dimod`; variables are numbered in the order in which they first appear.
      entries: [k, 2] integers, rows and columns of what is not 0; values of repeated ones add up.
      num_variables: n, if there are `entries`; None for the largest of them plus 1.
      offset: a constant added to every cost; the offset of a model comes on top.
      dtype: `"float32"` to give up exactness if an integer instance is too large for int32.
      best_known: the best-known cost, for `Result.gap`.
      storage: `"dense"` for a matrix on the device, `"sparse"` for lists of neighbors, `"auto"` for
        these where less than an eighth of all pairs have a coupling.

    Raises:
      ValueError: for a wrong shape, NaN, infinity, or numbers too large or too small.
      TypeError: for entries that are not real numbers.

    Example:
      >>> problem = qubo([[-1, 2, 0], [0, -1, 2], [0, 0, -1]])
      >>> int(problem.cost(jnp.array([1, 0, 1])))
      -2
    """
    if entries is None and (given := quadratic_of(matrix)) is not None:
        refuse_options("a dict or a model", num_variables=num_variables)
        entries, matrix, num_variables, more = given
        offset = check_number("offset", offset) + check_number("offset", more)
    offset = check_number("offset", offset)
    if not math.isfinite(offset):
        raise ValueError(f"offset is {offset}, expected a finite number")
    n, rows, columns, values = entries_of(
        matrix, entries, num_variables, ("matrix", "entries", "num_variables"), dtype
    )
    # A variable's square is the variable itself.
    linear, is_linear = np.zeros(n, values.dtype), rows == columns
    np.add.at(linear, rows[is_linear], values[is_linear])
    couplings = merged_pairs(n, *(part[~is_linear] for part in (rows, columns, values)))
    return _build(Terms(linear, *couplings), "matrix", best_known, storage, offset)


def max_cut(
    weights: Any,
    *,
    edges: Any = None,
    num_vertices: int | None = None,
    dtype: DType | None = None,
    best_known_cut: float | None = None,
    storage: Storage = "auto",
) -> QUBO:
    """Returns the maximum-cut problem of a graph: two sides with the most weight between them.

    A solution is [n] int32 of the sides, 0 or 1, of the vertices. Its cost is *minus* the weight of
    the cut, the sum of the weights of all edges between the sides. So the best cut of a run weighs
    `-result.fun`, and a `target` is also negative. Weights may be negative.

    Args:
      weights: [n, n] real numbers, symmetric with a zero diagonal, or a sparse matrix from SciPy;
        with `edges`, [m] numbers, or one for all edges. Or a graph: a `GraphInstance`, or an
        undirected one of `networkx`, whose edges weigh their `weight` or 1, and whose vertices are
        numbered in the order of its nodes.
      edges: [m, 2] integers, the ends of edges, each edge once.
      num_vertices: n, if there are `edges`; None for the largest of them plus 1.
      dtype: as in `qubo`.
      best_known_cut: the weight of the best known cut, for `Result.gap`.
      storage: as in `qubo`.

    Raises:
      ValueError: as `qubo`, and for weights that are asymmetric, loops and edges given twice.
      TypeError: as `qubo`.

    Example:
      >>> import jaxopt_search as js
      >>> problem = max_cut(1, edges=[[0, 1], [1, 2], [2, 3], [3, 0], [0, 2]])
      >>> result = js.solve(problem, js.tabu_search(js.Assign()), 0, num_searches=2, max_steps=20)
      >>> result.fun, -problem.host.cost(result.x)
      (-4, 4)
    """
    if edges is None and (given := graph_of(weights)) is not None:
        refuse_options("a graph", num_vertices=num_vertices)
        edges, weights, num_vertices, _ = given
    n, rows, columns, values = entries_of(
        weights, edges, num_vertices, ("weights", "edges", "num_vertices"), dtype
    )
    if edges is not None:
        pairs = np.minimum(rows, columns) * n + np.maximum(rows, columns)
        pairs, counts = np.unique(pairs, return_counts=True)
        if (counts > 1).any():
            i, j = divmod(pairs[counts > 1][0].item(), n)
            raise ValueError(f"edges hold {i}-{j} twice, expected each edge once")
    first, second, sums = edges_of(n, rows, columns, values, "weights", is_matrix=edges is None)
    # Of an edge, minus the cut is 2 * x[i] * x[j] - x[i] - x[j], weighted.
    linear = np.zeros(n, values.dtype)
    for end in (first, second):
        np.subtract.at(linear, end, sums)
    best_known = best_known_cut
    if best_known is not None:
        best_known = -check_number("best_known_cut", best_known)
    return _build(Terms(linear, first, second, 2 * sums), "weights", best_known, storage)


class Terms(NamedTuple):
    """Linear terms, [n], and couplings of variables `first < second`, each pair once."""

    linear: np.ndarray
    first: np.ndarray
    second: np.ndarray
    values: np.ndarray


def _build(
    terms: Terms, name: str, best_known: float | None, storage: Storage, offset: Any = 0
) -> QUBO:
    check_option("storage", storage, ("auto", "dense", "sparse"))
    n, num_pairs = terms.linear.size, terms.values.size
    is_dense = storage == "dense"
    if storage == "auto":
        is_dense = num_pairs >= _SPARSE_BELOW * n * (n - 1) / 2 and 4 * n * n <= bounds.MAX_BYTES
    size = 4 * n * n if is_dense else 16 * (n + num_pairs)
    bounds.check_bytes(size, f"{name} of {n} variables and {num_pairs} pairs")
    counted, unit, dtype = terms, 1, jnp.float32
    if terms.linear.dtype.kind in "iO":
        found, dtype = bounds.qubo_bounds(*terms), jnp.int32
        if not found.fit:
            unit = int(np.gcd.reduce(np.concatenate([terms.linear, terms.values])))
            counted = terms._replace(linear=terms.linear // unit, values=terms.values // unit)
            if not bounds.qubo_bounds(*counted).fit:
                raise found.refusal(f"{name} gives", "moves", "a problem of dtype='float32'")
            counted = Terms(*(part.astype(np.int64) for part in counted))
    refuse_orphans()
    is_whole = isinstance(offset, int) and not offset % unit
    offset = offset // unit if is_whole else offset / unit
    host = Original(
        cost=functools.partial(_cost_on_host, counted, unit, offset),
        check=functools.partial(check_vector, np.full(n, 2, np.int32)),
        unit=unit,
        offset=offset,
        best_known=best_known,
    )
    return of_terms(counted, dtype, is_dense, host)


def of_terms(terms: Terms, dtype: Any, is_dense: bool, host: Original) -> QUBO:
    """Returns the problem of terms that this dtype holds, as the device counts."""
    linear, first, second, values = terms
    n, values = len(linear), values.astype(np.dtype(dtype))
    if is_dense:
        matrix = np.zeros((n, n), values.dtype)
        matrix[first, second] = matrix[second, first] = values
        couplings = Dense(jnp.asarray(matrix))
    else:
        lists, of_neighbors = neighbor_lists(n, first, second, values)
        couplings = Sparse(lists, jnp.asarray(of_neighbors))
    return QUBO(
        linear=jnp.asarray(linear, dtype),
        couplings=couplings,
        domain_sizes=jnp.asarray(np.full(n, 2, np.int32)),
        n=n,
        device_units=host.units,
        host=host,
    )


def _cost_on_host(terms: Terms, unit: int, offset: Any, solution: np.ndarray) -> int | float:
    """Returns the cost of a solution, of terms and an offset in multiples of a unit.

    Exact if they are integers.
    """
    ones = np.asarray(solution) == 1
    pairs = terms.values[ones[terms.first] & ones[terms.second]]
    return (terms.linear[ones].sum().item() + pairs.sum().item() + offset) * unit
