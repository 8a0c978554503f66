"""Solutions and pictures to files, which are there as a whole or not at all."""

import pathlib
from typing import Any

import numpy as np

from jaxopt_search.files import beside, whole
from jaxopt_search.results import plotting
from jaxopt_search.results.types import cost_text

TABLES = (".txt", ".csv", ".npy")
OF_KIND = {"tsp": (*TABLES, ".tour"), "qap": (*TABLES, ".sln"), "queens": TABLES}
"""The suffixes of files for the solutions of each kind of problem."""
PICTURES = (".png", ".svg", ".pdf")


def check_suffix(option: str, path: pathlib.Path, known: tuple[str, ...]) -> None:
    """Raises `ValueError` unless a path has a known suffix."""
    if path.suffix.lower() not in known:
        found = f"the suffix {path.suffix!r}" if path.suffix else "no suffix"
        raise ValueError(f"{option} {path}: {found}, expected one of {', '.join(known)}")


def check_place(option: str, path: pathlib.Path) -> None:
    """Refuses a path to which no file can be written, by writing an empty one beside it.

    Raises:
      ValueError: with the reason.
    """
    try:
        if path.is_dir():
            raise IsADirectoryError(0, "is a folder")
        with beside(path):
            pass
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ValueError(f"{option} {path}: cannot be written: {reason}") from error


def write_solution(path: pathlib.Path, kind: str, x: np.ndarray, cost: float) -> None:
    """Writes a tour or an assignment in the format of the suffix.

    Args:
      path: ends in one of `OF_KIND[kind]`.
      kind: `"tsp"` or `"qap"`.
      x: [n] integers from 0.
      cost: an integer for `.sln`.
    """
    numbers = x.tolist()
    match path.suffix.lower():
        case ".npy":
            return _write(path, x)
        case ".csv":
            header = "position,city" if kind == "tsp" else "facility,location"
            lines = [header, *(f"{i},{one}" for i, one in enumerate(numbers))]
        case ".tour":
            ids = [one + 1 for one in numbers]
            head = [f"NAME : {path.stem}", f"COMMENT : length {cost}", "TYPE : TOUR"]
            lines = [*head, f"DIMENSION : {len(ids)}", "TOUR_SECTION", *ids, -1, "EOF"]
        case ".sln":
            lines = [f"{len(numbers)} {cost}", " ".join(str(one + 1) for one in numbers)]
        case _:
            lines = numbers
    return _write(path, lines)


def write_placements(path: pathlib.Path, placements: np.ndarray) -> None:
    """Writes placements of queens, [B, n]: one a line, or as an array."""
    suffix = path.suffix.lower()
    if suffix == ".npy":
        return _write(path, placements)
    between = "," if suffix == ".csv" else " "
    return _write(path, [between.join(map(str, one)) for one in placements.tolist()])


def _write(path: pathlib.Path, found: Any) -> None:
    """Writes an array, or the lines of a list."""
    with whole(path) as file:
        if isinstance(found, np.ndarray):
            np.save(file, found, allow_pickle=False)
        else:
            file.write("".join(f"{line}\n" for line in found).encode())


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
