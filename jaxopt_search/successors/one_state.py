"""One state becomes a successor: its active variables are assigned one after the other.

Algorithm 1 of Koester, Gross, Krueger, "FANG: Fast and Efficient Successor-State Generation for
Heuristic Optimization on GPUs"; portable. Numbers drawn are a function of the successor's key, the
variable, and, for a random order, of how many were assigned before.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from jaxopt_search.backends import bit_sets, memory, random
from jaxopt_search.backends.memory import load
from jaxopt_search.backends.random import Key
from jaxopt_search.successors import heuristics
from jaxopt_search.successors.draw import Drawn, draw

Order: TypeAlias = Literal["fixed", "random"]

_FOR_ORDER = 2**31


class Course(NamedTuple):
    """A state while the variables of one type are assigned.

    Attributes:
      state: the user's.
      waiting: the set of variables that have not had their turn, as `bit_sets.read` returns it.
      left: likewise, those of them that are active.
      assigned: likewise, those that were assigned.
    """

    state: Any
    waiting: jax.Array
    left: jax.Array
    assigned: jax.Array


class Type(NamedTuple):
    """A type of variables.

    Attributes:
      number: of the type.
      heuristic: what assigns them.
      order: in which they are assigned.
    """

    number: int
    heuristic: Any
    order: Order


def opened(kind: Type, problem: Any, state: Any) -> Any:
    """Returns the state in which the variables of a type are to be assigned."""
    state = heuristics.hook(kind.heuristic, "before_state", problem, state, jnp.bool_(True))
    memory.barrier()
    return state


def begin(kind: Type, problem: Any, state: Any, active: jax.Array) -> Course:
    """Returns the course before the first variable."""
    waiting = bit_sets.everything(kind.heuristic.num_variables)
    left = bit_sets.read(active, kind.heuristic.num_variables)
    left = heuristics.active_now(kind.heuristic, problem, state, left) & waiting
    return Course(state, waiting, left, jnp.zeros_like(left))


def closed(kind: Type, problem: Any, state: Any) -> Any:
    """Returns the state after the last one."""
    state = heuristics.hook(kind.heuristic, "after_state", problem, state, jnp.bool_(True))
    memory.barrier()
    return state


def words_of(kind: Type, key: Key, variable: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns the two random words by which a variable is assigned."""
    counter = variable.astype(jnp.uint32), jnp.uint32(kind.number)
    return random.threefry2x32(key, counter, random.WORD_ROUNDS)


def step(
    kind: Type,
    problem: Any,
    key: Key,
    draw_one: Callable[[Any, jax.Array], Drawn],
    place: jax.Array,
    course: Course,
) -> Course:
    """Returns the course after one variable more, if one is left.

    Args:
      draw_one: maps a state and a variable to what it is to be assigned.
      place: [] int32, how many were handled before.
    """
    heuristic, (state, waiting, left, assigned) = kind.heuristic, course
    num_left = bit_sets.count(left)
    where = num_left > 0
    variable = jnp.where(where, _next(kind, key, place, left, num_left), jnp.int32(0))
    waiting = bit_sets.removed(waiting, variable, where)

    state = heuristics.hook(heuristic, "before_variable", problem, state, variable, where)
    memory.barrier()
    possibility, is_possible = draw_one(state, variable)
    memory.barrier()  # all lanes have read the state

    def assign(state: Any, where: jax.Array) -> Any:
        return heuristic.assign(problem, state, variable, possibility, where)

    def give_up(state: Any, where: jax.Array) -> Any:
        return heuristics.hook(heuristic, "could_not_assign", problem, state, variable, where)

    state = memory.when(where & is_possible, assign, state)
    if heuristics.has_hook(heuristic, "could_not_assign"):
        state = memory.when(where & ~is_possible, give_up, state)
    state = heuristics.hook(heuristic, "after_variable", problem, state, variable, where)
    memory.barrier()
    # Where none was left, the course has ended: nothing is activated any more.
    left = jnp.where(where, heuristics.active_now(heuristic, problem, state, left & waiting), left)
    assigned = bit_sets.added(assigned, variable, where & is_possible)
    return Course(state, waiting, left & waiting, assigned)


def _next(
    kind: Type, key: Key, place: jax.Array, left: jax.Array, num_left: jax.Array
) -> jax.Array:
    """Returns the variable that comes next."""
    if kind.order == "fixed":
        return bit_sets.first(left)
    counter = place.astype(jnp.uint32), jnp.uint32(_FOR_ORDER + kind.number)
    word, _ = random.threefry2x32(key, counter, random.WORD_ROUNDS)
    return bit_sets.member(left, random.below(word, num_left))


def draw_from(kind: Type, problem: Any, key: Key, keeps_ratings: bool) -> Any:
    """Returns a function that draws for a variable, rating all its possibilities in the state."""

    def draw_one(state: Any, variable: jax.Array) -> Drawn:
        words = words_of(kind, key, variable)
        return draw(kind.heuristic, problem, state, variable, words, keeps_ratings)

    return draw_one


def drawn_before(drawn: Any) -> Any:
    """Returns a function that looks up what was drawn before.

    Args:
      drawn: [num_variables] int32, a possibility or -1.
    """

    def draw_one(state: Any, variable: jax.Array) -> Drawn:
        possibility = load(drawn, variable)
        return Drawn(jnp.maximum(possibility, 0), possibility >= 0)

    return draw_one


def as_number(drawn: Drawn) -> jax.Array:
    """Returns a possibility, or -1."""
    return jnp.where(drawn.is_possible, drawn.possibility, jnp.int32(-1))
