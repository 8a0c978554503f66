"""What generating successors takes of a device's memory, known before any of it is allocated."""

import functools
import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search import capacity
from jaxopt_search.kernels import Implementation
from jaxopt_search.successors import bit_sets, heuristics
from jaxopt_search.successors.running import Ratings

Storage: TypeAlias = Literal["auto", "stored", "recomputed"]

_GIB = 2**30
_SHARE = 0.25  # of the free memory that stored ratings may take unless they are asked for


class Job(NamedTuple):
    """What is to be done.

    Attributes:
      types: a heuristic for each type of variables.
      problem: what they read.
      state: the shapes of one state.
      num_states, num_successors: how many, and of each.
      implementation: that is to run.
    """

    types: tuple[Any, ...]
    problem: Any
    state: Any
    num_states: int
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
    """Returns about how many bytes `generate` takes beside its arguments.

    With stored ratings XLA takes, as the paper does (section 3.7), an entry per possibility in each
    state, and for an independent type in each of its variables. Kernels keep ratings in registers,
    and the loops of a CPU handle one state at a time.

    Args:
      heuristic, problem, states: as in `generate`; only shapes and dtypes count.
      num_successors: of each state.
      ratings, implementation: what is to run.
    """
    types, (state, num_states) = heuristics.as_types(heuristic), heuristics.one_state(states)
    return _bytes(Job(types, problem, state, num_states, num_successors, implementation), ratings)


def choose(ratings: Storage, job: Job, devices: Sequence[jax.Device]) -> Ratings:
    """Returns what becomes of ratings.

    Raises:
      MemoryError: if it does not fit, with the sizes.
    """
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
            f"{job.num_states} states with {job.num_successors} successors each take"
            f" {needed / _GIB:.1f} GiB, and {free / _GIB:.1f} GiB are free on {devices[0]}; use"
            f" {advice}"
        )
    return chosen


def _bytes(job: Job, ratings: Ratings) -> int:
    successors = job.num_states * job.num_successors
    sets = sum(4 * bit_sets.num_words(one.num_variables) for one in job.types)
    own = sum(map(_size, jax.tree.leaves(job.state))) + sets
    own *= 1 if job.num_successors == 1 else 2  # copies of the states, and what becomes of them
    parent, key = 4, 8
    aside = max(_aside(job, one, ratings) for one in job.types)
    if job.implementation == "native":
        return successors * (own + parent + key) + aside
    return successors * (own + parent + key + aside)


def _aside(job: Job, heuristic: Any, ratings: Ratings) -> int:
    """Returns the bytes that the variables of a type take in each state."""
    num_draws = heuristic.num_variables if heuristics.is_independent(heuristic) else 1
    drawn = 4 * num_draws if num_draws > 1 else 0
    if job.implementation not in ("xla", "native"):
        return drawn
    lanes = heuristics.num_lanes(heuristic)
    leaves, structure = jax.tree.flatten((heuristic, job.problem, job.state))
    shapes = tuple((jnp.shape(leaf), jnp.result_type(leaf)) for leaf in leaves)
    entry = _entry_bytes(structure, shapes)
    neutral = [jax.tree.leaves(one.neutral) for one in heuristics.aggregates_of(heuristic)]
    values = sum(jnp.result_type(leaf).itemsize for leaves in neutral for leaf in leaves)
    # Sums in parts of 16 bits, up to and including each lane, and those before it.
    per_lane = values + (32 if heuristics.is_wide(heuristic) else 8)
    if ratings == "stored":
        per_lane += entry * heuristics.num_blocks(heuristic)
    return drawn + lanes * per_lane * (num_draws if job.implementation == "xla" else 1)


@functools.lru_cache(maxsize=256)
def _entry_bytes(structure: Any, leaves: tuple[Any, ...]) -> int:
    """Returns the bytes of one possibility's rating; arguments as in `jax.tree.unflatten`."""
    shapes = structure.unflatten(jax.ShapeDtypeStruct(*leaf) for leaf in leaves)

    def rate(heuristic: Any, problem: Any, state: Any) -> Any:
        return heuristic.rate(problem, state, jnp.int32(0), lax.iota(jnp.int32, 1))

    return sum(map(_size, jax.tree.leaves(jax.eval_shape(rate, *shapes))))


def _size(leaf: Any) -> int:
    return math.prod(leaf.shape) * leaf.dtype.itemsize
