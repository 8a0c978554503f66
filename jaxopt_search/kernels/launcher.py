"""The launcher: a loop over steps as one kernel, with the state of each search in its refs."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxopt_search.portable import memory

MAX_STEPS = 2**14
"""Steps per launch: their control values are computed ahead, for all searches together."""


def launch(
    body: Callable[[jax.Array, Any, Any], Any],
    num_steps: jax.Array,
    shared: Any,
    carry: Any,
    *,
    between: Any = (),
    num_warps: int = 1,
    interpret: bool = False,
) -> Any:
    """Returns `carry` after `num_steps` steps of every search, a program per search.

    Inside a kernel, leaves with an axis are refs, to be used through `memory`, and leaves without
    one are scalars. What a step does not write is not touched.

    Args:
      body: maps (i, shared, carry) of one search to its carry after step i; the same refs must
        come back. With `between`, its `shared` is a pair of both.
      num_steps: [] int32.
      shared: a pytree of arrays that all searches read.
      carry: a pytree of arrays [S, ...].
      between: a pytree of arrays [S / k, ...], each read by k searches next to one another.
      num_warps: warps per program.
      interpret: whether to run on any device, slowly, for tests.
    """
    from jax.experimental import pallas as pl

    carried, (groups, group_structure) = jax.tree.leaves(carry), jax.tree.flatten(between)
    wholes, whole_structure = jax.tree.flatten((num_steps, shared))
    wholes = [jnp.asarray(leaf) for leaf in wholes]
    read_leaves = [leaf.reshape(leaf.shape or (1,)) for leaf in wholes] + groups
    is_scalar = [leaf.ndim == 0 for leaf in wholes] + [leaf.ndim == 1 for leaf in groups]
    is_carried_scalar = [leaf.ndim == 1 for leaf in carried]
    num_inputs = len(read_leaves) + len(carried)

    def kernel(*refs: Any) -> None:
        inputs, state = refs[: len(read_leaves)], refs[num_inputs:]
        read = [ref[0] if scalar else ref for ref, scalar in zip(inputs, is_scalar, strict=True)]
        num, data = whole_structure.unflatten(read[: len(wholes)])
        if groups:
            data = data, group_structure.unflatten(read[len(wholes) :])
        start = jax.tree.structure(carry).unflatten(
            ref[0] if scalar else ref for ref, scalar in zip(state, is_carried_scalar, strict=True)
        )

        def step(i: jax.Array, old: Any) -> Any:
            return body(i, data, old)

        with memory.one_search("interpreter" if interpret else "gpu"):
            end = memory.fori_loop(num, step, start)
        for ref, value in zip(state, jax.tree.leaves(end), strict=True):
            if not isinstance(value, jax.Ref):
                ref[0] = value

    (num_searches, *_), own = carried[0].shape, [_own(pl, leaf, 1) for leaf in carried]
    whole = [_whole(pl, leaf) for leaf in read_leaves[: len(wholes)]]
    whole += [_own(pl, leaf, num_searches // leaf.shape[0]) for leaf in groups]
    results = pl.pallas_call(
        kernel,
        grid=(num_searches,),
        in_specs=[*whole, *own],
        out_specs=own,
        out_shape=[jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in carried],
        input_output_aliases={len(read_leaves) + k: k for k in range(len(carried))},
        **options(num_warps, interpret),
    )(*read_leaves, *carried)
    return jax.tree.structure(carry).unflatten(results)


def _whole(pl: Any, array: jax.Array) -> Any:
    return pl.BlockSpec(array.shape, lambda search: (0,) * array.ndim)


def _own(pl: Any, array: jax.Array, times: int) -> Any:
    """Returns the block of a program's own; `times` programs next to one another have the same."""
    if array.ndim == 1:
        return pl.BlockSpec((1,), lambda search: (search // times,))
    return pl.BlockSpec(
        (None, *array.shape[1:]), lambda search: (search // times,) + (0,) * (array.ndim - 1)
    )


def options(num_warps: int, interpret: bool) -> dict[str, Any]:
    """Returns the arguments of `pallas_call` for a kernel of this library."""
    if interpret:
        return {"interpret": True}
    from jax.experimental.pallas import triton

    return {"compiler_params": triton.CompilerParams(num_warps=num_warps, num_stages=1)}
