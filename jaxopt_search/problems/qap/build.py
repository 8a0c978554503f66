"""QAP instances from users' data: two matrices, or an instance that was read.

Everything is checked here, on the host, before anything is compiled.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search.checks import (
    check_option,
    check_permutation,
    check_shape,
    plain_array,
    real_array,
)
from jaxopt_search.datasets.instances import QAPInstance
from jaxopt_search.interrupts import refuse_orphans
from jaxopt_search.problems import bounds, matrix_input
from jaxopt_search.problems.host import ON_DEVICE, Original, with_host
from jaxopt_search.problems.matrix_input import (
    DType,
    as_told,
    check_square,
    finite_matrix,
    has_exact_costs,
    integer_pairs,
    is_nearly_symmetric,
    is_stack,
    on_device,
    quick_shape,
)
from jaxopt_search.problems.qap.problem import QAP


def qap(
    flow: Any,
    distance: Any,
    *,
    linear: Any = None,
    partial_match: Any = None,
    dtype: DType | None = None,
    is_symmetric: bool | None = None,
    best_known: float | None = None,
) -> QAP:
    """Returns the QAP that minimizes the sum of `flow[i, j] * distance[p[i], p[j]]` over all i, j.

    `p[i]` is the location of facility i, as in SciPy's `quadratic_assignment`. Matrices may be
    asymmetric, with nonzero diagonals and negative entries. Integers, and floats that are all
    integral, make an exact integer instance. In a float instance, asymmetries of both matrices
    within a relative 1e-6 are taken for rounding noise and averaged out.

    A linear term adds `linear[i, p[i]]` over all i: what facility i costs at a location by itself.
    Then solutions on the device have twice the length, with a fixed facility for each location.

    Costs and targets are always in full. Floats that nearly all are one number are refused: take it
    off, as float32 has seven digits for the rest.

    Inside `jit` or `vmap`, one matrix or both may be traced: integers become int32 and floats
    float32 as they are, with costs that must fit, and only shapes and dtypes are checked. Such an
    instance is for `run`, `init` and `advance`; `solve` needs one that the host knows.

    Args:
      flow: [n, n] real numbers, or an array of booleans, from facility to facility.
      distance: [n, n] real numbers, from location to location; there may be more of these than
        facilities, and then some stay free.
      linear: [facilities, locations] real numbers; None for none. Not of traced matrices.
      partial_match: [k, 2] integers, facilities and the locations where they must be, like SciPy's
        option of this name. None if nothing is fixed.
      dtype: `"float32"` to give up exactness if an integer instance is too large for int32.
      is_symmetric: whether both matrices are, which halves the work; None to find out, which
        matrices that are traced do not allow.
      best_known: the best-known cost, for `Result.gap`.

    Raises:
      ValueError: for a wrong shape, NaN, infinity, or numbers too large or too small.
      TypeError: for entries that are not real numbers.

    Example:
      >>> problem = qap([[0, 5, 2], [5, 0, 3], [2, 3, 0]], [[0, 8, 15], [8, 0, 13], [15, 13, 0]])
      >>> int(problem.cost(jnp.array([1, 0, 2])))
      222
    """
    if matrix_input.is_traced(flow, distance):
        check_option("is_symmetric", is_symmetric, (True, False))
        given = {"linear": linear, "partial_match": partial_match, "best_known": best_known}
        matrix_input.refuse_options("a traced array", **given)
        return _traced_qap(flow, distance, bool(is_symmetric), dtype)
    flow, distance = finite_matrix(_as_integers(flow), "flow"), finite_matrix(distance, "distance")
    check_square(flow, "flow")
    check_square(distance, "distance")
    number, most = len(flow), len(distance)
    if number < most:
        flow = np.pad(flow, (0, most - number))
    check_shape(distance, "distance", flow.shape, " as flow has")
    matrices = [flow, distance]
    if linear is not None:
        linear = finite_matrix(linear, "linear")
        check_shape(linear, "linear", (number, most))
        matrices.append(np.pad(linear, ((0, most - number), (0, 0))))
    is_exact = has_exact_costs(dtype, "matrices", *matrices)
    problem = _of_matrices(*matrices, is_exact=is_exact, best_known=best_known)
    problem = as_told(problem, is_symmetric, "the matrices are")
    if number < problem.capacity:
        few = _Few(number, problem.capacity)
        problem = with_host(problem, as_given=few, check=few.check)
    fixed = list[np.ndarray]()
    if partial_match is not None:
        fixed.append(integer_pairs(partial_match, "partial_match"))
        matrix_input.check_below(fixed[0], "partial_match", number, most)
    if linear is not None:
        fixed.append(np.arange(most, 2 * most).repeat(2).reshape(-1, 2))
    return with_fixed(problem, np.concatenate(fixed)) if fixed else problem


def _with_linear(
    flow: np.ndarray, distance: np.ndarray, linear: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Returns matrices of which a fixed facility at each location makes the linear term.

    Facility n + k stays at location n + k, whose distance is 1 to location k only.
    """
    if linear is None:
        return flow, distance
    n, none = len(flow), np.zeros_like(flow)
    each, back = np.eye(n, dtype=distance.dtype), none
    if linear.dtype.kind == "f" or not (linear % 2).any():  # both ways, so symmetry stays
        linear = linear / 2 if linear.dtype.kind == "f" else linear // 2
        back = linear.T
    flow = np.block([[flow, linear], [back, none]])
    return flow, np.block([[distance, each], [each, np.zeros_like(each)]])


class _Few(NamedTuple):
    """Assignments of fewer facilities than locations; on the device others stay without flow."""

    number: int
    most: int

    def __call__(self, assignments: np.ndarray) -> np.ndarray:
        return assignments[..., : self.number]

    def check(self, values: Any, name: str) -> np.ndarray:
        """Returns a whole permutation, [most], from the locations of the facilities."""
        found = plain_array(values, name)
        if found.shape == (self.number,) and np.issubdtype(found.dtype, np.integer):
            rest = np.setdiff1d(np.arange(self.most), found)
            found = np.concatenate([found, rest[: self.most - self.number]])
        return check_permutation(found, name, self.most)


def qap_from_instance(instance: QAPInstance, *, dtype: DType | None = None) -> QAP:
    """Returns the QAP of an instance that was read or generated by `jaxopt_search.datasets`.

    Args:
      instance: matrices [n, n] and the best known cost.
      dtype: as in `qap`.

    Example:
      >>> import jaxopt_search as js
      >>> flow, distance = np.array([[0, 5], [1, 0]]), np.array([[0, 3], [2, 0]])
      >>> problem = qap_from_instance(QAPInstance(name="two", flow=flow, distance=distance))
      >>> int(problem.cost(jnp.array([0, 1]))), int(problem.cost(jnp.array([1, 0])))
      (17, 13)
    """
    problem = qap(instance.flow, instance.distance, dtype=dtype, best_known=instance.best_known)
    return with_host(problem, is_optimal=instance.is_optimal)


def as_qap(
    data: Any,
    distance: Any = None,
    linear: Any = None,
    partial_match: Any = None,
    dtype: DType | None = None,
) -> QAP:
    """Returns the QAP that the arguments stand for.

    Args:
      data: a `QAP`, a `QAPInstance`, or the flow matrix.
      distance: the distance matrix; None unless `data` is a matrix.
      linear: as in `qap`, likewise.
      partial_match: as in `qap`; None if `data` is a `QAP`.
      dtype: as in `qap`, likewise.
    """
    if isinstance(data, QAP | QAPInstance):
        refused = {"distance": distance, "linear": linear}
        if isinstance(data, QAP):
            refused |= {"partial_match": partial_match, "dtype": dtype}
        matrix_input.refuse_options(f"a {type(data).__name__}", **refused)
        problem = data if isinstance(data, QAP) else qap_from_instance(data, dtype=dtype)
        return problem if partial_match is None else with_fixed(problem, partial_match)
    if distance is None:
        raise ValueError("distance is None, expected an (n, n) matrix next to flow")
    return qap(data, distance, linear=linear, partial_match=partial_match, dtype=dtype)


def is_several(flow: Any) -> bool:
    """Returns whether `flow` is of several instances: matrices, or a list of instances."""
    is_list = isinstance(flow, list | tuple)
    return is_stack(flow) or (is_list and any(isinstance(one, QAP | QAPInstance) for one in flow))


def as_qaps(flow: Any, distance: Any = None, dtype: DType | None = None) -> list[QAP]:
    """Returns B instances of one dtype: exact ones, unless one of them has fractional matrices.

    Args:
      flow: [B, n, n], or a list of matrices [n, n] of whatever sizes, or one of `QAPInstance`s.
      distance: likewise; None with `QAPInstance`s.
      dtype: as in `qap`.
    """
    if distance is None:
        for i, one in enumerate(flow):
            if not isinstance(one, QAPInstance):
                kind = type(one).__name__
                raise TypeError(f"instance {i} is a {kind}, expected a QAPInstance")
        flow, distance = [one.flow for one in flow], [one.distance for one in flow]
    num_others = (*quick_shape(distance), 0)[0]
    if not len(flow) == num_others > 0:
        raise ValueError(
            f"flow holds {len(flow)} and distance {num_others} matrices, expected as many, 1 or"
            " more"
        )

    def build(dtype: DType | None) -> list[QAP]:
        problems = []
        for i, (one, other) in enumerate(zip(flow, distance, strict=True)):
            try:
                problems.append(qap(one, other, dtype=dtype))
                check_shape(np.asarray(other), "distance", np.shape(one), " as flow has")
            except (TypeError, ValueError) as error:
                raise type(error)(f"instance {i}: {error}") from None
        return problems

    problems = build(dtype)
    return problems if len({one.flow.dtype for one in problems}) == 1 else build("float32")


def negated(flow: Any) -> Any:
    """Returns flows with the opposite sign, of one instance or several: its minimum is the maximum.

    What was read comes back without its best known cost, which is of the minimum.
    """
    if isinstance(flow, QAP):
        raise ValueError("maximize is True with a QAP, expected flows or a QAPInstance")
    if isinstance(flow, QAPInstance):
        return dataclasses.replace(flow, flow=-flow.flow, best_known=None, is_optimal=False)
    if is_several(flow):
        return [negated(one) for one in flow]
    return -real_array(_as_integers(flow), "flow")


def _as_integers(flow: Any) -> Any:
    """Returns an array of booleans as one of integers, and all else as it is."""
    if getattr(flow, "dtype", None) != np.bool_:
        return flow
    return plain_array(flow, "flow").astype(np.int8)


def _of_matrices(*matrices: np.ndarray, is_exact: bool, best_known: float | None) -> QAP:
    """Returns an instance of int32 or float32 matrices: flow, distance, and the linear term if any.

    Integers are counted in multiples of a common divisor if necessary.
    """
    matrices = tuple(matrix.astype(np.int64 if is_exact else np.float64) for matrix in matrices)
    counted, unit, offset, note = _with_linear(*matrices), 1, 0, ""
    if is_exact:
        cost = QAPInstance(name="", flow=counted[0], distance=counted[1]).cost
        found = bounds.qap_bounds(*matrices)
        if not found.fit:
            divisors = [max(int(np.gcd.reduce(matrix, axis=None)), 1) for matrix in matrices[:2]]
            divisors.append(math.prod(divisors))
            if not any((linear % divisors[2]).any() for linear in matrices[2:]):
                unit = divisors[2]
                matrices = tuple(map(np.floor_divide, matrices, divisors))
                counted, found = _with_linear(*matrices), bounds.qap_bounds(*matrices)
        if not found.fit:
            raise found.refusal("flow and distance give", "swaps", "dtype='float32'")
        offset = found.offset
    else:
        bounds.check_qap_floats(*counted)
        if not _is_symmetric(*counted) and all(map(is_nearly_symmetric, counted)):
            counted = tuple(matrix / 2 + matrix.T / 2 for matrix in counted)
            note = "flow and distance were symmetrized (they differed by a relative 1e-6 at most)"
        cost = functools.partial(_float_cost, *counted)
    flow, distance = counted
    host = Original(
        cost=cost,
        check=functools.partial(check_permutation, n=len(flow)),
        unit=unit,
        offset=offset,
        best_known=best_known,
        note=note,
    )
    refuse_orphans()
    dtype, wrapped = jnp.int32 if is_exact else jnp.float32, (offset + 2**31) % 2**32 - 2**31
    return QAP(
        flow=on_device(flow.ravel(), dtype),
        distance=on_device(distance.ravel(), dtype),
        offset=on_device(wrapped, dtype),
        capacity=len(flow),
        is_symmetric=_is_symmetric(flow, distance),
        device_units=host.units,
        host=host,
    )


def _traced_qap(flow: Any, distance: Any, is_symmetric: bool, dtype: DType | None) -> QAP:
    flow = matrix_input.traced_square(flow, "flow", dtype)
    distance = matrix_input.traced_square(distance, "distance", dtype)
    check_shape(distance, "distance", flow.shape, " as flow has")
    common = jnp.float32 if jnp.float32 in (flow.dtype, distance.dtype) else jnp.int32
    return QAP(
        flow=flow.ravel().astype(common),
        distance=distance.ravel().astype(common),
        offset=jnp.zeros((), common),
        capacity=len(flow),
        is_symmetric=is_symmetric,
        host=ON_DEVICE,
    )


def _is_symmetric(flow: np.ndarray, distance: np.ndarray) -> bool:
    return all(np.array_equal(matrix, matrix.T) for matrix in (flow, distance))


def _float_cost(flow: np.ndarray, distance: np.ndarray, assignment: np.ndarray) -> float:
    return (flow * distance[np.ix_(assignment, assignment)]).sum().item()


def with_fixed(problem: QAP, partial_match: Any) -> QAP:
    """Returns a QAP with some facilities fixed to locations.

    Args:
      problem: a QAP of which nothing is fixed.
      partial_match: as in `qap`.
    """
    n = problem.capacity
    pairs = integer_pairs(partial_match, "partial_match")
    matrix_input.check_below(pairs, "partial_match", n, n)
    for column, what in zip(pairs.T, ("facility", "location"), strict=True):
        values, counts = np.unique(column, return_counts=True)
        if (counts > 1).any():
            raise ValueError(f"partial_match has {what} {values[counts > 1][0]} twice")
    facilities, locations = pairs.astype(np.int32).T
    # The last one has nowhere else to go.
    facilities, locations = facilities[: n - 1], locations[: n - 1]
    free = np.setdiff1d(np.arange(n), facilities).astype(np.int32)
    assignment = np.empty(n, np.int32)
    assignment[facilities] = locations
    assignment[free] = np.setdiff1d(np.arange(n), locations)
    is_free = np.isin(np.arange(n), free).astype(np.int32)
    assignment, free, is_free = map(jax.device_put, (assignment, free, is_free))
    check = functools.partial(_check_fixed, problem.host.check, facilities, locations)
    problem = with_host(problem, check=check)
    return dataclasses.replace(problem, assignment=assignment, free=free, is_free=is_free)


def _check_fixed(
    check: Callable[[Any, str], np.ndarray],
    facilities: np.ndarray,
    locations: np.ndarray,
    values: Any,
    name: str,
) -> np.ndarray:
    assignment = check(values, name)
    for facility, location in zip(facilities, locations, strict=True):
        if assignment[facility] != location:
            raise ValueError(
                f"{name} has facility {facility} at location {assignment[facility]}, expected"
                f" {location}, as partial_match says"
            )
    return assignment
