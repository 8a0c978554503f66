"""The two parallel models of the paper for tabu search on the QAP, over the library's public parts.

Both make the library's searches, step for step. The paper gives each search a thread of a GPU, and
so does the algorithmic level in a kernel; by XLA it is an operation over all searches for each
move. The iteration level is no way to run anything fast: a move is a part of an operation of XLA's.
"""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

import jaxopt_search as js
from jaxopt_search import backends
from jaxopt_search.backends import memory, random

_ASPIRED, _ALLOWED, _FORBIDDEN = range(3)
_THREADS = 32  # of a block


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


@functools.partial(jax.jit, static_argnames="implementation")
def algorithmic(
    flow: jax.Array,
    distance: jax.Array,
    starts: jax.Array,
    key: random.Key,
    num_steps: Any,
    implementation: str = "xla",
) -> Found:
    """Algorithmic level: searches side by side, each of which prices one move after the other.

    Args:
      flow, distance: [n, n] int32.
      starts: [S, n] int32 assignments.
      key: of the run.
      num_steps: of each search.
      implementation: `"xla"`, or a kernel's: then a thread of its own makes each search, as many in
        a block as it has threads.
    """
    (number, n), threads = starts.shape, _THREADS
    if implementation == "xla":
        run_one = functools.partial(_tabu_search, flow, distance, key, num_steps)
        return jax.vmap(run_one)(starts, lax.iota(jnp.int32, number))
    num_blocks = -(-number // threads)

    def search(read: Any, index: jax.Array) -> Any:
        flow, distance, starts, key, num_steps = read
        found = _tabu_search(flow, distance, key, num_steps, starts[index], index)
        return [one[k] for one in (found.current, found.best) for k in range(n)], found.moves

    def body(_: jax.Array, read: Any, own: Any) -> Any:
        block, places, moves = own
        lane, always = memory.lanes(threads), jnp.bool_(True)
        index = jnp.minimum(block * threads + lane, number - 1)
        found, made = memory.each(search, read, index)
        for k, values in enumerate(found):
            places = memory.store(places, (jnp.int32(k), lane), values, always)
        return block, places, memory.store(moves, lane, made, always)

    own = (
        lax.iota(jnp.int32, num_blocks),
        jnp.zeros((num_blocks, 2 * n, threads), jnp.int32),
        jnp.zeros((num_blocks, threads), jnp.int32),
    )
    read = flow, distance, starts, key, jnp.int32(num_steps)
    _, places, moves = backends.launch(body, jnp.int32(1), read, own, implementation=implementation)
    places = jnp.swapaxes(places, 1, 2).reshape(-1, 2, n)[:number]
    return Found(places[:, 0], places[:, 1], moves.ravel()[:number])


class _Lane(NamedTuple):
    """A search: `location` [n] is the assignment, `facility` its inverse, `deltas` [n, n] of swaps.

    `until` [n, n]: the last step at which a facility is forbidden at a location. The deltas are
    those before the last move, which `swapped` two facilities.
    """

    location: jax.Array
    facility: jax.Array
    deltas: jax.Array
    swapped: tuple[jax.Array, jax.Array]
    cost: jax.Array
    best: jax.Array
    best_cost: jax.Array
    until: jax.Array


def _tabu_search(
    flow: jax.Array,
    distance: jax.Array,
    key: random.Key,
    num_steps: Any,
    start: jax.Array,
    index: jax.Array,
) -> Found:
    """Robust tabu search (Taillard 1991) with the rules of `js.tabu_search`: one search of a run.

    Args:
      key: of the run.
      index: of the search.
    """
    n = len(start)
    key = random.search_key(key, index.astype(jnp.uint32), jnp.uint32(0))
    low, high, age = math.floor(0.9 * n), math.ceil(1.1 * n), 5 * n * n

    def pair(entry: jax.Array) -> tuple[jax.Array, jax.Array]:
        return lax.div(entry, jnp.int32(n)), lax.rem(entry, jnp.int32(n))

    def price(i: jax.Array, j: jax.Array, p: jax.Array) -> jax.Array:
        """Returns the delta of the swap of facilities i and j, in O(n)."""
        q = p.at[i].set(p[j]).at[j].set(p[i])
        rows = flow[i] * (distance[q[i]][q] - distance[p[i]][p])
        rows += flow[j] * (distance[q[j]][q] - distance[p[j]][p])
        columns = flow[:, i] * (distance[q, q[i]] - distance[p, p[i]])
        columns += flow[:, j] * (distance[q, q[j]] - distance[p, p[j]])
        others = (jnp.arange(n) != i) & (jnp.arange(n) != j)
        return jnp.sum(rows + jnp.where(others, columns, 0))

    def update(i: jax.Array, j: jax.Array, p: jax.Array, r: Any, s: Any) -> jax.Array:
        """Returns how the delta of a swap of others changes as r and s are swapped, in O(1)."""
        f, d = flow, distance
        return (f[r, i] - f[r, j] + f[s, j] - f[s, i]) * (
            d[p[s], p[i]] - d[p[s], p[j]] + d[p[r], p[j]] - d[p[r], p[i]]
        ) + (f[i, r] - f[j, r] + f[j, s] - f[i, s]) * (
            d[p[i], p[s]] - d[p[j], p[s]] + d[p[j], p[r]] - d[p[i], p[r]]
        )

    def renewed(lane: _Lane, is_first: jax.Array) -> jax.Array:
        """Returns the deltas of all swaps."""
        (r, s), p = lane.swapped, lane.location

        def renew(entry: jax.Array, deltas: jax.Array) -> jax.Array:
            i, j = pair(entry)
            is_fresh = is_first | (i == r) | (i == s) | (j == r) | (j == s)
            delta = lax.cond(
                is_fresh, lambda: price(i, j, p), lambda: deltas[i, j] + update(i, j, p, r, s)
            )
            return deltas.at[i, j].set(delta)

        return lax.fori_loop(0, n * n, renew, lane.deltas)

    def find(lane: _Lane, now: jax.Array) -> jax.Array:
        """Returns the entry of the move to make: facility u goes to a place, v comes from there."""

        def look(entry: jax.Array, found: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            u, place = pair(entry)
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
        lane = lane._replace(deltas=renewed(lane, now == 0))
        r, place = pair(find(lane, now))
        s = lane.facility[place]
        words = random.Stream(key, now.astype(jnp.uint32), now).words(jnp.uint32(0), 2)
        until, location, facility = lane.until, lane.location, lane.facility
        for u, word in zip((r, s), words, strict=True):
            tenure = low + random.below(word, high - low + 1)
            until = until.at[u, location[u]].set(now + tenure)
        cost = lane.cost + lane.deltas[r, s]
        location = location.at[r].set(place).at[s].set(lane.location[r])
        facility = facility.at[place].set(r).at[lane.location[r]].set(s)
        is_best = cost < lane.best_cost
        best = jnp.where(is_best, location, lane.best)
        best_cost = jnp.where(is_best, cost, lane.best_cost)
        lane = _Lane(location, facility, lane.deltas, (r, s), cost, best, best_cost, until)
        return lane, moves + 1

    cost, zero = (flow * distance[start][:, start]).sum(), jnp.int32(0)
    until = -1 - jnp.arange(n * n, dtype=jnp.int32).reshape(n, n)
    facility = jnp.zeros_like(start).at[start].set(jnp.arange(n, dtype=start.dtype))
    deltas = jnp.zeros((n, n), jnp.int32)
    lane = _Lane(start, facility, deltas, (zero, zero), cost, start, cost, until)
    lane, moves = lax.fori_loop(0, num_steps, step, (lane, zero))
    return Found(lane.location, lane.best, moves)
