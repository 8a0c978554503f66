"""Emitted kernels on a host: its compiler takes the same C++, and one thread plays all lanes."""

import contextlib
import ctypes
import functools
import pathlib
import re
import shutil
import subprocess
import tempfile

import jax
import numpy as np
import pytest

from jaxopt_search.backends.cuda import emit, launch

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
_SHIM = pathlib.Path(__file__).with_name("lanes.h").read_text()


@contextlib.contextmanager
def played(monkeypatch, laid_out=lambda num_warps: (num_warps, 0)):
    """Has interpreted kernels that are compiled from now on played on the host, with the warps and
    the room for arrays to which `laid_out` maps a number of warps.

    Yields a function that sets the order of lanes: 0, the first ones run ahead, or 1, the last.
    """
    orders, num_calls = [0], [0]

    def play(*operands, program, groups, num_warps):
        kernel = emit.emit(program, groups, *laid_out(num_warps))
        count = len(program.out_avals)
        owns = operands[-count:]
        num_programs = owns[0].shape[0]

        def call(*arrays):
            arrays = [np.array(array) for array in arrays]
            pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
            num_calls[0] += 1
            _compiled(kernel)(num_programs, orders[0], *pointers)
            return arrays[-count:]

        shapes = [jax.ShapeDtypeStruct(own.shape, own.dtype) for own in owns]
        return jax.pure_callback(call, shapes, *operands)

    with monkeypatch.context() as patch:
        patch.setattr(launch, "_interpreted", play)
        yield lambda order: orders.__setitem__(0, order)
    assert num_calls[0], "what ran was compiled before"


@functools.cache
def _compiled(kernel):
    """Returns a function of a number of programs, an order of lanes, and pointers."""
    names = re.search(r"kernel\((.*)\) \{", kernel.source)[1].split(", ")
    types = [name.replace(" __restrict__", "").rpartition(" ")[0] for name in names]
    inputs = [kind for kind in types if kind != "void*"]
    fields = "\n".join(f"static {kind} given{n};" for n, kind in enumerate(inputs))
    parameters = ", ".join(f"{kind} p{n}" for n, kind in enumerate(inputs))
    taken = " ".join(f"given{n} = p{n};" for n in range(len(inputs)))
    arguments = ", ".join(
        [f"given{n}" for n in range(len(inputs))] + ["nullptr"] * (len(types) - len(inputs))
    )
    source = kernel.source.replace("extern __shared__ __align__(16) unsigned char held[];", "")
    text = f"""{_SHIM}
namespace js {{ alignas(16) static unsigned char held[1 << 18]; }}
{source}
{fields}
static void program() {{ js::kernel({arguments}); }}
extern "C" void run(int blocks, int order, {parameters}) {{
  {taken}
  play(blocks, {kernel.threads}, order, program);
}}
"""
    folder = pathlib.Path(tempfile.mkdtemp())
    (folder / "kernel.cpp").write_text(text)
    flags = ["-O1", "-std=c++17", "-fPIC", "-shared", "-ffp-contract=off", "-w"]
    subprocess.run(["g++", *flags, folder / "kernel.cpp", "-o", folder / "kernel.so"], check=True)
    return ctypes.CDLL(folder / "kernel.so").run
