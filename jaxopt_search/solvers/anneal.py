"""Annealing of a problem of one's own, by a limit alone: temperatures follow from its moves."""

import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search.backends import runs_kernels
from jaxopt_search.driver import checkpoints
from jaxopt_search.driver.options import DEFAULT_SECONDS, resolve
from jaxopt_search.driver.results import Report
from jaxopt_search.driver.run import execute
from jaxopt_search.engine.devices import Devices, host_driver, is_cpu, refuse_tracers
from jaxopt_search.engine.state import RunState
from jaxopt_search.neighborhoods.full_evaluation import as_neighborhood
from jaxopt_search.results import Result
from jaxopt_search.solvers.recipes import Ingredients, Recipe, chosen, plan_annealing
from jaxopt_search.types import Exchange, Problem

# In units of what moves cost more close to local optima: the mean, and the lowest tenth.
_ON_CPU = Recipe(hottest=0.3, coldest=0.1, num_searches=16, moves_per_search=8)
_ON_GPU = _ON_CPU._replace(num_searches=1024, moves_per_search=32)
_CHECK_KERNELS_EVERY = 1000
_SOLUTIONS, _DESCENT, _MOVES = 16, 500, 100


@host_driver
def anneal(
    problem: Problem,
    neighborhood: Any,
    key: Any = 0,
    *,
    max_seconds: float | None = None,
    max_steps: int | None = None,
    target: float | None = None,
    num_searches: int | None = None,
    moves_per_search: int | None = None,
    initial: Any = None,
    state: RunState | None = None,
    exchange: Exchange | None = None,
    checkpoint: str | os.PathLike | None = None,
    checkpoint_every: float = checkpoints.DEFAULT_SECONDS,
    resume: str | os.PathLike | bool | None = None,
    callback: Callable[[Report], Any] | None = None,
    history_size: int = 1000,
    devices: Devices = "all",
    show_progress: bool = False,
) -> Result:
    """Returns a good solution of any problem: annealing whose temperatures need no guessing.

    How much moves cost is measured close to local optima, of a few random solutions that moves are
    tried on. Searches cool from what most of these cost more to less than what the cheapest do, in
    pace with the clock or the steps, and are resampled as they cool (`resample`).

    Args:
      problem: what is minimized.
      neighborhood: a `Neighborhood` or `Moves`, such as `Swap()` or `Insert()` for permutations.
      key: an integer seed or a `jax.random.key`.
      max_seconds: seconds of search, as in `solve`; 10 if no limit is given. The result then
        depends on the speed of the machine.
      max_steps: steps of each search.
      target: end once a cost is at most this.
      num_searches: searches side by side; None for a number that suits the devices.
      moves_per_search: moves priced per search and step; likewise.
      initial: start solutions, as in `solve`.
      state: the `Result.state` of an earlier call, to be continued at the lowest temperature.
      exchange: what searches learn from one another, in place of resampling.
      checkpoint, checkpoint_every, resume: as in `solve`.
      callback: called with a `Report` after each chunk of steps; True ends the run.
      history_size: as in `solve`.
      devices: as in `solve`; by default all.
      show_progress: as in `solve`.

    Raises:
      ValueError, TypeError: as `solve`.

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.nqueens(8)
      >>> js.anneal(problem, js.QueenSwap(), max_steps=200, target=0).fun
      0
    """
    refuse_tracers(key, problem, caller="anneal")
    options = resolve(
        max_steps=max_steps,
        max_seconds=max_seconds,
        devices=devices,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        resume=resume,
        show_progress=show_progress,
        callback=callback,
        history_size=history_size,
        default_seconds=DEFAULT_SECONDS,
    )
    with options.team.same_call():
        device = options.devices[0]
        recipe = _ON_CPU if is_cpu(device) else _ON_GPU
        if not is_cpu(device) and runs_kernels(device):
            recipe = recipe._replace(check_every=_CHECK_KERNELS_EVERY)
        recipe = recipe._replace(num_searches=len(options.devices) * recipe.num_searches)
        recipe = chosen(recipe, num_searches, moves_per_search)
        hood = as_neighborhood(neighborhood)
        usual, least = increases(problem, hood)
        temperatures = recipe.hottest * usual, recipe.coldest * least
        ingredients = Ingredients(hood, temperatures, exchange=exchange)
        given = {"initial": initial, "state": state, "target": target}
        run = plan_annealing(problem, recipe, ingredients, options, key, **given)
    return execute(run)


def increases(problem: Problem, neighborhood: Any) -> tuple[float, float]:
    """Returns by how much moves raise the cost close to local optima: the mean, the lowest tenth.

    Both are 1 where no move does.
    """
    deltas = np.asarray(_deltas(problem, neighborhood), np.float64)
    higher = deltas[np.isfinite(deltas) & (deltas > 0) & (deltas < deltas.max(initial=1))]
    if not higher.size:
        return 1.0, 1.0
    return higher.mean().item(), np.quantile(higher, 0.1).item()


@jax.jit
def _deltas(problem: Problem, neighborhood: Any) -> jax.Array:
    """Returns deltas of random moves, of random solutions that some moves have improved."""

    def of_one(key: jax.Array) -> jax.Array:
        start, drawing = jax.random.split(key)
        at = neighborhood.init(problem, problem.init(start))
        shape = _DESCENT + _MOVES, neighborhood.num_words
        words = jax.random.bits(drawing, shape, jnp.uint32)

        def try_move(at: Any, words: jax.Array) -> tuple[Any, None]:
            move = neighborhood.propose(problem, at, tuple(words))
            is_better = neighborhood.delta(problem, at, move) < 0
            return neighborhood.commit(problem, at, move, is_better), None

        at, _ = jax.lax.scan(try_move, at, words[:_DESCENT])

        def price(words: jax.Array) -> jax.Array:
            move = neighborhood.propose(problem, at, tuple(words))
            return neighborhood.delta(problem, at, move)

        return jax.vmap(price)(words[_DESCENT:])

    keys = jax.random.split(jax.random.key(0), _SOLUTIONS)
    return jax.vmap(of_one)(keys).ravel()
