"""The laws of moves that stand in a table: `types.Enumerable`."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search.backends.costs import cost_change, cost_of
from jaxopt_search.testing import comparing
from jaxopt_search.testing.comparing import Solutions, require
from jaxopt_search.types import null_delta

_MOST_ENTRIES = 1024


class Entries(NamedTuple):
    """All entries of a table, one after the other, leaves [N, ...].

    Attributes:
      number: of each, as `first` says: row * columns + column.
      is_wanted: whether `first` finds the entry; it may pass over those that are no move.
      delta: as `first` shows it to `rank`.
      move: that `first` returns for it.
      own_delta: what `delta` says of that move.
      change: of the cost, by that move.
      solution: after it.
      undone: what `undone` says of the move.
    """

    number: Any
    is_wanted: Any
    delta: Any
    move: Any
    own_delta: Any
    change: Any
    solution: Any
    undone: Any


def check(
    hood: Any, problem: Any, known: Solutions, representation: Any, words: Any, has_all: bool
) -> None:
    """Checks the table of one representation: see `check_neighborhood`."""
    rows, columns = hood.shape(problem)
    if rows * columns > _MOST_ENTRIES:
        raise AssertionError(
            f"{comparing.name_of(hood)} has a table of {rows} x {columns} entries: check a smaller"
            f" instance, of at most {_MOST_ENTRIES}"
        )
    found = jax.device_get(_entries(hood, problem, representation))
    require(
        (found.number == np.arange(rows * columns)) | ~found.is_wanted,
        lambda i: f"{comparing.name_of(hood)}.first: rank sees entry {i}, returned is another",
    )
    is_real = found.is_wanted & (found.delta != null_delta(found.delta.dtype))
    _check_deltas(hood, known, found, is_real)
    _check_undone(hood, (rows, columns), found, is_real)
    _check_first(hood, problem, representation, found, is_real)
    _check_numbers(hood, problem, known, found, is_real, has_all)
    proposed = _proposed(hood, problem, representation, tuple(word.ravel() for word in words))
    _check_proposed(hood, known, proposed, found, is_real)
    _check_commit_and_first(hood, problem, representation)


@jax.jit
def _entries(hood: Any, problem: Any, representation: Any) -> Entries:
    rows, columns = hood.shape(problem)
    cost = cost_of(problem, hood.solution(problem, representation))

    def at(wanted: jax.Array) -> Entries:
        def rank(entry: jax.Array, delta: jax.Array) -> tuple[jax.Array, ...]:
            return jnp.broadcast_to((entry != wanted).astype(jnp.int32), delta.shape), delta

        first, move = hood.first(problem, representation, rank, ())
        after = hood.commit(problem, representation, move, jnp.bool_(True))
        solution = hood.solution(problem, after)
        return Entries(
            first.number,
            first.keys[0] == 0,
            first.keys[1],
            move,
            hood.delta(problem, representation, move),
            cost_change(cost_of(problem, solution), cost),
            solution,
            hood.undone(problem, representation, move),
        )

    return jax.vmap(at)(jnp.arange(rows * columns, dtype=jnp.int32))


def _check_deltas(hood: Any, known: Solutions, found: Entries, is_real: np.ndarray) -> None:
    name = comparing.name_of(hood)
    scale = np.maximum(np.abs(found.change), 1)
    for delta, what in ((found.delta, "first"), (found.own_delta, "delta")):
        same = comparing.costs_agree(delta, found.change, scale, _wider(known.tolerance))
        require(
            same | ~is_real,
            lambda i, delta=delta, what=what: (
                f"{name}.{what}: entry {i}, move {comparing.at(found.move, i)}: the delta is"
                f" {comparing.at(delta, i)}, but the cost changes by"
                f" {comparing.at(found.change, i)}"
            ),
        )


def _wider(tolerance: float | None) -> float | None:
    """Returns the tolerance of changes: small differences of large, rounded costs."""
    return None if tolerance is None else 100 * tolerance


def _check_undone(hood: Any, shape: tuple[int, int], found: Entries, is_real: np.ndarray) -> None:
    name, (rows, columns) = comparing.name_of(hood), shape
    if not found.undone:
        raise AssertionError(f"{name}.undone names no entry, expected one or more")
    for row, column in found.undone:
        is_inside = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
        require(
            is_inside | ~is_real,
            lambda i, row=row, column=column: (
                f"{name}.undone: of entry {i} it is ({row[i]}, {column[i]}), outside of the"
                f" table of {rows} x {columns}"
            ),
        )


def _check_first(
    hood: Any, problem: Any, representation: Any, found: Entries, is_real: np.ndarray
) -> None:
    """Checks that `first` finds the lowest delta, and the lowest number of another table."""
    rows, columns = hood.shape(problem)
    other = np.random.default_rng(0).permutation(rows * columns).astype(np.int32)

    def by_delta(entry: jax.Array, delta: jax.Array) -> tuple[jax.Array, ...]:
        return delta, jnp.broadcast_to(entry, delta.shape)

    def by_other(entry: jax.Array, delta: jax.Array, other: jax.Array) -> tuple[jax.Array, ...]:
        is_null = delta == null_delta(delta.dtype)
        return jnp.where(is_null, jnp.int32(1), jnp.int32(0)), jnp.broadcast_to(other, delta.shape)

    @jax.jit
    def look(hood: Any, problem: Any, representation: Any) -> tuple[jax.Array, jax.Array]:
        first = functools.partial(hood.first, problem, representation)
        table = jnp.asarray(other).reshape(rows, columns)
        return first(by_delta, ())[0].number, first(by_other, (table,))[0].number

    numbers = np.arange(len(is_real))
    deltas = np.where(is_real, found.delta, null_delta(found.delta.dtype))
    expected = [np.lexsort((numbers, deltas))[0], np.lexsort((other, ~is_real))[0]]
    for what, one, right in zip(
        ("the lowest delta", "what comes first by another table"),
        look(hood, problem, representation),
        expected,
        strict=True,
    ):
        if int(one) != right:
            raise AssertionError(
                f"{comparing.name_of(hood)}.first: {what} stands in entry {right}, but it finds"
                f" {int(one)}, of deltas {found.delta[right]} and {found.delta[int(one)]}"
            )


def _check_numbers(
    hood: Any, problem: Any, known: Solutions, found: Entries, is_real: np.ndarray, has_all: bool
) -> None:
    name, claimed = comparing.name_of(hood), hood.num_moves(problem)
    number = len(set(_results(known, found, is_real)))
    if number > claimed or (has_all and number != claimed):
        raise AssertionError(
            f"{name}.num_moves is {claimed}, but the table of a solution leads to {number} others."
            " If some solutions lack some moves, pass has_all_moves=False"
        )


def _results(known: Solutions, found: Entries, is_real: np.ndarray) -> list[bytes]:
    real = jax.tree.map(lambda leaf: leaf[is_real], found.solution)
    return comparing.as_sets(real, known.meaning) if is_real.any() else []


@jax.jit
def _proposed(hood: Any, problem: Any, representation: Any, words: Any) -> Any:
    def one(words: Any) -> tuple[Any, jax.Array, Any]:
        move = hood.propose(problem, representation, words)
        delta = hood.delta(problem, representation, move)
        after = hood.commit(problem, representation, move, jnp.bool_(True))
        return move, delta, hood.solution(problem, after)

    return jax.vmap(one)(words)


def _check_proposed(
    hood: Any, known: Solutions, proposed: Any, found: Entries, is_real: np.ndarray
) -> None:
    move, delta, solution = jax.device_get(proposed)
    there = set(_results(known, found, is_real))
    is_there = [result in there for result in comparing.as_sets(solution, known.meaning)]
    require(
        np.array(is_there) | (delta == null_delta(delta.dtype)),
        lambda i: (
            f"{comparing.name_of(hood)}.propose: move {comparing.at(move, i)} stands nowhere in the"
            " table"
        ),
    )


def _check_commit_and_first(hood: Any, problem: Any, representation: Any) -> None:
    both = hood.commit_and_first
    if both is None:
        return

    def rank(entry: jax.Array, delta: jax.Array) -> tuple[jax.Array, ...]:
        return delta, jnp.broadcast_to(entry, delta.shape)

    @jax.jit
    def look(hood: Any, problem: Any, representation: Any, accept: jax.Array) -> Any:
        _, move = hood.first(problem, representation, rank, ())
        after = hood.commit(problem, representation, move, accept)
        apart = after, *hood.first(problem, after, rank, ())
        return apart, hood.commit_and_first(problem, representation, move, accept, rank, ())

    for accept in (True, False):
        apart, together = look(hood, problem, representation, jnp.bool_(accept))
        comparing.require_leaves(
            comparing.same_leaves(apart, together),
            lambda leaf, accept=accept: (
                f"{comparing.name_of(hood)}.commit_and_first: {leaf} differs from what `commit`"
                f" and then `first` return, where accept is {accept}"
            ),
        )
