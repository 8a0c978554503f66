"""What a result depends on besides its arguments."""

import functools
import pathlib
import platform
import tomllib
from importlib import metadata

import jax
import numpy as np


def of(devices: tuple[jax.Device, ...]) -> dict[str, str]:
    """Returns the versions, the devices and the processor by which a result was made."""
    return of_host() | {
        "platform": devices[0].platform,
        "devices": f"{len(devices)} x {devices[0].device_kind}",
    }


def of_host() -> dict[str, str]:
    """Returns the versions and the processor: what is known before a device is started."""
    return {
        "jaxopt_search": _version(),
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


@functools.cache
def _version() -> str:
    try:
        return metadata.version("jaxopt_search")
    except metadata.PackageNotFoundError:
        return checkout_version(pathlib.Path(__file__).resolve().parents[2])


def checkout_version(root: pathlib.Path) -> str:
    """Returns the version of an uninstalled checkout, with its commit where git has one.

    Changes on top of the commit are not seen.

    Args:
      root: the folder of the checkout; any other folder gives "not installed".
    """
    try:
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        if project["name"] != "jaxopt_search":
            return "not installed"
        commit = _commit(root / ".git")
        return f"{project['version']}+g{commit[:12]}" if commit else project["version"]
    except (OSError, ValueError, KeyError):
        return "not installed"


def _commit(git: pathlib.Path) -> str:
    """Returns the commit that is checked out; "" if git's folder is absent or not understood."""
    try:
        if git.is_file():  # of a further worktree
            git = git.parent / git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
        if not head.startswith("ref:"):
            return head
        name, common = head.removeprefix("ref:").strip(), git
        if (git / "commondir").is_file():
            common = git / (git / "commondir").read_text(encoding="utf-8").strip()
        if (common / name).is_file():
            return (common / name).read_text(encoding="utf-8").strip()
        packed = (common / "packed-refs").read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return ""
    return next((line.split()[0] for line in packed if line.endswith(f" {name}")), "")
