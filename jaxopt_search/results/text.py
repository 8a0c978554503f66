"""Results as text: one line, or a summary of about ten."""

from collections.abc import Iterable
from typing import Any

import numpy as np

_WIDTH = 12  # of the names in a summary
_SHOWN = 6  # entries of a solution, from its beginning


def line(name: str, **values: Any) -> str:
    """Returns what stands for a result in one line; values that are None are left out."""
    shown = (f"{key}={_short(value)}" for key, value in values.items() if value is not None)
    return f"{name}({', '.join(shown)})"


def summary(rows: Iterable[tuple[str, str | None]]) -> str:
    """Returns one line for each name and text; those without a text are left out."""
    return "\n".join(f"{name:<{_WIDTH}}{text}" for name, text in rows if text is not None)


def number(value: float) -> str:
    """Returns a cost: an integer with all its digits, a float with ten."""
    return f"{value:,}" if isinstance(value, int) else f"{value:.10g}"


def cost(value: float, gap: float | None) -> str:
    """Returns a cost, with its gap where that is known."""
    above = "" if gap is None else f" ({gap:.3%} above the best known)"
    return number(value) + above


def large(count: int) -> str:
    """Returns a count: below a million with all its digits."""
    return f"{count:,}" if count < 10**6 else f"{count:.2e}"


def solution(x: Any) -> str:
    """Returns the beginning of a solution and its shape; of one that is no array, its type."""
    if not isinstance(x, np.ndarray):
        return f"a {type(x).__name__}"
    if x.ndim != 1 or x.size <= _SHOWN:
        return str(x.tolist()) if x.size <= _SHOWN else f"an array of shape {x.shape}"
    return f"{str(x[:_SHOWN].tolist())[:-1]}, ...], {x.size} entries"


def circumstances(result: Any) -> list[tuple[str, str]]:
    """Returns rows of a summary: how long it took, on what, and by which versions."""
    env, versions = result.env, ("jaxopt_search", "jax", "numpy", "python")
    devices = env.get("devices", "")
    if env.get("platform") == "cpu" and "cpu" in env:
        devices += f" ({env['cpu']})"
    compiling, others = result.compile_seconds, result.elapsed - result.compile_seconds
    return [
        ("time", f"{_seconds(compiling)} to compile, {_seconds(others)} to search"),
        ("ran on", ", ".join(filter(None, (devices, env.get("implementation"))))),
        ("versions", ", ".join(f"{name} {env[name]}" for name in versions if name in env)),
    ]


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return solution(value) if value.ndim == 1 else f"<array {value.shape}>"
    if isinstance(value, list):
        return f"<{len(value)} arrays>"
    return getattr(value, "name", None) or repr(value)


def _seconds(value: float) -> str:
    return f"{value:.3g} s" if value < 10 else f"{value:.1f} s"
