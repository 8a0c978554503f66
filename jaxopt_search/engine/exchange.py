# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""Exchanges carried out: who gets what is the rule's to say, the solutions are moved here."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends import counts, memory, random
from jaxopt_search.backends.costs import no_nan
from jaxopt_search.engine import devices
from jaxopt_search.engine.compile import jit
from jaxopt_search.engine.state import RunState, best_costs, start_searches, with_best
from jaxopt_search.results import Status
from jaxopt_search.types import Exchange, Problem, Search, Stream, null_delta

_FIRST_OF_SEARCHES = random.MAX_SLOTS // 2  # of the slots, those before are for `donors`


def exchange_now(
    rule: Exchange, problem: Problem, search: Search, state: RunState, axis_name: str | None
) -> RunState:
    """Returns the state of a run after an exchange among all of its searches.

    Args:
      rule: who gets what from whom.
      state: with S searches per device.
      axis_name: the device axis, or None.
    """
    key = memory.computed_once(random.exchange_key(state.key, state.step.high))
    stream = random.Stream(key, state.step.low, counts.as_int32(state.step))
    own = state.searches, state.ancestor, state.index
    searches, ancestor = apply(rule, stream, problem, search, *own, axis_name)
    return state._replace(searches=searches, ancestor=ancestor)


@functools.partial(jit, static_argnames="axis_name")
def exchange_apart(
    rule: Exchange, problem: Problem, search: Search, state: RunState, *, axis_name: str | None
) -> RunState:
    """Like `exchange_now`, but as a program of its own, and only if the run has not ended.

    An exchange such as a recombination by edge assembly takes as long to compile as the steps; by
    itself it compiles beside them, and serves all ways to run them.
    """
    after = exchange_now(rule, problem, search, state, axis_name)
    # Costs have no drift here: those of the steps were settled, and a child's is its own.
    best = devices.minimum(best_costs(search, after.searches, state.index).min(), axis_name)
    new = after.searches, after.ancestor, best
    is_running = functools.partial(jnp.where, state.status == Status.RUNNING)
    searches, ancestor, best = jax.tree.map(
        is_running, new, (state.searches, state.ancestor, state.device_best)
    )
    return with_best(problem, state._replace(searches=searches, ancestor=ancestor), best)


def apply(
    rule: Exchange,
    stream: Stream,
    problem: Any,
    search: Search,
    searches: Any,
    ancestor: jax.Array,
    index: jax.Array,
    axis_name: str | None,
) -> tuple[Any, jax.Array]:
    """Returns this device's searches and their ancestors after an exchange among all searches.

    Args:
      stream: of the exchange, the same on every device.
      searches: search states with a leading axis [S], S per device.
      ancestor: [S] int32, as in `RunState`.
      index: [S] int32 global index of each search, -1 for padding.
      axis_name: the device axis, or None.
    """
    if (order := rule.order) is not None:
        individuals = _rearrange(order, stream, search, searches, index, axis_name)
        return jax.vmap(search.with_individuals)(searches, individuals), ancestor
    is_padding = index < 0
    costs, solutions = _passed_on(rule, problem, search, searches, is_padding)
    num_searches = devices.total(jnp.sum(~is_padding, dtype=jnp.int32), axis_name)
    all_costs = devices.all_gather(costs, axis_name)
    donors = _own_part(rule.donors(stream, all_costs, num_searches), index, axis_name)
    everyone = devices.all_gather((solutions, ancestor), axis_name)

    given, ancestors = jax.tree.map(lambda leaf: leaf[jnp.maximum(donors, 0)], everyone)
    if (combine := rule.combine) is not None:
        given = combine(_words(stream, index), problem, solutions, given)
    adopts = (donors >= 0) & ~is_padding
    restarts = rule.starts_anew(all_costs, num_searches)
    if restarts is None:
        adopted = jax.vmap(search.adopt, in_axes=(None, 0, 0))(problem, searches, given)
        return choose(adopts, (adopted, ancestors), (searches, ancestor))
    # Then the first one continues from the best of all, and the others restart.
    is_first = index == 0
    best = jax.tree.map(lambda leaf: leaf[jnp.argmin(all_costs)][None], everyone[0])
    given = choose(restarts & is_first, best, given)
    words, starts = _words(stream, index), restarts & ~is_first

    def draw(given: Any) -> Any:
        return choose(starts, jax.vmap(problem.init)(random.typed_key(words)), given)

    given = lax.cond(restarts, draw, lambda given: given, given)
    ancestors = jnp.where(restarts, jnp.where(is_first, ancestor, index), ancestors)
    new = adopt_or_start(search, problem, searches, given, starts, words)
    return choose(adopts | restarts, (new, jnp.maximum(ancestors, 0)), (searches, ancestor))


def adopt_or_start(
    search: Search, problem: Any, searches: Any, given: Any, starts: jax.Array, words: Any
) -> Any:
    """Returns the states of searches that start at solutions where they should, or adopt them."""
    if (either := search.adopt_or_init) is not None:
        return jax.vmap(either, in_axes=(None, 0, 0, 0))(problem, searches, given, starts)
    started = start_searches(random.typed_key(words), problem, search, given)
    adopted = jax.vmap(search.adopt, in_axes=(None, 0, 0))(problem, searches, given)
    return choose(starts, started, adopted)


def _words(stream: Stream, index: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns two random words of each search, [S] uint32."""
    slots = jnp.maximum(index, 0).astype(jnp.uint32) + jnp.uint32(_FIRST_OF_SEARCHES)
    first, second = memory.computed_once(stream.words(slots, 2))
    return first, second


def _passed_on(
    rule: Exchange, problem: Any, search: Search, searches: Any, is_padding: jax.Array
) -> tuple[jax.Array, Any]:
    """Returns what searches would pass on, leaves [S, ...], and its costs [S]."""
    if rule.passes_on == "best":
        costs, solution_of = jax.vmap(search.best_cost)(searches), search.best
    else:
        costs, solution_of = jax.vmap(search.current_cost)(searches), search.current
    costs = jnp.where(is_padding, null_delta(costs.dtype), no_nan(costs))
    return costs, jax.vmap(solution_of, in_axes=(None, 0))(problem, searches)


def _own_part(of_all: jax.Array, index: jax.Array, axis_name: str | None) -> jax.Array:
    """Returns this device's entries of an array with one for each search."""
    (size,) = index.shape
    return lax.dynamic_slice_in_dim(of_all, devices.device_index(axis_name) * size, size)


def _rearrange(
    order: Any,
    stream: Stream,
    search: Any,
    searches: Any,
    index: jax.Array,
    axis_name: str | None,
) -> Any:
    """Returns the individuals of this device's searches after those of all got another order."""
    if search.individuals is None:
        raise TypeError(f"search is a {type(search).__name__}, expected one that has islands")
    own = jax.vmap(search.individuals)(searches)
    size = jax.tree.leaves(own)[0].shape[1]
    everyone = jax.tree.map(
        lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), devices.all_gather(own, axis_name)
    )
    is_padding = jnp.repeat(devices.all_gather(index, axis_name) < 0, size)
    first = devices.device_index(axis_name) * (index.shape[0] * size)
    places = lax.dynamic_slice_in_dim(order(stream, is_padding), first, index.shape[0] * size)
    return jax.tree.map(lambda leaf, like: leaf[places].reshape(like.shape), everyone, own)


def choose(where: jax.Array, tree: Any, other: Any) -> Any:
    """Returns the leaves of `tree` where `where` [S] holds, and the leaves of `other` elsewhere."""

    def choose(leaf: jax.Array, instead: jax.Array) -> jax.Array:
        return jnp.where(where.reshape(where.shape + (1,) * (leaf.ndim - 1)), leaf, instead)

    return jax.tree.map(choose, tree, other)
