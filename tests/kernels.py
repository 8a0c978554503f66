"""Running portable code inside a Pallas kernel, for tests: interpreted, or lowered for CUDA."""

import functools
import re

import chex
import jax
from jax.experimental import pallas as pl

from jaxopt_search.backends import memory, portability


def in_kernel(body, out_shape, *arrays, interpret=True):
    """Calls `body(*input_refs, *output_refs)` as one Triton program."""
    if interpret:
        options = {"interpret": True}
    else:
        import jax.experimental.pallas.triton as plt

        options = {"compiler_params": plt.CompilerParams(num_warps=1, num_stages=1)}
    with memory.one_search("interpreter" if interpret else "gpu"):
        return pl.pallas_call(body, out_shape=out_shape, **options)(*arrays)


def check_in_kernel(body, out_shape, expected_fn, *arrays):
    """Asserts that `body` computes `expected_fn(*arrays)` bit for bit, and lowers for CUDA."""
    interpreted = in_kernel(body, out_shape, *arrays)
    chex.assert_trees_all_equal(interpreted, jax.jit(expected_fn)(*arrays))
    text = portability.lower_for_cuda(
        functools.partial(in_kernel, body, out_shape, interpret=False), *arrays
    )
    assert re.search(r"custom_call @\S*triton", text)
