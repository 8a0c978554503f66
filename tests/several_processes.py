"""What processes do together, and what one process alone has to do alike.

    python several_processes.py PORT NUM_PROCESSES PROCESS NUM_DEVICES FOLDER CASE...

prints a line of JSON for each case. `test_several_processes` makes the same calls on its own.
"""

import hashlib
import json
import os
import pathlib
import signal
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

import jaxopt_search as js

POINTS = np.random.default_rng(5).integers(0, 100, (14, 2))


@jax.tree_util.register_static
class AnyColumn:
    """A heuristic that prefers columns to the right of a queen's own."""

    num_variables, max_possibilities = 6, 6

    def rate(self, problem, state, variable, possibility):
        return possibility - js.memory.load(state, variable)

    def weight(self, problem, rating, aggregates):
        return jnp.where(rating > 0, 3, 1)

    def assign(self, problem, state, variable, possibility, where):
        return js.memory.store(state, variable, possibility, where)


def tsp(**options):
    import cases  # starts JAX, which has to be told of the other processes before

    return cases.matrix_tsp(14, **options)


def cooling():
    return js.geometric(300.0, 0.95, 20)


def annealing():
    return js.simulated_annealing(js.Relocate(), cooling())


def digest(tree):
    """Returns a few digits of all numbers of a pytree."""
    found = hashlib.sha256()
    for leaf in jax.tree.leaves(jax.device_get(tree)):
        found.update(np.ascontiguousarray(leaf).tobytes())
    return found.hexdigest()[:16]


def seen(result):
    """Returns what has to be the same of a result; `info` counts since the last chunk."""
    parts = result.state._replace(info=None), result.x, result.solutions, result.costs
    return [result.fun, result.nit, result.first_hit, result.status.name, digest(parts)]


def solve(problem, search, **options):
    """Runs 11 searches, which divide evenly over no number of devices."""
    options = {"num_searches": 11, "check_every": 12, "devices": "all"} | options
    return js.solve(problem, search, 3, **options)


def first_finisher(folder):
    exchange = js.broadcast_best(every=7)
    options = {"exchange": exchange, "target": 2990, "max_steps": 5000}
    return seen(solve(tsp(), annealing(), **options))


def resampling(folder):
    problem, exchange = tsp(dtype=np.float64), js.resample(cooling(), every=9)
    return seen(solve(problem, annealing(), exchange=exchange, max_steps=60, chunk_steps=13))


def islands(folder):
    import cases

    ring, population = js.ring(every=5), js.genetic(population_size=4)
    return seen(solve(cases.small_qap(6), population, exchange=ring, max_steps=40))


def one_liner(folder):
    return seen(js.solve_tsp(POINTS, key=2, max_steps=300, num_searches=6, devices="all"))


def queens(folder, **options):
    options = {"num_solutions": 12, "max_steps": 500, "devices": "all"} | options
    result = js.solve_nqueens(8, distinct="symmetry", **options)
    return [digest(result.solutions), result.status.name, len(result.solutions)]


def several_instances(folder):
    result = js.solve_tsp([POINTS, POINTS[:9], POINTS[3:]], max_steps=200, devices="all")
    return [digest(result.x), result.fun.tolist(), result.nit]


def successors(folder):
    states = [np.random.default_rng(seed).permutation(6).astype(np.int32) for seed in range(7)]
    options = {"num_successors": 3, "devices": "all"}
    return digest(js.successors.generate(4, AnyColumn(), None, np.array(states), **options))


def broken(folder):
    """A run in two parts: another number of processes can make the second."""
    problem, exchange = tsp(), js.broadcast_best(every=7)
    options = {"exchange": exchange, "checkpoint": folder / "run.npz", "checkpoint_every": 0}
    solve(problem, annealing(), max_steps=31, chunk_steps=8, **options)
    queens(folder, num_solutions=5, checkpoint=folder / "queens.npz")
    return sorted(path.name for path in folder.glob("*.npz"))


def continued(folder):
    exchange, path = js.broadcast_best(every=7), folder / "run.npz"
    result = solve(tsp(), annealing(), exchange=exchange, max_steps=90, resume=path)
    return [seen(result), queens(folder, resume=folder / "queens.npz")]


def rescued(folder):
    """Continues what `lost` has left."""
    path, exchange = folder / "run.npz", js.broadcast_best(every=7)
    return seen(solve(tsp(), annealing(), exchange=exchange, max_steps=90, resume=path))


def clocked(folder):
    """How far a run comes is up to the clock, but all come as far."""
    result = js.solve_tsp(POINTS, max_seconds=0.2, num_searches=6, devices="all")
    return [*seen(result), result.elapsed, [line.seconds for line in result.history]]


def _in_one(act):
    """Returns a callback that acts in the second process, once there was a chunk."""

    def callback(report):
        return act() if report.step > 0 and jax.process_index() == 1 else None

    return callback


def stopped_by_one(folder):
    callback = _in_one(lambda: True)
    return seen(solve(tsp(), annealing(), max_seconds=30, callback=callback))


def interrupted_in_one(folder):
    callback = _in_one(lambda: os.kill(os.getpid(), signal.SIGINT))
    return seen(solve(tsp(), annealing(), max_seconds=30, callback=callback))


def terminated_in_one(folder):
    """With a checkpoint, which all of them bring together."""
    callback = _in_one(lambda: os.kill(os.getpid(), signal.SIGTERM))
    options = {"max_seconds": 30, "callback": callback, "checkpoint": folder / "ended.npz"}
    return seen(solve(tsp(), annealing(), **options))


def another_call_in_one(folder):
    steps = 50 + jax.process_index()
    return refusal(lambda: solve(tsp(), annealing(), max_steps=steps))


def refused_in_one(folder):
    steps = -1 if jax.process_index() == 1 else 50
    return refusal(lambda: solve(tsp(), annealing(), max_steps=steps))


def some_devices(folder):
    return refusal(lambda: solve(tsp(), annealing(), max_steps=5, devices=jax.devices()[1:]))


def own_devices(folder):
    """Each process may run what it likes on its own devices, all of them or the first."""
    own, steps = jax.local_devices(), 20 + jax.process_index()
    found = [seen(solve(tsp(), annealing(), max_steps=steps, devices=on)) for on in (own, 1)]
    return found[0] == found[1]


def refusal(call):
    """Returns the class and the text of an error."""
    try:
        call()
    except (ValueError, RuntimeError) as error:
        return [type(error).__name__, str(error)]
    return None


def lost(folder):
    """Runs until a process is killed, whose number is in a file."""
    victim = int((folder / "victim").read_text())

    def callback(report):
        if report.step > 100 and jax.process_index() == victim:
            os.kill(os.getpid(), signal.SIGKILL)

    path, exchange = folder / "run.npz", js.broadcast_best(every=7)
    options = {"checkpoint": path, "checkpoint_every": 0, "chunk_steps": 30, "exchange": exchange}
    error = refusal(lambda: solve(tsp(), annealing(), max_seconds=60, callback=callback, **options))
    print(json.dumps(["lost", error]), flush=True)
    os._exit(3)  # JAX itself would wait for the others


_ALL = [
    first_finisher,
    resampling,
    islands,
    one_liner,
    queens,
    several_instances,
    successors,
    broken,
    continued,
    rescued,
    clocked,
    stopped_by_one,
    interrupted_in_one,
    terminated_in_one,
    another_call_in_one,
    refused_in_one,
    some_devices,
    own_devices,
    lost,
]
CASES = {case.__name__: case for case in _ALL}


def main():
    port, num, process, num_devices, folder, *names = sys.argv[1:]
    jax.distributed.initialize(
        f"127.0.0.1:{port}",
        int(num),
        int(process),
        coordinator_bind_address=f"127.0.0.1:{port}",
        initialization_timeout=60,
        heartbeat_timeout_seconds=10,
        shutdown_timeout_seconds=10,
    )
    assert len(jax.local_devices()) == int(num_devices)
    for name in names:
        began = time.perf_counter()
        found = CASES[name](pathlib.Path(folder))
        took = time.perf_counter() - began
        print(json.dumps([name, found]), flush=True)
        print(f"process {process}: {name} took {took:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
