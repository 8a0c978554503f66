"""Pictures of solutions and runs. Needs matplotlib, the extra `plot`; imported when first used."""

import bisect
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxopt_search.checks import check_option, check_permutation, check_places, imported, real_array
from jaxopt_search.results import History, Record, Result, cost_text

__all__ = [
    "animate",
    "detached_axes",
    "plot_assignment",
    "plot_board",
    "plot_convergence",
    "plot_graph",
    "plot_result",
    "plot_tour",
]

# Okabe and Ito's, without yellow and black: told apart by all readers, on light and dark pages.
_COLORS = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"
_BLUE, _RED = _COLORS[0], _COLORS[-1]
_MOST_SQUARES = 100  # of a board along a side: beyond, they are not drawn
_MOST_NUMBERS = 50  # of vertices: beyond, they are not numbered
_MOST_POINTS = 30  # of a course: beyond, they are not marked
_MOST_PERCENT = 10.0  # of a gap: above, its axis is logarithmic
_HELD = 12  # frames for which an animation shows its end


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
    tour = check_permutation(tour, "tour", len(points))
    ax = _axes(ax)
    route = points[tour if is_open else np.append(tour, tour[:1])]
    size = float(np.clip(40 / np.sqrt(max(len(tour), 1)), 0.5, 5))
    ax.plot(*route.T, color=_BLUE, linewidth=1.2, solid_joinstyle="round", zorder=1)
    ax.plot(*points.T, ".", color=_ink(ax), markersize=size * 1.6, zorder=2)
    ax.margins(0.04)
    kind = "Path" if is_open else "Tour"
    return _titled(ax, f"{kind} through {len(tour):,} cities")


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
    assignment = check_permutation(assignment, "assignment", len(flow))
    ax = _axes(ax)
    costs = flow * distance[np.ix_(assignment, assignment)]
    image = ax.imshow(costs, cmap="Blues", interpolation="nearest")
    bar = ax.figure.colorbar(image, cax=ax.inset_axes((1.02, 0, 0.04, 1)))
    bar.set_label("flow x distance")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(_matplotlib("ticker").MaxNLocator(integer=True))
        axis.set_label_text("facility")
    ax.set_title(f"Cost between each two of {len(flow)} facilities")
    return ax


def plot_board(queens: Any, ax: Any = None, *, attacks: bool = False) -> Any:
    """Draws queens on their board; of more than 100, without its squares.

    Args:
      queens: [n] integers, a permutation: the column of the queen in each row.
      ax: matplotlib axes to draw on; None for a new figure.
      attacks: whether lines join queens that attack one another, if none stands between them.

    Returns:
      The axes.

    Raises:
      ValueError: if `queens` is no permutation.
      ImportError: if matplotlib is not installed.

    Example:
      >>> ax = plot_board([1, 3, 0, 2], ax=detached_axes())
      >>> ax.collections[0].get_offsets().tolist()  # columns and rows
      [[1.0, 0.0], [3.0, 1.0], [0.0, 2.0], [2.0, 3.0]]
      >>> ax = plot_board([0, 1, 2, 3], ax=detached_axes(), attacks=True)
      >>> len(ax.collections[1].get_segments()), ax.get_title()
      (3, '4 queens, 6 attacking pairs')
    """
    queens = check_permutation(queens, "queens", np.size(queens))
    ax, n = _axes(ax), len(queens)
    places, collections = np.stack([queens, np.arange(n)], axis=1), _matplotlib("collections")
    if n <= _MOST_SQUARES:
        squares = np.indices((n, n)).sum(axis=0) % 2
        ax.imshow(squares, cmap="Greys", vmin=0, vmax=4, interpolation="nearest")
    # In units of squares, so that queens fit into them on axes of any size; many are drawn larger.
    size = max(0.7, min(n / 100, n**0.5 / 3))
    kind = functools.partial(collections.EllipseCollection, units="xy", color=_BLUE)
    ax.add_collection(kind(size, size, 0, offsets=places, offset_transform=ax.transData))
    title = f"{n:,} queens"
    if attacks:
        segments, number = [], 0
        for diagonals in (places.sum(axis=1), places[:, 0] - places[:, 1]):
            order = np.argsort(diagonals, kind="stable")
            (ends,) = np.nonzero(np.diff(diagonals[order]) == 0)
            segments.extend(np.stack([places[order[ends]], places[order[ends + 1]]], axis=1))
            sizes = np.unique(diagonals, return_counts=True)[1]
            number += int((sizes * (sizes - 1)).sum()) // 2
        ax.add_collection(collections.LineCollection(segments, color=_RED, linewidth=1.5))
        title += f", {number:,} attacking pairs"
    ax.set_xlim(-0.5, n - 0.5)
    ax.set_ylim(n - 0.5, -0.5)
    return _titled(ax, title)


def plot_graph(edges: Any, values: Any, ax: Any = None, *, coords: Any = None) -> Any:
    """Draws a graph whose vertices have values, such as colors or sides of a cut.

    Edges that join equal values are dark, the others light.

    Args:
      edges: [m, 2] integers, pairs of vertices.
      values: [n] integers, of each vertex.
      ax: matplotlib axes to draw on; None for a new figure.
      coords: [n, 2] x and y of each vertex; None for a circle, on which equal values are neighbors.

    Returns:
      The axes.

    Raises:
      ValueError: if the shapes do not fit.
      ImportError: if matplotlib is not installed.

    Example:
      >>> square = [[0, 1], [1, 2], [2, 3], [3, 0]]
      >>> plot_graph(square, [0, 1, 0, 0], detached_axes()).get_title()
      '4 vertices, 2 values; 2 of 4 edges join equal ones'
    """
    values, edges = np.asarray(values), np.asarray(edges).reshape(-1, 2)
    n = len(values)
    if edges.size and not 0 <= edges.min() <= edges.max() < n:
        raise ValueError(
            f"edges have vertices {edges.min()} to {edges.max()}, expected 0 to {n - 1}"
        )
    if coords is None:
        turns = 2 * np.pi * np.argsort(np.argsort(values, kind="stable")) / max(n, 1)
        coords = np.stack([np.sin(turns), np.cos(turns)], axis=1)
    points = real_array(coords, "coords")
    check_places(points, "coords")
    if len(points) != n:
        raise ValueError(f"coords have {len(points)} places, expected {n}")
    ax = _axes(ax)
    kinds, places = np.unique(values, return_inverse=True)
    is_equal = values[edges[:, 0]] == values[edges[:, 1]]
    for which, alpha, width in ((~is_equal, 0.25, 0.6), (is_equal, 0.9, 1.2)):
        lines = _matplotlib("collections").LineCollection(
            points[edges[which]], color=_ink(ax), alpha=alpha, linewidth=width, zorder=1
        )
        ax.add_collection(lines)
    colors = _matplotlib("colors").to_rgba_array(_COLORS)
    if len(kinds) > len(_COLORS):
        colors = _matplotlib("cm").ScalarMappable(cmap="turbo").to_rgba(range(len(kinds)))
    is_light = colors @ (0.3, 0.6, 0.1, 0.0) > 0.6
    size = float(np.clip(4000 / max(n, 1), 6, 180))
    ax.scatter(*points.T, size, colors[places], edgecolors="white", zorder=2)
    for kind, point in zip(places, points, strict=True):
        if n <= _MOST_NUMBERS:  # told apart without colors
            ink = {"color": "black" if is_light[kind] else "white", "fontsize": 7}
            ax.annotate(str(kinds[kind]), point, ha="center", va="center", **ink)
    ax.margins(0.06)
    about = f"{is_equal.sum():,} of {len(edges):,} edges join equal ones"
    return _titled(ax, f"{n:,} vertices, {len(kinds)} values; {about}")


def plot_result(result: Result, ax: Any = None, *, coords: Any = None) -> Any:
    """Draws the solution of a result, if there is a picture of its kind, and the course of the run.

    Of a QAP whose numbers the device has in other units, or with the opposite sign, the map shows
    those numbers.

    Args:
      ax: axes for the solution, or for the course if there is no picture; or a sequence for the
        solution and then the course; None for a new figure.
      coords: as in `Result.plot`.

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
      >>> tour.get_title(), course.get_xlabel(), course.get_ylabel()
      ('Tour through 5 cities\\ncost 8.828427125', 'seconds', 'best cost so far')
    """
    problem, axes, best_known = result.problem, list(ax) if np.iterable(ax) else [ax], None
    if problem is not None and problem.host is not None:
        best_known = problem.host.best_known or None  # of 0 there is no gap
        best_known = -best_known if best_known and result.is_maximum else best_known
    draw = _picture(problem, result.x, coords)
    if draw is None:
        return np.array([plot_convergence(result, best_known=best_known, ax=axes[0])])
    if ax is None:
        axes = _matplotlib("pyplot").subplots(1, 2, figsize=(11, 4.8), layout="constrained")[1]
    draw(axes[0])
    title = f"{axes[0].get_title()}\ncost {cost_text(result.fun, result.gap)}"
    axes[0].set_title(title.lstrip())
    if len(axes) > 1:
        plot_convergence(result, best_known=best_known, ax=axes[1])
    return np.array(axes[:2])


def animate(
    problem: Any,
    runs: Sequence[Sequence[Any]],
    *,
    labels: Sequence[str] | None = None,
    against: str = "step",
    coords: Any = None,
    num_frames: int = 60,
) -> Any:
    """Returns an animation of runs on one problem: their best solutions, and how costs fell.

    A callback keeps what is shown: `callback=reports.append`. There is a frame for each moment at
    which one of the runs became better or, of many, for some of them.

    Args:
      problem: with a picture of its solutions, as tours of cities, boards and graphs have one.
      runs: the reports of each run.
      labels: a name for each run.
      against: `"step"`, or `"seconds"` of search.
      coords: as in `Result.plot`.
      num_frames: the most frames.

    Returns:
      A `matplotlib.animation.FuncAnimation`. `save("run.gif", "pillow")` writes it; in notebooks,
      `IPython.display.HTML(animation.to_jshtml())` shows it.

    Raises:
      ValueError: if a run has no reports, or there is no picture.
      ImportError: if matplotlib is not installed.

    Example:
      >>> import pathlib, tempfile, jaxopt_search as js
      >>> problem, reports = js.nqueens(6), []
      >>> search = js.min_conflicts(js.QueenSwap(), 0.1)
      >>> limits = {"max_steps": 40, "chunk_steps": 5}
      >>> result = js.solve(problem, search, 0, num_searches=1, callback=reports.append, **limits)
      >>> path = pathlib.Path(tempfile.mkdtemp(), "run.gif")
      >>> animate(problem, [reports]).save(path, "pillow")
      >>> path.read_bytes()[:3]
      b'GIF'
    """
    runs = list(runs)
    if not runs or not all(map(len, runs)):
        raise ValueError("runs have no reports, expected callback=reports.append in each call")
    picture: Any = functools.partial(_picture, problem, coords=coords)
    if picture(runs[0][-1].x) is None:
        raise ValueError(f"problem is a {type(problem).__name__}, expected one with a picture")
    lines = []
    for i, run in enumerate(runs):
        pairs = itertools.pairwise(run)
        better = [after for before, after in pairs if after.fun != before.fun]
        runs[i] = [run[0], *better, run[-1]]
        lines.append([Record(one.step, one.seconds, one.fun, one.acceptance) for one in runs[i]])
    *pictures, course = detached_axes((3.2 * len(runs) + 4.4, 3.6), columns=len(runs) + 1, dpi=80)
    plot_convergence(lines, labels=labels, against=against, ax=course)
    when = [[getattr(line, against) for line in run] for run in lines]
    moments = np.unique(np.concatenate(when))
    picked = np.linspace(0, len(moments) - 1, min(max(num_frames, 2), len(moments)))
    frames = moments[picked.astype(int)].tolist()
    now = course.axvline(frames[0], color=_ink(course), linewidth=1)
    names = [""] * len(runs) if labels is None else [f"{label}\n" for label in labels]

    def draw(moment: float) -> None:
        now.set_xdata([moment, moment])
        for ax, run, times, name in zip(pictures, runs, when, names, strict=True):
            report = run[max(bisect.bisect_right(times, moment) - 1, 0)]
            ax.clear()
            picture(report.x)(ax)
            ax.set_title(f"{name}cost {cost_text(report.fun, report.gap)}")

    animation = _matplotlib("animation").FuncAnimation
    return animation(course.figure, draw, frames + frames[-1:] * _HELD, interval=150)


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
    check_option("against", against, ("seconds", "step"))
    runs = [runs] if isinstance(runs, Result | History) else runs
    names = [None] * len(runs) if labels is None else labels
    references = best_known if isinstance(best_known, Sequence) else [best_known] * len(runs)
    if not len(names) == len(references) == len(runs):
        raise ValueError(
            f"there are {len(names)} labels and {len(references)} best-known costs, expected"
            f" {len(runs)} of each"
        )
    ax, tops = _axes(ax), [0.0]
    for number, (run, name, reference) in enumerate(zip(runs, names, references, strict=True)):
        history = run.history if isinstance(run, Result) else run
        best = np.array([record.best for record in history], float)
        if reference is not None:
            best = 100 * (best - reference) / abs(reference)
            best = -best if isinstance(run, Result) and run.is_maximum else best
            tops.append(float(best[np.isfinite(best)].max(initial=0)))
        # A later line is thinner, so that the one below is seen; points tell where there are few.
        ax.plot(
            [getattr(record, against) for record in history],
            best,
            color=_COLORS[number % len(_COLORS)],
            drawstyle="steps-post",
            label=name,
            linestyle=("-", "--", ":")[number // len(_COLORS) % 3],
            linewidth=1.5 + max(min(len(runs), 4) - 1 - number, 0),
            marker="." if len(history) <= _MOST_POINTS else None,
        )
    ax.set_title("Course of the run" if len(runs) == 1 else f"Course of {len(runs)} runs")
    ax.set_xlabel("seconds" if against == "seconds" else "steps")
    ax.set_ylabel("best cost so far")
    if best_known is not None:
        ax.set_ylabel("gap to the best known cost (%)")
        if max(tops) > _MOST_PERCENT:
            ax.set_yscale("symlog", linthresh=1.0)
            ax.yaxis.set_major_formatter("{x:g}")
            tops = [1.0]
        ax.set_ylim(bottom=-0.04 * max(tops))  # so that a line at 0 is seen
    ax.grid(alpha=0.3)
    if labels is not None:
        ax.legend(frameon=False, loc="upper right")  # as costs fall
    return ax


def detached_axes(
    size: tuple[float, float] = (6.4, 4.8), columns: int = 1, dpi: float = 150
) -> Any:
    """Returns axes on a new figure that pyplot does not know, for scripts that write files.

    Args:
      size: width and height in inches.
      columns: axes side by side; an array of them if there are several.
      dpi: pixels per inch.

    Raises:
      ImportError: if matplotlib is not installed.

    Example:
      >>> axes = detached_axes((8.0, 3.0), columns=2)
      >>> axes.shape, axes[0].figure.get_size_inches().tolist()
      ((2,), [8.0, 3.0])
    """
    figure = _matplotlib("figure").Figure(figsize=size, dpi=dpi, layout="constrained")
    return figure.subplots(1, columns)


def _picture(problem: Any, solution: Any, coords: Any) -> Callable[[Any], Any] | None:
    """Returns what draws a solution, at places if some are given; None if nothing does."""
    if problem is None:  # of a result that was loaded
        return None
    return problem.picture(solution, **({} if coords is None else {"coords": coords}))


def _titled(ax: Any, title: str) -> Any:
    """Returns axes of a map, with a title and without ticks."""
    ax.set_aspect("equal")
    ax.set(title=title, xticks=[], yticks=[])
    return ax


def _ink(ax: Any) -> Any:
    """Returns the color of text, which is light in a dark style."""
    return ax.title.get_color()


def _axes(ax: Any) -> Any:
    """Returns `ax`, or axes on a new figure of pyplot's, which notebooks show by themselves."""
    if ax is not None:
        return ax
    return _matplotlib("pyplot").subplots(layout="constrained")[1]


def _matplotlib(name: str) -> Any:
    """Returns a part of matplotlib."""
    return imported(f"matplotlib.{name}", "plots need matplotlib")
