# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false
"""Entries that have nothing to do with one another, such as FANG's states, split over devices."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import jax

from jaxopt_search.engine.device_split import pmapped
from jaxopt_search.engine.kept_programs import Kept
from jaxopt_search.engine.placing import split_leaf
from jaxopt_search.engine.processes import Team

Tree = TypeVar("Tree")


def split_up(
    devices: tuple[jax.Device, ...], fn: Callable[[Any, Tree], Any], shared: Any, tree: Tree
) -> Any:
    """Returns `fn(shared, tree)` of leaves [N, ...], of which each device handles some.

    Args:
      fn: gives leaves [N * k, ...] for N entries, each of which depends on its own entry only.
      shared: a pytree that every device gets whole.
      tree: a pytree, leaves [N, ...].
    """
    number, team = jax.tree.leaves(tree)[0].shape[0], Team(devices)
    padding = -number % len(devices)
    split = jax.tree.map(lambda leaf: split_leaf(len(devices), leaf)[team.rows], tree)
    made = _pmapped_fn(devices, fn)(shared, split)
    if team.is_shared:
        made = team.gathered(made)

    def join_leaf(leaf: Any) -> jax.Array:
        leaf = jax.device_put(leaf, team.own[0]).reshape(-1, *leaf.shape[2:])
        return leaf[: leaf.shape[0] * number // (number + padding)]

    return jax.tree.map(join_leaf, made)


@functools.cache
def _pmapped_fn(devices: tuple[jax.Device, ...], fn: Callable[..., Any]) -> Kept:
    return pmapped(devices, fn, (None, 0))
