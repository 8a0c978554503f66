"""What a result depends on beside its arguments."""

import functools
import platform
from importlib import metadata

import jax
import numpy as np


def of(devices: tuple[jax.Device, ...]) -> dict[str, str]:
    """Returns the versions and devices by which a result was made."""
    return {
        "jaxopt_search": _version(),
        "jax": jax.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "platform": devices[0].platform,
        "devices": f"{len(devices)} x {devices[0].device_kind}",
    }


@functools.cache
def _version() -> str:
    try:
        return metadata.version("jaxopt_search")
    except metadata.PackageNotFoundError:
        return "not installed"
