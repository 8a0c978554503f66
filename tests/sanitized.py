"""Kernels under compute-sanitizer, whose tools JAX itself does not survive.

    python tests/sanitized.py record FOLDER
    compute-sanitizer --tool racecheck python tests/sanitized.py run FOLDER

The first line needs no GPU: it keeps the kernels of `golden.py`, for several numbers of warps, with
arrays in shared memory and not, and what they read and found. The second one runs them by the
driver alone, without JAX; the other tools are memcheck and synccheck. All must find the same.
"""

import ctypes
import importlib.util
import pathlib
import sys

import numpy as np

LAYOUTS = [(warps, room) for warps in (1, 2, 8) for room in (0, 2**15)]
CAPABILITY = 75
COMPILER = pathlib.Path(__file__).parents[1] / "jaxopt_search/backends/cuda/compile.py"
SHARED_BYTES, MOST_SHARED = 8, 48 * 1024  # an attribute of a function; what needs no asking


def record(folder: pathlib.Path) -> None:
    """Keeps each kernel that golden runs launch, with what it reads in its first launch."""
    import golden
    import jax

    from jaxopt_search.backends.cuda import emit, launch

    interpreted, kept = launch._interpreted, set()

    def noted(*operands, program, groups, num_warps):
        results = interpreted(*operands, program=program, groups=groups, num_warps=num_warps)

        def keep(operands, results):
            code = {layout: emit.emit(program, groups, *layout) for layout in LAYOUTS}
            if (name := code[LAYOUTS[0]].source) in kept:
                return
            kept.add(name)
            arrays = {f"read{n:03}": array for n, array in enumerate(operands)}
            arrays |= {f"found{n:03}": array for n, array in enumerate(results)}
            for n, (source, threads, shared) in enumerate(code.values()):
                arrays[f"source{n}"] = np.array(source)
                arrays[f"size{n}"] = np.array([threads, shared])
            np.savez_compressed(folder / f"{len(kept):03}.npz", **arrays)

        jax.debug.callback(keep, operands, results)
        return results

    launch._interpreted = noted
    for case in golden.CASES:
        if "interpret" in case.ways:
            jax.block_until_ready(case.run("interpret", 1))
    jax.effects_barrier()
    print(f"{len(kept)} kernels")


def run(folder: pathlib.Path) -> int:
    """Runs what is kept, and returns how many kernels found something else."""
    cuda, device, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_void_p()

    def call(name: str, *arguments: object) -> None:
        if error := getattr(cuda, name)(*arguments):
            raise RuntimeError(f"{name}: error {error}")

    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)
    spec = importlib.util.spec_from_file_location("compiler", COMPILER)
    spec.loader.exec_module(compiler := importlib.util.module_from_spec(spec))
    num_wrong = num_runs = 0
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as file:
            kept = {name: np.ascontiguousarray(file[name]) for name in file}
        read, found = (
            [kept[name] for name in sorted(kept) if name.startswith(kind)]
            for kind in ("read", "found")
        )
        for n, layout in enumerate(LAYOUTS):
            threads, shared = map(int, kept[f"size{n}"])
            module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
            ptx = compiler.to_ptx(kept[f"source{n}"].item(), CAPABILITY)
            call("cuModuleLoadData", ctypes.byref(module), ptx.encode())
            call("cuModuleGetFunction", ctypes.byref(kernel), module, b"kernel")
            if shared > MOST_SHARED:
                call("cuFuncSetAttribute", kernel, SHARED_BYTES, shared)
            places = [ctypes.c_uint64() for _ in read]
            for place, array in zip(places, read, strict=True):
                call("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(max(array.nbytes, 1)))
                call(
                    "cuMemcpyHtoD_v2",
                    place,
                    array.ctypes.data_as(ctypes.c_void_p),
                    ctypes.c_size_t(array.nbytes),
                )
            own = places[-len(found) :]
            pointers = [ctypes.cast(ctypes.byref(one), ctypes.c_void_p) for one in (*places, *own)]
            parameters = (ctypes.c_void_p * len(pointers))(*pointers)
            grid, block = (len(found[0]), 1, 1), (threads, 1, 1)
            call("cuLaunchKernel", kernel, *grid, *block, shared, None, parameters, None)
            call("cuCtxSynchronize")
            is_right = True
            for place, expected in zip(own, found, strict=True):
                array = np.empty_like(expected)
                call(
                    "cuMemcpyDtoH_v2",
                    array.ctypes.data_as(ctypes.c_void_p),
                    place,
                    ctypes.c_size_t(array.nbytes),
                )
                is_right &= np.array_equal(array, expected)
            for place in places:
                call("cuMemFree_v2", place)
            call("cuModuleUnload", module)
            num_runs += 1
            print(f"{path.name}, warps and room {layout}", flush=True)
            if not is_right:
                num_wrong += 1
                print("other results")
    print(f"{num_runs} runs, {num_wrong} with other results")
    return num_wrong


if __name__ == "__main__":
    command, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    sys.exit(record(folder) if command == "record" else run(folder))
