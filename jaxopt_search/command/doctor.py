"""`jaxopt-search doctor`: what runs here and how, and what is amiss."""

import argparse
import importlib.util
import os
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

import jaxopt_search as js
from jaxopt_search import files
from jaxopt_search.command import endings, starts
from jaxopt_search.driver import environment
from jaxopt_search.engine import stepping
from jaxopt_search.engine.compile import folder_to_use
from jaxopt_search.engine.devices import describe, find_devices, is_cpu, platform_of

_EXTRAS = ("matplotlib", "scipy", "tqdm", "pooch")
_NVIDIA = pathlib.Path("/proc/driver/nvidia/version")

Findings = Iterator[tuple[str, str, str]]
"""What was looked at, what was found, and what is wrong with it, or ""."""


def run(args: argparse.Namespace) -> int:
    """Shows what was found, and returns the exit status; what is wrong goes to standard error."""
    del args
    starts.use_cpu_cores()
    found = [*_versions(), *_devices(), *_cache(), *_extras()]
    endings.print_lines([(name, text) for name, text, _ in found])
    problems = [problem for _, _, problem in found if problem]
    for problem in problems:
        endings.say(problem)
    return endings.NO_SUCCESS if problems else endings.SUCCESS


def _versions() -> Findings:
    for name, text in environment.of_host().items():
        yield name, text, ""


def _devices() -> Findings:
    try:
        devices = find_devices("all")
        for device in devices:
            total = jax.device_put(np.arange(4), device).sum()
            if int(total) != 6:
                raise RuntimeError(f"{device} adds 0, 1, 2, 3 to {int(total)}")
    except (RuntimeError, ValueError) as error:
        yield "devices", "none", f"JAX does not run: {endings.reason_of(error)}"
        return
    kind = f"{describe(devices)}, {platform_of(devices[0])}"
    is_on_cpu = is_cpu(devices[0])
    problem = ""
    if is_on_cpu and _NVIDIA.exists() and "cpu" not in os.environ.get("JAX_PLATFORMS", ""):
        problem = 'JAX does not see the NVIDIA GPU: pip install "jax[cuda13]", or [cuda12]'
    yield "devices", kind, problem
    for name, make in _SEARCHES.items():
        choice = str(stepping.choose("auto", devices[0], *make()))
        why_not = "; the fused kernel needs an NVIDIA GPU" if is_on_cpu else ""
        yield f"steps, {name}", f"{choice}{why_not}", ""


def _tsp() -> tuple[Any, Any]:
    problem = js.tsp_from_instance(js.datasets.uniform_tsp(16, seed=0))
    return problem, js.simulated_annealing(js.two_opt(problem), 1.0)


def _qap() -> tuple[Any, Any]:
    problem = js.qap_from_instance(js.datasets.uniform_qap(16, seed=0))
    return problem, js.tabu_search(js.SwapTable())


def _queens() -> tuple[Any, Any]:
    return js.nqueens(16), js.min_conflicts(js.QueenSwap(), 0.1)


_SEARCHES: dict[str, Callable[[], tuple[Any, Any]]] = {"TSP": _tsp, "QAP": _qap, "queens": _queens}


def _cache() -> Findings:
    try:
        folder = folder_to_use()
        if not folder.exists():
            yield "cache", f"{folder}, which is not there yet", ""
            return
        folder = files.private_folder(folder)
        sizes = [path.stat().st_size for path in folder.iterdir() if path.is_file()]
    except (OSError, ValueError) as error:
        yield "cache", "none", f"compiled programs are not kept: {endings.reason_of(error)}"
        return
    yield "cache", f"{folder}, {len(sizes)} files, {sum(sizes) / 1e6:.1f} MB", ""


def _extras() -> Findings:
    for module in _EXTRAS:
        is_there = importlib.util.find_spec(module) is not None
        yield module, "installed" if is_there else f"not installed: pip install {module}", ""
