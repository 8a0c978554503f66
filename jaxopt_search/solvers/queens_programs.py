# pyright: reportUnknownMemberType=false
"""The programs of searches for placements, and what they take of memory."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.backends import random
from jaxopt_search.engine.compile import Jitted, Program, jit
from jaxopt_search.engine.split import AXES, DeviceSplit, pmapped
from jaxopt_search.engine.state import RunState
from jaxopt_search.problems.queens import symmetry
from jaxopt_search.problems.queens.problem import NQueens, greedy_placement
from jaxopt_search.problems.queens.symmetry import Distinct
from jaxopt_search.searches.min_conflicts import MinConflicts
from jaxopt_search.solvers.queens_found import dtype_of

MAX_LOOKS = 16
"""A search that has found nothing by this many restarts."""


class Harvest(NamedTuple):
    """What is taken down of the searches after a number of steps.

    Attributes:
      is_valid: [S] whether a search has found a valid placement.
      queens: [S, capacity] their best placements.
      words: [S, 2] uint32 fingerprints.
    """

    is_valid: jax.Array
    queens: jax.Array
    words: jax.Array


def harvest(
    split: DeviceSplit,
    problem: NQueens,
    search: MinConflicts,
    state: RunState,
    distinct: Distinct,
    tries: int,
) -> Program:
    """Returns the program that looks at searches as `split` spreads them.

    Args:
      state: its shapes there: `DeviceSplit.shapes`.
      distinct, tries: as in `harvested`.
    """
    arguments = problem, search, state, state.index, np.uint32(0)
    if len(split.devices) == 1:
        return Program(harvested, arguments, {"distinct": distinct, "tries": tries})
    return Program(_harvester(split.devices, distinct, tries), arguments, {})


def taken_down(problem: NQueens) -> Any:
    """Returns the shapes of what a look takes down of a search, besides a word."""
    queens = jax.ShapeDtypeStruct((problem.capacity,), dtype_of(problem.capacity))
    return queens, jax.ShapeDtypeStruct((2,), np.uint32)


@functools.cache
def _harvester(devices: tuple[jax.Device, ...], distinct: Distinct, tries: int) -> Jitted:
    """Returns `harvested` of searches that are spread over several devices."""
    harvest = functools.partial(harvested, distinct=distinct, tries=tries)
    axes = AXES
    return pmapped(devices, harvest, (None, None, axes, 0, None), (axes, 0, 0))


@functools.partial(jit, static_argnames=("distinct", "tries"))
def harvested(
    problem: NQueens,
    search: Any,
    state: RunState,
    age: jax.Array,
    look: jax.Array,
    *,
    distinct: Distinct,
    tries: int,
) -> tuple[RunState, jax.Array, Harvest]:
    """Returns the searches after those at valid placements, and old ones, have restarted.

    Args:
      age: [S] int32 looks since each search started.
      look: [] uint32 number of this look.
      tries: as in `queens_plans.Plan`.

    Returns:
      The state, the ages, and what was found.
    """

    def start(key: jax.Array) -> jax.Array:
        if not tries:
            return problem.init(key)
        return greedy_placement(key, problem.n, tries, problem.capacity)

    costs = jax.vmap(search.best_cost)(state.searches)
    queens = jax.vmap(search.best, in_axes=(None, 0))(problem, state.searches)
    words = jax.vmap(lambda one: symmetry.fingerprint(one, distinct, problem.num_entries))(queens)
    is_valid, age = (costs == 0) & (state.index >= 0), age + 1
    restarts = is_valid | (age >= MAX_LOOKS)
    keys = jax.vmap(random.start_key, in_axes=(None, 0))(
        random.instance_key(state.key, look), state.index.astype(jnp.uint32)
    )
    fresh = jax.vmap(search.init, in_axes=(None, 0))(problem, jax.vmap(start)(keys))

    def renewed(new: jax.Array, old: jax.Array) -> jax.Array:
        where = lax.expand_dims(restarts, range(1, new.ndim))
        return jnp.where(where, new, old)

    searches = jax.tree.map(renewed, fresh, state.searches)
    narrow = queens.astype(dtype_of(problem.capacity))
    age = jnp.where(restarts, 0, age)
    return state._replace(searches=searches), age, Harvest(is_valid, narrow, words)
