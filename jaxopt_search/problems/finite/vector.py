"""What problems on vectors share: random and perturbed vectors, checks, assignments.

A vector is [n] int32, with entry i from 0 to `domain_sizes[i] - 1`.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.backends import memory, random
from jaxopt_search.backends.memory import store
from jaxopt_search.checks import plain_array
from jaxopt_search.problems import permutation
from jaxopt_search.types import Tallied

_PERTURBED_VARIABLES = 4


def random_vector(key: jax.Array, domain_sizes: jax.Array) -> jax.Array:
    """Returns a random vector, [n] int32: variables are independent, their values equally likely.

    Args:
      key: [] a `jax.random.key`.
      domain_sizes: [n] int32, at least 1 each.

    Example:
      >>> random_vector(jax.random.key(0), jnp.array([1, 2, 3, 4])).tolist()
      [0, 0, 1, 2]
    """
    words, _ = permutation.words(key, domain_sizes.shape[0])
    return random.below(words, domain_sizes)


def perturbed(key: jax.Array, vector: jax.Array, domain_sizes: jax.Array) -> jax.Array:
    """Returns a vector near `vector`: a few random variables have random values."""
    n = vector.shape[0]
    variables, values = permutation.words(key, min(_PERTURBED_VARIABLES, n))

    def assign(vector: jax.Array, words: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        variable = random.below(words[0], n)
        return vector.at[variable].set(random.below(words[1], domain_sizes[variable])), None

    return lax.scan(assign, vector, (variables, values))[0]


def check_vector(domain_sizes: np.ndarray, values: Any, name: str) -> np.ndarray:
    """Returns `values` as [n] int32, or says why it is no vector with these domains; on the host.

    Args:
      domain_sizes: [n] integers.
      values: what the user gave.
      name: of `values`, for messages.

    Raises:
      ValueError: naming `name` and the offending value.
    """
    array, n = plain_array(values, name), len(domain_sizes)
    if array.shape != (n,):
        raise ValueError(f"{name} has shape {array.shape}, expected ({n},)")
    if array.dtype != np.bool_ and not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} has dtype {array.dtype}, expected integers")
    (outside,) = np.nonzero((array < 0) | (array >= domain_sizes))
    if outside.size:
        i = outside[0]
        raise ValueError(f"{name}[{i}] is {array[i]}, expected 0 to {domain_sizes[i] - 1}")
    return array.astype(np.int32)


def assigned(problem: Any, tallied: Tallied, variable: Any, value: Any, where: Any) -> Tallied:
    """Returns a vector after an assignment, if the scalar `where` holds; portable.

    Args:
      problem: with hooks, see `types.VectorProblem`.
      tallied: the vector and its tally.
      variable, value: [] int32.
      where: [] bool.
    """
    solution, tally = tallied
    tally = problem.assigned(solution, tally, variable, value, where)
    memory.barrier()
    return Tallied(store(solution, variable, value, where), tally)


def uniform_domains(n: int, size: int) -> jax.Array:
    """Returns the domain sizes of n variables that all have `size` values, [n] int32."""
    return jnp.full(n, size, jnp.int32)
