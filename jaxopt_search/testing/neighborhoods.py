"""The laws of neighborhoods, along random walks and of all entries of a table."""

import functools
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search.backends.costs import cost_change, cost_of
from jaxopt_search.neighborhoods.full_evaluation import as_neighborhood, is_enumerable
from jaxopt_search.testing import comparing
from jaxopt_search.testing.comparing import (
    Meaning,
    Solutions,
    check_implementations,
    require,
)
from jaxopt_search.types import Enumerable, null_delta

_MOST_ENTRIES = 1024


class Walks(NamedTuple):
    """What happened on W random walks of T steps; leaves [W, T, ...] but for the first two.

    Attributes:
      start: the representations of the first solutions, leaves [W, ...].
      told: what these stand for, leaves [W, ...].
      move: what was proposed.
      delta: its price.
      is_real: whether it has another than the null delta; only then it was made.
      representation: after it.
      solution: told from its snapshot.
      known_cost: `known_cost` of the representation, or None.
      is_kept: of each leaf of the representation, whether a rejected move left it as it was.
    """

    start: Any
    told: Any
    move: Any
    delta: Any
    is_real: Any
    representation: Any
    solution: Any
    known_cost: Any
    is_kept: Any


def check_neighborhood(
    neighborhood: Any,
    problem: Any,
    *,
    num_walks: int = 30,
    num_steps: int = 10,
    seed: int = 0,
    meaning: Meaning | None = None,
    is_solution: Any = None,
    has_one_representation: bool = True,
    has_all_moves: bool = True,
    implementations: bool = True,
    tolerance: float = 1e-5,
) -> None:
    """Checks the laws of `types.Neighborhood`, and of `types.Enumerable` where it is one.

    Along random walks, on which every proposed move is made:

    - `delta` is the change of `problem.cost`; `known_cost`, where there is one, is the cost.
    - A rejected move changes nothing; an accepted one changes the solution, unless it is priced
      with the null delta.
    - Solutions stay in their space; `init`, `snapshot` and `solution` undo each other.
    - After `commit` the representation is what `init` makes of the solution.
    - M moves at once are proposed and priced as one by one.
    - In a table (see `types.Enumerable`): each entry's delta is the change of cost by its move,
      `first` finds what a search through all entries finds, `num_moves` counts each move once,
      proposed moves stand there, `undone` names entries of it, and `commit_and_first` is `commit`
      and then `first`.
    - Annealing and, with a table, hill climbing make the same steps in every implementation.

    Args:
      neighborhood: as a search takes it; moves without a `delta` are priced in full.
      problem: a small instance: 5 to 50 variables. The smallest sizes find the most.
      num_walks, num_steps: how many walks, and how long.
      seed: of the walks.
      meaning: maps solutions, NumPy arrays with leading axes, to what they mean, where several mean
        the same, as tours do that start at another city.
      is_solution: maps one solution to whether it is one, where they are neither permutations nor
        vectors.
      has_one_representation: False if a solution may have several, such as sets in any order.
      has_all_moves: False if `num_moves` counts moves that some solutions lack.
      implementations: whether to compare them, which takes most of the time.
      tolerance: of float costs, as a share of the larger one.

    Raises:
      AssertionError: with the law, the step, the move and the costs.
      TypeError: if it is no neighborhood.

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.tsp_from_instance(js.datasets.grid_tsp(2, 3))
      >>> js.testing.check_neighborhood(js.two_opt(problem), problem, implementations=False)
    """
    hood = as_neighborhood(neighborhood)
    starts = comparing.starts_of(problem, num_walks, seed)
    known = comparing.look_at(problem, starts, meaning, tolerance, is_solution)
    words = np.random.default_rng(seed).integers(
        0, 2**32, (hood.num_words, num_walks, num_steps), np.uint32
    )
    walks = jax.device_get(_walk(hood, problem, starts, tuple(words)))
    costs = _check_steps(
        hood, problem, known, jax.device_get(starts), walks, has_one_representation
    )
    _check_lanes(hood, problem, comparing.of_first(walks.start), tuple(words))
    if is_enumerable(hood):
        last = jax.tree.map(lambda leaf: leaf[0, -1], walks.representation)
        for representation in (comparing.of_first(walks.start), last):
            _check_table(hood, problem, known, representation, words, has_all_moves)
    if implementations:
        _check_searches(hood, problem, costs)


@jax.jit
def _walk(hood: Any, problem: Any, starts: Any, words: tuple[jax.Array, ...]) -> Walks:
    def step(representation: Any, words: tuple[jax.Array, ...]) -> tuple[Any, Any]:
        move = hood.propose(problem, representation, words)
        delta = hood.delta(problem, representation, move)
        chex.assert_shape(delta, (), custom_message=f"{comparing.name_of(hood)}.delta")
        is_real = delta != null_delta(delta.dtype)
        rejected = hood.commit(problem, representation, move, jnp.bool_(False))
        after = hood.commit(problem, representation, move, is_real)
        return after, (
            move,
            delta,
            is_real,
            after,
            hood.solution(problem, hood.snapshot(after)),
            hood.known_cost(after),
            comparing.same_leaves(rejected, representation),
        )

    def walk(solution: Any, words: tuple[jax.Array, ...]) -> Walks:
        start = hood.init(problem, solution)
        told = hood.solution(problem, hood.snapshot(start))
        return Walks(start, told, *jax.lax.scan(step, start, words)[1])

    return jax.vmap(walk)(starts, words)


@jax.jit
def _evaluated(hood: Any, problem: Any, solutions: Any) -> tuple[Any, jax.Array]:
    """Returns fresh representations and the costs of solutions, [W, T] or of other leading axes."""

    def of(solution: Any) -> tuple[Any, jax.Array]:
        return hood.init(problem, solution), cost_of(problem, solution)

    return jax.vmap(jax.vmap(of))(solutions)


def _check_steps(
    hood: Any, problem: Any, known: Solutions, starts: Any, walks: Walks, has_one: bool
) -> np.ndarray:
    """Checks what happened on random walks, and returns the costs, [W, T + 1]."""
    name = comparing.name_of(hood)
    path = jax.tree.map(
        lambda first, later: np.concatenate([first[:, None], later], axis=1),
        walks.told,
        walks.solution,
    )
    fresh, costs = jax.device_get(_evaluated(hood, problem, path))
    fresh = jax.tree.map(lambda leaf: leaf[:, 1:], fresh)

    def where(walk: int, step: int) -> str:
        return f"step {step} of walk {walk}, move {comparing.at(walks.move, walk, step)}"

    known.check_space(starts, lambda i: f"problem.init: start {i}")
    require(
        ~known.differ(starts, walks.told),
        lambda i: (
            f"{name}.solution: of start {i}, {comparing.at(starts, i)}, `init`, `snapshot` and"
            f" `solution` make {comparing.at(walks.told, i)}"
        ),
    )
    _check_prices(name, known, walks, costs, where)
    comparing.require_leaves(
        walks.is_kept,
        lambda leaf, *place: f"{name}.commit: {where(*place)}: rejected, it changes {leaf or 'it'}",
    )
    _check_solutions(name, known, walks, path, where)
    if has_one:
        same = comparing.same_leaves(walks.representation, fresh, known.tolerance, axes=2)
        comparing.require_leaves(
            same,
            lambda leaf, *place: (
                f"{name}.commit: {where(*place)}: it leaves another {leaf or 'representation'} than"
                " `init` makes of the solution. If a solution may have several representations,"
                " pass has_one_representation=False"
            ),
        )
    return costs


def _check_solutions(name: str, known: Solutions, walks: Walks, path: Any, where: Any) -> None:
    """Checks where the steps lead: to other solutions within the space."""
    known.check_space(walks.solution, lambda *place: f"{name}.commit: {where(*place)}: it", axes=2)
    earlier = jax.tree.map(lambda leaf: leaf[:, :-1], path)
    require(
        known.differ(walks.solution, earlier, axes=2) | ~walks.is_real,
        lambda *place: (
            f"{name}.commit: {where(*place)}: accepted, it changes nothing; price such a move with"
            " types.null_delta"
        ),
    )
    if not walks.is_real.any():
        raise AssertionError(f"{name}.propose: none of {walks.is_real.size} proposed moves is real")


def _check_prices(name: str, known: Solutions, walks: Walks, costs: Any, where: Any) -> None:
    """Checks deltas and known costs."""
    before, after = costs[:, :-1], costs[:, 1:]
    if walks.delta.dtype != costs.dtype:
        raise AssertionError(f"{name}.delta is {walks.delta.dtype}, but costs are {costs.dtype}")
    scale = np.maximum(np.abs(before), np.abs(after))
    with np.errstate(invalid="ignore", over="ignore"):  # integers may wrap
        change = np.where(after == before, np.zeros_like(after), after - before)
    known.check_costs(
        np.where(walks.is_real, walks.delta, np.zeros_like(walks.delta)),
        change,
        lambda *place: (
            f"{name}.delta: {where(*place)}: the cost goes from {before[place]} to {after[place]},"
            " and the delta"
        ),
        scale,
    )
    if walks.known_cost is not None:
        known.check_costs(
            walks.known_cost, after, lambda *place: f"{name}.known_cost: {where(*place)}: it", scale
        )


@jax.jit
def _priced(hood: Any, problem: Any, representation: Any, words: tuple[jax.Array, ...]) -> Any:
    """Returns moves and deltas of M words, at once and one by one."""

    def price(words: tuple[jax.Array, ...]) -> tuple[Any, jax.Array]:
        move = hood.propose(problem, representation, words)
        return move, hood.delta(problem, representation, move)

    return price(words), jax.vmap(price)(words)


def _check_lanes(hood: Any, problem: Any, representation: Any, words: Any) -> None:
    """Checks that M moves at once are those that are made of the same words one by one."""
    flat = tuple(word.ravel() for word in words)
    at_once, one_by_one = jax.device_get(_priced(hood, problem, representation, flat))
    name = comparing.name_of(hood)
    comparing.require_leaves(
        comparing.same_leaves(at_once, one_by_one, axes=1),
        lambda leaf, lane: (
            f"{name}.propose and delta: lane {lane} of {flat[0].size} gives"
            f" {comparing.at(at_once, lane)}, by itself {comparing.at(one_by_one, lane)}"
        ),
    )


def _check_searches(hood: Any, problem: Any, costs: np.ndarray) -> None:
    from jaxopt_search.searches import hill_climbing, simulated_annealing

    spread = np.std(costs.astype(np.float64))
    temperature = float(spread) if np.isfinite(spread) and spread > 0 else 1.0
    check_implementations(simulated_annealing(hood, temperature, moves_per_search=4), problem)
    if is_enumerable(hood):
        check_implementations(hill_climbing(hood), problem)


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


def _check_table(
    hood: Any, problem: Any, known: Solutions, representation: Any, words: Any, has_all: bool
) -> None:
    """Checks the table of one representation."""
    rows, columns = hood.shape(problem)
    if rows * columns > _MOST_ENTRIES:
        raise AssertionError(
            f"{comparing.name_of(hood)} has a table of {rows} x {columns} entries: check a smaller"
            f" instance, of at most {_MOST_ENTRIES}"
        )
    name, found = comparing.name_of(hood), jax.device_get(_entries(hood, problem, representation))
    require(
        (found.number == np.arange(rows * columns)) | ~found.is_wanted,
        lambda i: f"{name}.first: rank sees entry {i}, returned is another",
    )
    is_real = found.is_wanted & (found.delta != null_delta(found.delta.dtype))
    # Small differences of large, rounded costs.
    wider = known._replace(tolerance=None if known.tolerance is None else 100 * known.tolerance)
    for delta, what in ((found.delta, "first"), (found.own_delta, "delta")):
        wider.check_costs(
            delta,
            found.change,
            lambda i, what=what: (
                f"{name}.{what}: of entry {i}, move {comparing.at(found.move, i)}, the delta"
            ),
            where=is_real,
        )
    for row, column in found.undone:
        require(
            ((row >= 0) & (row < rows) & (column >= 0) & (column < columns)) | ~is_real,
            lambda i, row=row, column=column: (
                f"{name}.undone: of entry {i} it is ({row[i]}, {column[i]}), outside of the"
                f" table of {rows} x {columns}"
            ),
        )
    if not found.undone:
        raise AssertionError(f"{name}.undone names no entry, expected one or more")
    _check_first(hood, problem, representation, found, is_real)
    there, claimed = _results(known, found, is_real), hood.num_moves(problem)
    if len(there) > claimed or (has_all and len(there) != claimed):
        raise AssertionError(
            f"{name}.num_moves is {claimed}, but the table of a solution leads to {len(there)}"
            " others. If some solutions lack some moves, pass has_all_moves=False"
        )
    move, delta, solution = jax.device_get(
        _proposed(hood, problem, representation, tuple(word.ravel() for word in words))
    )
    require(
        [result in there for result in known.as_set(solution)] | (delta == null_delta(delta.dtype)),
        lambda i: f"{name}.propose: move {comparing.at(move, i)} stands nowhere in the table",
    )
    _check_commit_and_first(hood, problem, representation)


def _results(known: Solutions, found: Entries, is_real: np.ndarray) -> set[bytes]:
    """Returns the different solutions to which the moves of a table lead."""
    real = jax.tree.map(lambda leaf: leaf[is_real], found.solution)
    return set(known.as_set(real)) if is_real.any() else set()


@jax.jit
def _entries(hood: Any, problem: Any, representation: Any) -> Entries:
    rows, columns = hood.shape(problem)
    cost = cost_of(problem, hood.solution(problem, hood.snapshot(representation)))

    def at(wanted: jax.Array) -> Entries:
        def rank(entry: jax.Array, delta: jax.Array) -> tuple[jax.Array, ...]:
            return jnp.broadcast_to((entry != wanted).astype(jnp.int32), delta.shape), delta

        first, move = hood.first(problem, representation, rank, ())
        after = hood.commit(problem, representation, move, jnp.bool_(True))
        solution = hood.solution(problem, hood.snapshot(after))
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


@jax.jit
def _proposed(hood: Any, problem: Any, representation: Any, words: Any) -> Any:
    def one(words: Any) -> tuple[Any, jax.Array, Any]:
        move = hood.propose(problem, representation, words)
        delta = hood.delta(problem, representation, move)
        after = hood.commit(problem, representation, move, jnp.bool_(True))
        return move, delta, hood.solution(problem, hood.snapshot(after))

    return jax.vmap(one)(words)


def _check_commit_and_first(hood: Any, problem: Any, representation: Any) -> None:
    if type(hood).commit_and_first is Enumerable.commit_and_first:  # which is just both
        return

    def rank(entry: jax.Array, delta: jax.Array) -> tuple[jax.Array, ...]:
        return delta, jnp.broadcast_to(entry, delta.shape)

    @jax.jit
    def look(hood: Any, problem: Any, representation: Any, accept: jax.Array) -> Any:
        _, move = hood.first(problem, representation, rank, ())
        after = hood.commit(problem, representation, move, accept)
        apart = after, *hood.first(problem, after, rank, ())
        where = problem, representation, move, accept
        return apart, hood.commit_and_first(*where, lambda _: rank, ())

    for accept in (True, False):
        apart, together = look(hood, problem, representation, jnp.bool_(accept))
        comparing.require_leaves(
            comparing.same_leaves(apart, together),
            lambda leaf, accept=accept: (
                f"{comparing.name_of(hood)}.commit_and_first: {leaf} differs from what `commit`"
                f" and then `first` return, where accept is {accept}"
            ),
        )
