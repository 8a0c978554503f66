"""Valid placements of many queens, each repaired from a start of its own."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxopt_search.driver.chunks import Timer
from jaxopt_search.portable import random
from jaxopt_search.problems.queens import symmetry
from jaxopt_search.problems.queens.problem import NQueens, nqueens
from jaxopt_search.problems.queens.symmetry import Distinct
from jaxopt_search.results import Status
from jaxopt_search.searches.queens_repair import repair
from jaxopt_search.solvers.queens_found import PlacementSet, Standing

_MAX_ROUNDS = 10_000


class Repairs:
    """A run that repairs one placement after the other: a `chunks.Chunked`.

    Attributes:
      implementation: how steps are run.
      made: the most rounds that each placement may take, once one was tried.
      step: always 0: rounds are no steps of the run.
    """

    implementation = "xla"
    step = 0

    def __init__(
        self,
        problem: NQueens,
        key: random.Key,
        finds: PlacementSet,
        timer: Timer,
        device: jax.Device,
        max_rounds: int | None,
    ):
        self.problem, self.key, self.finds = problem, key, finds
        self.timer, self.device, self.made = timer, device, 0
        self._max_rounds = _MAX_ROUNDS if max_rounds is None else max_rounds
        self._ends_at_failure = max_rounds is not None
        self._number, self._has_failed = 0, False
        self._repaired: Any = None  # a placement, its attacked queens, its fingerprint

    def advance(self, num_steps: int) -> None:
        """Repairs a placement; compiles, the first time."""
        with jax.default_device(self.device):
            repaired = _compiled_repair(self.problem.n, self.finds.distinct, self.device)
            if num_steps:
                own = random.instance_key(self.key, jnp.uint32(self._number))
                self._repaired = jax.device_get(repaired(own, self._max_rounds))
                self._number, self.made = self._number + 1, self._max_rounds

    def look(self) -> object:
        """Takes down the placement if it is valid."""
        if self._repaired is not None:
            queens, num_attacked, words = self._repaired
            self._has_failed = num_attacked > 0
            if not self._has_failed:
                self.finds.add(queens[None], words[None])

    def status(self, limit: Status) -> Status:
        status = self.finds.status()
        if status == Status.RUNNING and self._has_failed and self._ends_at_failure:
            return Status.MAX_STEPS
        return limit if status == Status.RUNNING else status

    def report(self, status: Status) -> Standing:
        return self.finds.standing(self.made, self.timer.seconds, status)

    def next_steps(self, made: int, seconds: float) -> int:
        return 1


@functools.lru_cache(maxsize=16)
def _compiled_repair(n: int, distinct: Distinct, device: jax.Device) -> Callable[..., Any]:
    """Returns `_repaired` for these numbers, compiled: it maps a key and the most rounds."""
    with jax.default_device(device):
        return _repaired.lower(random.as_key(0), 0, n=n, distinct=distinct).compile()


@functools.partial(jax.jit, static_argnames=("n", "distinct"))
def _repaired(key: random.Key, max_rounds: jax.Array, *, n: int, distinct: Distinct) -> Any:
    problem = nqueens(n)
    start = problem.init(random.start_key(key, jnp.uint32(0)))
    queens, num_attacked = repair(key, problem, start, max_rounds=max_rounds)
    return queens, num_attacked, symmetry.fingerprint(queens, distinct)
