"""How much of a device's memory generating successors takes, known before any is allocated."""

import functools
import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends import Implementation, bit_sets
from jaxopt_search.guards import capacity
from jaxopt_search.successors import arguments, heuristics
from jaxopt_search.successors.arguments import Kind, Shapes
from jaxopt_search.successors.draw import reduction
from jaxopt_search.successors.heuristics import Aggregate
from jaxopt_search.successors.running import Ratings

Storage: TypeAlias = Literal["auto", "stored", "recomputed"]

_GIB = 2**30
_SMALL = 2**24  # bytes for which the free memory is not looked up
_SHARE = 0.25  # of the free memory that stored ratings may take unless they are asked for


class Job(NamedTuple):
    """What is to be done; hashable.

    Attributes:
      kind: of heuristics, problem and states.
      num_successors: of each state.
      implementation: that is to run.
    """

    kind: Kind
    num_successors: int
    implementation: Implementation


def memory_estimate(
    heuristic: Any,
    problem: Any,
    states: Any,
    *,
    num_successors: int = 1,
    ratings: Ratings = "stored",
    implementation: Implementation = "xla",
) -> int:
    """Returns about how many bytes `generate` takes besides its arguments.

    With stored ratings XLA takes, as the paper does (section 3.7), an entry per possibility in each
    state, and for an independent type in each of its variables. Kernels keep ratings in registers,
    and the loops of a CPU handle one state at a time.

    Args:
      heuristic, problem, states: as in `generate`; only shapes and dtypes count.
      num_successors: of each state.
      ratings, implementation: what is to run.

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.graph_coloring([[0, 1], [1, 2]], 2)
      >>> colors = jnp.zeros((1000, 3), jnp.int32)
      >>> states = js.types.Tallied(colors, jax.vmap(problem.tally)(colors))
      >>> heuristic = js.successors.ByDelta(num_variables=3, max_possibilities=2)
      >>> [memory_estimate(heuristic, problem, states, num_successors=k) for k in (1, 2)]
      [98000, 300000]
    """
    kind = arguments.kind_of(arguments.as_types(heuristic), problem, states)
    return _bytes(Job(kind, num_successors, implementation), ratings)


def choose(ratings: Storage, job: Job, devices: Sequence[jax.Device]) -> Ratings:
    """Returns whether ratings are stored or recomputed.

    Raises:
      MemoryError: if it does not fit, with the sizes.
    """
    if _bytes(job, "stored") < _SMALL:
        return "stored" if ratings == "auto" else ratings
    is_shared = devices[0].platform == "cpu"
    free = capacity.free_bytes(devices[0]) * (1 if is_shared else len(devices))
    chosen = ratings
    if chosen == "auto":
        chosen = "stored" if _bytes(job, "stored") <= _SHARE * free else "recomputed"
    if (needed := _bytes(job, chosen)) > free:
        advice = "fewer states or successors"
        if chosen == "stored":
            advice += ", or ratings='recomputed'"
        raise MemoryError(
            f"{arguments.look_at(job.kind).num_states} states with {job.num_successors} successors"
            f" each take {needed / _GIB:.1f} GiB, and {free / _GIB:.1f} GiB are free on"
            f" {devices[0]}; use {advice}"
        )
    return chosen


@functools.lru_cache(maxsize=256)
def _bytes(job: Job, ratings: Ratings) -> int:
    shapes = arguments.look_at(job.kind)
    successors = shapes.num_states * job.num_successors
    sets = sum(4 * bit_sets.num_words(one.num_variables) for one in shapes.types)
    own = sum(map(_size, jax.tree.leaves(shapes.state))) + sets
    own *= 1 if job.num_successors == 1 else 2  # copies of the states, and what becomes of them
    parent, key = 4, 8
    aside = max(_aside(job, shapes, one, ratings) for one in shapes.types)
    if job.implementation == "native":
        return successors * (own + parent + key) + aside
    return successors * (own + parent + key + aside)


def _aside(job: Job, shapes: Shapes, heuristic: Any, ratings: Ratings) -> int:
    """Returns the bytes that the variables of a type take in each state."""
    num_draws = heuristic.num_variables if heuristics.is_independent(heuristic) else 1
    drawn = 4 * num_draws if num_draws > 1 else 0
    if job.implementation not in ("xla", "native"):
        return drawn
    aggregates = heuristics.aggregates_of(heuristic)
    # Sums in parts of 16 bits, up to and including each lane, and those before it.
    per_lane = sum(map(_value_bytes, aggregates)) + (32 if heuristics.is_wide(heuristic) else 8)
    if ratings == "stored":
        # XLA reduces some values while it computes them, and keeps the others.
        kept = sum(_value_bytes(one) for one in aggregates if reduction(one) is None)
        if job.implementation == "native":
            kept = 0
        per_lane += heuristics.num_blocks(heuristic) * (_rating_bytes(shapes, heuristic) + kept)
    draws_at_once = num_draws if job.implementation == "xla" else 1
    return drawn + heuristics.num_lanes(heuristic) * per_lane * draws_at_once


def _value_bytes(aggregate: Aggregate) -> int:
    return sum(jnp.result_type(leaf).itemsize for leaf in jax.tree.leaves(aggregate.neutral))


def _rating_bytes(shapes: Shapes, heuristic: Any) -> int:
    """Returns the bytes of one possibility's rating."""

    def rate(heuristic: Any, problem: Any, state: Any) -> Any:
        return heuristic.rate(problem, state, jnp.int32(0), lax.iota(jnp.int32, 1))

    rating = jax.eval_shape(rate, heuristic, shapes.problem, shapes.state)
    return sum(map(_size, jax.tree.leaves(rating)))


def _size(leaf: Any) -> int:
    return math.prod(leaf.shape) * leaf.dtype.itemsize
