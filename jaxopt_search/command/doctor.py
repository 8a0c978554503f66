"""`js.doctor()` and `jaxopt-search doctor`: a check of versions, devices, the cache, the extras."""

import argparse
import contextlib
import importlib.util
import os
import pathlib
from collections.abc import Callable, Iterator
from importlib import metadata

import jax
import numpy as np

import jaxopt_search as js
from jaxopt_search import files
from jaxopt_search.command import starts
from jaxopt_search.command.main import NO_SUCCESS, SUCCESS, reason_of, say, tell
from jaxopt_search.engine import stepping
from jaxopt_search.engine.compile import folder_to_use
from jaxopt_search.engine.devices import describe, find_devices, is_cpu, platform_of
from jaxopt_search.engine.fingerprints import environment

_EXTRAS = ("matplotlib", "scipy", "tqdm", "pooch")
_NVIDIA = pathlib.Path("/proc/driver/nvidia/version")
_WIDTH = 15  # of the names


def doctor() -> bool:
    """Prints what runs here and how, and what is amiss, such as a GPU that JAX does not see.

    Returns:
      Whether nothing is amiss.

    Example:
      >>> import jaxopt_search as js
      >>> is_well = js.doctor()
      jaxopt_search  ...
    """
    return _tell_all(print, print)


def run(args: argparse.Namespace) -> int:
    """Shows the findings, problems on standard error, and returns the exit status."""
    del args
    starts.use_cpu_cores()
    return SUCCESS if _tell_all(tell, say) else NO_SUCCESS


def _tell_all(tell: Callable[[str], None], warn: Callable[[str], None]) -> bool:
    is_well = True
    for name, text, problem in _findings():
        tell(f"{name:<{_WIDTH}}{text}")
        if problem:
            warn(problem)
            is_well = False
    return is_well


def _findings() -> Iterator[tuple[str, str, str]]:
    """Yields the name of each check, its finding, and the problem with it, or ""."""
    for name, text in environment().items():
        yield name, text, ""
    try:
        devices = find_devices("all")
        for device in devices:
            total = jax.device_put(np.arange(4), device).sum()
            if int(total) != 6:
                raise RuntimeError(f"{device} adds 0, 1, 2, 3 to {int(total)}")
    except (RuntimeError, ValueError) as error:
        yield "devices", "none", f"JAX does not run: {reason_of(error)}"
    else:
        yield from _devices(devices)
    try:
        folder, text = folder_to_use(), "which is not there yet"
        if folder.exists():
            folder = files.private_folder(folder)
            sizes = [path.stat().st_size for path in folder.iterdir() if path.is_file()]
            text = f"{len(sizes)} files, {sum(sizes) / 1e6:.1f} MB"
        home = pathlib.Path.home()
        place = f"~/{folder.relative_to(home)}" if folder.is_relative_to(home) else folder
        yield "cache", f"{place}, {text}", ""
    except (OSError, ValueError) as error:
        yield "cache", "none", f"compiled programs are not kept: {reason_of(error)}"
    for module in _EXTRAS:
        is_there = importlib.util.find_spec(module) is not None
        yield module, "installed" if is_there else f"not installed: pip install {module}", ""


def _devices(devices: tuple[jax.Device, ...]) -> Iterator[tuple[str, str, str]]:
    """Yields the devices, and how each solver's search makes its steps there."""
    is_on_cpu, problem = is_cpu(devices[0]), ""
    if is_on_cpu and _NVIDIA.exists() and "cpu" not in os.environ.get("JAX_PLATFORMS", ""):
        problem = f"JAX does not see the NVIDIA GPU: {_remedy()}"
    yield "devices", f"{describe(devices)}, {platform_of(devices[0])}", problem
    cities = js.tsp_from_instance(js.datasets.uniform_tsp(16, seed=0))
    facilities = js.qap_from_instance(js.datasets.uniform_qap(16, seed=0))
    for name, problem, search in (
        ("TSP", cities, js.simulated_annealing(js.two_opt(cities), 1.0)),
        ("QAP", facilities, js.tabu_search(js.SwapTable())),
        ("queens", js.nqueens(16), js.min_conflicts(js.QueenSwap(), 0.1)),
    ):
        choice = str(stepping.choose("auto", devices[0], problem, search))
        why_not = "; the fused kernel needs an NVIDIA GPU" if is_on_cpu else ""
        yield f"steps, {name}", f"{choice}{why_not}", ""


def _remedy() -> str:
    """Returns what to install for an NVIDIA GPU that JAX does not see."""
    for kind in ("cuda13", "cuda12"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            version = metadata.version(f"jax-{kind}-plugin")
            if version != jax.__version__:
                what = f"jax is {jax.__version__} and jax-{kind}-plugin {version}"
                return f'{what}: pip install "jax[{kind}]=={version}"'
    return 'pip install "jax[cuda13]", or "jax[cuda12]"'
