"""What is called: instances as the plain arrays that a person has."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import jaxopt_search as js
from experiments import common
from experiments.peers.problems import PROBLEMS
from experiments.peers.queens import QueensTask

_TSP = {"eil51": 51, "kroA100": 100, "pcb442": 442, "pr1002": 1002}
_QAP = {"nug12": 12, "tai30a": 30, "tai50a": 50, "tai100a": 100}
_QUEENS = {"queens-100": 100, "queens-1000": 1000}
_SIZE = 10_000  # about that of coordinates in TSPLIB

NAMES = {
    "tsp": tuple(f"{name}-{form}" for name in _TSP for form in ("xy", "matrix")),
    "qap": tuple(_QAP),
    "nqueens": tuple(_QUEENS),
}
"""Names of all cases, by kind."""

Arrays = tuple[np.ndarray, ...]


class Case(NamedTuple):
    """A call that is measured.

    Attributes:
      name: of the instance, and in which form it is given.
      kind: "tsp", "qap" or "nqueens".
      instance: with a `name`, `n` and `best_known`; for the cost of solutions.
      arrays: what the solver is given; of N-Queens, [] the number of queens.
      larger: the same of another instance, which is larger by 1.
    """

    name: str
    kind: str
    instance: Any
    arrays: Arrays
    larger: Arrays

    def cost(self, solution: Any) -> int:
        """Returns the exact cost of a solution; of N-Queens, 0 if there is one and 1 if not.

        Raises:
          ValueError: if it is not a valid one.
        """
        return PROBLEMS[self.kind].cost(self.instance, np.asarray(solution, np.int64))


def chosen(names: Sequence[str]) -> list[str]:
    """Returns names of cases, each once, for names that may be kinds or "all".

    Raises:
      ValueError: if one is unknown.

    Example:
      >>> chosen(["nqueens", "nug12", "queens-100"])
      ['queens-100', 'queens-1000', 'nug12']
    """
    every = [name for own in NAMES.values() for name in own]
    known = NAMES | {name: (name,) for name in every} | {"all": every}
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"case {unknown[0]!r} is unknown, expected some of {list(known)}")
    return list(dict.fromkeys(case for name in names for case in known[name]))


def cases(names: Sequence[str], data: str | None) -> list[Case]:
    """Returns cases by name; generated instances replace those without a file.

    Args:
      data: the value of `--data`.

    Raises:
      ValueError: if a name is unknown, or the folder does not exist.
    """
    return [_case(name, data) for name in chosen(names)]


def _case(name: str, data: str | None) -> Case:
    if name in _QUEENS:
        return queens_case(_QUEENS[name])
    name, _, form = name.partition("-")
    make, n = (js.datasets.uniform_qap, _QAP[name]) if name in _QAP else (_uniform, _TSP[name])
    (instance,) = common.find_instances(None, data, name, lambda: make(n, seed=0))
    return tsp_case(instance, form) if form else qap_case(instance)


def tsp_case(instance: Any, form: str) -> Case:
    """Returns the case of a `TSPInstance` with coordinates, given as "xy" or as "matrix"."""
    arrays, larger = (
        (one.coordinates if form == "xy" else one.distances(),)
        for one in (instance, _uniform(instance.n + 1, seed=1))
    )
    return Case(f"{instance.name}-{form}", "tsp", instance, arrays, larger)


def qap_case(instance: Any) -> Case:
    """Returns the case of a `QAPInstance`."""
    other = js.datasets.uniform_qap(instance.n + 1, seed=1)
    arrays, larger = ((one.flow, one.distance) for one in (instance, other))
    return Case(instance.name, "qap", instance, arrays, larger)


def queens_case(n: int) -> Case:
    """Returns the case of one valid placement of n queens."""
    arrays, larger = ((np.asarray(size),) for size in (n, n + 1))
    return Case(f"queens-{n}", "nqueens", QueensTask(n, 1), arrays, larger)


def _uniform(n: int, seed: int) -> Any:
    return js.datasets.uniform_tsp(n, seed=seed, size=_SIZE)
