"""Many QAPs at once, of any sizes: each by tabu searches that recombine."""

import dataclasses
import math
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxopt_search.backends import random
from jaxopt_search.checks import int32
from jaxopt_search.driver.options import RunOptions
from jaxopt_search.engine import memory
from jaxopt_search.exchanges.rules import Recombine, recombine
from jaxopt_search.neighborhoods import SwapTable
from jaxopt_search.problems import padding
from jaxopt_search.problems.host import ON_DEVICE
from jaxopt_search.problems.qap.construction import constructed_assignment
from jaxopt_search.problems.qap.problem import QAP
from jaxopt_search.searches import TabuSearch, tabu_search
from jaxopt_search.solvers.cooling import Pace
from jaxopt_search.solvers.stacked import Stack


class TabuRecipe(NamedTuple):
    """Settings of the tabu searches of an instance.

    Attributes:
      num_searches: side by side.
      capacity: the facilities that there is room for.
      every: steps between recombinations.
    """

    num_searches: int
    capacity: int
    every: int


def stack_of_assignments(problems: list[QAP], recipe: TabuRecipe, options: RunOptions) -> Stack:
    """Returns B instances, of each of which searches of its own find a good assignment.

    Args:
      problems: all of one dtype, with nothing fixed and no room for more.
      recipe: of the searches of each.
    """
    sizes = [problem.capacity for problem in problems]
    kind = _Assignments(
        recipe.num_searches, recipe.capacity, all(each.is_symmetric for each in problems)
    )
    memory.check_tours(kind.numbers_each, len(problems), kind.num_searches, options.devices)
    return Stack(
        kind=kind,
        instances=_instances(problems, recipe.capacity),
        sizes=sizes,
        own=lambda i, assignment: assignment[: sizes[i]],
        in_full=lambda costs: np.array(list(map(_in_full, problems, costs.tolist())), float),
        cost=lambda i, assignment: problems[i].host.cost(assignment),
        pacer=_Steady(Pace(0, 1.0, 0.0, recipe.every)),
        moves_per_step=sum(math.comb(n, 2) for n in sizes),
        is_trivial=max(sizes) == 1,
    )


def _in_full(problem: QAP, cost: int | float) -> int | float:
    return problem.host.in_full(cost)


@dataclasses.dataclass
class _Steady:
    """A pace that never changes: a `cooling.Pacer`."""

    pace: Pace

    def note(self, step: int, seconds: float, acceptance: float = 1.0) -> bool:
        return False

    def steps_left(self, step: int) -> None:
        """Returns None: it is not known to change."""

    def notes(self) -> dict[str, Any]:
        return {}

    def recall(self, notes: dict[str, Any]) -> None:
        """Does nothing."""


class _Instance(NamedTuple):
    """A QAP as the devices get it; fields as in `QAP`, and a good assignment, [capacity] int32."""

    flow: Any
    distance: Any
    offset: Any
    num_entries: Any
    start: Any


class _Assignments(NamedTuple):
    """Assignments of up to `capacity` facilities, by tabu search: a `stacked.Kind`."""

    num_searches: int
    capacity: int
    is_symmetric: bool

    @property
    def numbers_each(self) -> int:
        return self.num_searches * self.capacity**2

    def parts(self, instance: _Instance) -> tuple[QAP, None]:
        problem = QAP(
            flow=instance.flow,
            distance=instance.distance,
            offset=instance.offset,
            num_entries=instance.num_entries,
            partial=None,
            capacity=self.capacity,
            is_symmetric=self.is_symmetric,
            host=ON_DEVICE,
        )
        return problem, None

    def starts(self, key: random.Key, problem: QAP, instance: _Instance) -> jax.Array:
        return instance.start[None]

    def search_and_exchange(
        self, problem: QAP, parts: None, pace: Pace
    ) -> tuple[TabuSearch, Recombine]:
        rule = dataclasses.replace(recombine(every=1), every=int32(pace.every))
        return tabu_search(SwapTable()), rule


def _instances(problems: list[QAP], room: int) -> _Instance:
    def one(problem: QAP) -> _Instance:
        flow, distance = (
            padding.with_room(matrix, room**2) for matrix in (problem.flow, problem.distance)
        )
        start = padding.filled(constructed_assignment(problem), room)
        return _Instance(flow, distance, problem.offset, np.int32(problem.capacity), start)

    return jax.tree.map(lambda *leaves: np.stack(leaves), *map(one, problems))
