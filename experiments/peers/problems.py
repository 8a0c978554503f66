"""The problems that solvers are compared on, and which solvers are installed."""

from collections.abc import Sequence
from typing import Any

from experiments.peers import qap, qubo, queens, tsp
from experiments.peers.solver import Solver

PROBLEMS = {"nqueens": queens, "qap": qap, "qubo": qubo, "tsp": tsp}
"""Modules with `SOLVERS` (a dict of `Solver` classes), `instances(names, data)` and
`cost(instance, solution)`; an instance has a `name`, `n` and `best_known`."""


def find_solvers(problem: Any, names: Sequence[str]) -> list[Solver]:
    """Returns the solvers that can be imported, and says which cannot.

    Raises:
      ValueError: if the problem has no solver of that name.
    """
    found = []
    for name in names:
        if name not in problem.SOLVERS:
            raise ValueError(
                f"solver {name!r} is unknown, expected some of {list(problem.SOLVERS)}"
            )
        try:
            found.append(problem.SOLVERS[name]())
        except ImportError as error:
            print(f"{name} is left out: not installed ({error}); the extra `peers` has it")
    return found
