"""How searches learn from one another between steps.

An exchange names for each search the donor whose best solution it goes on from; `apply` moves the
solutions, within a device and across. It sees best costs by global index only, so it does the same
on any number of devices.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search import collectives
from jaxopt_search.checks import check_count
from jaxopt_search.types import Exchange, Search, Stream, null_delta


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class BroadcastBest:
    """Build it with `broadcast_best`."""

    every: jax.Array
    group_size: int | None = dataclasses.field(metadata={"static": True})

    def donors(self, stream: Stream, costs: jax.Array, num_searches: jax.Array) -> jax.Array:
        (size,) = costs.shape
        group = self.group_size or size
        padded = jnp.pad(costs, (0, -size % group), constant_values=null_delta(costs.dtype))
        best = jnp.argmin(padded.reshape(-1, group), axis=1).astype(jnp.int32)
        first = group * lax.iota(jnp.int32, best.shape[0])
        return jnp.repeat(first + best, group)[:size]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Ring:
    """Build it with `ring`."""

    every: jax.Array

    def donors(self, stream: Stream, costs: jax.Array, num_searches: jax.Array) -> jax.Array:
        own = lax.iota(jnp.int32, costs.shape[0])
        before = jnp.where(own == 0, num_searches - 1, own - 1)
        return jnp.where(costs[before] < costs, before, -1)


def broadcast_best(*, every: int, group_size: int | None = None) -> BroadcastBest:
    """Returns the exchange after which all searches go on from the best solution of all.

    Lam, Tsoi, Luk, "Parallel neighbourhood search on many-core platforms", section 3.2. The best
    search itself goes back to its best solution, too.

    Args:
      every: steps between exchanges.
      group_size: exchange only within groups of so many consecutive searches, which makes the
        groups independent runs; None for one group.

    Raises:
      ValueError: if a number is not a positive integer.
    """
    if group_size is not None:
        group_size = check_count("group_size", group_size)
    return BroadcastBest(every=jnp.int32(check_count("every", every)), group_size=group_size)


def ring(*, every: int) -> Ring:
    """Returns the exchange in which each search takes over from the one before it, if better."""
    return Ring(every=jnp.int32(check_count("every", every)))


def best_costs(search: Search, searches: Any, index: jax.Array) -> jax.Array:
    """Returns [S] the best cost of each search, with the highest number there is for padding."""
    costs = jax.vmap(search.best_cost)(searches)
    return jnp.where(index >= 0, costs, null_delta(costs.dtype))


def apply(
    exchange: Exchange,
    stream: Stream,
    problem: Any,
    search: Search,
    states: Any,
    index: jax.Array,
    axis_name: str | None,
) -> Any:
    """Returns the states of this device's searches after an exchange among all searches.

    Args:
      stream: of the exchange, the same on every device.
      states: search states with a leading axis [S], S per device.
      index: [S] int32 global index of each search, -1 for padding.
      axis_name: the device axis, or None.
    """
    is_padding = index < 0
    costs = best_costs(search, states, index)
    num_searches = collectives.total(jnp.sum(~is_padding, dtype=jnp.int32), axis_name)
    donors = exchange.donors(stream, collectives.all_gather(costs, axis_name), num_searches)
    (size,) = index.shape
    donors = lax.dynamic_slice_in_dim(donors, collectives.device_index(axis_name) * size, size)
    best = jax.vmap(search.best, in_axes=(None, 0))(problem, states)
    best = collectives.all_gather(best, axis_name)
    given = jax.tree.map(lambda leaf: leaf[jnp.maximum(donors, 0)], best)
    adopted = jax.vmap(search.adopt, in_axes=(None, 0, 0))(problem, states, given)
    takes_part = (donors >= 0) & ~is_padding
    return jax.tree.map(
        lambda new, old: jnp.where(takes_part.reshape((size,) + (1,) * (new.ndim - 1)), new, old),
        adopted,
        states,
    )
