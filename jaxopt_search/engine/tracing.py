# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false
"""Where a call is made: inside a function that is being traced, or outside, and then on what."""

import contextlib
import functools
from collections.abc import Callable, Generator
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

_NO_MESH = functools.partial(jax.set_mesh, None)
_NO_GUARD = functools.partial(jax.transfer_guard, "allow")
_left = ContextVar[tuple[Callable[[], Any], ...]]("left", default=())


def default_device() -> jax.Device:
    """Returns JAX's default device, or the one that the user has set for it."""
    default = getattr(jax.config, "jax_default_device", None)
    return default if isinstance(default, jax.Device) else jax.local_devices()[0]


def is_traced(tree: Any) -> bool:
    """Returns whether the caller is being traced, by `jit` or another transformation."""
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((_probe.bind(), tree)))


def host_driver(driver: Callable[P, T]) -> Callable[P, T]:
    """Returns a driver that leaves its caller's mesh and transfer guard: it places its arrays."""

    @functools.wraps(driver)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        # A traced function has its caller's; drivers refuse to be called there.
        if is_traced(()):
            return driver(*args, **kwargs)
        has_mesh = not jax.sharding.get_abstract_mesh().empty
        guards = "jax_transfer_guard_host_to_device", "jax_transfer_guard_device_to_host"
        has_guard = any(getattr(jax.config, guard, None) for guard in guards)
        leave = (_NO_MESH,) * has_mesh + (_NO_GUARD,) * has_guard
        before = _left.set(leave)
        try:
            with settings_left():
                return driver(*args, **kwargs)
        finally:
            _left.reset(before)

    return called


@contextlib.contextmanager
def settings_left() -> Generator[None]:
    """Leaves what the driver has left, in a thread of its own: JAX's settings are a thread's."""
    with contextlib.ExitStack() as stack:
        for leave in _left.get():
            stack.enter_context(leave())
        yield


# An operation without a program of its own, unlike all others: what it returns tells who runs it.
_probe = Primitive("probe")
_probe.def_impl(lambda: np.float32(0))
_probe.def_abstract_eval(lambda: ShapedArray((), np.dtype("float32")))
mlir.register_lowering(_probe, mlir.lower_fun(lambda: jnp.float32(0), multiple_results=False))
