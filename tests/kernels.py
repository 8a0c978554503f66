"""Running portable code inside a Pallas kernel, for tests: interpreted, or lowered for CUDA."""

import functools
import warnings

import chex
import jax
from jax.experimental import pallas as pl

CUDA_DEVICE = {"device_kind": "NVIDIA H200", "num_cores": 132, "platform": "gpu"}


def in_kernel(body, out_shape, *arrays, interpret=True):
    """Calls `body(*input_refs, *output_refs)` as one Triton program."""
    if interpret:
        options = {"interpret": True}
    else:
        import jax.experimental.pallas.triton as plt

        options = {"compiler_params": plt.CompilerParams(num_warps=1, num_stages=1)}
    return pl.pallas_call(body, out_shape=out_shape, **options)(*arrays)


def lower_for_cuda(fn, *args):
    """Returns the text of `fn` lowered for an NVIDIA GPU, on a machine without one."""
    device = jax.sharding.AbstractDevice(**CUDA_DEVICE)
    mesh = jax.sharding.AbstractMesh(
        (1,), ("x",), (jax.sharding.AxisType.Explicit,), abstract_device=device
    )
    with jax.sharding.use_abstract_mesh(mesh), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The Pallas Triton backend is deprecated")
        return jax.jit(fn).trace(*args).lower(lowering_platforms=("cuda",)).as_text()


def check_in_kernel(body, out_shape, expected_fn, *arrays):
    """Asserts that `body` computes `expected_fn(*arrays)` bit for bit, and lowers for CUDA."""
    interpreted = in_kernel(body, out_shape, *arrays)
    chex.assert_trees_all_equal(interpreted, jax.jit(expected_fn)(*arrays))
    text = lower_for_cuda(functools.partial(in_kernel, body, out_shape, interpret=False), *arrays)
    assert "triton" in text
