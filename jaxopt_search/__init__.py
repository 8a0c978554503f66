"""Gradient-free, vectorized combinatorial search in JAX."""

import importlib
from typing import TYPE_CHECKING, Any

from jaxopt_search import interrupts as interrupts  # notes forks, so before anything is forked

if TYPE_CHECKING:
    from jaxopt_search import testing as testing
    from jaxopt_search.api import *  # noqa: F403

__version__ = "0.1.0"  # the only place


def __getattr__(name: str) -> Any:
    """Imports a name, and JAX with it: the command line reads its arguments before."""
    if not name.startswith("_") or name == "__all__":
        full = f"{__name__}.{name}"
        try:
            return importlib.import_module(full)
        except ModuleNotFoundError as error:
            if error.name != full:
                raise
        api = importlib.import_module(f"{__name__}.api")
        if name == "__all__":
            return __dir__()
        if hasattr(api, name):
            globals()[name] = value = getattr(api, name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    from jaxopt_search import api

    return sorted({"testing", *(name for name in vars(api) if not name.startswith("_"))})
