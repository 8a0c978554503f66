"""The laws of neighborhoods, along random walks and of all entries of a table."""

from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search.backends import memory
from jaxopt_search.backends.costs import cost_change, cost_of
from jaxopt_search.neighborhoods.full_evaluation import as_neighborhood, is_enumerable
from jaxopt_search.searches import hill_climbing, simulated_annealing
from jaxopt_search.testing import comparing
from jaxopt_search.testing.comparing import Laws, Meaning, Solutions, check_implementations
from jaxopt_search.types import null_delta

_MOST_ENTRIES = 1024


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
    - After `commit` the representation is what `init` makes of the solution, and differs from the
      one before within `span` only.
    - M moves at once are proposed and priced as one by one.
    - In a table (see `types.Enumerable`): each entry's delta is the change of cost by its move,
      `first` finds what a search through all entries finds, `num_moves` counts each move once,
      proposed moves stand there, and `undone` names entries of it.
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
    known = comparing.look_at(problem, starts, tolerance, meaning=meaning, is_solution=is_solution)
    shape = hood.num_words, num_walks, num_steps
    words = tuple(np.random.default_rng(seed).integers(0, 2**32, shape, np.uint32))
    path, costs = _check_walks(hood, problem, known, words, has_one_representation)
    flat = tuple(word.ravel() for word in words)
    first, last = (comparing.part_of(path, 0, step) for step in (0, -1))
    for representation in (first, last) if is_enumerable(hood) else (first,):
        proposed = _check_lanes(hood, problem, known, representation, flat)
        if is_enumerable(hood):
            _check_table(hood, problem, known, representation, proposed, has_all_moves)
    if implementations:
        spread = np.std(costs.astype(np.float64))
        temperature = float(spread) if np.isfinite(spread) and spread > 0 else 1.0
        check_implementations(simulated_annealing(hood, temperature, moves_per_search=4), problem)
        if is_enumerable(hood):
            check_implementations(hill_climbing(hood), problem)


@jax.jit
def _walk(hood: Any, problem: Any, starts: Any, words: tuple[jax.Array, ...]) -> Any:
    """Returns what happens on W random walks of T steps, leaves [W, T, ...] or [W, T + 1, ...].

    Of each step the move, its delta, whether that is not the null delta, in which case only the
    move is made, and the representation after it was rejected, and before the move with its span
    copied from after it; of each solution on the way its
    representation, the solution, told from its snapshot, `known_cost`, its cost, and what `init`
    makes of it.
    """

    def look(representation: Any) -> Any:
        solution = hood.solution(problem, hood.snapshot(representation))
        costs = hood.known_cost(representation), cost_of(problem, solution)
        return representation, solution, *costs, hood.init(problem, solution)

    def step(representation: Any, words: tuple[jax.Array, ...]) -> tuple[Any, Any]:
        move = hood.propose(problem, representation, words)
        delta = hood.delta(problem, representation, move)
        chex.assert_shape(delta, (), custom_message=f"{comparing.name_of(hood)}.delta")
        is_real = delta != null_delta(delta.dtype)
        rejected = hood.commit(problem, representation, move, jnp.bool_(False))
        after = hood.commit(problem, representation, move, is_real)
        span = hood.span(problem, representation, move)
        with memory.one_search("native"):  # elsewhere all may be copied
            copied = hood.copy_span(representation, after, span, is_real)
        return after, ((move, delta, is_real, rejected, copied), look(after))

    def walk(solution: Any, words: tuple[jax.Array, ...]) -> Any:
        start = hood.init(problem, solution)
        steps, path = jax.lax.scan(step, start, words)[1]
        return steps, jax.tree.map(
            lambda first, later: jnp.concatenate([first[None], later]), look(start), path
        )

    return jax.vmap(walk)(starts, words)


def _check_walks(
    hood: Any, problem: Any, known: Solutions, words: Any, has_one: bool
) -> tuple[Any, np.ndarray]:
    """Checks random walks; returns the representations on their way, and the costs, [W, T + 1]."""
    name, starts = comparing.name_of(hood), known.some
    steps, path = jax.device_get(_walk(hood, problem, starts, words))
    moves, deltas, is_real, rejected, copied = steps
    _, told, *_ = comparing.part_of(path, slice(None), 0)
    here, earlier, _, was, _ = comparing.part_of(path, slice(None), slice(-1))
    left, later, known_costs, now, made = comparing.part_of(path, slice(None), slice(1, None))
    begin = Laws(name, known, ("start",))
    begin.in_space(starts, "init: what problem.init returns")
    begin.hold(
        ~known.differ(starts, told),
        "solution: `init`, `snapshot` and `solution` make another one",
        given=starts,
        made=told,
    )
    if deltas.dtype != now.dtype:
        raise AssertionError(f"{name}.delta is {deltas.dtype}, but costs are {now.dtype}")
    scale = np.maximum(np.abs(was), np.abs(now))
    with np.errstate(invalid="ignore", over="ignore"):  # integers may wrap
        change = np.where(now == was, np.zeros_like(now), now - was)
    own = np.where(is_real, deltas, np.zeros_like(deltas))
    laws, cost = Laws(name, known, ("walk", "step"), {"move": moves}), {"from": was, "to": now}
    laws.costs(own, change, "delta is not the change of the cost", scale, **cost)
    if known_costs is not None:
        laws.costs(known_costs, now, "known_cost is not the cost", scale)
    laws.same(rejected, here, "commit: a rejected move changes something")
    laws.same(copied, left, "span: a move changes the representation elsewhere")
    laws.in_space(later, "commit: the new solution")
    laws.hold(
        known.differ(later, earlier, axes=2) | ~is_real,
        "commit: an accepted move changes nothing; price such a move with types.null_delta",
    )
    if not is_real.any():
        raise AssertionError(f"{name}.propose: none of {is_real.size} proposed moves is real")
    if has_one:
        advice = "If there are several of a solution, pass has_one_representation=False"
        law = f"commit leaves another representation than `init` makes. {advice}"
        laws.same(left, made, law, known.tolerance)
    return path[0], path[3]


@jax.jit
def _proposed(hood: Any, problem: Any, representation: Any, words: tuple[jax.Array, ...]) -> Any:
    """Returns moves and deltas of M words, at once and one by one, and where these moves lead."""

    def price(words: tuple[jax.Array, ...]) -> tuple[Any, jax.Array]:
        move = hood.propose(problem, representation, words)
        return move, hood.delta(problem, representation, move)

    def end(move: Any) -> Any:
        after = hood.commit(problem, representation, move, jnp.bool_(True))
        return hood.solution(problem, hood.snapshot(after))

    one_by_one = jax.vmap(price)(words)
    return price(words), one_by_one, jax.vmap(end)(one_by_one[0])


def _check_lanes(hood: Any, problem: Any, known: Solutions, representation: Any, words: Any) -> Any:
    """Checks that M moves at once are those that are made of the same words one by one.

    Returns these, their deltas, and the solutions after them.
    """
    at_once, one_by_one, ends = jax.device_get(_proposed(hood, problem, representation, words))
    shown = {"gives": at_once, "by itself": one_by_one}
    laws = Laws(comparing.name_of(hood), known, ("lane",), shown)
    law = f"propose and delta: {words[0].size} moves at once differ from one by one"
    laws.same(at_once, one_by_one, law)
    return *one_by_one, ends


@jax.jit
def _entries(hood: Any, problem: Any, representation: Any) -> Any:
    """Returns what is known of all entries of a table, one after the other, leaves [N, ...].

    The number of each as `first` says, whether it finds the entry (it may pass over those that are
    no move), the delta that it shows to `rank`, the move that it returns, what `delta` says of
    that, the change of the cost by it, the solution after it, and what `undone` says of it.
    """
    rows, columns = hood.shape(problem)
    cost = cost_of(problem, hood.solution(problem, hood.snapshot(representation)))

    def at(wanted: jax.Array) -> Any:
        def rank(entry: jax.Array, delta: jax.Array) -> tuple[jax.Array, ...]:
            return jnp.broadcast_to((entry != wanted).astype(jnp.int32), delta.shape), delta

        first, move = hood.first(problem, representation, rank, ())
        after = hood.commit(problem, representation, move, jnp.bool_(True))
        solution = hood.solution(problem, hood.snapshot(after))
        return (
            *(first.number, first.keys[0] == 0, first.keys[1], move),
            hood.delta(problem, representation, move),
            cost_change(cost_of(problem, solution), cost),
            solution,
            hood.undone(problem, representation, move),
        )

    return jax.vmap(at)(jnp.arange(rows * columns, dtype=jnp.int32))


@jax.jit
def _firsts(hood: Any, problem: Any, representation: Any, table: jax.Array) -> Any:
    """Returns the numbers of the first entries by delta and by another table."""

    def by_delta(entry: jax.Array, delta: jax.Array) -> tuple[jax.Array, ...]:
        return delta, jnp.broadcast_to(entry, delta.shape)

    def by_table(entry: jax.Array, delta: jax.Array, other: jax.Array) -> tuple[jax.Array, ...]:
        is_null = delta == null_delta(delta.dtype)
        return jnp.where(is_null, jnp.int32(1), jnp.int32(0)), jnp.broadcast_to(other, delta.shape)

    first, _ = hood.first(problem, representation, by_delta, ())
    other, _ = hood.first(problem, representation, by_table, (table,))
    return first.number, other.number


def _check_table(
    hood: Any, problem: Any, known: Solutions, representation: Any, proposed: Any, has_all: bool
) -> None:
    """Checks the table of one representation."""
    (rows, columns), name = hood.shape(problem), comparing.name_of(hood)
    if rows * columns > _MOST_ENTRIES:
        raise AssertionError(
            f"{name} has a table of {rows} x {columns} entries: check a smaller instance, of at"
            f" most {_MOST_ENTRIES}"
        )
    found = jax.device_get(_entries(hood, problem, representation))
    number, is_wanted, shown, moves, deltas, change, solutions, undone = found
    # Small differences of large, rounded costs.
    wider = known._replace(tolerance=None if known.tolerance is None else 100 * known.tolerance)
    laws = Laws(name, wider, ("entry",), {"move": moves})
    is_found = (number == np.arange(rows * columns)) | ~is_wanted
    laws.hold(is_found, "first returns another entry than `rank` has seen", returned=number)
    is_real = is_wanted & (shown != null_delta(shown.dtype))
    for delta, what in ((shown, "first"), (deltas, "delta")):
        laws.costs(delta, change, f"{what}: the delta is not the change", where=is_real)
    if not undone:
        raise AssertionError(f"{name}.undone names no entry, expected one or more")
    for row, column in undone:
        is_inside = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
        outside = f"undone is outside of the table of {rows} x {columns}"
        laws.hold(is_inside | ~is_real, outside, row=row, column=column)
    other = np.random.default_rng(0).permutation(rows * columns).astype(np.int32)
    firsts = jax.device_get(_firsts(hood, problem, representation, other.reshape(rows, columns)))
    lowest = np.argmin(np.where(is_real, shown, null_delta(shown.dtype)))
    earliest = np.argmin(np.where(is_real, other, other + rows * columns))
    for what, one, right in (
        ("the lowest delta", firsts[0], lowest),
        ("what comes first by another table", firsts[1], earliest),
    ):
        if one != right:
            raise AssertionError(
                f"{name}.first: {what} stands in entry {right}, but it finds {one}, of deltas"
                f" {shown[right]} and {shown[one]}"
            )
    there = set(known.as_set(comparing.part_of(solutions, is_real)))
    claimed = hood.num_moves(problem)
    if len(there) > claimed or (has_all and len(there) != claimed):
        raise AssertionError(
            f"{name}.num_moves is {claimed}, but the table of a solution leads to {len(there)}"
            " others. If some solutions lack some moves, pass has_all_moves=False"
        )
    move, delta, ends = proposed
    is_there = [end in there for end in known.as_set(ends)] | (delta == null_delta(delta.dtype))
    at_random = Laws(name, known, ("word",), {"move": move})
    at_random.hold(is_there, "propose: a move that stands nowhere in the table")
