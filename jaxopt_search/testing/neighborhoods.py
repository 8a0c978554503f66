"""The laws of neighborhoods, along random walks."""

from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search.backends.costs import cost_of
from jaxopt_search.neighborhoods.base import as_neighborhood, is_enumerable
from jaxopt_search.testing import comparing, moves_of_tables
from jaxopt_search.testing.comparing import Meaning, Solutions, require
from jaxopt_search.testing.implementations import check_implementations
from jaxopt_search.types import null_delta


class Walks(NamedTuple):
    """What happened on W random walks of T steps; leaves [W, T, ...] but for the first two.

    Attributes:
      start: the representations of the first solutions, leaves [W, ...].
      told: what these stand for, leaves [W, ...].
      move: what was proposed.
      delta: its price.
      is_real: whether it has another than the null delta; only then it was made.
      representation: after it.
      solution: told from the representation.
      by_snapshot: told from its snapshot alone.
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
    by_snapshot: Any
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
    known = comparing.look_at(
        problem, starts, meaning=meaning, tolerance=tolerance, is_solution=is_solution
    )
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
            moves_of_tables.check(hood, problem, known, representation, words, has_all_moves)
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
            hood.solution(problem, after),
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

    _check_starts(name, known, starts, walks.told)
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


def _check_starts(name: str, known: Solutions, starts: Any, told: Any) -> None:
    """Checks random starts, and that `solution` undoes `init`."""
    require(
        known.are_in_space(starts),
        lambda i: f"problem.init: start {i} is outside of its space: {comparing.at(starts, i)}",
    )
    require(
        ~comparing.differs_in_meaning(starts, told, known.meaning),
        lambda i: (
            f"{name}.solution: of start {i}, {comparing.at(starts, i)}, `init`, `snapshot` and"
            f" `solution` make {comparing.at(told, i)}"
        ),
    )


def _check_solutions(name: str, known: Solutions, walks: Walks, path: Any, where: Any) -> None:
    """Checks where the steps lead: to other solutions within the space."""
    shape, is_real = walks.delta.shape, walks.is_real
    flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), walks.solution)
    require(
        known.are_in_space(flat).reshape(shape),
        lambda *place: (
            f"{name}.commit: {where(*place)} leads out of the space of solutions, to"
            f" {comparing.at(walks.solution, *place)}"
        ),
    )
    require(
        ~comparing.differs_in_meaning(walks.solution, walks.by_snapshot, known.meaning, axes=2),
        lambda *place: f"{name}.snapshot: {where(*place)}: it stands for another solution",
    )
    earlier = jax.tree.map(lambda leaf: leaf[:, :-1], path)
    require(
        comparing.differs_in_meaning(walks.solution, earlier, known.meaning, axes=2) | ~is_real,
        lambda *place: (
            f"{name}.commit: {where(*place)}: accepted, it changes nothing; price such a move with"
            " types.null_delta"
        ),
    )
    if not is_real.any():
        raise AssertionError(f"{name}.propose: none of {is_real.size} proposed moves is real")


def _check_prices(name: str, known: Solutions, walks: Walks, costs: Any, where: Any) -> None:
    """Checks deltas and known costs."""
    before, after = costs[:, :-1], costs[:, 1:]
    if walks.delta.dtype != costs.dtype:
        raise AssertionError(f"{name}.delta is {walks.delta.dtype}, but costs are {costs.dtype}")
    scale = np.maximum(np.abs(before), np.abs(after))
    delta = np.where(walks.is_real, walks.delta, np.zeros_like(walks.delta))
    require(
        comparing.costs_agree(delta, comparing.changes(after, before), scale, known.tolerance),
        lambda *place: (
            f"{name}.delta: {where(*place)}: the delta is {delta[place]}, but the cost goes from"
            f" {before[place]} to {after[place]}"
        ),
    )
    if walks.known_cost is not None:
        require(
            comparing.costs_agree(walks.known_cost, after, scale, known.tolerance),
            lambda *place: (
                f"{name}.known_cost: {where(*place)}: it is {walks.known_cost[place]}, but the cost"
                f" {after[place]}"
            ),
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
