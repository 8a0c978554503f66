"""Iterated local search: descend, kick, descend again, and go back if that was for the worse.

Sources: Johnson, McGeoch, "The traveling salesman problem: a case study in local optimization",
1997; Lourenço, Martin, Stützle, "Iterated local search", 2003; Bentley, "Fast algorithms for
geometric traveling salesman problems", 1992, for looking only where something has changed.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends import memory
from jaxopt_search.backends.memory import load, store
from jaxopt_search.checks import check_count
from jaxopt_search.contracts import check_part
from jaxopt_search.pytrees import pytree, static
from jaxopt_search.searches import acceptance as rules
from jaxopt_search.searches.acceptance import Acceptance, Trial
from jaxopt_search.searches.base import TrajectorySearch
from jaxopt_search.types import (
    EVERYWHERE,
    NOWHERE,
    ByElement,
    Cost,
    Info,
    Neighborhood,
    Problem,
    Representation,
    Snapshot,
    Solution,
    Span,
    Stream,
    null_delta,
)

_ROUNDING = 2.0**-20  # of float costs: closer ones count as equal


class Queue(NamedTuple):
    """The elements to look at, first in, first out, each at most once.

    `pop` and `append` read no array that they write to: XLA for CPUs would copy it.

    Attributes:
      element: [N] int32, a ring of them.
      is_in: [N] bool, whether each element is in it.
      first: [] int32, where the first one is.
      number: [] int32, how many there are.
    """

    element: jax.Array
    is_in: jax.Array
    first: jax.Array
    number: jax.Array

    def pop(self) -> tuple["Queue", jax.Array, jax.Array]:
        """Returns the queue without its first element, that one, and whether there was any."""
        is_any, element = self.number > 0, load(self.element, self.first)
        more = is_any.astype(jnp.int32)
        is_in = store(self.is_in, element, jnp.bool_(False), is_any)
        first = self._wrap(self.first + more)
        return self._replace(is_in=is_in, first=first, number=self.number - more), element, is_any

    def push(self, element: jax.Array, where: jax.Array) -> "Queue":
        """Returns the queue with an element behind, if it is new and the scalar `where` holds."""

        def append(queue: Queue, where: jax.Array) -> Queue:
            behind = queue._wrap(queue.first + queue.number)
            return queue._replace(
                element=store(queue.element, behind, element, where),
                is_in=store(queue.is_in, element, jnp.bool_(True), where),
                number=queue.number + where.astype(jnp.int32),
            )

        return memory.when(where & ~load(self.is_in, element), append, self, in_place=True)

    def _wrap(self, place: jax.Array) -> jax.Array:
        room = self.element.shape[0]
        return jnp.where(place < room, place, place - room)


class IteratedState(NamedTuple):
    """The state of one search.

    Attributes:
      representation: of the current solution.
      cost: [] its cost.
      best: snapshot of the best solution remembered. The current solution may be better.
      best_cost: [] its cost.
      home: the representation to go back to: of the solution that was kicked last.
      home_cost: [] its cost.
      queue: the elements whose moves are still to be looked at in this descent.
      changed: where the current representation differs from `home`, at most.
      unlike_best: where it differs from what `best` is the snapshot of, at most.
      history: what the rule of acceptance remembers; None if it remembers nothing.
    """

    representation: Representation
    cost: Cost
    best: Snapshot
    best_cost: Cost
    home: Representation
    home_cost: Cost
    queue: Queue
    changed: Span
    unlike_best: Span
    history: Any = None


@pytree
@dataclasses.dataclass(frozen=True, kw_only=True)
class IteratedLocalSearch(TrajectorySearch):
    """Build it with `iterated_local_search`."""

    neighborhood: ByElement
    kick: Neighborhood
    acceptance: Acceptance
    num_kicks: int = static()

    def init(self, problem: Problem, solution: Solution) -> IteratedState:
        start = representation, cost, *_ = self.start(problem, solution)
        queue, history = self._everywhere(problem), self.acceptance.start(cost)
        return IteratedState(*start, representation, cost, queue, NOWHERE, NOWHERE, history)

    def look(self, problem: Problem, state: IteratedState) -> IteratedState:
        """Returns the state that begins a descent from its current solution."""
        return state._replace(
            home=state.representation,
            home_cost=state.cost,
            queue=self._everywhere(problem),
            changed=NOWHERE,
            unlike_best=EVERYWHERE,
        )

    def refresh(self, problem: Problem, state: IteratedState) -> IteratedState:
        """Returns the state with costs computed again; its descent goes on, and its home stays."""
        refreshed = super().refresh(problem, state)
        home, home_cost = self.anew(problem, state.home)
        parts = {"home": home, "home_cost": home_cost, "queue": state.queue}
        return refreshed._replace(**parts, changed=EVERYWHERE)

    def step(
        self, stream: Stream, control: Any, problem: Problem, state: IteratedState
    ) -> tuple[IteratedState, Info]:
        """Looks at all moves of the first element in the queue, and makes the best if it is better.

        Before that, if the queue is empty, the descent is over: its end is put to the test, and
        what remains, the old solution or the new one, is kicked.
        """

        def turn(state: IteratedState, where: jax.Array) -> IteratedState:
            state = self._end_descent(stream, control, state, where)
            for number in range(self.num_kicks):
                words = stream.words(jnp.uint32(number + 1), self.kick.num_words)
                move = self.kick.propose(problem, state.representation, words)
                delta = self.kick.delta(problem, state.representation, move)
                is_made = where & (delta < null_delta(delta.dtype))
                state = self._make(self.kick, problem, state, move, delta, is_made)
            return state

        state = memory.when(state.queue.number == 0, turn, state, in_place=True)
        queue, element, is_any = state.queue.pop()
        move, delta = self.neighborhood.best_of(problem, state.representation, element)
        # The second test ends a descent in which deltas are rounded: the cost falls each time.
        is_better = is_any & (delta < 0) & (state.cost + delta < state.cost)
        state = state._replace(queue=queue)
        state = self._make(self.neighborhood, problem, state, move, delta, is_better)
        return state, Info(accepted=is_better.astype(jnp.int32))

    def _end_descent(
        self, stream: Stream, control: Any, state: IteratedState, where: jax.Array
    ) -> IteratedState:
        """Returns the state at the end of its descent or, if that does not pass, back home."""
        rule, home_cost = self.acceptance, state.home_cost
        cost, change = state.cost, state.cost - home_cost
        if jnp.issubdtype(cost.dtype, jnp.inexact):
            is_same = jnp.abs(change) <= jnp.abs(home_cost) * jnp.float32(_ROUNDING)
            cost, change = jnp.where(is_same, home_cost, cost), jnp.where(is_same, 0.0, change)
        words = stream.words(jnp.uint32(0), rule.num_words)
        passes = rule.passes(Trial(control, state.history, home_cost, change, words))
        is_best, stays, returns = where & (cost < state.best_cost), where & passes, where & ~passes
        hood, representation, changed = self.neighborhood, state.representation, state.changed
        current = hood.snapshot(representation)
        unlike_best = memory.copy(state.unlike_best, NOWHERE, is_best)
        home = hood.copy_span(state.home, representation, changed, stays)
        state = state._replace(
            best=hood.copy_span(state.best, current, state.unlike_best, is_best),
            best_cost=jnp.where(is_best, cost, state.best_cost),
            home=home,
            home_cost=jnp.where(stays, cost, home_cost),
            representation=hood.copy_span(representation, home, changed, returns),
            cost=jnp.where(returns, home_cost, jnp.where(where, cost, state.cost)),
            changed=memory.copy(changed, NOWHERE, where),
            unlike_best=unlike_best.with_other(changed, returns),
        )
        if state.history is not None:
            after = rule.after(state.history, state.cost)
            state = state._replace(history=memory.copy(state.history, after, where))
        return state

    def _make(
        self,
        hood: Any,
        problem: Problem,
        state: IteratedState,
        move: Any,
        delta: Cost,
        where: jax.Array,
    ) -> IteratedState:
        """Returns the state after a move, if `where` holds, with what it touches in the queue."""

        def make(state: IteratedState, where: jax.Array) -> IteratedState:
            queue, representation = state.queue, state.representation
            for element in hood.touched(problem, representation, move):
                queue = queue.push(element, where)
            span = hood.span(problem, representation, move)
            changed = state.changed.with_other(span, where)
            unlike_best = state.unlike_best.with_other(span, where)
            representation = hood.commit(problem, representation, move, where)
            cost = self.cost_after(state.cost, delta, where, representation)
            parts = {"queue": queue, "changed": changed, "unlike_best": unlike_best}
            return state._replace(representation=representation, cost=cost, **parts)

        return memory.when(where, make, state, in_place=True)

    def _everywhere(self, problem: Problem) -> Queue:
        """Returns the queue of all elements."""
        room, number = self.neighborhood.elements(problem)
        element, number = lax.iota(jnp.int32, room), jnp.asarray(number, jnp.int32)
        return Queue(element, element < number, jnp.int32(0), number)

    @property
    def parts(self) -> tuple[Any, ...]:
        return self.neighborhood, self.kick

    def evaluations_per_step(self, problem: Any) -> int:
        """Returns the moves of an element, those counted that cannot be better."""
        return self.neighborhood.num_moves_of(problem)

    def num_warps(self, problem: Problem, num_searches: int) -> int:
        return self.neighborhood.num_warps(problem)


def iterated_local_search(
    neighborhood: Any,
    kick: Any = None,
    *,
    acceptance: Acceptance | None = None,
    num_kicks: int = 1,
) -> IteratedLocalSearch:
    """Returns iterated local search: a kick, a descent from there, and back if that was worse.

    A step looks at the moves of one element, such as a city, and makes the best of them if it is
    better. Elements wait in a queue: all of them at the start, then those that a kick or a move has
    touched. When the queue is empty the descent is over. Its end is compared with the solution
    that was kicked, the worse one is left, and the other one is kicked.

    Args:
      neighborhood: a `js.ByElement`, such as `two_opt(problem)`; those with a table of moves are.
      kick: a neighborhood of the same representation with `touched`, whose random moves are made
        whatever they cost, such as `DoubleBridge()`; None for `neighborhood`.
      acceptance: whether the end of a descent passes, as in `local_search`; its delta is the one
        from the solution that was kicked. None for `js.acceptance.greedy()`: if it is no worse.
      num_kicks: moves that are one kick.

    Raises:
      ValueError: if `num_kicks` is out of range.
      TypeError: if an argument is not of these kinds.

    Example:
      >>> import jaxopt_search as js
      >>> flow, distance = [[0, 5, 2], [5, 0, 3], [2, 3, 0]], [[0, 8, 15], [8, 0, 13], [15, 13, 0]]
      >>> search = iterated_local_search(js.SwapTable(), num_kicks=2)
      >>> js.solve(js.qap(flow, distance), search, 0, num_searches=4, max_steps=100).fun
      218
    """
    kick = neighborhood if kick is None else kick
    acceptance = rules.greedy() if acceptance is None else acceptance
    check_part(acceptance, Acceptance)
    check_part(neighborhood, ByElement, "neighborhood")
    if not isinstance(kick, Neighborhood) or not hasattr(kick, "touched"):
        kind = type(kick).__name__
        raise TypeError(f"kick is a {kind}, expected a neighborhood with touched")
    return IteratedLocalSearch(
        neighborhood=neighborhood,
        kick=kick,
        acceptance=acceptance,
        num_kicks=check_count("num_kicks", num_kicks),
    )
