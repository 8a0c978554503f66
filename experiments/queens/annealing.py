"""Annealing queens by swaps, one move a step, evaluated in full: by JAX and in compiled loops.

What `__main__` measures a step of, and runs to valid placements.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.tree_util import Partial

import jaxopt_search as js
from experiments import one_core
from experiments.queens import compiled
from experiments.queens.compiled import COMPILED, Cooling
from jaxopt_search.backends import counts
from jaxopt_search.problems.queens import attacks as evaluation

_LOOK_EVERY = 1000


def start(
    n: int, scheme: str, cooling: Cooling, seed: int, num_searches: int = 1
) -> Annealing | CompiledAnnealing:
    """Returns annealing from random placements, compiled.

    Args:
      scheme: one of `COMPILED`, for one search; one of `evaluation.SCHEMES`; "deltas" for moves
        priced in O(1); "nothing" for an evaluation that does nothing.
    """
    if scheme in COMPILED:
        return CompiledAnnealing(n, scheme, cooling, seed)
    return Annealing(n, scheme, js.schedules.geometric(*cooling), seed, num_searches)


class Annealing:
    """Searches by annealing, one move a step."""

    def __init__(
        self,
        n: int,
        scheme: str,
        schedule: Callable[[jax.Array], jax.Array],
        seed: int,
        num_searches: int,
    ):
        self.problem = js.nqueens(n, scheme if scheme in evaluation.SCHEMES else "histogram")
        if scheme == "nothing":
            self.problem = dataclasses.replace(self.problem, count=Partial(_nothing))
        moves = js.QueenSwap() if scheme == "deltas" else js.FullEvaluation(js.Swap())
        self.search = js.simulated_annealing(moves, schedule)
        self.state = js.init(seed, self.problem, self.search, num_searches=num_searches)
        self.advance(0)
        self.attacks()

    def advance(self, steps: int, target: int = -1) -> None:
        """Makes steps, whether a search reaches the target or not, and waits for them."""
        self.state = js.advance(self.problem, self.search, self.state, steps)
        jax.block_until_ready(self.state)

    def attacks(self) -> np.ndarray:
        """Returns the least cost of each search so far, [S]."""
        return np.asarray(jax.vmap(self.search.best_cost)(self.state.searches))

    def solutions(self) -> np.ndarray:
        """Returns the best placement of each search, [S, n]."""
        best = jax.vmap(self.search.best, in_axes=(None, 0))
        return np.asarray(best(self.problem, self.state.searches))

    @property
    def steps(self) -> int:
        """Steps that each search has made."""
        return int(self.state.step)


def _nothing(queens: jax.Array) -> counts.Count:
    return counts.of(queens[0])


class CompiledAnnealing:
    """One search like one of `Annealing`, in a compiled loop."""

    def __init__(self, n: int, scheme: str, cooling: Cooling, seed: int):
        self.queens = np.random.default_rng(seed).permutation(n).astype(np.int32)
        self.cooling, self.steps, self._random = cooling, 0, 1 + seed
        self._anneal = one_core.compiled(compiled.build_annealer, scheme)
        count = one_core.compiled(compiled.build_counter, scheme)
        self._attacks = int(count(self.queens))
        self.advance(0)

    def advance(self, steps: int, target: int = -1) -> None:
        """Makes steps, or fewer if the target is reached before."""
        span = self.steps, self.steps + steps
        self._attacks, self.steps, self._random = self._anneal(
            self.queens, self._attacks, target, self.cooling, *span, self._random
        )

    def attacks(self) -> np.ndarray:
        """Returns the cost, [1]."""
        return np.array([self._attacks])

    def solutions(self) -> np.ndarray:
        """Returns the placement, [1, n]."""
        return self.queens[None]


def to_the_end(annealing: Annealing | CompiledAnnealing, max_seconds: float) -> dict[str, Any]:
    """Returns after how many seconds and steps each search found a valid placement.

    One in a compiled loop ends with it; others are looked at every 1000 steps.
    """
    began, seconds = time.perf_counter(), 0.0
    found: dict[int, tuple[float, int]] = {}
    while True:
        attacks = annealing.attacks()
        for search in np.flatnonzero(attacks == 0).tolist():
            found.setdefault(search, (seconds, annealing.steps))
        if len(found) == len(attacks) or seconds > max_seconds:
            break
        annealing.advance(_LOOK_EVERY, target=0)
        seconds = time.perf_counter() - began
    placements = annealing.solutions()[sorted(found)]
    is_permutation = np.all(np.sort(placements) == np.arange(placements.shape[1]), axis=1)
    return {
        "seconds": seconds,
        "steps": annealing.steps,
        "found_after": [list(found[search]) for search in sorted(found)],
        "valid": int(np.sum(is_permutation & (js.attacking_pairs(placements) == 0))),
    }
