"""The laws of searches, step by step."""

import functools
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

import jaxopt_search
from jaxopt_search.backends.costs import cost_of
from jaxopt_search.testing import comparing
from jaxopt_search.testing.comparing import (
    Meaning,
    Solutions,
    check_implementations,
    require,
)


class Standing(NamedTuple):
    """Where a search stands: the costs, as it says and in full, and the solutions."""

    best_cost: Any
    best: Any
    best_in_full: Any
    current_cost: Any
    current: Any
    current_in_full: Any


class Course(NamedTuple):
    """The course of S searches of T steps.

    Attributes:
      standing: at the start and after each step, leaves [S, T + 1, ...].
      accepted: [S, T] as `Info` has it.
      is_done: [S, T + 1] as `is_done` says; False if missing.
      refreshed: at the end, after `refresh`, leaves [S, ...].
      adopted: at the end, after `adopt`, leaves [S, ...].
      given: the solutions that were adopted, leaves [S, ...].
      given_cost: [S] their costs.
    """

    standing: Standing
    accepted: Any
    is_done: Any
    refreshed: Standing
    adopted: Standing
    given: Any
    given_cost: Any


def check_search(
    search: Any,
    problem: Any,
    *,
    num_searches: int = 3,
    num_steps: int = 60,
    seed: int = 0,
    meaning: Meaning | None = None,
    is_solution: Any = None,
    adopts_as_current: bool = True,
    implementations: bool = True,
    tolerance: float = 1e-5,
) -> None:
    """Checks the laws of `types.Search`.

    - The best cost never rises, and is the cost of the best solution; it covers the start and the
      last step. The current cost is the cost of the current solution.
    - All solutions stay in their space; states keep their shapes and dtypes.
    - `accepted` is 0 where the current solution stays the same.
    - `refresh` changes no cost but by rounding, and no solution.
    - After `adopt` a search stands at the given solution, and the best so far is kept.
    - Where `is_done` holds, further steps change nothing.
    - A run in two parts, one of several under `vmap`, and every implementation make the same steps.

    Args:
      search, problem: as in `run`; the instance small.
      num_searches, num_steps, seed: of the runs.
      meaning, is_solution, tolerance: as in `check_neighborhood`.
      adopts_as_current: False for a search that only takes the solution up among others, as an
        island does.
      implementations: whether to compare them, which takes most of the time.

    Raises:
      AssertionError: with the law, the search and the step.

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.nqueens(6)
      >>> search = js.simulated_annealing(js.QueenSwap(), 1.0)
      >>> js.testing.check_search(search, problem, implementations=False)
    """
    evaluations = search.evaluations_per_step(problem)
    if not isinstance(evaluations, int) or evaluations < 0:
        raise AssertionError(
            f"{type(search).__name__}.evaluations_per_step is {evaluations!r}, expected an integer"
        )
    starts = comparing.starts_of(problem, 2 * max(num_searches, 8), seed)
    known = comparing.look_at(problem, starts, meaning, tolerance, is_solution)
    own, given = (
        jax.tree.map(lambda leaf, first=first: leaf[first : first + num_searches], starts)
        for first in (0, num_searches)
    )
    course = jax.device_get(_course(search, problem, own, given, num_steps, seed))
    name = type(search).__name__
    _check_standing(name, known, course)
    _check_steps(name, known, course)
    _check_ends(name, known, course, adopts_as_current)
    _check_runs(search, problem, known, num_searches, num_steps, seed)
    if implementations:
        check_implementations(
            search, problem, num_searches=num_searches, num_steps=num_steps, seed=seed
        )


@functools.partial(jax.jit, static_argnames=("num_steps", "seed"))
def _course(
    search: Any, problem: Any, starts: Any, given: Any, num_steps: int, seed: int
) -> Course:
    done = search.is_done

    def stand(state: Any) -> Standing:
        best, current = search.best(problem, state), search.current(problem, state)
        costs = [
            (fn(state), cost_of(problem, one))
            for fn, one in ((search.best_cost, best), (search.current_cost, current))
        ]
        return Standing(costs[0][0], best, costs[0][1], costs[1][0], current, costs[1][1])

    def look(state: Any) -> tuple[Standing, jax.Array]:
        return stand(state), jnp.bool_(False) if done is None else done(state)

    def go(start_key: Any, key: Any, start: Any, given: Any) -> Course:
        state = search.init_with(start_key, problem, start)

        def step(state: Any, i: jax.Array) -> tuple[Any, Any]:
            control = search.control(i)
            after, info = search.step(comparing.stream_at(key, i), control, problem, state)
            chex.assert_trees_all_equal_shapes_and_dtypes(
                state, after, custom_message=f"{type(search).__name__}.step: the state changes"
            )
            return after, (*look(state), info.accepted)

        end, (before, was_done, accepted) = jax.lax.scan(
            step, state, jnp.arange(num_steps, dtype=jnp.int32)
        )
        last, is_done = look(end)
        return Course(
            jax.tree.map(lambda path, one: jnp.concatenate([path, one[None]]), before, last),
            accepted,
            jnp.append(was_done, is_done),
            stand(search.refresh(problem, end)),
            stand(search.adopt(problem, end, given)),
            given,
            cost_of(problem, given),
        )

    num_searches = len(jax.tree.leaves(starts)[0])
    keys = comparing.start_keys(num_searches, seed), comparing.step_keys(num_searches, seed)
    return jax.vmap(go)(*keys, starts, given)


def _check_standing(name: str, known: Solutions, course: Course) -> None:
    """Checks costs and solutions at the start, after each step, and after `adopt`."""
    one_more = course.adopted, course.refreshed
    found = jax.tree.map(
        lambda path, *others: np.concatenate([path, *(one[:, None] for one in others)], axis=1),
        course.standing,
        *one_more,
    )
    num_steps = course.accepted.shape[1]

    def where(search: int, step: int) -> str:
        when = {num_steps + 1: "after adopt", num_steps + 2: "after refresh"}
        return f"{when.get(step, f'after step {step}')} of search {search}"

    for what, cost, in_full, solution in (
        ("best", found.best_cost, found.best_in_full, found.best),
        ("current", found.current_cost, found.current_in_full, found.current),
    ):

        def say(*place: int, what: str = what) -> str:
            return f"{name}.{what}: {where(*place)} it"

        def say_cost(*place: int, what: str = what) -> str:
            return f"{name}.{what}_cost, against the cost of its solution: {where(*place)} it"

        known.check_space(solution, say, axes=2)
        known.check_costs(cost, in_full, say_cost)
    slack = 0 if known.tolerance is None else known.tolerance * np.maximum(abs(found.best_cost), 1)
    require(
        found.best_cost <= found.current_cost + slack,
        lambda *place: (
            f"{name}.best_cost: {where(*place)} it is {found.best_cost[place]}, above the current"
            f" cost, {found.current_cost[place]}"
        ),
    )


def _check_steps(name: str, known: Solutions, course: Course) -> None:
    """Checks what steps may change."""
    best, current = course.standing.best_cost, course.standing.current
    require(
        best[:, 1:] <= best[:, :-1],
        lambda search, step: (
            f"{name}.step: step {step} of search {search}: the best cost rises from"
            f" {best[search, step]} to {best[search, step + 1]}"
        ),
    )
    before, after = (
        jax.tree.map(lambda leaf, cut=cut: leaf[:, cut], current)
        for cut in (slice(None, -1), slice(1, None))
    )
    stays = ~known.differ(after, before, axes=2)
    require(
        stays | (course.accepted > 0),
        lambda search, step: (
            f"{name}.step: step {step} of search {search}: accepted is 0, but the current solution"
            " changes"
        ),
    )
    require(
        ~course.is_done[:, :-1] | (stays & (best[:, 1:] == best[:, :-1]) & course.is_done[:, 1:]),
        lambda search, step: (
            f"{name}.is_done: search {search} is done before step {step}, which changes something"
        ),
    )


def _check_ends(name: str, known: Solutions, course: Course, adopts_as_current: bool) -> None:
    """Checks `refresh` and `adopt`."""
    last = jax.tree.map(lambda leaf: leaf[:, -1], course.standing)
    require(
        ~known.differ(last.current, course.refreshed.current),
        lambda i: f"{name}.refresh: it changes the current solution of search {i}",
    )
    for what in ("best_cost", "current_cost"):
        known.check_costs(
            getattr(course.refreshed, what),
            getattr(last, what),
            lambda i, what=what: f"{name}.refresh: {what} of search {i} changes: it",
        )
    known.check_costs(
        course.adopted.best_cost,
        np.minimum(last.best_cost, course.given_cost),
        lambda i: (
            f"{name}.adopt: of {last.best_cost[i]} before and {course.given_cost[i]} given, the"
            f" best cost of search {i}"
        ),
    )
    if adopts_as_current:
        require(
            ~known.differ(course.adopted.current, course.given),
            lambda i: (
                f"{name}.adopt: search {i} continues from"
                f" {comparing.at(course.adopted.current, i)}, expected the given solution,"
                f" {comparing.at(course.given, i)}. If it only takes it up among others, pass"
                " adopts_as_current=False"
            ),
        )


def _check_runs(
    search: Any, problem: Any, known: Solutions, num_searches: int, num_steps: int, seed: int
) -> None:
    """Checks that it makes no difference how a run is carried out under XLA."""
    advance = functools.partial(jaxopt_search.advance, problem, search, implementation="xla")
    start = jaxopt_search.init(seed, problem, search, num_searches=num_searches)
    whole, half = advance(start, num_steps), advance(start, num_steps // 3)
    parts = advance(half, num_steps - num_steps // 3)

    def batched(key: jax.Array, problem: Any, search: Any) -> Any:
        options = {"num_searches": num_searches, "max_steps": num_steps, "implementation": "xla"}
        return jaxopt_search.run(key, problem, search, **options).searches

    keys = jax.vmap(jax.random.key)(jnp.arange(seed, seed + 2))
    together = jax.jit(jax.vmap(batched, (0, None, None)))(keys, problem, search)
    runs = [
        ("a run", whole.searches),
        ("a run in two parts", parts.searches),
        ("a run under jit and vmap", comparing.of_first(together)),
    ]
    comparing.require_same_runs(
        runs, f"{type(search).__name__}: the states", known.tolerance is None
    )
