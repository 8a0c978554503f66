"""Solvers of the N-Queens problem, for `__main__`: how each is called.

An instance asks for a set of different valid placements, `1000x50` for 50 of 1000 queens; its cost
is how many of them are missing, so that the best known one is 0. OR-Tools' CP-SAT and the
min-conflicts search of python-constraint are public packages; the compiled search of Sosic and Gu
is ours and needs numba. None is needed to import this module.
"""

import random
import re
import time
from collections.abc import Iterator, Sequence
from importlib import metadata
from typing import Any, NamedTuple

import numpy as np

import jaxopt_search as js
from experiments import common, one_core
from experiments.peers.solver import Ours, Points, Solver
from experiments.queens import compiled

_MOST_CONSTRAINTS = 50_000


class QueensTask(NamedTuple):
    """A number of queens, and how many different valid placements of them are wanted."""

    n: int
    wanted: int
    best_known: int = 0

    @property
    def name(self) -> str:
        """As `--instances` has it, such as `1000` or `1000x50`."""
        return f"{self.n}x{self.wanted}" if self.wanted > 1 else f"{self.n}"


def instances(names: Sequence[str] | None, data: str | None) -> list[QueensTask]:
    """Returns tasks by name; without names, one placement of 100 queens, and fifty.

    Raises:
      ValueError: if a name is no number, nor two with an x between them.
    """
    return [_task(name) for name in (names or ("100", "100x50"))]


def _task(name: str) -> QueensTask:
    numbers = re.fullmatch("([1-9][0-9]*)(?:x([1-9][0-9]*))?", name)
    if not numbers:
        raise ValueError(f"instance {name!r} is not of N-Queens, expected such as 1000 or 1000x50")
    return QueensTask(int(numbers[1]), int(numbers[2] or 1))


def cost(task: QueensTask, placements: np.ndarray) -> int:
    """Returns how many placements are missing of those that are wanted.

    Raises:
      ValueError: if one of them is not valid.
    """
    if not len(placements):
        return task.wanted
    are_orders = (np.sort(placements, axis=1) == np.arange(task.n)).all()
    if not are_orders or np.any(js.attacking_pairs(placements)):
        raise ValueError(f"a placement of {task.n} queens is not valid")
    return task.wanted - len(np.unique(placements, axis=0))


class JaxoptSearch(Ours):
    """`js.solve_nqueens` with its defaults."""

    first = None

    def solve(self, task: QueensTask, seed: int, limit: float, target: int) -> tuple[Any, Points]:
        """Returns the placements."""
        result = js.solve_nqueens(
            task.n, task.wanted, seed, max_seconds=limit, devices=self.devices
        )
        return common.unless_interrupted(result).solutions.astype(np.int32), []


class OneByOne(Solver):
    """A solver that gives placements one by one, in `placements`, until there are enough."""

    def solve(self, task: QueensTask, seed: int, limit: float, target: int) -> tuple[Any, Points]:
        """Returns those that were found by a time, and the course to them."""
        began, found, points = time.perf_counter(), {}, []
        for queens in self.placements(task, seed, limit):
            found[np.asarray(queens, np.int32).tobytes()] = queens
            points.append((time.perf_counter() - began, task.wanted - len(found)))
            if points[-1][1] == target or points[-1][0] > limit:
                break
        return np.array(list(found.values()), np.int32).reshape(-1, task.n), points

    def placements(self, task: QueensTask, seed: int, limit: float) -> Iterator[Sequence[int]]:
        """Yields valid placements, [n] integers; ends if it finds none within `limit` seconds."""
        raise NotImplementedError


class CompiledSearch(OneByOne):
    """The fourth algorithm of Sosic and Gu, compiled by numba."""

    name = "compiled search"

    def __init__(self):
        self._place = one_core.compiled(compiled.build_placer)
        self.version = f"numba {metadata.version('numba')}"

    def prepare(self, task: QueensTask) -> QueensTask:
        """Returns the task; compiles.

        Raises:
          ValueError: for two and three queens, for which it would not end.
        """
        if task.n in (2, 3):
            raise ValueError("it does not end where no placement is valid")
        self._place(8, 1)
        return task

    def placements(self, task: QueensTask, seed: int, limit: float) -> Iterator[Sequence[int]]:
        """Yields random ones."""
        state = 1 + seed * 48271 % (2**31 - 2)
        while True:
            queens, state = self._place(task.n, state)
            yield queens


class MinConflicts(OneByOne):
    """The min-conflicts search of python-constraint, with a constraint for each pair of queens."""

    name = "python-constraint2"

    def __init__(self):
        import constraint

        self._package = constraint
        self.version = metadata.version(self.name)

    def prepare(self, task: QueensTask) -> QueensTask:
        """Returns the task.

        Raises:
          ValueError: if there are too many pairs.
        """
        if task.n * (task.n - 1) // 2 > _MOST_CONSTRAINTS:
            raise ValueError(f"it would take more than {_MOST_CONSTRAINTS} constraints")
        return task

    def placements(self, task: QueensTask, seed: int, limit: float) -> Iterator[Sequence[int]]:
        """Yields what searches of 10 n steps each have found."""
        deadline, generator = time.perf_counter() + limit, random.Random(seed)
        solver = self._package.MinConflictsSolver(steps=10 * task.n, rand=generator)
        problem = self._package.Problem(solver)
        problem.addVariables(range(task.n), range(task.n))
        for i in range(task.n):
            for k in range(i + 1, task.n):
                problem.addConstraint(_is_peaceful(k - i), (i, k))
        while time.perf_counter() < deadline:
            found = problem.getSolution()
            if found is not None:
                yield [found[row] for row in range(task.n)]


def _is_peaceful(rows: int) -> Any:
    return lambda a, b: a != b and abs(a - b) != rows


class CpSat(Solver):
    """OR-Tools' CP-SAT on one thread: three all-different constraints."""

    name = "ortools"

    def __init__(self):
        from ortools.sat.python import cp_model

        self._package = cp_model
        self.version = metadata.version(self.name)

    def solve(self, task: QueensTask, seed: int, limit: float, target: int) -> tuple[Any, Points]:
        """Returns the placements and the course to them."""
        began, cp_model = time.perf_counter(), self._package
        model, rows = cp_model.CpModel(), range(task.n)
        queens = [model.new_int_var(0, task.n - 1, f"q{row}") for row in rows]
        model.add_all_different(queens)
        model.add_all_different([queen + row for row, queen in enumerate(queens)])
        model.add_all_different([queen - row for row, queen in enumerate(queens)])
        found: list[list[int]] = []
        points: Points = []

        class TakeDown(cp_model.CpSolverSolutionCallback):
            def on_solution_callback(self) -> None:
                found.append([self.value(queen) for queen in queens])
                points.append((time.perf_counter() - began, task.wanted - len(found)))
                if points[-1][1] <= target:
                    self.stop_search()

        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = seed
        solver.parameters.enumerate_all_solutions = task.wanted > 1
        solver.parameters.max_time_in_seconds = limit - (time.perf_counter() - began)
        solver.solve(model, TakeDown())
        return np.array(found, np.int32).reshape(-1, task.n), points


SOLVERS = {
    "jaxopt_search": JaxoptSearch,
    "compiled search": CompiledSearch,
    "python-constraint2": MinConflicts,
    "ortools": CpSat,
}
