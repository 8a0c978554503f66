# pyright: basic
"""The compiler of emitted C++: NVRTC, which JAX's CUDA extras bring."""

import contextlib
import ctypes
import functools
import glob
import sys
from typing import Any

_VERSIONS = "13", "12"  # of CUDA


@functools.cache
def to_ptx(source: str, capability: int) -> str:
    """Returns the PTX of CUDA C++ for a compute capability, such as 75, and all higher ones.

    Raises:
      OSError: without NVRTC.
      ValueError: if the code does not compile.
    """
    nvrtc, program = _nvrtc(), ctypes.c_void_p()
    _check(nvrtc, nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), None, 0, 0, 0))
    # Products are rounded before sums, as XLA rounds them; roots are XLA's, too.
    flags = f"--gpu-architecture=compute_{capability}", "--fmad=false", "--prec-sqrt=false"
    options = (ctypes.c_char_p * len(flags))(*(flag.encode() for flag in flags))
    try:
        if nvrtc.nvrtcCompileProgram(program, len(flags), options):
            raise ValueError(_text_of(nvrtc, program, "ProgramLog"))
        return _text_of(nvrtc, program, "PTX")
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _text_of(nvrtc: Any, program: ctypes.c_void_p, kind: str) -> str:
    size = ctypes.c_size_t()
    _check(nvrtc, getattr(nvrtc, f"nvrtcGet{kind}Size")(program, ctypes.byref(size)))
    text = ctypes.create_string_buffer(size.value)
    _check(nvrtc, getattr(nvrtc, f"nvrtcGet{kind}")(program, text))
    return text.value.decode()


def _check(nvrtc: Any, error: int) -> None:
    if error:
        nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
        raise ValueError(f"NVRTC: {nvrtc.nvrtcGetErrorString(error).decode()}")


@functools.cache
def _nvrtc() -> Any:
    """Returns the library: that of JAX's wheels, else the system's."""
    folders = [glob.escape(path) for path in sys.path]
    found = [
        path
        for version in _VERSIONS
        for folder in folders
        for path in glob.glob(f"{folder}/nvidia/*/lib/libnvrtc.so.{version}")
    ]
    for path in (*found, *(f"libnvrtc.so.{version}" for version in _VERSIONS)):
        with contextlib.suppress(OSError):
            return ctypes.CDLL(path)
    raise OSError("NVRTC is missing, which JAX's CUDA extras bring")
