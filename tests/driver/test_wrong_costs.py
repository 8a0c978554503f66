"""A cost that is computed wrongly on the device is found by the one on the host."""

import dataclasses

import jax
import jax.numpy as jnp
import pytest
from ways import ON_GPU

import jaxopt_search as js


@js.pytree
@dataclasses.dataclass(frozen=True)
class Sorted(js.Problem):
    """The sum of what is out of place; on any device but a CPU, something else."""

    space = "permutation"

    def init(self, key):
        return jax.random.permutation(key, 9)

    def cost(self, x):
        right = jnp.sum(jnp.abs(x - jnp.arange(9)))
        return jax.lax.platform_dependent(right, cpu=lambda c: c, default=lambda c: c + 1)


@pytest.mark.skipif(not ON_GPU, reason="a CPU is right about itself")
def test_costs_of_ones_own_are_computed_again_on_the_host():
    search = js.hill_climbing(js.FullEvaluation(js.Swap()))
    with pytest.raises(RuntimeError, match="XLA computes a cost wrongly"):
        js.solve(Sorted(), search, num_searches=2, max_steps=5, implementation="xla")
