"""QAP instances for tests, and what they are held against."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

KINDS = ["symmetric", "asymmetric", "diagonal", "negative", "float"]


def matrices(n, kind, seed=0):
    """Returns a random flow and distance: symmetric, or asymmetric and so on."""
    rng = np.random.default_rng(seed)
    pair = rng.integers(-50 if kind == "negative" else 0, 100, (2, n, n))
    if kind == "float":
        return pair + rng.uniform(size=pair.shape)
    if kind == "symmetric":
        pair = np.tril(pair) + np.tril(pair, -1).swapaxes(1, 2)
    if kind == "asymmetric":
        pair[:, range(n), range(n)] = 0
    return pair


def double_sum(flow, distance, p):
    n = len(flow)
    return sum(flow[i][j] * distance[p[i]][p[j]] for i in range(n) for j in range(n))


def all_pairs(n):
    return jnp.asarray(list(itertools.product(range(n), repeat=2)), jnp.int32).T


def all_assignments(n):
    return np.array(list(itertools.permutations(range(n))), np.int32)


@jax.jit
def deltas_of(problem, assignments):
    """Returns the deltas of `all_pairs` for each assignment."""
    return jax.vmap(lambda p: problem.swap_delta(p, *all_pairs(problem.n)))(assignments)


def cheapest(flow, distance, fixed=(), places=()):
    """Returns the lowest cost of all assignments, in which some facilities may be fixed."""
    orders = all_assignments(len(flow))
    if fixed:
        orders = orders[(orders[:, fixed] == places).all(axis=1)]
    return (flow * distance[orders[:, :, None], orders[:, None]]).sum(axis=(1, 2)).min()
