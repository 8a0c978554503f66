"""What processes make together as one does, and how it is told; `several_processes` runs it."""

import signal
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from digests import digest

import jaxopt_search as js
from jaxopt_search.solvers import stacked

POINTS = np.random.default_rng(5).integers(0, 100, (14, 2))


@jax.tree_util.register_static
class AnyColumn(js.successors.LocalHeuristic):
    """A heuristic that prefers columns to the right of a queen's own."""

    num_variables, max_possibilities = 6, 6

    def rate(self, problem, state, variable, possibility):
        return possibility - js.memory.load(state, variable)

    def weight(self, problem, rating, aggregates):
        return jnp.where(rating > 0, 3, 1)

    def assign(self, problem, state, variable, possibility, where):
        return js.memory.store(state, variable, possibility, where)


def tsp():
    import cases  # starts JAX, which has to be told of the other processes before

    return cases.matrix_tsp(14)


def annealing():
    return js.simulated_annealing(js.Relocate(), js.geometric(300.0, 0.95, 20))


def seen(result):
    """Returns what has to be the same of a result; `info` counts since the last chunk."""
    parts = result.state._replace(info=None), result.x, result.solutions, result.costs
    return [result.fun, result.nit, result.first_hit, result.status.name, digest(parts)]


def solve(problem, search, **options):
    """Runs 11 searches, which divide evenly over no number of devices."""
    options = {"num_searches": 11, "check_every": 12, "devices": "all"} | options
    return js.solve(problem, search, 3, **options)


def first_finisher(folder, **options):
    options = {"exchange": js.broadcast_best(every=7), "target": 2990, "max_steps": 5000} | options
    return seen(solve(tsp(), annealing(), **options))


def first_finisher_in_parts(folder):
    """A run in two parts: another number of processes can make the second."""
    path = folder / "first_finisher.npz"
    first_finisher(folder, max_steps=13, chunk_steps=8, checkpoint=path, checkpoint_every=0)
    return first_finisher(folder, resume=path)


def queens(folder, **options):
    """With progress in the lead only, where it is shown."""
    options = {"num_solutions": 12, "max_steps": 500, "devices": "all"} | options
    options |= {"show_progress": jax.process_index() == 0}
    result = js.solve_nqueens(8, distinct="symmetry", **options)
    return [digest(result.solutions), result.status.name, len(result.solutions)]


def queens_in_parts(folder):
    path = folder / "queens.npz"
    queens(folder, num_solutions=5, checkpoint=path)
    return queens(folder, resume=path)


def several_instances(folder, **options):
    several = [POINTS, POINTS[:9], POINTS[3:]]
    result = js.solve_tsp(several, max_steps=200, devices="all", **options)
    return [digest(result.x), result.fun.tolist(), result.nit]


def several_instances_in_parts(folder):
    """They have no callback: the lead is interrupted after a chunk."""
    path, advance = folder / "several_instances.npz", stacked.StackedRun.advance

    def interrupted(runs, num_steps):
        advance(runs, num_steps)
        if num_steps > 0 and jax.process_index() == 0:
            signal.raise_signal(signal.SIGINT)

    with mock.patch.object(stacked.StackedRun, "advance", interrupted):
        several_instances(folder, checkpoint=path)
    return several_instances(folder, resume=path)


def successors(folder):
    states = [np.random.default_rng(seed).permutation(6).astype(np.int32) for seed in range(7)]
    options = {"num_successors": 3, "devices": "all"}
    return digest(js.successors.generate(4, AnyColumn(), None, np.array(states), **options))


def tour(**options):
    return js.solve_tsp(POINTS, 3, num_searches=11, **options)


def rescued(folder):
    """Continues what `lost` has left."""
    path, exchange = folder / "run.npz", js.broadcast_best(every=7)
    return seen(solve(tsp(), annealing(), exchange=exchange, max_steps=90, resume=path))


def clocked(folder):
    """How far a run comes is up to the clock, but all come as far."""
    result = tour(max_seconds=0.5)
    colored = js.solve_coloring(js.datasets.queen_graph(5, 5), max_seconds=5, num_searches=4)
    return [*seen(result), [line.seconds for line in result.history], digest(colored.x)]
