# pyright: basic
"""Whether a function lowers to a Triton kernel, and if not, which function and operation is why."""

import importlib
import pathlib
import re
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

import jax

_JAX = str(pathlib.Path(jax.__file__).parent)
_OURS = tuple(
    str(pathlib.Path(__file__).parent / name)
    for name in ("triton.py", "choice.py", "memory.py", "backend.py", "loops.py", "portability.py")
)
_COMPILER = ("jax._src.interpreters.mlir", "jaxlib.triton.dialect", "jaxlib.mlir.ir")
_filters = threading.RLock()  # of warnings belong to the whole process


def lower_for_cuda(fn: Callable[..., Any], *args: Any) -> str:
    """Returns the text of `fn` lowered for an NVIDIA GPU, on a machine with or without one."""
    device = jax.sharding.AbstractDevice(device_kind="NVIDIA H200", num_cores=132, platform="gpu")
    mesh = jax.sharding.AbstractMesh(
        (1,), ("x",), (jax.sharding.AxisType.Explicit,), abstract_device=device
    )
    with jax.sharding.use_abstract_mesh(mesh), _filters, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The Pallas Triton backend is deprecated")
        text = jax.jit(fn).trace(*args).lower(lowering_platforms=("cuda",)).as_text()
    for kernel in re.findall(r'\bir = "((?:[^"\\]|\\.)*)"', text):
        _verify(kernel)
    return text


def _verify(kernel: str) -> None:
    """Raises an error if the code of a Triton kernel is not well formed.

    JAX leaves that to XLA on a GPU, whose error message is hard to read. Where this JAX has its
    compiler elsewhere, nothing is checked.
    """
    try:
        mlir, dialect, ir = map(importlib.import_module, _COMPILER)
        context = mlir.JaxIrContext()
        context.append_dialect_registry(mlir.upstream_dialects)
        context.load_all_available_dialects()
        dialect.register_dialect(context)
    except (ImportError, AttributeError):
        return
    with context:
        try:
            ir.Module.parse(re.sub(rb"\\([0-9A-F]{2}|.)", _unescaped, kernel.encode()))
        except Exception as error:
            raise _IllFormedError(str(error)) from error


class _IllFormedError(Exception):
    """What the compiler says of ill-formed code: operations and, from inside out, functions."""

    def __str__(self) -> str:
        functions = re.findall(r'"([^"]+)"\("([^"]+)":(\d+)', self.args[0])
        theirs = (
            f"{name} ({pathlib.Path(file).name}:{line})"
            for name, file, line in functions
            if not file.startswith((_JAX, *_OURS))
        )
        what = re.search(r"'[\w.]+' op [^\n]*", self.args[0])
        return f"{next(theirs, 'the search')}: {what[0] if what else 'ill-formed code'}"


def _unescaped(escape: re.Match[bytes]) -> bytes:
    return bytes.fromhex(escape[1].decode()) if len(escape[1]) == 2 else escape[1]


def obstacle(fn: Callable[..., Any], *args: Any) -> str:
    """Returns in one line what keeps `fn` from lowering for an NVIDIA GPU, or "" if nothing does.

    Args:
      fn: launches a kernel.
      args: arrays, or their shapes.
    """
    try:
        lower_for_cuda(fn, *args)
    except _IllFormedError as error:
        return f"no fused kernel can be made of {error}"
    except Exception as error:  # whatever it is, it keeps the kernel from running
        found = re.search(r"lowering: ?(\w+)", str(error))
        if found:
            where = _function_with(found[1], fn, args) or "the search"
            return f"{where} uses {found[1]}, which a fused kernel cannot"
        where = _last_frame((error.__cause__ or error).__traceback__) or "the search"
        if isinstance(error, AttributeError) and error.name == "at":  # of what `.set` returned
            return f"{where} writes by .at[...].set, expected memory.store"
        first_line = str(error).strip().partition("\n")[0]
        return f"{where} does not lower to a fused kernel: {type(error).__name__}: {first_line}"
    return ""


def _function_with(primitive: str, fn: Callable[..., Any], args: tuple[Any, ...]) -> str:
    """Returns the function whose code holds the first use of `primitive`, with file and line."""
    found = (
        function
        for name, function in _operations(jax.make_jaxpr(fn)(*args).jaxpr, "")
        if name == primitive
    )
    return next(found, "")


def _operations(jaxpr: Any, caller: str) -> Iterator[tuple[str, str]]:
    """Yields every operation with the function that holds it: a user's, not JAX's."""
    for equation in jaxpr.eqns:
        trace = equation.source_info.traceback
        function = (_last_frame(trace.as_python_traceback()) if trace else "") or caller
        yield equation.primitive.name, function
        for value in equation.params.values():
            for part in value if isinstance(value, tuple | list) else (value,):
                inner = getattr(part, "jaxpr", part)
                if hasattr(inner, "eqns"):
                    yield from _operations(inner, function)


def _last_frame(trace: TracebackType | None) -> str:
    """Returns the innermost function that is neither JAX's nor the launcher's."""
    frames = [
        f"{frame.f_code.co_qualname} ({pathlib.Path(frame.f_code.co_filename).name}:{line})"
        for frame, line in traceback.walk_tb(trace)
        if not frame.f_code.co_filename.startswith((_JAX, *_OURS))
    ]
    return frames[-1] if frames else ""
