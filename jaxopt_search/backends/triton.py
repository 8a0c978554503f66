"""The launcher: a loop over steps as one kernel, with the state of each search in its refs."""

import contextlib
import functools
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends import memory

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

    Example:
      >>> def step(i, shared, carry):
      ...     return carry + memory.load(shared, i)
      >>> prices, purses = jnp.array([1, 2, 3]), jnp.array([0, 10])
      >>> launch(step, jnp.int32(3), prices, purses, interpret=True).tolist()
      [6, 16]
    """
    from jax.experimental import pallas as pl

    data = _Data.of((num_steps, shared), between)
    carried, structure = jax.tree.flatten(carry)
    is_carried_scalar = [leaf.ndim == 1 for leaf in carried]
    num_read = len(data.leaves)

    def kernel(*refs: Any) -> None:
        inputs, state = refs[:num_read], refs[num_read + len(carried) :]
        (num, everything), own = data.read(inputs)
        start = structure.unflatten(map(_value, state, is_carried_scalar))

        def step(i: jax.Array, old: Any) -> Any:
            return body(i, (everything, own) if data.has_groups else everything, old)

        with memory.one_search("interpreter" if interpret else "gpu"):
            end = memory.fori_loop(num, step, start)
        for ref, value in zip(state, jax.tree.leaves(end), strict=True):
            if not isinstance(value, jax.Ref):
                ref[0] = value

    (num_searches, *_), own = carried[0].shape, [_own(pl, leaf, 1) for leaf in carried]
    results = pl.pallas_call(
        kernel,
        grid=(num_searches,),
        in_specs=[*data.specs(pl, num_searches), *own],
        out_specs=own,
        out_shape=[jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in carried],
        input_output_aliases={num_read + k: k for k in range(len(carried))},
        **options(num_warps, interpret),
    )(*data.leaves, *carried)
    return structure.unflatten(results)


class _Data(NamedTuple):
    """What programs read.

    Attributes:
      leaves: arrays with an axis: first those that all programs read, then those of some.
      is_scalar: of each leaf, whether a program sees a scalar.
      whole: the structure of what all programs read.
      groups: the structure of what some of them read.
    """

    leaves: list[jax.Array]
    is_scalar: list[bool]
    whole: Any
    groups: Any

    @classmethod
    def of(cls, whole: Any, groups: Any) -> "_Data":
        """Returns the data of pytrees."""
        wholes, whole_structure = jax.tree.flatten(whole)
        own, group_structure = jax.tree.flatten(groups)
        wholes = [jnp.asarray(leaf) for leaf in wholes]
        leaves = [leaf.reshape(leaf.shape or (1,)) for leaf in wholes] + own
        is_scalar = [leaf.ndim == 0 for leaf in wholes] + [leaf.ndim == 1 for leaf in own]
        return cls(leaves, is_scalar, whole_structure, group_structure)

    @property
    def has_groups(self) -> bool:
        """Whether some programs read what others do not."""
        return self.groups.num_leaves > 0

    def read(self, refs: Any) -> tuple[Any, Any]:
        """Returns both pytrees in a program, of its refs."""
        values = list(map(_value, refs, self.is_scalar))
        size = self.whole.num_leaves
        return self.whole.unflatten(values[:size]), self.groups.unflatten(values[size:])

    def specs(self, pl: Any, num_searches: int) -> list[Any]:
        """Returns the block of each leaf that a program reads."""
        size = self.whole.num_leaves
        whole = [_whole(pl, leaf) for leaf in self.leaves[:size]]
        return whole + [
            _own(pl, leaf, num_searches // leaf.shape[0]) for leaf in self.leaves[size:]
        ]


def _value(ref: Any, is_scalar: bool) -> Any:
    return ref[0] if is_scalar else ref


def _whole(pl: Any, array: jax.Array) -> Any:
    return pl.BlockSpec(array.shape, lambda search: (0,) * array.ndim)


def _own(pl: Any, array: jax.Array, times: int) -> Any:
    """Returns the block of a program's own; `times` programs next to one another have the same."""

    def place(search: Any) -> tuple[Any, ...]:
        return lax.div(search, jnp.int32(times)), *(0,) * (array.ndim - 1)

    return pl.BlockSpec((1,) if array.ndim == 1 else (None, *array.shape[1:]), place)


def options(num_warps: int, interpret: bool) -> dict[str, Any]:
    """Returns the arguments of `pallas_call` for a kernel of this library.

    Example:
      >>> options(num_warps=4, interpret=True)
      {'interpret': True}
    """
    if interpret:
        return {"interpret": True}
    from jax.experimental.pallas import triton

    _let_operations_be_found()
    return {"compiler_params": triton.CompilerParams(num_warps=num_warps, num_stages=1)}


@functools.cache
def _let_operations_be_found() -> None:
    """Lets MLIR import what JAX has on Triton's operations by the name that it looks for.

    It looks whenever an operation is made, and searches all folders each time as long as there is
    no such module.
    """
    with contextlib.suppress(ImportError):
        from jaxlib.triton import dialect

        sys.modules.setdefault("jaxlib.mlir.dialects.tt", dialect)
