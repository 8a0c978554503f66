"""A process of `test_kill_9`: runs of a kind, which continue from their files in some folders.

Each is kept after every chunk, of few steps, and a line is printed once that is written. At its end
a run prints a digest of all that it has found, and of its searches.

    python tests/kept_runs.py KIND FOLDER ...

JAX_COMPILATION_CACHE_DIR names the folder of compiled programs.
"""

import pathlib
import sys

import numpy as np
from digests import digest

import jaxopt_search as js
from jaxopt_search.driver import checkpoints, options

CHUNKS, STEPS = 60, 20
LIMITS = {"max_steps": CHUNKS * STEPS, "num_searches": 4, "devices": 1}


def tours(**files):
    result = js.solve_tsp(np.random.default_rng(1).random((30, 2)), 3, **LIMITS, **files)
    return result.x, result.fun, result.solutions


def placements(**files):
    limits = LIMITS | {"max_steps": CHUNKS * 32 + 10}  # steps between two looks
    result = js.solve_nqueens(16, 10**6, 3, **limits, **files)
    return result.solutions, result.num_found


KINDS = {
    "TSP": tours,
    "queens": placements,
}


def arrays_of(path):
    """Returns what a checkpoint keeps, but for what depends on how chunks were cut."""
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file if name != "header" and ".info." not in name}


def main(kind, *folders):
    js.enable_compilation_cache()
    write = checkpoints.write

    def told(*arguments):
        write(*arguments)
        print("written", flush=True)

    checkpoints.write, checkpoints.SHARE = told, np.inf
    options.steps_for, options._MAX_GROWTH = lambda *_: STEPS, 1
    for folder in map(pathlib.Path, folders):
        path = folder / f"{kind}.npz"
        found = KINDS[kind](checkpoint=path, checkpoint_every=0, resume=True)
        print("end", kind, digest((found, arrays_of(path))), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
