"""`--plot`: pictures of solutions, by matplotlib."""

import pathlib
from typing import Any

from jaxopt_search.command import files
from jaxopt_search.files import whole
from jaxopt_search.results import plotting
from jaxopt_search.results.types import cost_text

SUFFIXES = (".png", ".svg", ".pdf")


def check(path: pathlib.Path | None) -> None:
    """Refuses a path that cannot become a picture.

    Raises:
      ValueError: for its suffix or its folder.
      ImportError: if matplotlib is not installed; it says what installs it.
    """
    if path is not None:
        files.check_suffix("--plot", path, SUFFIXES)
        files.check_place("--plot", path)
        plotting.detached_axes()


def draw_run(path: pathlib.Path, result: Any, coordinates: Any) -> None:
    """Writes a picture of how a run went, beside the tour if there are coordinates."""
    if coordinates is None:
        axes = last = plotting.detached_axes()
    else:
        axes, last = plotting.detached_axes((11, 5), columns=2)
        plotting.plot_tour(coordinates, result.x, axes)
    axes.set_title(cost_text(result.fun, result.gap))
    plotting.plot_convergence([result], ax=last)
    _save(path, axes.figure)


def draw_board(path: pathlib.Path, queens: Any) -> None:
    """Writes a picture of a placement, [n] integers."""
    _save(path, plotting.plot_board(queens, plotting.detached_axes((6, 6))).figure)


def _save(path: pathlib.Path, figure: Any) -> None:
    with whole(path) as file:
        figure.savefig(file, format=path.suffix.lower()[1:])
