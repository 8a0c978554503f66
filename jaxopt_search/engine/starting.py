# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false
"""How a run begins: its checks, its memory, its first state."""

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search import contracts
from jaxopt_search.backends import counts, loops, random
from jaxopt_search.checks import check_count
from jaxopt_search.engine import memory
from jaxopt_search.engine.compile import jit, noted
from jaxopt_search.engine.devices import default_device, is_traced
from jaxopt_search.engine.state import RunState, Since, best_costs
from jaxopt_search.interrupts import held_back, refuse_orphans
from jaxopt_search.results import Status
from jaxopt_search.types import Exchange, Info, Problem, Search, Solution


def init(
    key: Any,
    problem: Problem,
    search: Search,
    *,
    num_searches: int,
    solutions: Solution | None = None,
) -> RunState:
    """Returns the state of a run before its first step.

    Args:
      key: an integer seed or a `jax.random.key`.
      num_searches: S, how many searches run side by side.
      solutions: start solutions, leaves [S, ...], or fewer for the first searches; the others
        start at random, and all of them do if it is None.

    Raises:
      ValueError: if `num_searches` is no positive integer, or beyond what arrays can index, or the
        search is for solutions of another kind.
      MemoryError: if the searches do not fit into memory.
      TypeError: if `problem` or `search` is none.

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.tsp([[0, 3, 4, 5], [3, 0, 5, 4], [4, 5, 0, 3], [5, 4, 3, 0]])
      >>> search = js.simulated_annealing(js.Relocate(), 1.0)
      >>> state = init(0, problem, search, num_searches=4)
      >>> int(state.step), state.index.tolist()
      (0, [0, 1, 2, 3])
    """
    refuse_orphans()
    solution, _ = contracts.check_parts(problem, search)
    num_searches = check_count("num_searches", num_searches, 1, None)
    original = problem.host
    num_given = 0 if solutions is None else len(jax.tree.leaves(solutions)[0])
    if original is not None and original.starts is not None and num_given < num_searches:
        raise ValueError(
            f"solutions holds {num_given}, expected {num_searches} good ones, because random ones"
            " may cost more than int32 holds"
        )
    own, static = (random.as_key(key), problem, search, solutions), {"num_searches": num_searches}
    if is_traced(own):
        return begin(*own, **static)
    check_room(problem, search, solution, num_searches, [default_device()])
    with memory.memory_errors_explained(f"num_searches={num_searches}"), held_back():
        return jax.block_until_ready(begin(*own, **static))


def check_room(
    problem: Problem,
    search: Search,
    solution: Any,
    num_searches: int,
    devices: Sequence[jax.Device],
    exchange: Exchange | None = None,
) -> None:
    """Refuses more searches than arrays can index or memory holds, as far as shapes tell.

    Args:
      solution: the shape of one.
      devices: those over which the searches will be spread.
      exchange: what they learn from one another.

    Raises:
      ValueError, MemoryError: with the sizes.
    """
    memory.check_size(solution, num_searches)
    parts = problem, search, exchange
    needed = memory.estimate(parts, shape(problem, search, num_searches), devices)
    memory.check_fit(parts, needed, num_searches, devices)


def shape(problem: Problem, search: Search, num_searches: int) -> RunState:
    """Returns the shapes and dtypes of the state of a run; remembered for shapes alike."""
    own = random.as_argument(0), problem, search
    one = noted("state", own, functools.partial(_start_one.eval_shape, *own))
    searches = jax.tree.map(lambda leaf: leaf.update(shape=(num_searches, *leaf.shape)), one)
    return _first_state.eval_shape(*own, searches)


def fresh(
    key: random.Key,
    problem: Problem,
    search: Search,
    solutions: Solution | None,
    num_searches: int,
) -> RunState:
    """Like `init`, without checks and without `jit`."""
    inputs = key, problem, search, solutions
    with loops.varying_alike(*inputs) as (key, problem, search, solutions):
        index = lax.iota(jnp.int32, num_searches)
        keys = jax.vmap(random.start_key, in_axes=(None, 0))(key, index.astype(jnp.uint32))
        if solutions is None:
            solutions = jax.vmap(problem.init)(keys)
        elif len(jax.tree.leaves(solutions)[0]) < num_searches:
            solutions = jax.tree.map(
                lambda given, drawn: jnp.concatenate([given, drawn[len(given) :]]),
                solutions,
                jax.vmap(problem.init)(keys),
            )
        searches = jax.vmap(search.init_with, in_axes=(0, None, 0))(keys, problem, solutions)
        return loops.varying(_first_state(key, problem, search, searches))


@jax.jit
def _start_one(key: random.Key, problem: Problem, search: Search) -> Any:
    """Returns the state of a search that starts at random; it is never called."""
    own = random.start_key(key, jnp.uint32(0))
    return search.init_with(own, problem, problem.init(own))


@functools.partial(jax.jit, inline=True)
def _first_state(key: random.Key, problem: Problem, search: Search, searches: Any) -> RunState:
    """Returns the state of a run from the states of its searches, leaves [S, ...]."""
    num_searches = len(jax.tree.leaves(searches)[0])
    index = lax.iota(jnp.int32, num_searches)
    best_cost = best_costs(search, searches, index).min()
    return RunState(
        key=key,
        step=counts.zero(),
        since=Since(*[jnp.int32(0)] * 3),
        best_cost=problem.cost_in_full(best_cost),
        device_best=best_cost,
        device_tested=best_cost,
        stale=jnp.int32(0),
        status=jnp.int32(Status.RUNNING),
        index=index,
        searches=searches,
        ancestor=index,
        hit=counts.never((num_searches,)),
        info=Info(accepted=jnp.zeros(num_searches, jnp.int32)),
    )


begin = jit(fresh, static_argnames="num_searches", cpu_level=0)  # it runs once
"""Like `init`, of checked arguments."""
