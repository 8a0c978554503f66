"""The two parallel models of the paper for tabu search on the QAP, over the library's public parts.

Both make the library's searches, step for step. Neither is a way to run anything fast: the paper
gives each search a thread of a GPU, and here a move, or a search, is an operation of XLA.
"""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

import jaxopt_search as js
from jaxopt_search.backends import random

_ASPIRED, _ALLOWED, _FORBIDDEN = range(3)


class Found(NamedTuple):
    """Of each search: the current assignment and the best one, [S, n], and the moves made, [S]."""

    current: jax.Array
    best: jax.Array
    moves: jax.Array


@jax.jit
def iteration(problem: js.QAP, search: Any, state: js.RunState, num_steps: Any) -> Found:
    """Iteration level: the moves of a step side by side, one search after the other.

    Args:
      problem, search, state: of the library, before the first step.
      num_steps: of each search.
    """
    of_each = ("index", "searches", "ancestor", "hit", "info")

    def run_one(own: dict[str, Any]) -> Found:
        one = state._replace(**jax.tree.map(lambda leaf: leaf[None], own))
        one = js.advance(problem, search, one, num_steps, implementation="xla")
        searches = jax.tree.map(lambda leaf: leaf[0], one.searches)
        current, best = search.current(problem, searches), search.best(problem, searches)
        return Found(current, best, one.info.accepted[0])

    return lax.map(run_one, {name: getattr(state, name) for name in of_each})


@jax.jit
def algorithmic(
    flow: jax.Array, distance: jax.Array, starts: jax.Array, key: random.Key, num_steps: Any
) -> Found:
    """Algorithmic level: searches side by side, each of which prices one move after the other.

    Args:
      flow, distance: [n, n] int32.
      starts: [S, n] assignments.
      key: of the run.
      num_steps: of each search.
    """
    keys = random.search_key(key, lax.iota(jnp.uint32, len(starts)), jnp.uint32(0))
    run_one = functools.partial(_tabu_search, flow, distance, num_steps)
    return jax.vmap(run_one)(starts, keys)


class _Lane(NamedTuple):
    """A search: `location` [n] is the assignment, `facility` its inverse, `deltas` [n, n] of swaps.

    `until` [n, n]: the last step at which a facility is forbidden at a location.
    """

    location: jax.Array
    facility: jax.Array
    deltas: jax.Array
    cost: jax.Array
    best: jax.Array
    best_cost: jax.Array
    until: jax.Array


def _tabu_search(
    flow: jax.Array, distance: jax.Array, num_steps: Any, start: jax.Array, key: random.Key
) -> Found:
    """Robust tabu search (Taillard 1991) with the rules of `js.tabu_search`."""
    n = len(start)
    low, high, age = math.floor(0.9 * n), math.ceil(1.1 * n), 5 * n * n

    def price(entry: jax.Array, deltas: jax.Array, p: jax.Array) -> jax.Array:
        """Sets the delta of one swap, of facilities i and j, in O(n)."""
        i, j = entry // n, entry % n
        q = p.at[i].set(p[j]).at[j].set(p[i])
        rows = flow[i] @ (distance[q[i]][q] - distance[p[i]][p])
        rows += flow[j] @ (distance[q[j]][q] - distance[p[j]][p])
        columns = flow[:, i] * (distance[q, q[i]] - distance[p, p[i]])
        columns += flow[:, j] * (distance[q, q[j]] - distance[p, p[j]])
        others = (jnp.arange(n) != i) & (jnp.arange(n) != j)
        return deltas.at[i, j].set(rows + jnp.where(others, columns, 0).sum())

    def update(entry: jax.Array, deltas: jax.Array, p: jax.Array, r: Any, s: Any) -> jax.Array:
        """Sets the delta of a swap of others after r and s were swapped, in O(1)."""
        i, j = entry // n, entry % n
        f, d = flow, distance
        change = (f[r, i] - f[r, j] + f[s, j] - f[s, i]) * (
            d[p[s], p[i]] - d[p[s], p[j]] + d[p[r], p[j]] - d[p[r], p[i]]
        ) + (f[i, r] - f[j, r] + f[j, s] - f[i, s]) * (
            d[p[i], p[s]] - d[p[j], p[s]] + d[p[j], p[r]] - d[p[i], p[r]]
        )
        return deltas.at[i, j].add(change)

    def find(lane: _Lane, now: jax.Array) -> jax.Array:
        """Returns the entry of the move to make: facility u goes to a place, v comes from there."""

        def look(entry: jax.Array, found: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            u, place = entry // n, entry % n
            v = lane.facility[place]
            delta, left = lane.deltas[u, v], lane.until[u, place] - now
            is_aspired = (lane.cost + delta < lane.best_cost) | (left < -age)
            kind = jnp.where(is_aspired, _ASPIRED, jnp.where(left < 0, _ALLOWED, _FORBIDDEN))
            value = jnp.where(kind == _FORBIDDEN, left, delta)
            is_lower = (kind < found[0]) | ((kind == found[0]) & (value < found[1]))
            choose = functools.partial(jnp.where, is_lower & (u != v))
            return tuple(map(choose, (kind, value, entry), found))

        none = jnp.int32(_FORBIDDEN + 1)
        return lax.fori_loop(0, n * n, look, (none, none, jnp.int32(0)))[2]

    def step(now: jax.Array, carry: tuple[_Lane, jax.Array]) -> tuple[_Lane, jax.Array]:
        lane, moves = carry
        entry = find(lane, now)
        r, place = entry // n, entry % n
        s = lane.facility[place]
        words = random.Stream(key, now.astype(jnp.uint32), now).words(jnp.uint32(0), 2)
        until, location, facility = lane.until, lane.location, lane.facility
        for u, word in zip((r, s), words, strict=True):
            tenure = low + random.below(word, high - low + 1)
            until = until.at[u, location[u]].set(now + tenure)
        cost = lane.cost + lane.deltas[r, s]
        location = location.at[r].set(place).at[s].set(lane.location[r])
        facility = facility.at[place].set(r).at[lane.location[r]].set(s)

        def renew(entry: jax.Array, deltas: jax.Array) -> jax.Array:
            i, j = entry // n, entry % n
            is_swapped = (i == r) | (i == s) | (j == r) | (j == s)
            fresh = price(entry, deltas, location)
            return jnp.where(is_swapped, fresh, update(entry, deltas, location, r, s))

        deltas = lax.fori_loop(0, n * n, renew, lane.deltas)
        is_best = cost < lane.best_cost
        best = jnp.where(is_best, location, lane.best)
        best_cost = jnp.where(is_best, cost, lane.best_cost)
        return _Lane(location, facility, deltas, cost, best, best_cost, until), moves + 1

    cost = (flow * distance[start][:, start]).sum()
    until = -1 - jnp.arange(n * n, dtype=jnp.int32).reshape(n, n)
    deltas = lax.fori_loop(
        0, n * n, lambda entry, deltas: price(entry, deltas, start), jnp.zeros((n, n), jnp.int32)
    )
    facility = jnp.zeros_like(start).at[start].set(jnp.arange(n, dtype=start.dtype))
    lane = _Lane(start, facility, deltas, cost, start, cost, until)
    lane, moves = lax.fori_loop(0, num_steps, step, (lane, jnp.int32(0)))
    return Found(lane.location, lane.best, moves)
