# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false
"""Where a call is made: inside a function that is being traced, or outside, and then on what."""

import contextlib
import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray, Tracer
from jax.extend.core import Primitive
from jax.interpreters import mlir

P = ParamSpec("P")
T = TypeVar("T")

_has_left_mesh = ContextVar("has_left_mesh", default=False)


def default_device() -> jax.Device:
    """Returns JAX's default device, or the one that the user has set for it."""
    default = getattr(jax.config, "jax_default_device", None)
    return default if isinstance(default, jax.Device) else jax.local_devices()[0]


def is_traced(tree: Any) -> bool:
    """Returns whether the caller is being traced, by `jit` or another transformation."""
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((_probe.bind(), tree)))


def without_mesh(driver: Callable[P, T]) -> Callable[P, T]:
    """Returns a host driver that leaves the mesh of `jax.set_mesh`: it places its arrays itself."""

    @functools.wraps(driver)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        # A traced function has no other mesh than its caller's; drivers refuse to be called there.
        if is_traced(()) or jax.sharding.get_abstract_mesh().empty:
            return driver(*args, **kwargs)
        before = _has_left_mesh.set(True)
        try:
            with mesh_left():
                return driver(*args, **kwargs)
        finally:
            _has_left_mesh.reset(before)

    return called


def mesh_left() -> contextlib.AbstractContextManager[Any]:
    """Leaves the mesh in a thread of a driver that has left it: JAX tells no mesh from none set."""
    return jax.set_mesh(None) if _has_left_mesh.get() else contextlib.nullcontext()


# An operation without a program of its own, unlike all others: what it returns tells who runs it.
_probe = Primitive("probe")
_probe.def_impl(lambda: np.float32(0))
_probe.def_abstract_eval(lambda: ShapedArray((), np.dtype("float32")))
mlir.register_lowering(_probe, mlir.lower_fun(lambda: jnp.float32(0), multiple_results=False))
