"""A process of `test_kill_9`: runs of a kind, which continue from their files in some folders.

Each is kept after every chunk, of few steps, and a line is printed once that is written. At its end
a run prints a digest of all that it has found, and of its searches.

    python tests/kept_runs.py KIND FOLDER ...

JAX_COMPILATION_CACHE_DIR names the folder of compiled programs.
"""

import hashlib
import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np

import jaxopt_search as js
from jaxopt_search.driver import checkpoints, options

CHUNKS, STEPS = 60, 20
LIMITS = {"max_steps": CHUNKS * STEPS, "num_searches": 4, "devices": 1}


def instance(n, seed=0):
    """Returns a matrix of distances or flows."""
    matrix = np.random.default_rng(seed).integers(1, 60, (n, n))
    return np.triu(matrix, 1) + np.triu(matrix, 1).T


def tours(**files):
    result = js.solve_tsp(np.random.default_rng(1).random((30, 2)), 3, **LIMITS, **files)
    return result.x, result.fun, result.solutions


def placements(**files):
    limits = LIMITS | {"max_steps": CHUNKS * 32 + 10}  # steps between two looks
    result = js.solve_nqueens(16, 10**6, 3, **limits, **files)
    return result.solutions, result.num_found


@jax.jit
def best_three(problem, states):
    best = jnp.argsort(jax.vmap(problem.cost)(states.solution))[:3]
    return jax.tree.map(lambda leaf: leaf[best], states)


def rounds(checkpoint, resume, **_):
    """Successors of the best three of each round, in a loop of one's own."""
    problem = js.graph_coloring(np.argwhere(np.triu(instance(30) > 40, 1)), 4)
    heuristic = js.successors.ByDelta(num_variables=30, max_possibilities=4)
    colors = jnp.array(np.random.default_rng(1).integers(0, 4, (3, 30)), jnp.int32)
    states = js.types.Tallied(colors, jax.jit(jax.vmap(problem.tally))(colors))
    about, kept = (heuristic, problem), (0, states)
    if resume and checkpoint.exists():
        kept = js.load_checkpoint(checkpoint, kept, of=about)
    first, states = kept
    for number in range(int(first), CHUNKS):
        made = js.successors.generate(number, heuristic, problem, states, num_successors=8)
        states = best_three(problem, made.states)
        js.save_checkpoint(checkpoint, (number + 1, states), of=about)
    return states


KINDS = {
    "TSP": tours,
    "queens": placements,
    "FANG": rounds,
}


def arrays_of(path):
    """Returns what a checkpoint keeps, but for what depends on how chunks were cut."""
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file if name != "header" and ".info." not in name}


def digest(tree):
    """Returns what differs where a bit of any array does."""
    leaves = map(np.asarray, jax.tree.leaves(tree))
    whole = b"".join(str((one.dtype, one.shape)).encode() + one.tobytes() for one in leaves)
    return hashlib.sha256(whole).hexdigest()


def main(kind, *folders):
    js.enable_compilation_cache()
    write = checkpoints.write

    def told(*arguments):
        write(*arguments)
        print("written", flush=True)

    checkpoints.write, checkpoints.SHARE = told, np.inf
    options.steps_for = lambda *_: STEPS
    for folder in map(pathlib.Path, folders):
        path = folder / f"{kind}.npz"
        found = KINDS[kind](checkpoint=path, checkpoint_every=0, resume=True)
        print("end", kind, digest((found, arrays_of(path))), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
