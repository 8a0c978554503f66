# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""Loops that also run inside `jax.shard_map`.

There JAX wants what a loop carries to vary over the same axes of the mesh before and after a step.
A constant varies over none, so it is marked as varying wherever the inputs of the run vary.
"""

import contextlib
from collections.abc import Callable, Generator
from contextvars import ContextVar
from typing import Any

import jax
from jax import lax

_axes: ContextVar[frozenset[str]] = ContextVar("axes", default=frozenset())


@contextlib.contextmanager
def varying_alike(*inputs: Any) -> Generator[Any]:
    """Yields inputs that all vary over the axes of a mesh over which any of them does.

    So does what loops in the block carry. Outside of `shard_map` there are no such axes, and
    nothing changes.
    """
    before = _axes.set(_axes.get() | axes_of(inputs))
    try:
        yield varying(inputs)
    finally:
        _axes.reset(before)


def varying(tree: Any) -> Any:
    """Returns a pytree of the same values, all of which vary over the axes of the block."""
    axes = _axes.get()
    return jax.tree.map(lambda leaf: _varying(leaf, axes), tree) if axes else tree


def _varying(leaf: Any, axes: frozenset[str]) -> Any:
    missing = tuple(sorted(axes - axes_of(leaf)))
    if not missing:
        return leaf
    if not hasattr(lax, "pcast"):  # until JAX 0.8.0
        return lax.pvary(leaf, missing)  # pyright: ignore
    return lax.pcast(leaf, missing, to="varying")


def axes_of(tree: Any) -> frozenset[str]:
    """Returns the axes of a mesh over which a leaf varies, as `shard_map` tells if it checks."""
    return frozenset().union(*(_axes_of(jax.typeof(leaf)) for leaf in jax.tree.leaves(tree)))


def _axes_of(aval: Any) -> frozenset[str]:
    kind = getattr(aval, "manual_axis_type", None)
    return kind.varying if kind else aval.vma  # the latter until JAX 0.9.2


def fori_loop(low: Any, high: Any, body: Callable[[Any, Any], Any], start: Any) -> Any:
    """Like `lax.fori_loop`."""
    return lax.fori_loop(low, high, lambda i, carry: varying(body(i, carry)), varying(start))


def while_loop(goes_on: Callable[[Any], Any], body: Callable[[Any], Any], start: Any) -> Any:
    """Like `lax.while_loop`."""
    return lax.while_loop(goes_on, lambda carry: varying(body(carry)), varying(start))
