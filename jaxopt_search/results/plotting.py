"""Pictures of solutions and runs. Needs matplotlib, the extra `plot`; imported when first used."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxopt_search.checks import check_permutation, check_places, imported, real_array
from jaxopt_search.results.types import History, Record, Result, StackedResult

__all__ = [
    "detached_axes",
    "plot_assignment",
    "plot_board",
    "plot_convergence",
    "plot_result",
    "plot_tour",
]

_MOST_PICTURES = 3  # of the solutions of several instances
_MOST_SQUARES = 100  # of a board along a side: beyond, they are not drawn


def plot_tour(coordinates: Any, tour: Any, ax: Any = None, *, is_open: bool = False) -> Any:
    """Draws the cities and the closed tour through them, or the path.

    Args:
      coordinates: [n, 2] x and y of each city.
      tour: [n] integers, the city at each position.
      ax: matplotlib axes to draw on; None for a new figure.
      is_open: whether it is a path, from the first city to the last.

    Returns:
      The axes.

    Raises:
      ValueError: if the shapes do not fit, or `tour` is no permutation.
      ImportError: if matplotlib is not installed.

    Example:
      >>> ax = plot_tour([[0, 0], [2, 0], [2, 1]], [0, 2, 1], ax=detached_axes())
      >>> ax.lines[0].get_xdata().tolist()  # the tour is closed
      [0, 2, 2, 0]
    """
    points = real_array(coordinates, "coordinates")
    check_places(points, "coordinates")
    tour = check_permutation(tour, len(points), "tour")
    ax = _axes(ax)
    route = points[tour if is_open else np.append(tour, tour[:1])]
    size = float(np.clip(40 / np.sqrt(max(len(tour), 1)), 0.5, 5))
    ax.plot(*route.T, color="tab:blue", linewidth=1.2, solid_joinstyle="round", zorder=1)
    ax.plot(*points.T, ".", color="black", markersize=size * 1.6, zorder=2)
    ax.set_aspect("equal")
    ax.margins(0.04)
    ax.set_xticks([])
    ax.set_yticks([])
    return ax


def plot_assignment(flow: Any, distance: Any, assignment: Any, ax: Any = None) -> Any:
    """Draws the cost between each two facilities of a QAP, where they are: a map of its sum.

    Args:
      flow: [n, n] from facility to facility.
      distance: [n, n] from location to location.
      assignment: [n] integers, the location of each facility.
      ax: matplotlib axes to draw on; None for a new figure.

    Returns:
      The axes.

    Raises:
      ValueError: if the shapes do not fit, or `assignment` is no permutation.
      ImportError: if matplotlib is not installed.

    Example:
      >>> ax = plot_assignment([[0, 5], [1, 0]], [[0, 3], [2, 0]], [1, 0], ax=detached_axes())
      >>> ax.images[0].get_array().tolist()
      [[0, 10], [3, 0]]
    """
    flow, distance = real_array(flow, "flow"), real_array(distance, "distance")
    if flow.ndim != 2 or flow.shape != flow.shape[::-1] or distance.shape != flow.shape:
        raise ValueError(
            f"flow and distance have shapes {flow.shape} and {distance.shape}, expected (n, n)"
        )
    assignment = check_permutation(assignment, len(flow), "assignment")
    ax = _axes(ax)
    ax.imshow(
        flow * distance[np.ix_(assignment, assignment)], cmap="Blues", interpolation="nearest"
    )
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(_matplotlib("ticker").MaxNLocator(integer=True))
        axis.set_label_text("facility")
    return ax


def plot_board(queens: Any, ax: Any = None) -> Any:
    """Draws queens on their board; of many, points only.

    Args:
      queens: [n] integers, a permutation: the column of the queen in each row.
      ax: matplotlib axes to draw on; None for a new figure.

    Returns:
      The axes.

    Raises:
      ValueError: if `queens` is no permutation.
      ImportError: if matplotlib is not installed.

    Example:
      >>> ax = plot_board([1, 3, 0, 2], ax=detached_axes())
      >>> ax.collections[0].get_offsets().tolist()  # columns and rows
      [[1.0, 0.0], [3.0, 1.0], [0.0, 2.0], [2.0, 3.0]]
    """
    queens = check_permutation(queens, np.size(queens), "queens")
    ax, n = _axes(ax), len(queens)
    places = np.stack([queens, np.arange(n)], axis=1)
    if n <= _MOST_SQUARES:
        squares = np.indices((n, n)).sum(axis=0) % 2
        ax.imshow(squares, cmap="Greys", vmin=0, vmax=4, interpolation="nearest")
        # In units of squares, so that queens fit into them on axes of any size.
        circles = _matplotlib("collections").EllipseCollection(
            0.7, 0.7, 0, units="xy", offsets=places, offset_transform=ax.transData, color="tab:blue"
        )
        ax.add_collection(circles)
    else:
        ax.plot(*places.T, ".", color="tab:blue", markersize=2, markeredgewidth=0)
    ax.set_aspect("equal")
    ax.set_xlim(-0.5, n - 0.5)
    ax.set_ylim(n - 0.5, -0.5)
    ax.set_xticks([])
    ax.set_yticks([])
    return ax


def plot_result(result: Result | StackedResult, ax: Any = None) -> Any:
    """Draws the solution of a result, if there is a picture of its kind, and the course of the run.

    Of several instances, the first three solutions, and the course of the mean cost.

    Of a QAP whose numbers the device has in other units, without what all assignments share, or
    with the opposite sign, the map shows those numbers.

    Args:
      ax: axes for the solution, or for the course if there is no picture; or a sequence for the
        solutions and then the course; None for a new figure.

    Returns:
      An array of matplotlib's axes, those that were drawn on.

    Raises:
      ImportError: if matplotlib is not installed.

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.tsp_from_coords([[0, 0], [2, 2], [0, 2], [2, 0], [1, 3]])
      >>> search = js.simulated_annealing(js.Relocate(), 1.0)
      >>> result = js.solve(problem, search, 0, num_searches=4, max_steps=50)
      >>> tour, course = plot_result(result, detached_axes(columns=2))
      >>> course.get_xlabel(), course.get_ylabel()
      ('seconds', 'best cost so far')
    """
    if isinstance(result, Result):
        problem, best_known = result.problem, None
        if problem is not None and problem.host is not None:
            best_known = problem.host.best_known or None  # of 0 there is no gap
        draws = [] if problem is None else [problem.picture(result.x)]
    else:
        shown, best_known = range(min(len(result.x), _MOST_PICTURES)), None
        draws = [result.picture(i, result.x[i]) for i in shown] if result.picture else []
    draws = [draw for draw in draws if draw is not None]
    axes = list(ax) if np.iterable(ax) else [ax]
    if draws and ax is None:
        number = len(draws) + 1
        size = (5.5 * number, 4.8)
        axes = _matplotlib("pyplot").subplots(1, number, figsize=size, layout="constrained")[1]
    drawn = [draw(one) for draw, one in zip(draws, axes, strict=False)]
    if len(axes) > len(draws):
        course = axes[len(draws)]
        drawn.append(plot_convergence(result.history, best_known=best_known, ax=course))
        if isinstance(result, StackedResult):
            drawn[-1].set_ylabel("mean of the best costs so far")
    return np.array(drawn)


def plot_convergence(
    runs: Result | History | Sequence[Result | Sequence[Record]],
    *,
    labels: Sequence[str] | None = None,
    against: str = "seconds",
    best_known: float | Sequence[float] | None = None,
    ax: Any = None,
) -> Any:
    """Draws the best cost so far of one or several runs, or its gap.

    Args:
      runs: a result of `solve`, or several, or their histories.
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

    Example:
      >>> course = [Record(0, 0.0, 120, 0.5), Record(10, 0.2, 105, 0.3)]
      >>> ax = plot_convergence([course], best_known=100, ax=detached_axes())
      >>> ax.lines[0].get_xdata().tolist(), ax.lines[0].get_ydata().tolist()
      ([0.0, 0.2], [20.0, 5.0])
    """
    if against not in ("seconds", "step"):
        raise ValueError(f"against is {against!r}, expected 'seconds' or 'step'")
    runs = [runs] if isinstance(runs, Result | History) else runs
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
        marker = "." if len(x) == 1 else None  # a line of one point is not seen
        ax.plot(x, best, drawstyle="steps-post", linewidth=1.5, label=name, marker=marker)
    ax.set_xlabel("seconds" if against == "seconds" else "steps of each search")
    ax.set_ylabel("best cost so far")
    if best_known is not None:
        ax.set_ylabel("gap to the best known cost (%)")
        ax.set_yscale("symlog", linthresh=1.0)
        ax.set_ylim(bottom=-0.04)  # so that a line at 0 is seen
        ax.yaxis.set_major_formatter("{x:g}")
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

    Example:
      >>> axes = detached_axes((8.0, 3.0), columns=2)
      >>> axes.shape, axes[0].figure.get_size_inches().tolist()
      ((2,), [8.0, 3.0])
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
    return imported(f"matplotlib.{name}", "plots need matplotlib")
