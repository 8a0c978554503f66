"""What a local heuristic is: the part of a successor function that a user writes."""

import abc
import dataclasses
from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from jaxopt_search.backends import memory

Rating: TypeAlias = Any
"""A pytree of arrays, of whatever a possibility is rated by."""

MAX_POSSIBILITIES = 2**24
MAX_WORD = 2**32 - 1
HOOKS = ("could_not_assign", "before_variable", "after_variable", "before_state", "after_state")
_LANES = 256


@dataclasses.dataclass(frozen=True)
class Aggregate:
    """What is to be known of the ratings of all possibilities of a variable: a commutative monoid.

    Attributes:
      combine: maps two values to one, elementwise; it is associative and commutative. Where it is
        only nearly so, as sums of floats are, values are combined in one order on all devices.
      neutral: a scalar of NumPy's, or a pytree of them, of the dtypes of the values, which changes
        no value that it is combined with.
      of: maps a rating to a value; None for the rating itself.

    Example:
      >>> import jax.numpy as jnp, numpy as np
      >>> highest = Aggregate(jnp.maximum, np.int32(0))
      >>> int(highest.combine(highest.neutral, 7))
      7
    """

    combine: Callable[[Any, Any], Any]
    neutral: Any
    of: Callable[[Rating], Any] | None = None


class LocalHeuristic(abc.ABC):
    """Rates what a variable may be assigned, one possibility on its own, and assigns it.

    Koester, Gross, Krueger, "FANG: Fast and Efficient Successor-State Generation for Heuristic
    Optimization on GPUs", section 3. A heuristic is a pytree, as a neighborhood is, and serves the
    variables of one type. All of its functions are portable: they read buffers of `problem` and
    `state` by `memory.load`, write those of `state` by `memory.store`, and compute elementwise. A
    leaf of a state that has one number per state is a scalar, all others are buffers.
    """

    num_variables: int
    """The number of variables of this type; static."""
    max_possibilities: int
    """The most possibilities that a variable of this type has, up to 2**24; static."""

    aggregates: tuple[Aggregate, ...] = ()
    """What `weight` needs to know of the ratings of all possibilities."""
    num_possibilities: Any = None
    """`num_possibilities(problem, state, variable)`, [] int32: how many possibilities there are
    now, those from 0 on; taken to be within 0 and `max_possibilities`. None for that many.
    """
    max_weight: int = MAX_WORD
    """No weight is above it. If the sum of all weights then stays below 2**32, it is kept in one
    word, which is faster and changes nothing else.
    """
    independent: bool = False
    """Whether no assignment of a variable of this type changes the weights of another one. They may
    then be rated all at once, before the first is assigned, so that there must be no
    `before_variable`, `after_variable` or `active_now`. `check` looks whether it is so.
    """
    is_portable: bool = False
    """Whether all of its functions are portable; needed for the compiled loops of a CPU. For a
    GPU's kernel it is found out.
    """
    could_not_assign: Any = None
    """`could_not_assign(problem, state, variable, where)`: the state after a variable for which all
    weights are 0.
    """
    before_state: Any = None
    """`before_state(problem, state, where)`: the state before the variables of this type."""
    after_state: Any = None
    """The state after them, likewise."""
    before_variable: Any = None
    """`before_variable(problem, state, variable, where)`: the state before one of them."""
    after_variable: Any = None
    """The state after it, likewise."""
    active_now: Any = None
    """`active_now(problem, state, left)`: the set of variables that are active, of those of this
    type. It is called before the first variable and after each one, all hooks included, with the
    set that is left, as `bit_sets.read` returns it, and returns `left` with variables
    `bit_sets.added` and `bit_sets.removed`; that is how `assign` and the hooks, by what they write
    into the state, activate and deactivate variables (section 3.4). A variable has one turn in a
    successor: it is skipped if it is not active then, and not activated again after it.
    """
    allows: Any = None
    """`allows(problem, state, variable, possibility)`, elementwise: which possibilities have a
    weight above 0, if `Guided` can tell that faster than by the weights.
    """
    is_movable: Any = None
    """`is_movable(problem, state, variable)`, elementwise: which variables have a possibility that
    is allowed, likewise.
    """

    @abc.abstractmethod
    def rate(
        self, problem: Any, state: Any, variable: jax.Array, possibility: jax.Array, /
    ) -> Rating:
        """Returns the ratings of possibilities.

        A possibility whose rating has a NaN is forbidden, and no aggregate counts it.

        Args:
          variable: [] int32.
          possibility: [M] int32, from 0 to the number of possibilities - 1.

        Returns:
          A pytree of arrays [M], integers, floats or bools.
        """

    @abc.abstractmethod
    def weight(self, problem: Any, rating: Rating, aggregates: tuple[Any, ...], /) -> jax.Array:
        """Returns the weights of possibilities, which are drawn with chances weight / sum.

        Args:
          rating: of [M] possibilities.
          aggregates: scalars, or pytrees of them, one for each of `aggregates`.

        Returns:
          [M] int32 or uint32; what is not above 0 is forbidden.
        """

    @abc.abstractmethod
    def assign(
        self,
        problem: Any,
        state: Any,
        variable: jax.Array,
        possibility: jax.Array,
        where: jax.Array,
        /,
    ) -> Any:
        """Returns the state in which a variable has what a possibility stands for.

        Args:
          variable, possibility: [] int32.
          where: [] bool; if it does not hold, the state must stay as it is.
        """


def hook(
    heuristic: LocalHeuristic, name: str, problem: Any, state: Any, *arguments: jax.Array
) -> Any:
    """Returns the state after one of the `HOOKS`, the same one if it is missing."""
    if (call := getattr(heuristic, name)) is not None:
        state = call(problem, state, *arguments)
    return state


def active_now(heuristic: LocalHeuristic, problem: Any, state: Any, left: jax.Array) -> jax.Array:
    """Returns the set of variables that are active; `left` if `active_now` is missing."""
    call = heuristic.active_now
    return left if call is None else call(problem, state, left)


def is_wide(heuristic: LocalHeuristic) -> bool:
    """Returns whether a sum of weights may take more than 32 bits."""
    return heuristic.max_weight * heuristic.max_possibilities > MAX_WORD


def num_possibilities(
    heuristic: LocalHeuristic, problem: Any, state: Any, variable: jax.Array
) -> int | jax.Array:
    """Returns how many possibilities a variable has: a Python integer where that never changes."""
    most, count = heuristic.max_possibilities, heuristic.num_possibilities
    if count is None:
        return most
    number = jnp.asarray(count(problem, state, variable))
    return jnp.clip(number.astype(jnp.int32), jnp.int32(0), jnp.int32(most))


def lanes_and_blocks(heuristic: LocalHeuristic) -> tuple[int, int]:
    """Returns how many possibilities are handled at once, a power of two, and by how many blocks.

    Part of the definition of what is drawn; the same for all implementations.
    """
    lanes = min(memory.power_of_two(heuristic.max_possibilities), _LANES)
    return lanes, -(-heuristic.max_possibilities // lanes)


def only_rated(rating: Rating, where: jax.Array | None) -> jax.Array | None:
    """Returns `where` without the ratings that have a NaN; None for all of them."""
    for leaf in jax.tree.leaves(rating):
        if jnp.issubdtype(leaf.dtype, jnp.floating):
            is_number = leaf == leaf
            where = is_number if where is None else where & is_number
    return where


def values(aggregate: Aggregate, rating: Rating, where: jax.Array | None) -> Any:
    """Returns what ratings are to an aggregate, neutral where `where` does not hold; None for all.

    Args:
      where: as `only_rated` returns it.
    """
    own = rating if aggregate.of is None else aggregate.of(rating)
    if where is None:
        return own
    return jax.tree.map(lambda own, none: jnp.where(where, own, none), own, aggregate.neutral)


def weights(
    heuristic: LocalHeuristic,
    problem: Any,
    aggregates: tuple[Any, ...],
    rating: Rating,
    where: jax.Array | None,
) -> jax.Array:
    """Returns weights as uint32, 0 for what is forbidden and where `where` does not hold."""
    found = heuristic.weight(problem, rating, aggregates)
    if found.dtype == jnp.int32:
        found = jnp.maximum(found, jnp.int32(0)).astype(jnp.uint32)
    where = only_rated(rating, where)
    return found if where is None else jnp.where(where, found, jnp.uint32(0))
