"""What is done in the second of several processes only, and how all of them end."""

import argparse
import json
import math
import os
import signal
from unittest import mock

import jax
import numpy as np
from processes_alike import POINTS, annealing, seen, solve, tour, tsp

import jaxopt_search as js
from jaxopt_search.command import main, starts
from jaxopt_search.command import solve as command
from jaxopt_search.driver.run import Run
from jaxopt_search.engine import memory

FLOW = np.random.default_rng(6).integers(0, 9, (6, 6))


def refusal(call):
    """Returns the class and the text of an error."""
    try:
        call()
    except (ArithmeticError, MemoryError, OSError, ValueError, RuntimeError) as error:
        return [type(error).__name__, str(error)]
    return None


def _in_one(act):
    """Returns a callback that acts in the second process, once there was a chunk."""

    def callback(report):
        return act() if report.step > 0 and jax.process_index() == 1 else None

    return callback


def stopped_by_one(folder):
    return seen(tour(max_seconds=30, callback=_in_one(lambda: True)))


def interrupted_in_one(folder):
    callback = _in_one(lambda: os.kill(os.getpid(), signal.SIGINT))
    return seen(tour(max_seconds=30, callback=callback))


def terminated_in_one(folder):
    """With a checkpoint, which all of them bring together."""
    callback = _in_one(lambda: os.kill(os.getpid(), signal.SIGTERM))
    options = {"max_seconds": 30, "callback": callback, "checkpoint": folder / "ended.npz"}
    return seen(tour(**options))


def terminated_late_in_one(folder):
    """When the run has ended and is kept, but its result still has to be brought together."""
    result = Run.result

    def late(run, status):
        if jax.process_index() == 1:
            signal.raise_signal(signal.SIGTERM)
        return result(run, status)

    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # JAX has set a handler that Python cannot see
    with mock.patch.object(Run, "result", late):
        return seen(tour(max_steps=50, checkpoint=folder / "late.npz"))


def failed_in_one(folder):
    callback = _in_one(lambda: 1 / 0)
    return refusal(lambda: tour(max_seconds=30, callback=callback))


SOLVERS = {
    "solve": lambda **options: solve(tsp(), annealing(), **options),
    "tour": lambda **options: js.solve_tsp(POINTS, **options),
    "assignment": lambda **options: js.solve_qap(FLOW, FLOW, **options),
    "queens": lambda **options: js.solve_nqueens(8, 3, **options),
    "tours": lambda **options: js.solve_tsp([POINTS, POINTS[3:]], **options),
    "assignments": lambda **options: js.solve_qap([FLOW, FLOW], [FLOW, FLOW], **options),
}


def _refusals(given, in_second, names=tuple(SOLVERS)):
    """Returns how solvers refuse calls that differ in the second process."""
    options = {"devices": "all", "max_steps": 50} | given
    options |= in_second if jax.process_index() == 1 else {}
    return {name: refusal(lambda name=name: SOLVERS[name](**options)) for name in names}


def refused_in_one(folder):
    return [_refusals({}, {"max_steps": -1}), _refusals({}, {"resume": True})]


def other_calls_in_one(folder):
    file = {"checkpoint": folder / "other.npz"}
    return [
        _refusals({}, {"max_steps": 51}),
        _refusals({}, file),
        _refusals(file, {"resume": True}),
        _refusals({}, {"callback": print}, ["solve"]),
        _refusals({}, {"show_progress": True}, ["tours", "assignments"]),
    ]


def without_memory_in_one(folder):
    second = jax.process_index() == 1
    with mock.patch.object(memory, "free_bytes", lambda device: 0 if second else math.inf):
        return _refusals({}, {})


def places_in_one(folder):
    """Those of the lead count, on the command line; and what any process reads."""

    def run(out, instance):
        words = ["solve", str(instance), "--coordinator", "joined", "--out", str(out)]
        return refusal(lambda: command.run(main.parser().parse_args(words)))

    def agreed(out):
        with starts.agreed(argparse.Namespace(coordinator="joined")) as is_lead:
            command.check_paths(out, None, "tsp", is_lead)

    instance = folder / "cities.csv"
    instance.write_text("\n".join(f"{x},{y}" for x, y in POINTS))
    there, missing = folder / "tour.txt", folder / "missing" / "tour.txt"
    lost = folder / "missing.csv"
    is_second = jax.process_index() == 1
    with mock.patch.object(starts, "_join"):
        return [
            run(there if is_second else missing, instance),
            run(there, lost if is_second else instance),
            refusal(lambda: agreed(missing if is_second else there)),
        ]


def some_devices(folder):
    return refusal(lambda: solve(tsp(), annealing(), max_steps=5, devices=jax.devices()[1:]))


def own_devices(folder):
    """Each process may run what it likes on its own devices, all of them or the first.

    What that takes is known as far as shapes tell; on one device all of it.
    """
    own, steps = jax.local_devices(), 20 + jax.process_index()
    every, several, one = (
        js.memory_estimate(tsp(), annealing(), 11, devices=on) for on in ("all", own, 1)
    )
    assert every.temporaries == several.temporaries == 0 < one.temporaries
    found = [seen(solve(tsp(), annealing(), max_steps=steps, devices=on)) for on in (own, 1)]
    return found[0] == found[1]


def lost(folder):
    """Runs until a process is killed, or a device of it is out of memory; a file says which."""
    victim, how = (folder / "victim").read_text().split()
    is_victim, advance = jax.process_index() == int(victim), Run.advance
    chunks = []

    def broken(*arguments):
        chunks.append(arguments)
        if is_victim and len(chunks) == 5:
            if how == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory")
        return advance(*arguments)

    path, exchange = folder / "run.npz", js.broadcast_best(every=7)
    options = {"checkpoint": path, "checkpoint_every": 0, "chunk_steps": 30, "exchange": exchange}
    with mock.patch.object(Run, "advance", broken):
        error = refusal(lambda: solve(tsp(), annealing(), max_seconds=60, **options))
    print(json.dumps(["lost", error]), flush=True)
    os._exit(3)  # JAX itself would wait for the others
