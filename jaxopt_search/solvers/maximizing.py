"""A maximum is the minimum of the opposite problem: what goes in and comes out changes its sign.

`0 - x` in place of `-x` gives no negative zero.
"""

from collections.abc import Callable
from typing import Any

from jaxopt_search.driver.results import Report
from jaxopt_search.results import History, Result, StackedResult


def opposite_target(target: Any) -> Any:
    """Returns the highest cost of the opposite problem that meets a target of at least so much."""
    return target if target is None or isinstance(target, str) else -target


def opposite_callback(callback: Callable[[Report], Any] | None) -> Callable[[Report], Any] | None:
    """Returns a callback for the opposite problem that shows a user the maximum so far."""
    if not callable(callback):
        return callback
    opposite = _Opposite(callback)
    for name in ("notes", "recall"):
        if hasattr(callback, name):
            setattr(opposite, name, getattr(callback, name))
    return opposite


class _Opposite:
    """A user's callback, which is shown the maximum so far."""

    def __init__(self, callback: Callable[[Report], Any]):
        self._callback = callback

    def __call__(self, report: Report) -> Any:
        return self._callback(report._replace(fun=0 - report.fun))


def opposite(result: Result | StackedResult) -> Any:
    """Returns the result of a maximization, from that of the opposite problem."""
    if isinstance(result, StackedResult):
        return result._replace(fun=0 - result.fun)
    history = History(line._replace(best=0 - line.best) for line in result.history)
    return result._replace(fun=0 - result.fun, costs=0 - result.costs, history=history)
