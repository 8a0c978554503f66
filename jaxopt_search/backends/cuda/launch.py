# pyright: basic
# pyright: reportInvalidTypeForm=false
"""Kernels as an operation of JAX's, which `jit`, `vmap`, loops and several devices take.

On an NVIDIA GPU it is emitted, compiled, and launched by jaxlib's own launcher of kernels, the one
that JAX's Triton kernels go through, which takes PTX from anyone. Interpreted, it is evaluated by
XLA: for tests of what portable code does in a kernel.
"""

import dataclasses
import functools
import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, Primitive, jaxpr_as_fun
from jax.interpreters import batching, mlir

from jaxopt_search.backends import memory
from jaxopt_search.backends.backend import LANES, named
from jaxopt_search.backends.cuda import compile, trace
from jaxopt_search.backends.cuda.emit import emit

launch_p = Primitive("launch")
launch_p.multiple_results = True


@dataclasses.dataclass(frozen=True)
class Launcher(trace.Kernel):
    """Kernels: on an NVIDIA GPU, a block of threads for each program; or evaluated by XLA.

    Attributes:
      name: of the implementation.
    """

    name: str

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
        wholes, parts = jax.tree.leaves(shared), jax.tree.leaves(between)
        owns, structure = jax.tree.flatten(carry)
        num_programs = owns[0].shape[0]
        read = (shared, _rows(between)) if parts else shared
        program, held = trace.trace(body, trace.shapes_of(read), _rows(carry), self.name)
        groups = [0] * (len(held) + 1 + len(wholes))
        groups += [num_programs // leaf.shape[0] for leaf in parts]
        results = launch_p.bind(
            *map(jnp.asarray, held),
            jnp.asarray(num_steps, jnp.int32),
            *wholes,
            *parts,
            *owns,
            program=program,
            groups=(*groups, *[1] * len(owns)),
            num_warps=num_warps,
            is_interpreted=self.name == "interpret",
        )
        return structure.unflatten(results)


BACKENDS = {name: Launcher(name) for name in ("cuda", "interpret")}


def _rows(tree: Any) -> Any:
    """Returns the shapes of what one program has of arrays with an axis of programs."""
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), tree)


@launch_p.def_abstract_eval
def _(*operands: Any, program: ClosedJaxpr, **_: Any) -> Any:
    return [ShapedArray(one.shape, one.dtype) for one in operands[-len(program.out_avals) :]]


@launch_p.def_impl
def _(*operands: Any, **params: Any) -> Any:
    return jax.jit(functools.partial(launch_p.bind, **params))(*operands)


def _batched(
    operands: Sequence[Any], axes: Sequence[Any], *, groups: tuple[int, ...], **params: Any
) -> Any:
    """Makes the programs of all instances those of one launch, instance after instance."""
    (size,) = {
        one.shape[axis] for one, axis in zip(operands, axes, strict=True) if axis is not None
    }
    flat, of_all = [], []
    for one, axis, group in zip(operands, axes, groups, strict=True):
        if axis is not None or group:
            one = batching.bdim_at_front(one, axis, size)
        flat.append(one.reshape(-1, *one.shape[2:]) if group else one)
        of_all.append(axis is not None and not group)
    num_programs = flat[-1].shape[0] // size
    groups = tuple(
        num_programs if new else group for new, group in zip(of_all, groups, strict=True)
    )
    results = launch_p.bind(*flat, groups=groups, **params)
    return [one.reshape(size, -1, *one.shape[1:]) for one in results], [0] * len(results)


batching.primitive_batchers[launch_p] = _batched


def _lowered(ctx: Any, *operands: Any, is_interpreted: bool, **params: Any) -> Any:
    run = _interpreted if is_interpreted else _on_gpu
    return mlir.lower_fun(functools.partial(run, **params))(ctx, *operands)


mlir.register_lowering(launch_p, _lowered)


def _on_gpu(
    *operands: jax.Array, program: ClosedJaxpr, groups: tuple[int, ...], num_warps: int
) -> Any:
    from jaxlib import gpu_triton as launcher

    count = len(program.out_avals)
    first, owns = len(operands) - count, operands[-count:]
    num_programs = owns[0].shape[0]
    device, sizes = _device(), [math.prod(one.shape[1:]) * one.dtype.itemsize for one in owns]
    room = _room_for(device, sizes, num_programs, num_warps)
    kernel = emit(program, groups, num_warps, room)
    ptx = compile.to_ptx(kernel.source, device.capability)
    parameters = [launcher.create_array_parameter(0, 16)] * (len(operands) + count)
    warps, code = kernel.threads // LANES, (kernel.shared, ptx, "", device.capability)
    try:
        own = launcher.TritonKernel("kernel", warps, 1, *code)
    except TypeError:  # until JAX 0.9.0, with the sizes of a cluster
        own = launcher.TritonKernel("kernel", warps, *code, 1, 1, 1)
    call = launcher.TritonKernelCall(own, num_programs, 1, 1, parameters)
    opaque = zlib.compress(call.to_proto("kernel", b""))
    shapes = [jax.ShapeDtypeStruct(one.shape, one.dtype) for one in owns]
    how: Any = {"input_output_aliases": {first + number: number for number in range(count)}}
    if jax.__version_info__ < (0, 10, 2):
        how |= {"custom_call_api_version": 2, "legacy_backend_config": opaque}
        return jax.ffi.ffi_call("triton_kernel_call", shapes, **how)(*operands)
    return jax.ffi.ffi_call("triton_kernel_call_ffi", shapes, **how)(*operands, opaque=opaque)


class _Device(NamedTuple):
    """What is asked of a GPU.

    Attributes:
      capability: compute capability, such as 90.
      processors: multiprocessors.
      shared: bytes of shared memory of a multiprocessor.
      blocks: that a multiprocessor holds at most.
      warps: likewise.
    """

    capability: int
    processors: int
    shared: int
    blocks: int
    warps: int


# NVIDIA, "CUDA C++ Programming Guide", technical specifications by compute capability: KiB of
# shared memory, blocks and warps of a multiprocessor. Newer ones have what 9.0 has, or more.
_LIMITS = {
    75: (64, 16, 32),
    80: (164, 32, 64),
    86: (100, 16, 48),
    87: (164, 16, 48),
    89: (100, 24, 48),
    120: (100, 24, 48),
}
_RESERVED = 1024  # bytes of shared memory, of each block
_OTHERS = 2048  # bytes of shared memory, at most, that a program needs besides its arrays
_CACHED = 2**18  # bytes of the second-level cache for each multiprocessor, about
_ENOUGH_WARPS = 16  # of a multiprocessor, by tabu search on tables of 40 to 100 rows on an H200


@functools.cache
def _device() -> _Device:
    """Returns what this process's GPUs have, the least of each."""
    devices = jax.local_devices(backend="cuda")
    capability = min(int(str(one.compute_capability).replace(".", "")) for one in devices)
    kilobytes, *most = _LIMITS.get(capability, (228, 32, 64))
    processors = min(one.core_count for one in devices)
    return _Device(capability, processors, 1024 * kilobytes, *most)


def _room_for(device: _Device, sizes: list[int], num_programs: int, num_warps: int) -> int:
    """Returns how many bytes of shared memory a program may have.

    As many are to run at once as a multiprocessor holds. Of programs of several warps only those
    whose arrays all fit into its shared memory, if they have warps enough. Where the arrays do not
    fit into the second-level cache, fewer are, such that the largest one fits into shared memory.

    Args:
      sizes: bytes of the arrays of a program.
    """
    each = -(-num_programs // device.processors)
    blocks = min(each, device.blocks, max(1, device.warps // num_warps))
    fitting = device.shared // (sum(sizes) + _OTHERS + _RESERVED)
    if num_warps > 1 and fitting * num_warps >= _ENOUGH_WARPS:
        blocks = min(blocks, fitting)

    def room() -> int:
        return device.shared // blocks - _RESERVED

    while blocks > 1 and blocks * sum(sizes) > _CACHED and room() < max(sizes):
        blocks = -(-blocks // 2)
    return room()


def _interpreted(
    *operands: jax.Array, program: ClosedJaxpr, groups: tuple[int, ...], num_warps: int
) -> list[jax.Array]:
    repeated = [
        jnp.repeat(one, group, axis=0) if group > 1 else one
        for one, group in zip(operands, groups, strict=True)
    ]
    axes = tuple(0 if group else None for group in groups)
    return jax.vmap(jaxpr_as_fun(program), axes)(*repeated)


def obstacle(fn: Callable[..., Any], *args: Any) -> str:
    """Like `choice.obstacle`."""
    try:
        for params in _launches(jax.make_jaxpr(fn)(*args).jaxpr):
            emit(params["program"], params["groups"], params["num_warps"])
    except trace.Unportable as error:
        return str(error)
    except Exception as error:  # whatever it is, it keeps the kernel from running
        where = trace.last_function(error.__traceback__) or "the search"
        if isinstance(error, AttributeError) and error.name == "at":  # of a buffer
            return f"{where} writes by .at[...].set, expected memory.store"
        first_line = str(error).strip().partition("\n")[0]
        return f"{where} does not run in a fused kernel: {type(error).__name__}: {first_line}"
    return ""


def _launches(jaxpr: Any) -> Iterator[dict[str, Any]]:
    """Yields the parameters of each launch in a jaxpr."""
    for equation in jaxpr.eqns:
        if equation.primitive is launch_p:
            yield equation.params
        else:
            for value in equation.params.values():
                for part in value if isinstance(value, tuple | list) else (value,):
                    inner = getattr(part, "jaxpr", part)
                    if hasattr(inner, "eqns"):
                        yield from _launches(inner)


def distrust(device: jax.Device) -> str:
    """Returns in one line why a kernel does not run on a GPU as it should, or ""."""
    size, rows = 2 * LANES, 3
    start = np.arange(rows * size, dtype=np.int32).reshape(rows, size)

    def step(i: jax.Array, shared: Any, own: tuple[Any, jax.Array]) -> tuple[Any, jax.Array]:
        table, total = own
        lane = memory.lanes(size)
        values = memory.load(table, (lane + 1) % size)
        table = memory.store(table, lane, values * 3 + i, jnp.bool_(True))
        return table, total + jnp.sum(values)

    def run(table: jax.Array) -> Any:
        own = table, jnp.zeros(rows, jnp.int32)
        return BACKENDS["cuda"].launch(step, jnp.int32(5), (), own, (), 2)

    expected, total = start, np.zeros(rows, np.int32)
    for i in range(5):
        values = np.roll(expected, -1, axis=1)
        expected, total = values * 3 + i, total + values.sum(axis=1)
    try:
        with jax.default_device(device):  # compiled by itself, whatever is being traced
            found = jax.device_get(jax.jit(run).lower(start).compile()(start))
    except Exception as error:  # whatever it is, XLA runs instead
        return f"a kernel fails here: {str(error).strip().partition(chr(10))[0]}"
    is_right = np.array_equal(found[0], expected) and np.array_equal(found[1], total)
    return "" if is_right else "a kernel computes wrong numbers here"


# What interpreted programs do is what XLA does, of flat buffers.
_xla: Any = named("xla")


def _load(buffer: jax.Array, index: jax.Array, where: jax.Array | None = None) -> jax.Array:
    return _xla.load(buffer.ravel(), index, where)


def _store(buffer: jax.Array, index: jax.Array, *what: jax.Array) -> jax.Array:
    return _xla.store_lanes(buffer.ravel(), (index,), *what).reshape(buffer.shape)


def _each(*operands: jax.Array, jaxpr: Any, num_shared: int) -> list[jax.Array]:
    fn = jaxpr_as_fun(jaxpr)
    parts = operands[:num_shared], operands[num_shared:]
    return _xla.each(lambda shared, lanes: fn(*shared, *lanes), *parts)


def _side_by_side(
    fn: Callable[..., Any], operands: Sequence[Any], axes: Sequence[Any], **params: Any
) -> Any:
    made = jax.vmap(functools.partial(fn, **params), tuple(axes))(*operands)
    return made, jax.tree.map(lambda _: 0, made)


for _primitive, _fn in {
    trace.load_p: _load,
    trace.store_p: _store,
    trace.copy_p: _xla.copy,
    trace.pick_p: _xla.pick,
    trace.settled_p: _xla.settled,
    trace.each_p: _each,
}.items():
    mlir.register_lowering(_primitive, mlir.lower_fun(_fn, _primitive.multiple_results))
    batching.primitive_batchers[_primitive] = functools.partial(_side_by_side, _fn)
