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
from jaxopt_search.testing.comparing import Laws, Meaning, Solutions, check_implementations


class Standing(NamedTuple):
    """Where a search stands: the costs, as it says and in full, and the solutions."""

    is_done: Any
    best_cost: Any
    best: Any
    best_in_full: Any
    current_cost: Any
    current: Any
    current_in_full: Any


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
    known = comparing.look_at(problem, starts, tolerance, meaning=meaning, is_solution=is_solution)
    own = comparing.part_of(starts, slice(num_searches))
    given = comparing.part_of(starts, slice(num_searches, 2 * num_searches))
    course = jax.device_get(_course(search, problem, own, given, num_steps, seed))
    _check_course(type(search).__name__, known, course, given, adopts_as_current)
    _check_runs(search, problem, known, num_searches, num_steps, seed)
    if implementations:
        check_implementations(
            search, problem, num_searches=num_searches, num_steps=num_steps, seed=seed
        )


@functools.partial(jax.jit, static_argnames=("num_steps", "seed"))
def _course(search: Any, problem: Any, starts: Any, given: Any, num_steps: int, seed: int) -> Any:
    """Returns the course of S searches of T steps.

    Namely a `Standing`, leaves [S, T + 3, ...], of the start, after each step, and at the end after
    `adopt` and after `refresh`; `accepted`, [S, T]; the costs of the solutions to adopt, [S].
    """

    def stand(state: Any) -> Standing:
        best, current = search.best(problem, state), search.current(problem, state)
        return Standing(
            jnp.bool_(False) if search.is_done is None else search.is_done(state),
            *(search.best_cost(state), best, cost_of(problem, best)),
            *(search.current_cost(state), current, cost_of(problem, current)),
        )

    def go(start_key: Any, key: Any, start: Any, given: Any) -> Any:
        def step(state: Any, i: jax.Array) -> tuple[Any, Any]:
            control = search.control(i)
            after, info = search.step(comparing.stream_at(key, i), control, problem, state)
            chex.assert_trees_all_equal_shapes_and_dtypes(
                state, after, custom_message=f"{type(search).__name__}.step: the state changes"
            )
            return after, (stand(state), info.accepted)

        state = search.init_with(start_key, problem, start)
        steps = jnp.arange(num_steps, dtype=jnp.int32)
        end, (path, accepted) = jax.lax.scan(step, state, steps)
        adopted, refreshed = search.adopt(problem, end, given), search.refresh(problem, end)
        path = jax.tree.map(
            lambda before, *last: jnp.concatenate([before, jnp.stack(last)]),
            path,
            *map(stand, (end, adopted, refreshed)),
        )
        return path, accepted, cost_of(problem, given)

    num_searches = len(jax.tree.leaves(starts)[0])
    keys = comparing.start_keys(num_searches, seed), comparing.step_keys(num_searches, seed)
    return jax.vmap(go)(*keys, starts, given)


def _check_course(
    name: str, known: Solutions, course: Any, given: Any, adopts_as_current: bool
) -> None:
    """Checks what `_course` returns of the solutions `given` to adopt."""
    path, accepted, given_cost = course
    num_steps = accepted.shape[1]
    before, after, end, adopted, refreshed = (
        comparing.part_of(path, slice(None), places)
        for places in (slice(num_steps), slice(1, num_steps + 1), -3, -2, -1)
    )

    when = [f"{i} steps" for i in range(num_steps + 1)] + ["adopt", "refresh"]
    after_what = {"after": np.broadcast_to(when, path.best_cost.shape)}
    laws = Laws(name, known, ("search", "place"), after_what)
    for what, cost, in_full, solution in (
        ("best", path.best_cost, path.best_in_full, path.best),
        ("current", path.current_cost, path.current_in_full, path.current),
    ):
        laws.in_space(solution, f"{what}: it")
        laws.costs(cost, in_full, f"{what}_cost is not the cost of `{what}`")
    slack = 0 if known.tolerance is None else known.tolerance * np.maximum(abs(path.best_cost), 1)
    costs = {"best": path.best_cost, "current": path.current_cost}
    is_best = path.best_cost <= path.current_cost + slack
    laws.hold(is_best, "best_cost is above the current cost", **costs)
    steps = Laws(name, known, ("search", "step"))
    rises = {"from": before.best_cost, "to": after.best_cost}
    steps.hold(after.best_cost <= before.best_cost, "step: the best cost rises", **rises)
    stays = ~known.differ(after.current, before.current, axes=2)
    changes = "step: accepted is 0, but the current solution changes"
    steps.hold(stays | (accepted > 0), changes)
    is_same = stays & (after.best_cost == before.best_cost) & after.is_done
    steps.hold(~before.is_done | is_same, "is_done holds before a step that changes something")
    ends = Laws(name, known, ("search",))
    is_kept = ~known.differ(end.current, refreshed.current)
    ends.hold(is_kept, "refresh changes the current solution")
    for what in ("best_cost", "current_cost"):
        one, other = getattr(refreshed, what), getattr(end, what)
        ends.costs(one, other, f"refresh changes {what}")
    lower, given_costs = np.minimum(end.best_cost, given_cost), {"given": given_cost}
    ends.costs(adopted.best_cost, lower, "adopt loses the best cost", **given_costs)
    if adopts_as_current:
        advice = "If it only takes it up among others, pass adopts_as_current=False"
        ends.hold(
            ~known.differ(adopted.current, given),
            f"adopt: it does not continue from the given solution. {advice}",
            given=given,
            found=adopted.current,
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
        ("a run under jit and vmap", comparing.part_of(together, 0)),
    ]
    what = f"{type(search).__name__}: the states"
    comparing.require_same_runs(runs, what, known.tolerance is None)
