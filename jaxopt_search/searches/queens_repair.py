"""N-Queens: many attacked queens are moved out of attack at once, round after round, O(n) memory.

In a round attacked queens propose to exchange columns with random ones, `width` proposals in all.
One is made if both queens then stand on four diagonals that were empty, and if no other proposal
that could be made wants one of its rows or diagonals. So a round never adds an attack.

It is the search of Sosic and Gu, "A polynomial time algorithm for the N-Queens problem", 1990, with
rounds of exchanges in place of single ones. From a random placement of some hundred queens or more
it ends at a valid one; from a placement with all queens on one diagonal it finds no way out.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.backends import random
from jaxopt_search.checks import MAX_INT32
from jaxopt_search.neighborhoods.queen_swap import CountedQueens, QueenSwap, is_attacked
from jaxopt_search.problems.queens.problem import NQueens

_WIDTH = 2**17
ROUNDS = 8
"""Rounds between two lists of the attacked queens."""
_MADE = 4
"""Of this many proposals at most one is made in a round."""
_FOR_ROWS = np.uint32(2**32 - 1)


class _Claims(NamedTuple):
    """The lowest number of a proposal that wants each row, [n], and diagonal, [2 n].

    Here n is the problem's capacity.
    """

    row: Any
    rising: Any
    falling: Any


class Repair(NamedTuple):
    """The state of a repair; `number` is the lowest that a proposal has had so far."""

    placed: CountedQueens
    claims: _Claims
    number: jax.Array
    rounds: jax.Array
    num_attacked: jax.Array


def begun(problem: NQueens, queens: jax.Array) -> Repair:
    """Returns the repair of a placement, [capacity] int32, before its first round."""
    n = problem.capacity
    latest = functools.partial(jnp.full, fill_value=MAX_INT32, dtype=jnp.int32)
    claims = _Claims(latest(n), latest(2 * n), latest(2 * n))
    placed = QueenSwap().init(problem, queens)._replace(queens=queens)
    num_attacked = _attacked(problem, placed).sum(dtype=jnp.int32)
    return Repair(placed, claims, jnp.int32(MAX_INT32), jnp.int32(0), num_attacked)


def continued(
    key: random.Key,
    problem: NQueens,
    state: Repair,
    max_rounds: jax.Array | int,
    width: int = _WIDTH,
) -> Repair:
    """Returns a repair after `max_rounds` rounds in all, or once no queen is attacked.

    Args:
      key: as `random.as_key` returns it.
      max_rounds: [] integer, rounded up to a multiple of 8.
      width: proposals per round.
    """
    # Proposals come in lanes, of which the first ones are used where the problem is padded.
    lanes = _MADE * max(1, min(width, problem.capacity) // _MADE)
    used = _MADE * jnp.maximum(1, jnp.minimum(width, problem.n) // _MADE)
    max_rounds = jnp.minimum(max_rounds, MAX_INT32 // used - ROUNDS)

    def does_continue(state: Repair) -> jax.Array:
        return (state.num_attacked > 0) & (state.rounds < max_rounds)

    def some_rounds(state: Repair) -> Repair:
        # The rows of attacked queens, those behind a random one.
        word, _ = random.threefry2x32(key, (state.rounds.astype(jnp.uint32), _FOR_ROWS))
        shift, attacked = random.below(word, problem.n), _attacked(problem, state.placed)
        if problem.num_entries is None:
            attacked = jnp.roll(attacked, -shift)
        else:
            row = lax.iota(jnp.int32, problem.capacity)
            attacked = attacked[jnp.where(row < problem.n, (row + shift) % problem.n, row)]
        (found,) = jnp.nonzero(attacked, size=lanes)
        rows = (found.astype(jnp.int32) + shift) % problem.n
        num_rows = jnp.minimum(state.num_attacked, used)

        def one(_: jax.Array, state: Repair) -> Repair:
            return _round(key, problem, state, used, rows, num_rows)

        state = lax.fori_loop(0, ROUNDS, one, state)
        num_attacked = _attacked(problem, state.placed).sum(dtype=jnp.int32)
        return state._replace(num_attacked=num_attacked)

    return lax.while_loop(does_continue, some_rounds, state)


def _attacked(problem: NQueens, placed: CountedQueens) -> jax.Array:
    row = lax.iota(jnp.int32, problem.capacity)
    return is_attacked(problem.capacity, placed, row) & (row < problem.n)


def _round(
    key: random.Key,
    problem: NQueens,
    state: Repair,
    width: jax.Array,
    rows: jax.Array,
    num_rows: jax.Array,
) -> Repair:
    """Returns the state after a round.

    Args:
      width: how many lanes propose.
      rows: [lanes], of which the first `num_rows` had attacked queens.
    """
    n, (queens, rising, falling) = problem.capacity, state.placed
    lane = lax.iota(jnp.int32, len(rows))
    counter = lane.astype(jnp.uint32), state.rounds.astype(jnp.uint32)
    i = rows[lane % num_rows]
    k = random.below(random.threefry2x32(key, counter)[0], problem.n)

    def after(i: jax.Array, k: jax.Array) -> _Claims:
        """Returns pairs: the rows, and the diagonals on which their queens stand afterwards."""
        a, b = queens[i], queens[k]
        return _Claims((i, k), (i + b, k + a), (b - i + n, a - k + n))

    wanted = after(i, k)
    is_free = is_attacked(n, state.placed, i) & (lane < width)
    for counts, places in ((rising, wanted.rising), (falling, wanted.falling)):
        is_free &= (counts[places[0]] == 0) & (counts[places[1]] == 0)
    for first, second in wanted:
        is_free &= first != second

    (chosen,) = jnp.nonzero(is_free, size=len(rows) // _MADE)
    i, k, lane = i[chosen], k[chosen], lane[: len(chosen)]
    wins = lane < jnp.minimum(jnp.sum(is_free, dtype=jnp.int32), width // _MADE)
    number = state.number - 1 - lane
    wanted = after(i, k)
    claims = _Claims(*map(functools.partial(_claim, number, wins), state.claims, wanted))
    for claim, places in zip(claims, wanted, strict=True):
        wins &= (claim[places[0]] == number) & (claim[places[1]] == number)

    a, b = queens[i], queens[k]
    rising = _moved(rising, (i + a, k + b), wanted.rising, wins)
    falling = _moved(falling, (a - i + n, b - k + n), wanted.falling, wins)
    for row, column in ((i, b), (k, a)):
        queens = queens.at[jnp.where(wins, row, n)].set(column, mode="drop")
    return state._replace(
        placed=CountedQueens(queens, rising, falling),
        claims=claims,
        number=state.number - width // _MADE,
        rounds=state.rounds + 1,
    )


def _claim(number: jax.Array, where: jax.Array, claims: jax.Array, places: Any) -> jax.Array:
    for place in places:
        claims = claims.at[jnp.where(where, place, len(claims))].min(number, mode="drop")
    return claims


def _moved(counts: jax.Array, left: Any, met: Any, where: jax.Array) -> jax.Array:
    for places, change in ((left, -1), (met, 1)):
        for place in places:
            counts = counts.at[jnp.where(where, place, len(counts))].add(change, mode="drop")
    return counts
