"""Pictures of tours and of runs. Needs matplotlib, the extra `plot`; imported when first used."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxopt_search.checks import check_permutation
from jaxopt_search.optional import imported
from jaxopt_search.problems.matrix_input import real_array
from jaxopt_search.results import Record, Result

_LARGEST_BOARD = 100


def plot_tour(coordinates: Any, tour: Any, ax: Any = None) -> Any:
    """Draws the cities and the closed tour through them.

    Args:
      coordinates: [n, 2] x and y of each city.
      tour: [n] integers, the city at each position.
      ax: matplotlib axes to draw on; None for a new figure.

    Returns:
      The axes.

    Raises:
      ValueError: if the shapes do not fit, or `tour` is no permutation.
      ImportError: if matplotlib is not installed.
    """
    points = real_array(coordinates, "coordinates")
    if points.ndim != 2 or points.shape[1] != 2 or not points.size:
        raise ValueError(f"coordinates has shape {points.shape}, expected (n, 2) with n >= 1")
    tour = check_permutation(tour, len(points), "tour")
    ax = _axes(ax)
    closed = points[np.append(tour, tour[:1])]
    size = float(np.clip(40 / np.sqrt(max(len(tour), 1)), 0.5, 5))
    ax.plot(*closed.T, color="tab:blue", linewidth=1.2, solid_joinstyle="round", zorder=1)
    ax.plot(*points.T, ".", color="black", markersize=size * 1.6, zorder=2)
    ax.set_aspect("equal")
    ax.margins(0.04)
    ax.set_xticks([])
    ax.set_yticks([])
    return ax


def plot_queens(queens: Any, ax: Any = None) -> Any:
    """Draws the board with its queens; of more than 100, points without a grid.

    Args:
      queens: [n] integers, the column of the queen in each row.
      ax: matplotlib axes to draw on; None for a new figure.

    Returns:
      The axes.

    Raises:
      ValueError: if `queens` is no permutation.
      ImportError: if matplotlib is not installed.
    """
    n = len(queens)
    queens = check_permutation(queens, n, "queens")
    ax = _axes(ax)
    if n <= _LARGEST_BOARD:
        squares = np.add.outer(np.arange(n), np.arange(n)) % 2
        ax.imshow(squares, cmap="Greys", vmin=0, vmax=5, zorder=0)
    size = float(np.clip(230 / max(n, 1), 0.5, 24))
    ax.plot(queens, np.arange(n), "o", color="tab:blue", markersize=size, linestyle="", zorder=1)
    ax.set_aspect("equal")
    ax.set_xlim(-0.5, n - 0.5)
    ax.set_ylim(n - 0.5, -0.5)
    ax.set_xticks([])
    ax.set_yticks([])
    return ax


def plot_convergence(
    runs: Sequence[Result | Sequence[Record]],
    *,
    labels: Sequence[str] | None = None,
    against: str = "seconds",
    best_known: float | Sequence[float] | None = None,
    ax: Any = None,
) -> Any:
    """Draws the best cost so far of one or several runs, or its gap.

    Args:
      runs: results of `solve`, or their histories.
      labels: a name for each run.
      against: `"seconds"` of search, or `"step"`.
      best_known: the best-known cost, or one for each run; the gap to it is drawn instead of the
        cost, on an axis that is logarithmic above one percent and linear below.
      ax: matplotlib axes to draw on; None for a new figure.

    Returns:
      The axes.

    Raises:
      ValueError: if an argument is out of range or the lengths differ.
      ImportError: if matplotlib is not installed.
    """
    if against not in ("seconds", "step"):
        raise ValueError(f"against is {against!r}, expected 'seconds' or 'step'")
    names = [None] * len(runs) if labels is None else labels
    references = best_known if isinstance(best_known, Sequence) else [best_known] * len(runs)
    if not len(names) == len(references) == len(runs):
        raise ValueError(
            f"there are {len(names)} labels and {len(references)} best-known costs, expected"
            f" {len(runs)} of each"
        )
    ax = _axes(ax)
    for run, name, reference in zip(runs, names, references, strict=True):
        history = run.history if isinstance(run, Result) else run
        best = np.array([record.best for record in history], float)
        if reference is not None:
            best = 100 * (best - reference) / abs(reference)
        x = [getattr(record, against) for record in history]
        ax.plot(x, best, drawstyle="steps-post", linewidth=1.5, label=name)
    ax.set_xlabel("seconds" if against == "seconds" else "steps of each search")
    ax.set_ylabel("best cost so far")
    if best_known is not None:
        _percent_axis(ax)
    ax.grid(alpha=0.3)
    if labels is not None:
        ax.legend(frameon=False)
    return ax


def detached_axes(size: tuple[float, float] = (6.4, 4.8), columns: int = 1) -> Any:
    """Returns axes on a new figure that pyplot does not know, for scripts that write files.

    Args:
      size: width and height in inches.
      columns: axes side by side; an array of them if there are several.

    Raises:
      ImportError: if matplotlib is not installed.
    """
    figure = _matplotlib("figure").Figure(figsize=size, dpi=150, layout="constrained")
    return figure.subplots(1, columns)


def _axes(ax: Any) -> Any:
    """Returns `ax`, or axes on a new figure of pyplot's, which notebooks show by themselves."""
    if ax is not None:
        return ax
    return _matplotlib("pyplot").subplots(layout="constrained")[1]


def _matplotlib(name: str) -> Any:
    """Returns a part of matplotlib."""
    return imported(f"matplotlib.{name}", "plots need matplotlib", "plot")


def _percent_axis(ax: Any) -> None:
    ax.set_ylabel("gap to the best known cost (%)")
    ax.set_yscale("symlog", linthresh=1.0)
    ax.set_ylim(bottom=-0.04)  # so that a line at 0 is seen
    ax.yaxis.set_major_formatter("{x:g}")
