"""Looking for a maximum: it is the minimum of the opposite problem.

What goes in and comes out changes its sign; `0 - x` in place of `-x` gives no negative zero.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from jaxopt_search.checks import check_number
from jaxopt_search.driver.results import Report
from jaxopt_search.results import History, Result, StackedResult


class Opposite:
    """A user's callback, which is shown the maximum so far."""

    def __init__(self, callback: Callable[[Report], Any]):
        self._callback = callback
        for name in ("notes", "recall"):
            if hasattr(callback, name):
                setattr(self, name, getattr(callback, name))

    def __call__(self, report: Report) -> Any:
        def fetch() -> tuple[Any, np.ndarray]:
            solutions, costs = report.fetch()
            return solutions, 0 - costs

        return self._callback(report._replace(fun=0 - report.fun, fetch=fetch))


def opposite_target(target: Any) -> Any:
    """Returns what the opposite problem is to reach; `"optimum"` and None stay as they are."""
    is_number = target is not None and not isinstance(target, str)
    return 0 - check_number("target", target) if is_number else target


def opposite(result: Result | StackedResult) -> Any:
    """Returns the result of a maximization, from the result of the opposite problem."""
    history = History(line._replace(best=0 - line.best) for line in result.history)
    changed: dict[str, Any] = {"fun": 0 - result.fun, "costs": 0 - result.costs}
    if isinstance(result, Result):
        changed["is_maximum"] = True
    return result._replace(history=history, **changed)
