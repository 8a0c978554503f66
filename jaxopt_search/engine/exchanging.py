# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""Exchanges carried out: who gets what is the rule's to say, the solutions are moved here.

In two parts: what is `offered`, and how the searches have `adopted` it.
"""

import functools
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends import memory, random
from jaxopt_search.backends.costs import no_nan
from jaxopt_search.engine import collectives, kept_programs
from jaxopt_search.types import Exchange, Search, Stream, null_delta

_FIRST_OF_SEARCHES = random.MAX_SLOTS // 2  # of the slots, those before are for `donors`


def start(keys: jax.Array, problem: Any, search: Search, solutions: Any) -> Any:
    """Returns the states, leaves [S, ...], of searches that start at solutions.

    Args:
      keys: [S] typed, from which a search draws whatever else its start takes.
      solutions: leaves [S, ...].
    """
    start_one = search.init_with
    return jax.vmap(start_one, in_axes=(0, None, 0))(keys, problem, solutions)


def best_costs(search: Search, searches: Any, index: jax.Array) -> jax.Array:
    """Returns [S] the best cost of each search; the highest number for padding and for NaN."""
    costs = no_nan(jax.vmap(search.best_cost)(searches))
    return jnp.where(index >= 0, costs, null_delta(costs.dtype))


def drifts(costs: Any) -> bool:
    """Returns whether running costs differ from true ones in time: sums of floats do."""
    return jnp.issubdtype(costs.dtype, jnp.floating)


def settled(problem: Any, search: Search, searches: Any) -> Any:
    """Returns the states of searches with costs recomputed if they may have drifted: float ones."""
    if not drifts(jax.eval_shape(jax.vmap(search.best_cost), searches)):
        return searches
    return jax.vmap(search.refresh, in_axes=(None, 0))(problem, searches)


class Offer(NamedTuple):
    """What an exchange has for each search, leaves [S, ...].

    Attributes:
      solutions: from which it may continue. In place of them, its individuals, [S, P, ...], where
        those of all islands get another order; or what the exchange is still to `finish`, where
        none ever starts.
      ancestors: int32, those of the solutions.
      is_taken: bool, whether it continues from there.
      starts: bool, whether it starts there, in place of adopting the solution; None if none ever
        does.
      words: two of uint32, from which it then draws what a start takes; or None.
    """

    solutions: Any
    ancestors: jax.Array
    is_taken: jax.Array
    starts: jax.Array | None = None
    words: tuple[jax.Array, jax.Array] | None = None


def offer_shape(exchange: Exchange, problem: Any, search: Any, searches: Any) -> Offer:
    """Returns the shapes of what is offered to searches; remembered for shapes alike.

    Args:
      searches: leaves [S, ...], shapes, too.
    """
    own = exchange, problem, search, searches
    costs, solutions, restarts = kept_programs.noted_shapes("offer", _asked, *own)
    each: Any = functools.partial(jax.ShapeDtypeStruct, costs.shape)
    offer = Offer(solutions, each(jnp.int32), each(jnp.bool_))
    if restarts is not None:
        return offer._replace(starts=each(jnp.bool_), words=(each(jnp.uint32), each(jnp.uint32)))
    if exchange.order is None and exchange.finish is not None:
        return offer._replace(solutions=cast("Any", exchange).unfinished(solutions))
    return offer


@jax.jit
def _asked(exchange: Exchange, problem: Any, search: Any, searches: Any) -> tuple[Any, Any, Any]:
    """Returns costs, solutions and restarts as an exchange has them; it is never called."""
    costs = jax.vmap(search.best_cost)(searches)
    if exchange.order is not None:
        return costs, jax.vmap(search.individuals)(searches), None
    solutions = jax.vmap(search.best, in_axes=(None, 0))(problem, searches)
    return costs, solutions, exchange.starts_anew(costs, jnp.int32(0))


def apply(
    exchange: Exchange,
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
    offer = offered(exchange, stream, problem, search, searches, ancestor, index, axis_name)
    return adopted(exchange, problem, search, searches, ancestor, offer)


def offered(
    exchange: Exchange,
    stream: Stream,
    problem: Any,
    search: Search,
    searches: Any,
    ancestor: jax.Array,
    index: jax.Array,
    axis_name: str | None,
) -> Offer:
    """Returns what an exchange among all searches has for this device's; arguments as `apply`."""
    if (order := exchange.order) is not None:
        individuals = _rearranged(order, stream, search, searches, index, axis_name)
        return Offer(individuals, ancestor, jnp.ones_like(index, bool))
    is_padding = index < 0
    costs, solutions = _passed_on(exchange, problem, search, searches, is_padding)
    num_searches = collectives.total(jnp.sum(~is_padding, dtype=jnp.int32), axis_name)
    all_costs = collectives.all_gather(costs, axis_name)
    donors = _own_part(exchange.donors(stream, all_costs, num_searches), index, axis_name)
    everyone = collectives.all_gather((solutions, ancestor), axis_name)

    restarts = exchange.starts_anew(all_costs, num_searches)
    given, ancestors = jax.tree.map(lambda leaf: leaf[jnp.maximum(donors, 0)], everyone)
    if (combine := exchange.combine) is not None:
        given = combine(_words(stream, index), problem, solutions, given)
    takes_part, is_first = (donors >= 0) & ~is_padding, index == 0
    if restarts is None:
        return Offer(given, ancestors, takes_part)
    if (finish := exchange.finish) is not None:
        given = finish(problem, given)
    # Then the first one continues from the best of all, and the others start again.
    best = jax.tree.map(lambda leaf: leaf[jnp.argmin(all_costs)][None], everyone[0])
    given = choose(restarts & is_first, best, given)
    words, starts = _words(stream, index), restarts & ~is_first

    def drawn(given: Any) -> Any:
        return choose(starts, jax.vmap(problem.init)(random.typed_key(words)), given)

    given = lax.cond(restarts, drawn, lambda given: given, given)
    ancestors = jnp.where(restarts, jnp.where(is_first, ancestor, index), ancestors)
    return Offer(given, jnp.maximum(ancestors, 0), takes_part | restarts, starts, words)


def adopted(
    exchange: Exchange,
    problem: Any,
    search: Any,
    searches: Any,
    ancestor: jax.Array,
    offer: Offer,
) -> tuple[Any, jax.Array]:
    """Returns searches, and their ancestors, that have taken what is `offered` to them."""
    if exchange.order is not None:
        return jax.vmap(search.with_individuals)(searches, offer.solutions), ancestor
    if offer.starts is None and (finish := exchange.finish) is not None:
        offer = offer._replace(solutions=finish(problem, offer.solutions))
    new = _continued(search, problem, searches, offer), offer.ancestors
    return choose(offer.is_taken, new, (searches, ancestor))


def _continued(search: Search, problem: Any, searches: Any, offer: Offer) -> Any:
    """Returns the states of searches that start at solutions where they should, or adopt them."""
    adopt = jax.vmap(search.adopt, in_axes=(None, 0, 0))
    if offer.starts is None:
        return adopt(problem, searches, offer.solutions)
    if (either := search.adopt_or_init) is not None:
        either = jax.vmap(either, in_axes=(None, 0, 0, 0))
        return either(problem, searches, offer.solutions, offer.starts)
    assert offer.words is not None
    started = start(random.typed_key(offer.words), problem, search, offer.solutions)
    return choose(offer.starts, started, adopt(problem, searches, offer.solutions))


def _words(stream: Stream, index: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns two random words of each search, [S] uint32."""
    slots = jnp.maximum(index, 0).astype(jnp.uint32) + jnp.uint32(_FIRST_OF_SEARCHES)
    first, second = memory.computed_once(stream.words(slots, 2))
    return first, second


def _passed_on(
    exchange: Exchange, problem: Any, search: Search, searches: Any, is_padding: jax.Array
) -> tuple[jax.Array, Any]:
    """Returns what searches would pass on, leaves [S, ...], and its costs [S]."""
    if exchange.passes_on == "best":
        costs, solution_of = jax.vmap(search.best_cost)(searches), search.best
    else:
        costs, solution_of = jax.vmap(search.current_cost)(searches), search.current
    costs = jnp.where(is_padding, null_delta(costs.dtype), no_nan(costs))
    return costs, jax.vmap(solution_of, in_axes=(None, 0))(problem, searches)


def _own_part(of_all: jax.Array, index: jax.Array, axis_name: str | None) -> jax.Array:
    """Returns this device's entries of an array with one for each search."""
    (size,) = index.shape
    return lax.dynamic_slice_in_dim(of_all, collectives.device_index(axis_name) * size, size)


def _rearranged(
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
        lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), collectives.all_gather(own, axis_name)
    )
    is_padding = jnp.repeat(collectives.all_gather(index, axis_name) < 0, size)
    start = collectives.device_index(axis_name) * (index.shape[0] * size)
    places = lax.dynamic_slice_in_dim(order(stream, is_padding), start, index.shape[0] * size)
    return jax.tree.map(lambda leaf, like: leaf[places].reshape(like.shape), everyone, own)


def choose(where: jax.Array, tree: Any, other: Any) -> Any:
    """Returns the leaves of `tree` where `where` [S] holds, and the leaves of `other` elsewhere."""

    def choose(leaf: jax.Array, instead: jax.Array) -> jax.Array:
        return jnp.where(where.reshape(where.shape + (1,) * (leaf.ndim - 1)), leaf, instead)

    return jax.tree.map(choose, tree, other)
