"""Running portable code on every target, for tests."""

import functools
import re

import chex
import jax
import jax.numpy as jnp
from ways import KERNEL

from jaxopt_search import backends
from jaxopt_search.backends import memory


def check_everywhere(fn, given, changed, expected):
    """Asserts that portable code finds what is expected on every target, and can be emitted.

    Args:
      fn: maps buffers that it reads, and others that it may write to, to the latter.
      given, changed: pytrees of arrays.
      expected: what it returns.
    """
    chex.assert_trees_all_equal(jax.jit(fn)(given, changed), expected)
    with memory.one_search("native"):
        chex.assert_trees_all_equal(jax.jit(lambda *both: fn(*both))(given, changed), expected)

    def launch(implementation, given, changed):
        step = lambda _, given, changed: fn(given, changed)  # noqa: E731
        return backends.launch(step, jnp.int32(1), given, changed, implementation=implementation)

    own = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], changed)
    found = jax.tree.map(lambda leaf: leaf[0], launch(KERNEL, given, own))
    chex.assert_trees_all_equal(found, expected)
    assert backends.obstacle(functools.partial(launch, "cuda"), given, own) == ""


def launches(fn, *args):
    """Returns how many kernels a function launches; it is traced."""
    return len(re.findall(r"\blaunch\[", str(jax.make_jaxpr(fn)(*args))))
