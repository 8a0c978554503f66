"""What a run returns, and how it ended."""

import enum
from typing import Any, NamedTuple

import numpy as np


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


class Result(NamedTuple):
    """What `solve` returns. The first seven names are as in SciPy's `OptimizeResult`.

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
      history: one `Record` per chunk, thinned to `history_size` lines.
      costs: [num_searches] the best cost of each search.
      solutions: [num_searches, ...] the best solution of each search.
      ancestors: [num_searches] the search from whose start each one's solution descends, by way of
        exchanges; `np.bincount` of it gives the sizes of families.
      state: the `RunState` to resume from.
      compile_seconds: seconds from the call of `solve` until the first step could be made.
      elapsed: seconds from the call to the end: `compile_seconds`, the search, and reading it out.
      env: versions, devices, and the implementation that ran.
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
    history: list[Record]
    costs: np.ndarray
    solutions: Any
    ancestors: np.ndarray
    state: Any
    compile_seconds: float
    elapsed: float
    env: dict[str, str]


class StackedResult(NamedTuple):
    """What `solve_tsp` and `solve_qap` return for B instances at once.

    Attributes:
      x: [B, n] int32, the best solution of each instance; a list of arrays [n] int32 if their sizes
        differ.
      fun: [B] int64 or float64, their costs, recomputed on the host.
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
    success: bool
    status: Status
    nit: int
    nfev: int
    compile_seconds: float
    elapsed: float
    env: dict[str, str]
