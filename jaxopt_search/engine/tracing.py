# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false
"""Where a call is made: inside a function that is being traced, or outside, and then on what."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray, Tracer
from jax.extend.core import Primitive
from jax.interpreters import mlir


def default_device() -> jax.Device:
    """Returns JAX's default device, or the one that the user has set for it."""
    default = getattr(jax.config, "jax_default_device", None)
    return default if isinstance(default, jax.Device) else jax.local_devices()[0]


def is_traced(tree: Any) -> bool:
    """Returns whether the caller is being traced, by `jit` or another transformation."""
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((_probe.bind(), tree)))


# An operation without a program of its own, unlike all others: what it returns tells who runs it.
_probe = Primitive("probe")
_probe.def_impl(lambda: np.float32(0))
_probe.def_abstract_eval(lambda: ShapedArray((), np.dtype("float32")))
mlir.register_lowering(_probe, mlir.lower_fun(lambda: jnp.float32(0), multiple_results=False))
