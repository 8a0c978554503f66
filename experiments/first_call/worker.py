"""What a measured process does: it imports a solver, calls it, and prints what that took.

Run as a script, with a pickled request of `processes.answer` on standard input; the last line of
standard output is the answer. The clock starts here, before anything else is imported.
"""

import time

BEGAN = time.perf_counter()

import json  # noqa: E402
import pickle  # noqa: E402
import sys  # noqa: E402
from typing import Any  # noqa: E402

Answer = dict[str, Any]


def ours(request: dict[str, Any]) -> Answer:
    """Returns what the last call gave, and how long it and the way to it took.

    Without calls: how long it took to import the library and to start the device.
    """
    import jax

    import jaxopt_search as js
    from jaxopt_search.engine.fingerprints import environment

    dir(js)  # imports all that is offered, as the first call would

    if request["cache"]:
        js.enable_compilation_cache(request["cache"])
    imported = time.perf_counter()
    devices = jax.devices()
    # On a GPU, JAX takes most of its memory when the first array comes.
    jax.block_until_ready(jax.device_put(0, devices[0]))
    answer: Answer = {
        "import_seconds": imported - BEGAN,
        "device_seconds": time.perf_counter() - imported,
        "env": environment(tuple(devices)),
    }
    for arrays, seed in request["calls"]:
        answer |= _called(js, request["kind"], arrays, seed, request["seconds"])
    return answer


def _called(js: Any, kind: str, arrays: list[Any], seed: int, seconds: float) -> Answer:
    solve = getattr(js, f"solve_{kind}")
    given = [int(arrays[0])] if kind == "nqueens" else arrays
    began = time.perf_counter()
    result = solve(*given, key=seed, max_seconds=seconds)
    took = time.perf_counter() - began
    solution = result.solutions if kind == "nqueens" else result.x
    return {
        "call_seconds": took,
        # What the one-liner does before its clock starts comes before the first step, too.
        "first_step_seconds": took - result.elapsed + result.compile_seconds,
        "compile_seconds": result.compile_seconds,
        "nit": result.nit,
        "fun": None if kind == "nqueens" else result.fun,
        "solution": solution.tolist(),
        "env": result.env,
    }


if __name__ == "__main__":
    print(json.dumps(ours(pickle.load(sys.stdin.buffer))))
