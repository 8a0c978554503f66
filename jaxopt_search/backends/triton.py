# pyright: basic
# pyright: reportInvalidTypeForm=false
"""The targets of fused kernels by Pallas: Triton, on NVIDIA GPUs, and its interpreter.

Nothing else imports Pallas, and this file is imported only where a kernel is wanted.
"""

import contextlib
import re
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl

from jaxopt_search.backends import memory
from jaxopt_search.backends.backend import Index, Kernel, Tree

_LEAST_CAPABILITY = (8, 0)
"""Of an NVIDIA GPU: on older ones XLA refuses Triton (issue 26799 of jax-ml/jax)."""


class _Operand(NamedTuple):
    """An array that a kernel reads or changes, and what a program sees of it.

    Attributes:
      array: with at least one axis.
      spec: the block of a program.
      is_scalar: whether a program sees a scalar, not a ref.
    """

    array: jax.Array
    spec: Any
    is_scalar: bool

    def value(self, ref: Any) -> Any:
        """Returns what a program sees, of its ref."""
        return ref[0] if self.is_scalar else ref


def _of_all(array: Any) -> _Operand:
    """Returns what all programs read."""
    is_scalar, array = jnp.ndim(array) == 0, jnp.asarray(array)
    array = array.reshape(array.shape or (1,))
    return _Operand(array, pl.BlockSpec(array.shape, lambda _: (0,) * array.ndim), is_scalar)


def _of_each(array: jax.Array, num_programs: int) -> _Operand:
    """Returns what belongs to each program, or to several next to one another."""
    times = num_programs // array.shape[0]

    def place(program: Any) -> tuple[Any, ...]:
        return lax.div(program, jnp.int32(times)), *(0,) * (array.ndim - 1)

    shape = (1,) if array.ndim == 1 else (None, *array.shape[1:])
    return _Operand(array, pl.BlockSpec(shape, place), array.ndim == 1)


class _Pallas(Kernel):
    """A kernel by Pallas; what differs is where it runs, and how lanes reach memory."""

    name: str
    options: Callable[[int], dict[str, Any]]
    """Maps a number of warps to arguments of `pallas_call`."""

    def launch(
        self,
        body: Callable[[jax.Array, Any, Any], Any],
        num_steps: jax.Array,
        shared: Any,
        carry: Any,
        between: Any,
        num_warps: int,
    ) -> Any:
        """Like `choice.launch`."""
        wholes, whole_structure = jax.tree.flatten((num_steps, shared))
        groups, group_structure = jax.tree.flatten(between)
        owns, structure = jax.tree.flatten(carry)
        num_programs, num_read = owns[0].shape[0], len(wholes) + len(groups)
        each = [_of_each(leaf, num_programs) for leaf in (*groups, *owns)]
        operands = [*map(_of_all, wholes), *each]
        carried = operands[num_read:]

        def kernel(*refs: Any) -> None:
            state = refs[num_read + len(carried) :]
            values = [one.value(ref) for one, ref in zip(operands[:num_read], refs, strict=False)]
            num, everything = whole_structure.unflatten(values[: len(wholes)])
            if groups:
                everything = everything, group_structure.unflatten(values[len(wholes) :])
            start = [one.value(ref) for one, ref in zip(carried, state, strict=True)]
            with memory.one_search(self.name):
                end = memory.fori_loop(
                    num, lambda i, carry: body(i, everything, carry), structure.unflatten(start)
                )
            for ref, value in zip(state, jax.tree.leaves(end), strict=True):
                if not isinstance(value, jax.Ref):
                    ref[0] = value

        results = pl.pallas_call(
            kernel,
            grid=(num_programs,),
            in_specs=[one.spec for one in operands],
            out_specs=[one.spec for one in carried],
            out_shape=[jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in owns],
            input_output_aliases={num_read + k: k for k in range(len(carried))},
            **self.options(num_warps),
        )(*(one.array for one in operands))
        return structure.unflatten(results)

    def launch_grid(
        self,
        body: Callable[[tuple[jax.Array, ...], tuple[Any, ...]], jax.Array],
        grid: tuple[int, ...],
        arrays: tuple[jax.Array, ...],
        dtype: Any,
        num_warps: int,
    ) -> jax.Array:
        """Like `choice.launch_grid`."""

        def kernel(*refs: Any) -> None:
            place = tuple(map(pl.program_id, range(len(grid))))
            with memory.one_search(self.name):
                refs[-1][(0,) * len(grid)] = body(place, refs[:-1])

        return pl.pallas_call(
            kernel,
            grid=grid,
            out_specs=pl.BlockSpec((1,) * len(grid), lambda *place: place),
            out_shape=jax.ShapeDtypeStruct(grid, dtype),
            **self.options(num_warps),
        )(*arrays)


class Interpreter(_Pallas):
    """A kernel that Pallas interprets, slowly, on any device, for tests."""

    name = "interpret"

    def load(self, buffer: Any, index: Index, where: jax.Array | None) -> jax.Array:
        if where is None:
            return buffer[index]
        pairs = zip(index if isinstance(index, tuple) else (index,), buffer.shape, strict=True)
        return buffer[tuple(jnp.minimum(one, size - 1) for one, size in pairs)]

    def store_lanes(self, buffer: Any, index: Any, value: jax.Array, where: jax.Array) -> Any:
        buffer[...] = super().store_lanes(buffer[...], index, value, where)
        return buffer

    def options(self, num_warps: int) -> dict[str, Any]:
        return {"interpret": True}


class Triton(_Pallas):
    """A kernel on an NVIDIA GPU."""

    name = "triton"

    def __init__(self) -> None:
        import jax.experimental.pallas.triton as operations

        self.operations = operations
        _let_operations_be_found()

    def load(self, buffer: Any, index: Index, where: jax.Array | None) -> jax.Array:
        if where is None:
            return buffer[index]
        nothing = jnp.zeros((), buffer.dtype)
        return self.operations.load(buffer.at[index], mask=where, other=nothing)

    def store_lanes(self, buffer: Any, index: Any, value: jax.Array, where: jax.Array) -> Any:
        # A lane that is masked out must not write at all: another lane may own its element.
        index = index if len(index) > 1 else index[0]
        self.operations.store(buffer.at[index], value, mask=where)
        return buffer

    def barrier(self) -> None:
        self.operations.debug_barrier()

    def compiled_apart(self, fn: Callable[..., Tree], *arguments: Any) -> Tree:
        once = (pl.program_id(0) | 1) & 1  # LLVM computes it, MLIR does not
        nothing = jax.tree.map(
            lambda one: jnp.zeros(one.shape, one.dtype), jax.eval_shape(fn, *arguments)
        )
        return lax.fori_loop(0, once, lambda _, __: fn(*arguments), nothing)

    def options(self, num_warps: int) -> dict[str, Any]:
        params = self.operations.CompilerParams(num_warps=num_warps, num_stages=1)
        return {"compiler_params": params}

    def refusal(self, device: jax.Device | str) -> str:
        """Like `choice.refusal`."""
        capability = str(getattr(device, "compute_capability", ""))
        found = re.fullmatch(r"(\d+)\.(\d+)", capability)  # other makers have other names
        if not found or tuple(map(int, found.groups())) >= _LEAST_CAPABILITY:
            return ""
        least = ".".join(map(str, _LEAST_CAPABILITY))
        return f"compute capability {capability}; the Triton kernel needs {least}"


BACKENDS = {"interpret": Interpreter, "triton": Triton}


def _let_operations_be_found() -> None:
    """Lets MLIR import what JAX has on Triton's operations by the name that it looks for.

    It looks whenever an operation is made, and searches all folders each time as long as there is
    no such module.
    """
    with contextlib.suppress(ImportError):
        from jaxlib.triton import dialect

        sys.modules.setdefault("jaxlib.mlir.dialects.tt", dialect)
