"""What a run returns, and how it ended: results that can be read and drawn."""

import csv
import enum
import io
import math
import os
import pathlib
from typing import Any, NamedTuple

import numpy as np

from jaxopt_search.files import whole

__all__ = ["History", "Hit", "QueensResult", "Record", "Result", "StackedResult", "Status"]

_WIDTH = 12  # of the names in a summary
_SHOWN = 6  # entries of a solution, from its beginning
_BOUNDED = 200  # entries of a solution up to which a summary computes a bound
_FEW_MOVES, _FEW_MOVES_OF_ALL = 50, 800  # of a search, or all, for each entry: so few help little


class Status(enum.IntEnum):
    """How a run ended, or that it has not."""

    RUNNING = 0
    TARGET = 1
    MAX_STEPS = 2
    PATIENCE = 3
    MAX_SECONDS = 4
    CALLBACK = 5
    INTERRUPTED = 6
    LOCAL_OPTIMA = 7
    EXHAUSTED = 8


class Hit(NamedTuple):
    """The first finisher: which search reached the target first, after how many steps."""

    step: int
    search: int


class Record(NamedTuple):
    """One line of a run's history."""

    step: int
    seconds: float
    """Of search, as `max_seconds` counts them."""
    best: int | float
    acceptance: float
    """Accepted moves per search and step since the line before."""


class History(list[Record]):
    """The lines of a run, in the order of its steps."""

    def arrays(self) -> dict[str, np.ndarray]:
        """Returns each field of the lines as an array, [R]: int64 steps, and the others float64."""
        dtypes = (np.int64, np.float64, np.float64, np.float64)
        columns = list(zip(*self, strict=True)) or [()] * len(Record._fields)
        return dict(zip(Record._fields, map(np.array, columns, dtypes), strict=True))

    def to_csv(self, path: str | os.PathLike) -> None:
        """Writes the lines as comma-separated values, below a line with the names of the fields.

        Raises:
          OSError: if the file cannot be written.
        """
        lines = io.StringIO()
        csv.writer(lines).writerows([Record._fields, *self])
        with whole(pathlib.Path(path)) as file:
            file.write(lines.getvalue().encode())


class Result(NamedTuple):
    """What `solve` returns. The first seven names are as in SciPy's `OptimizeResult`.

    `print(result)` is a summary. What it was made with comes along, so that a run can be continued,
    changed or made again: `js.solve(result.problem, result.search, exchange=result.exchange,
    state=result.state, ...)`.

    Attributes:
      x: the best solution; for permutation problems [n] int32.
      fun: its cost, recomputed on the host: exactly, as an `int`, for integer problems.
      success: `fun` meets the target or, where none was given, the run made steps and was not
        interrupted; never with an infinite cost. Where the target is only that the instance's
        proven optimum ends the run (`"optimum"`), it counts as none.
      status: how the run ended.
      message: the same as a sentence, with notes on the instance.
      nit: steps made by each search.
      nfev: moves priced by all searches together.
      gap: `(fun - best_known) / best_known`; None where no best-known cost is given.
      first_hit: the first search to reach the target; None if none did. Of float costs, the step
        at which running costs, which drift, met it.
      feasible: whether `x` uses nothing forbidden; `fun` is infinite if it does.
      history: one `Record` per chunk, thinned to `history_size` lines; a list that also gives
        arrays and CSV (`History`).
      costs: [num_searches] the best cost of each search.
      solutions: [num_searches, ...] the best solution of each search.
      ancestors: [num_searches] the search from whose start each one's solution descends, by way of
        exchanges; `np.bincount` of it gives the sizes of families.
      state: the `RunState` to resume from.
      compile_seconds: seconds from the call of `solve` until the first step could be made.
      elapsed: seconds from the call to the end: `compile_seconds`, the search, and reading it out.
      env: versions, devices, and the implementation that ran.
      problem: what was minimized; of the one-line solvers, with room for more (see `padding`).
      search: the algorithm, as it was at the end.
      exchange: what searches learned from one another at the end, or None.
      is_maximum: whether the opposite of the problem's cost is given, which is as high as possible.
    """

    x: np.ndarray
    fun: int | float
    success: bool
    status: Status
    message: str
    nit: int
    nfev: int
    gap: float | None
    first_hit: Hit | None
    feasible: bool
    history: History
    costs: np.ndarray
    solutions: Any
    ancestors: np.ndarray
    state: Any
    compile_seconds: float
    elapsed: float
    env: dict[str, str]
    problem: Any = None
    search: Any = None
    exchange: Any = None
    is_maximum: bool = False

    @property
    def bound(self) -> int | float | None:
        """What no solution costs less than, or of a maximum, more; None where that is not known.

        It is computed when asked for, which takes up to some seconds: of tours through at most 1000
        cities, assignments of at most 200 facilities, and where `problem.lower_bound` says so.
        """
        bound = None if self.problem is None else self.problem.lower_bound()
        return bound if bound is None or not self.is_maximum else 0 - bound

    @property
    def col_ind(self) -> np.ndarray:
        """The same as `x`, by the name that SciPy's `quadratic_assignment` has for it."""
        return self.x

    def plot(self, ax: Any = None, *, coords: Any = None) -> Any:
        """Draws the solution, if there is a picture of its kind, and the course of the run.

        Tours of cities with coordinates, assignments of a QAP, queens, colorings and cuts of graphs
        have pictures, and what has a method `picture`, such as a problem of your own.

        Args:
          ax: matplotlib axes for the solution alone, or a sequence of two; None for a new figure.
          coords: [n, 2] x and y of cities or vertices, where the problem has none: of a tour by a
            matrix, or a graph.

        Returns:
          [1] or [2] of matplotlib's axes, those that were drawn on.

        Raises:
          ImportError: if matplotlib is not installed.
        """
        from jaxopt_search.results import plotting

        return plotting.plot_result(self, ax, coords=coords)

    def animate(self, reports: Any, **options: Any) -> Any:
        """Returns an animation of the run: the best solution, and how its cost fell.

        Args:
          reports: what a callback kept of the run: `callback=reports.append`.
          options: the other arguments of `plotting.animate`.

        Returns:
          A `matplotlib.animation.FuncAnimation`, for `save("run.gif", "pillow")`.

        Raises:
          ValueError: if there are no reports, or no picture of such solutions.
          ImportError: if matplotlib is not installed.
        """
        from jaxopt_search.results import plotting

        return plotting.animate(self.problem, [reports], **options)

    def __repr__(self) -> str:
        return _line(self, "fun", "gap", "success", "status", "nit", "x")

    def __str__(self) -> str:
        hit, number = self.first_hit, len(self.costs)
        size = np.size(self.x) if isinstance(self.x, np.ndarray) else 1
        is_short = self.nfev < _FEW_MOVES * number * size
        few = "; few: more time would help" if is_short else ""
        best = self.costs.max() if self.is_maximum else self.costs.min()
        is_float = self.costs.dtype.kind == "f"
        agreeing = (np.isclose(self.costs, best, atol=0) if is_float else self.costs == best).sum()
        course = [
            ("steps", f"{_large(self.nit)} of each of {number} searches{few}"),
            ("agreement", f"{agreeing} of {number} searches end at this cost"),
            ("priced", f"{_large(self.nfev)} moves"),
            ("target met", hit and f"by search {hit.search}, after {_large(hit.step)}"),
        ]
        return _summary(
            ("cost", cost_text(self.fun, self.gap)),
            ("bound", self._bound_text() if size <= _BOUNDED and self.gap is None else None),
            ("success", "yes" if self.success else "no"),
            ("ended", self.message),
            *(course if self.nit else []),
            *_circumstances(self),
            ("solution", _solution(self.x)),
        )

    def _bound_text(self) -> str | None:
        bound = self.bound
        if bound is None or not math.isfinite(self.fun):
            return None
        side = "below" if self.is_maximum else "above"
        above = f"; the cost is {abs(self.fun - bound) / abs(bound):.2%} {side} it" if bound else ""
        return f"{_number(bound)}{above}"


class StackedResult(NamedTuple):
    """What `solve_tsp` and `solve_qap` return for B instances at once.

    Attributes:
      x: [B, n] int32, the best solution of each instance; a list of arrays [n] int32 if their sizes
        differ.
      fun: [B] int64 or float64, their costs, recomputed on the host.
      costs: [B, num_searches] the best cost of each search, as the device counts.
      history: as in `Result`, of the mean of the best costs.
      success: whether steps were made, if there are any to make, and the run was not interrupted.
      status: how the runs ended, all together.
      nit: steps made by each search.
      nfev: moves priced by all searches together.
      compile_seconds: as in `Result`.
      elapsed: as in `Result`.
      env: as in `Result`.
    """

    x: np.ndarray | list[np.ndarray]
    fun: np.ndarray
    costs: np.ndarray
    history: History
    success: bool
    status: Status
    nit: int
    nfev: int
    compile_seconds: float
    elapsed: float
    env: dict[str, str]

    def plot(self, ax: Any = None) -> Any:
        """Draws the course of the mean cost; of a tour, see `plotting.plot_tour`.

        Args:
          ax: matplotlib axes; None for a new figure.

        Returns:
          [1] of matplotlib's axes.

        Raises:
          ImportError: if matplotlib is not installed.
        """
        from jaxopt_search.results import plotting

        ax = plotting.plot_convergence(self.history, ax=ax)
        ax.set_ylabel("mean of the best costs so far")
        return np.array([ax])

    def __repr__(self) -> str:
        return _line(self, "fun", "success", "status", "nit", "x")

    def __str__(self) -> str:
        fun, is_short = self.fun, self.nfev < _FEW_MOVES_OF_ALL * sum(map(len, self.x))
        few = "; few: more time would help" if is_short else ""
        costs = fun.tolist()  # which may be beyond int64
        spread = f", from {_number(min(costs))} to {_number(max(costs))}"
        return _summary(
            ("instances", str(len(fun))),
            ("mean cost", _number(sum(costs) / len(costs)) + spread),
            ("success", "yes" if self.success else "no"),
            ("ended", self.status.name),
            ("steps", f"{_large(self.nit)} of each search{few}"),
            ("priced", f"{_large(self.nfev)} moves"),
            *_circumstances(self),
        )


class QueensResult(NamedTuple):
    """What `solve_nqueens` returns.

    Attributes:
      solutions: [B, n] different valid placements, in the order in which they were found; int16 for
        n below 2**15, else int32.
      success: whether there are as many as were asked for.
      status: `TARGET` if so, else what ended the run: `EXHAUSTED` if there are no more.
      message: the same as a sentence.
      num_found: valid placements that were found, those found again included.
      nit: steps made by each search; of repair, the most rounds that each placement may take.
      compile_seconds: as in `Result`.
      elapsed: as in `Result`.
      env: versions, devices, and the implementation that ran.
    """

    solutions: np.ndarray
    success: bool
    status: Status
    message: str
    num_found: int
    nit: int
    compile_seconds: float
    elapsed: float
    env: dict[str, str]

    def plot(self, ax: Any = None) -> Any:
        """Draws the board of the first placement.

        Args:
          ax: matplotlib axes; None for a new figure.

        Returns:
          [1] of matplotlib's axes.

        Raises:
          ValueError: if there is no placement.
          ImportError: if matplotlib is not installed.
        """
        from jaxopt_search.results import plotting

        if not len(self.solutions):
            raise ValueError("solutions has none, expected at least one to draw")
        return np.array([plotting.plot_board(self.solutions[0], ax)])

    def __repr__(self) -> str:
        return _line(self, "solutions", "success", "status", "num_found")

    def __str__(self) -> str:
        number, n = self.solutions.shape
        return _summary(
            ("placements", f"{number:,} different valid ones of {n:,} queens"),
            ("success", "yes" if self.success else "no"),
            ("ended", self.message),
            ("found", f"{self.num_found:,}, those found again included"),
            *_circumstances(self),
            ("first", _solution(self.solutions[0]) if number else None),
        )


# Results as text: one line, or a summary of about ten.


def _line(result: Any, *names: str) -> str:
    """Returns what stands for a result in one line; fields that are None are left out."""
    values = ((name, getattr(result, name)) for name in names)
    shown = (f"{name}={_short(value)}" for name, value in values if value is not None)
    return f"{type(result).__name__}({', '.join(shown)})"


def _summary(*rows: tuple[str, str | None]) -> str:
    """Returns one line for each name and text; those without a text are left out."""
    return "\n".join(f"{name:<{_WIDTH}}{text}" for name, text in rows if text is not None)


def _number(value: float) -> str:
    """Returns a cost: an integer with all its digits, a float with ten."""
    return f"{value:,}" if isinstance(value, int) else f"{value:.10g}"


def cost_text(value: float, gap: float | None) -> str:
    """Returns a cost, with its gap where that is known."""
    distance = "" if gap is None else f" ({gap:.3%} from the best known)"
    return _number(value) + distance


def _large(count: int) -> str:
    """Returns a count: below a million with all its digits."""
    return f"{count:,}" if count < 10**6 else f"{count:.2e}"


def _solution(x: Any) -> str:
    """Returns the beginning of a solution and its shape; of one that is no array, its type."""
    if not isinstance(x, np.ndarray):
        return f"a {type(x).__name__}"
    if x.ndim != 1 or x.size <= _SHOWN:
        return str(x.tolist()) if x.size <= _SHOWN else f"an array of shape {x.shape}"
    return f"{str(x[:_SHOWN].tolist())[:-1]}, ...], {x.size} entries"


def _circumstances(result: Any) -> list[tuple[str, str]]:
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
        return _solution(value) if value.ndim == 1 else f"<array {value.shape}>"
    if isinstance(value, list):
        return f"<{len(value)} arrays>"
    return getattr(value, "name", None) or repr(value)


def _seconds(value: float) -> str:
    return f"{value:.3g} s" if value < 10 else f"{value:.1f} s"
