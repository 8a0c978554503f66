"""The best solution of a run by its exact cost, its history, and the messages on it."""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxopt_search.backends.costs import cost_of
from jaxopt_search.driver import checkpoints, starts
from jaxopt_search.engine.devices import host_device
from jaxopt_search.engine.outcome import Outcome
from jaxopt_search.results import History, Record, Status
from jaxopt_search.types import Problem

MESSAGES = {
    Status.TARGET: "the target was reached",
    Status.MAX_STEPS: "max_steps were made",
    Status.PATIENCE: "no better solution for `patience` steps",
    Status.LOCAL_OPTIMA: "all searches are at local optima",
    Status.MAX_SECONDS: "max_seconds were over",
    Status.CALLBACK: "the callback asked to stop",
    Status.INTERRUPTED: "interrupted",
    Status.EXHAUSTED: "there are no more",
}
_full_cost = jax.jit(cost_of)


class Report(NamedTuple):
    """Where a run stands after a chunk, for callbacks. Its arrays are copies.

    `costs` and `solutions` are those of all searches. They are fetched from the devices when they
    are asked for, by the callback itself; in several processes that share a run, all have to ask.

    Attributes:
      step: steps made by each search.
      seconds: of search, as `max_seconds` counts them.
      fun: the best cost so far; it never rises.
      x: a solution of that cost; for permutation problems [n] int32.
      gap: as in `Result`.
      acceptance: accepted moves per search and step in this chunk.
      status: `RUNNING`, or why the run ends here.
      fetch: returns `solutions` and `costs`.

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.tsp_from_instance(js.datasets.grid_tsp(4, 4))
      >>> search = js.simulated_annealing(js.Relocate(), 5.0)
      >>> def show(report):
      ...     print(report.step, report.status.name, report.x.shape, report.costs.shape)
      >>> run = {"num_searches": 8, "max_steps": 2000, "chunk_steps": 1000}
      >>> result = js.solve(problem, search, 0, callback=show, **run)
      0 RUNNING (16,) (8,)
      1000 RUNNING (16,) (8,)
      2000 MAX_STEPS (16,) (8,)
    """

    step: int
    seconds: float
    fun: int | float
    x: np.ndarray
    gap: float | None
    acceptance: float
    status: Status
    fetch: Callable[[], tuple[Any, np.ndarray]]

    @property
    def costs(self) -> np.ndarray:
        """The best cost of each search so far, as in `Result`."""
        return self.fetch()[1]

    @property
    def solutions(self) -> Any:
        """The best solution of each search so far, as in `Result`."""
        return self.fetch()[0]

    @property
    def line(self) -> str:
        """It in words, as `show_progress` shows it."""
        best = f"{self.fun:.6g}" if isinstance(self.fun, float) else str(self.fun)
        gap = "" if self.gap is None else f"  gap {self.gap:.3%}"
        return (
            f"step {self.step}  {self.seconds:.1f} s  best {best}{gap}"
            f"  acceptance {self.acceptance:.3f}"
        )


class Recorder:
    """Keeps lines on a run, thinned as they become too many.

    `notes` and `recall` carry it over to a later process.

    Attributes:
      lines: so far, at even distances but for the last one.
    """

    def __init__(self, size: int):
        self.lines = History()
        self._room = size // 2 * 2  # even, so that gaps stay equal
        self._every, self._num_reports = 1, 0

    def notes(self) -> dict[str, Any]:
        """Returns its lines and counts, for JSON."""
        return {"lines": self.lines, "every": self._every, "num_reports": self._num_reports}

    def recall(self, notes: dict[str, Any]) -> None:
        """Continues from notes."""
        self.lines = History(Record(*line) for line in notes["lines"])
        self._every, self._num_reports = notes["every"], notes["num_reports"]

    def note(self, report: Report) -> None:
        """Takes note of a chunk."""
        if self.lines and self.lines[-1].step == report.step:  # where a run resumes
            if report.status == Status.RUNNING:
                return
            self.lines.pop()
        is_due = self._num_reports % self._every == 0 or report.status != Status.RUNNING
        self._num_reports += 1
        if not is_due:
            return
        if len(self.lines) >= self._room:
            self.lines = History(self.lines[::2])
            self._every *= 2
        self.lines.append(Record(report.step, report.seconds, report.fun, report.acceptance))


class Best:
    """The best solution of a run by its exact cost.

    Attributes:
      x: the solution; None before the first is noted.
      fun: its cost, exactly; infinite if it is not feasible. Of such ones, the best is the one that
        costs least with what is forbidden, as the searches count.
    """

    def __init__(self, problem: Problem, goal: int | float | None, is_optional: bool):
        self.problem, self.host = problem, problem.host
        self.goal, self.is_optional = goal, is_optional
        self.x: Any = None
        self.fun: int | float = math.nan
        self._counted: int | float = math.inf  # with what is forbidden

    def note(self, seen: Outcome) -> None:
        """Takes note of the best solution that the searches have.

        Of equal ones the latest, so that it does not depend on where chunks end.
        """
        solution, running = seen.solution, seen.cost.item()
        fun, exact = self._costs(solution)
        if self.host is not None:
            running = self.host.in_full(running)
        if isinstance(exact, int) and exact != running:
            cause = "a delta is not the change in cost, an exchange makes what is no solution, the"
            cause += (
                " state is another run's, XLA computes a cost wrongly, or this is a bug: please"
            )
            cause += " report it"
            if self.host is not None and self.host.starts is not None:
                cause = "a search has risen beyond int32: lower its temperature, and let nothing"
                cause += " restart at random"
            raise RuntimeError(f"the running cost {running} is not the exact {exact}: {cause}")
        if math.isnan(self.fun) or (fun, exact) <= (self.fun, self._counted):
            own = solution if self.host is None else self.host.own(solution)
            if (check := starts.check_of(self.problem)) is not None:
                check(own, "the best solution")
            self.x, self.fun, self._counted = jax.tree.map(np.array, own), fun, exact

    def recall(self, x: Any, noted: Any) -> None:
        """Continues with the best solution in a checkpoint, whose cost is computed again.

        Raises:
          ValueError: if it is no solution, or does not have the cost that is noted.
        """
        check, solution = starts.check_of(self.problem), x
        if check is not None:
            solution = check(x, "its best solution")
        self.x, (self.fun, self._counted) = x, self._costs(solution)
        checkpoints.check_cost(noted, self.fun)

    def _costs(self, solution: Any) -> tuple[int | float, int | float]:
        """Returns the exact cost of a solution, infinite if it is not feasible, and as counted."""
        if self.host is None:
            with jax.default_device(host_device()):
                exact = _full_cost(self._on_host, solution).item()
            return exact, exact
        exact = self.host.cost(solution)
        return exact if self.host.is_feasible(solution) else math.inf, exact

    @functools.cached_property
    def _on_host(self) -> Problem:
        """The problem on a CPU: what XLA makes of a cost on a GPU has been seen to be wrong."""
        return jax.device_put(self.problem, host_device())

    @property
    def meets_goal(self) -> bool:
        """Whether its cost is as low as the user wanted."""
        goal, fun = self.goal, self.fun
        return goal is not None and math.isfinite(fun) and fun <= goal

    @property
    def gap(self) -> float | None:
        """As in `Result`."""
        best_known, fun = self.host.best_known if self.host else None, self.fun
        if best_known is None:
            return None
        if best_known == 0:
            return 0.0 if fun == 0 else math.copysign(math.inf, fun)
        return (fun - best_known) / abs(best_known)

    def is_success(self, status: Status, made: int) -> bool:
        """Returns whether a run that ended so after `made` steps is a success."""
        is_trivial = self.problem.is_trivial
        has_searched = made > 0 or status == Status.LOCAL_OPTIMA or is_trivial
        is_wanted = self.goal is not None and not self.is_optional
        is_found = has_searched and math.isfinite(self.fun)
        return self.meets_goal or (is_found and not is_wanted and status != Status.INTERRUPTED)

    def message(self, status: Status, made: int) -> str:
        """Returns how a run ended after `made` steps, with notes on the instance."""
        parts, fun, host = [MESSAGES[status]], self.fun, self.host
        if self.problem.is_trivial:
            parts = ["all solutions have the same cost"]
        elif status == Status.TARGET and self.is_optional:
            parts = ["the optimum was reached, which is proven"]
        if not (made or self.problem.is_trivial or status == Status.LOCAL_OPTIMA):
            parts.append("no step was made: this is the best start")
        if not math.isfinite(fun):
            parts.append(f"the best cost is {fun}, which is no success")
        if host is not None and (remaining := host.remaining(self.x)):
            parts.append(remaining)
        if host is not None:
            if host.best_known is not None and fun < host.best_known:
                parts.append("better than the best known")
            if host.note:
                parts.append(host.note)
        return "; ".join(parts)
