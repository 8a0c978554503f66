"""What a result depends on besides its arguments."""

import functools
import pathlib
import platform

import jax
import numpy as np

import jaxopt_search
from jaxopt_search.engine.devices import describe, platform_of


def of(devices: tuple[jax.Device, ...]) -> dict[str, str]:
    """Returns the versions, the devices and the processor by which a result was made."""
    return of_host() | {
        "platform": platform_of(devices[0]),
        "devices": describe(devices),
    }


def of_host() -> dict[str, str]:
    """Returns the versions and the processor: what is known before a device is started."""
    return {
        "jaxopt_search": jaxopt_search.__version__,
        "jax": jax.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "cpu": cpu_name(),
    }


@functools.cache
def cpu_name() -> str:
    """Returns the name of the host's processor: its maker's, where the system tells it."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()
