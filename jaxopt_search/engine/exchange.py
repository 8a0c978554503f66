# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""Exchanges carried out: the rule names donors, and their solutions are moved here."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends import counts, memory, random
from jaxopt_search.backends.costs import no_nan
from jaxopt_search.engine import devices
from jaxopt_search.engine.state import RunState
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


def apply(
    rule: Exchange,
    stream: Stream,
    problem: Any,
    search: Any,
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

    def own_part(of_all: jax.Array, size: int) -> jax.Array:
        return lax.dynamic_slice_in_dim(of_all, devices.device_index(axis_name) * size, size)

    if (order := rule.order) is not None:
        if search.individuals is None:
            raise TypeError(f"search is a {type(search).__name__}, expected one that has islands")
        own = jax.vmap(search.individuals)(searches)
        islands, size = jax.tree.leaves(own)[0].shape[:2]
        everyone = jax.tree.map(
            lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), devices.all_gather(own, axis_name)
        )
        is_padding = jnp.repeat(devices.all_gather(index, axis_name) < 0, size)
        places = own_part(order(stream, is_padding), islands * size)
        individuals = jax.tree.map(
            lambda leaf, like: leaf[places].reshape(like.shape), everyone, own
        )
        return jax.vmap(search.with_individuals)(searches, individuals), ancestor
    is_padding, is_best = index < 0, rule.passes_on == "best"
    costs = no_nan(jax.vmap(search.best_cost if is_best else search.current_cost)(searches))
    costs = jnp.where(is_padding, null_delta(costs.dtype), costs)
    solution_of = search.best if is_best else search.current
    solutions = jax.vmap(solution_of, in_axes=(None, 0))(problem, searches)
    num_searches = devices.total(jnp.sum(~is_padding, dtype=jnp.int32), axis_name)
    all_costs = devices.all_gather(costs, axis_name)
    donors = own_part(rule.donors(stream, all_costs, num_searches), len(index))
    everyone = devices.all_gather((solutions, ancestor), axis_name)
    given, ancestors = jax.tree.map(lambda leaf: leaf[jnp.maximum(donors, 0)], everyone)

    def words() -> tuple[jax.Array, jax.Array]:
        """Returns two random words of each search, [S] uint32."""
        slots = jnp.maximum(index, 0).astype(jnp.uint32) + jnp.uint32(_FIRST_OF_SEARCHES)
        first, second = memory.computed_once(stream.words(slots, 2))
        return first, second

    if (combine := rule.combine) is not None:
        given = combine(words(), problem, solutions, given)
    adopts = (donors >= 0) & ~is_padding
    restarts = rule.starts_anew(all_costs, num_searches)
    if restarts is None:
        adopted = jax.vmap(search.adopt, in_axes=(None, 0, 0))(problem, searches, given)
        return choose(adopts, (adopted, ancestors), (searches, ancestor))
    # Then the first one continues from the best of all, and the others restart.
    is_first, own_words = index == 0, words()
    best = jax.tree.map(lambda leaf: leaf[jnp.argmin(all_costs)][None], everyone[0])
    given = choose(restarts & is_first, best, given)
    starts = restarts & ~is_first

    def draw(given: Any) -> Any:
        return choose(starts, jax.vmap(problem.init)(random.typed_key(own_words)), given)

    given = lax.cond(restarts, draw, lambda given: given, given)
    ancestors = jnp.where(restarts, jnp.where(is_first, ancestor, index), ancestors)
    new = adopt_or_start(search, problem, searches, given, starts, own_words)
    return choose(adopts | restarts, (new, jnp.maximum(ancestors, 0)), (searches, ancestor))


def adopt_or_start(
    search: Search, problem: Any, searches: Any, given: Any, starts: jax.Array, words: Any
) -> Any:
    """Returns the states of searches that start at solutions where they should, or adopt them."""
    keys = random.typed_key(words)
    started = jax.vmap(search.init_with, in_axes=(0, None, 0))(keys, problem, given)
    adopted = jax.vmap(search.adopt, in_axes=(None, 0, 0))(problem, searches, given)
    return choose(starts, started, adopted)


def choose(where: jax.Array, tree: Any, other: Any) -> Any:
    """Returns the leaves of `tree` where `where` [S] holds, and the leaves of `other` elsewhere."""

    def choose(leaf: jax.Array, instead: jax.Array) -> jax.Array:
        return jnp.where(where.reshape(where.shape + (1,) * (leaf.ndim - 1)), leaf, instead)

    return jax.tree.map(choose, tree, other)
