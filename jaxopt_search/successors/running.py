"""Successors of many states, in each of the ways to run portable code."""

import functools
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search import backends
from jaxopt_search.backends import Implementation, bit_sets, memory, native, random
from jaxopt_search.backends.memory import store
from jaxopt_search.backends.random import Key, successor_key
from jaxopt_search.successors import heuristics, one_state
from jaxopt_search.successors.one_state import Course, Order, Type

_MAX_WARPS = 8
_WARPS_AT_ONCE = 2112  # four for each scheduler of an H200

Ratings: TypeAlias = Literal["stored", "recomputed"]


class Setup(NamedTuple):
    """How successors are generated; hashable.

    Attributes:
      num_successors: of each state.
      order: in which the variables of a type are assigned.
      ratings: what becomes of them between their aggregation and their mapping.
      implementation: `"xla"`, `"native"`, `"triton"` or `"interpret"`.
    """

    num_successors: int
    order: Order
    ratings: Ratings
    implementation: Implementation


class Input(NamedTuple):
    """Some of all states.

    Attributes:
      states: the user's, leaves [X, ...].
      active: for each type of variables, [X, words] uint32, or [words] for all states; None for all
        variables.
      index: [X] uint32, which states these are; None for all from 0 on.
    """

    states: Any
    active: tuple[jax.Array, ...] | None
    index: Any


class Successors(NamedTuple):
    """What `generate` returns, for X states with k successors each.

    Attributes:
      states: a pytree, leaves [X * k, ...]; the successors of state i begin at i * k.
      parent: [X * k] int32, the state of which each is a successor.
      assigned: for each type of variables, [X * k, words] uint32, the set of those that were given
        a value; see `bit_sets`.
    """

    states: Any
    parent: jax.Array
    assigned: tuple[jax.Array, ...]


def run(setup: Setup, shared: tuple[tuple[Any, ...], Any, Any], given: Input) -> Successors:
    """Returns the successors of states.

    Args:
      shared: the heuristics of the types of variables, the problem, and the user's key.
    """
    (types, problem, key), (states, active, index) = shared, given
    key = random.as_key(key)
    (num_states, *_), times = jax.tree.leaves(states)[0].shape, setup.num_successors
    if index is None:
        index = lax.iota(jnp.uint32, num_states)
    if active is None:
        active = tuple(jnp.asarray(bit_sets.full(one.num_variables)) for one in types)
    active = tuple(jnp.broadcast_to(own, (num_states, own.shape[-1])) for own in active)
    states, active, index = jax.tree.map(
        lambda leaf: jnp.repeat(leaf, times, axis=0), (states, active, index)
    )
    keys = successor_key(key, index, lax.iota(jnp.uint32, num_states * times) % jnp.uint32(times))
    assigned = []
    for number, heuristic in enumerate(types):
        kind = Type(number, heuristic, setup.order)
        assign = _WAYS[setup.implementation]
        states, done = assign(setup, kind, problem, keys, states, active[number])
        assigned.append(done)
    return Successors(states, index.astype(jnp.int32), tuple(assigned))


def _side_by_side(
    setup: Setup, kind: Type, problem: Any, keys: Key, states: Any, active: jax.Array
) -> tuple[Any, jax.Array]:
    is_independent, keep = heuristics.is_independent(kind.heuristic), setup.ratings == "stored"
    states = jax.vmap(functools.partial(one_state.opened, kind, problem))(states)
    drawn = None
    if is_independent:
        draw_all = functools.partial(_drawn_side_by_side, kind, problem, keep)
        drawn = jax.vmap(draw_all)(keys, states)

    def step_one(place: jax.Array, key: Key, drawn: Any, course: Course) -> Course:
        draw_one = one_state.draw_from(kind, problem, key, keep)
        if is_independent:
            draw_one = one_state.drawn_before(drawn)
        return one_state.step(kind, problem, key, draw_one, place, course)

    step_all = jax.vmap(step_one, in_axes=(None, 0, 0, 0))

    def step(place: jax.Array, courses: Course) -> Course:
        return step_all(place, keys, drawn, courses)

    courses = jax.vmap(functools.partial(one_state.begin, kind, problem))(states, active)
    _, courses = lax.while_loop(
        lambda carry: jnp.any(carry[1].left != 0),
        lambda carry: (carry[0] + 1, step(*carry)),
        (jnp.int32(0), courses),
    )
    states = jax.vmap(functools.partial(one_state.closed, kind, problem))(courses.state)
    return states, jax.vmap(bit_sets.write)(jnp.zeros_like(active), courses.assigned)


def _drawn_side_by_side(kind: Type, problem: Any, keep: bool, key: Key, state: Any) -> jax.Array:
    """Returns what is drawn for all variables in the same state, [n] int32, or -1."""
    draw_one = one_state.draw_from(kind, problem, key, keep)
    variables = lax.iota(jnp.int32, kind.heuristic.num_variables)
    return jax.vmap(lambda variable: one_state.as_number(draw_one(state, variable)))(variables)


def _natively(
    setup: Setup, kind: Type, problem: Any, keys: Key, states: Any, active: jax.Array
) -> tuple[Any, jax.Array]:
    def run_one(
        heuristic: Any, problem: Any, key: Key, state: Any, active: jax.Array
    ) -> tuple[Any, jax.Array]:
        own = kind._replace(heuristic=heuristic)
        with memory.one_search("native"):
            state = one_state.opened(own, problem, state)
            draw_one = one_state.draw_from(own, problem, key, setup.ratings == "stored")
            if heuristics.is_independent(heuristic):
                draw_one = one_state.drawn_before(_drawn_in_turn(own, draw_one, state, active))
            return _in_turn(own, problem, key, draw_one, state, active, jnp.zeros_like(active))

    run_one = jax.custom_batching.sequential_vmap(native.as_one_function(run_one))
    never = lax.population_count(keys.first[0]) > 32  # which a compiler cannot tell
    run_all = jax.vmap(run_one, in_axes=(None, None, None, 0, 0, 0))
    return run_all(never, kind.heuristic, problem, keys, states, active)


def _drawn_in_turn(kind: Type, draw_one: Any, state: Any, active: jax.Array) -> jax.Array:
    """Returns what is drawn for the active variables in the same state, [n] int32, or -1."""
    left = bit_sets.read(active, kind.heuristic.num_variables)

    def step(place: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        drawn, left = carry
        variable = bit_sets.first(left)
        found = one_state.as_number(draw_one(state, variable))
        there = jnp.bool_(True)
        return store(drawn, variable, found, there), bit_sets.removed(left, variable, there)

    nothing = jnp.full(kind.heuristic.num_variables, -1, jnp.int32)
    return lax.fori_loop(0, bit_sets.count(left), step, (nothing, left))[0]


def _in_turn(
    kind: Type, problem: Any, key: Key, draw_one: Any, state: Any, active: Any, assigned: Any
) -> tuple[Any, Any]:
    """Returns one state after its variables of a type, and the set of those that were assigned."""

    def step(place: jax.Array, course: Course) -> Course:
        return one_state.step(kind, problem, key, draw_one, place, course)

    course = one_state.begin(kind, problem, state, active)
    num_turns = bit_sets.count(course.left)
    if heuristics.has_hook(kind.heuristic, "active_now"):
        num_turns, always = jnp.int32(kind.heuristic.num_variables), step

        def step(place: jax.Array, course: Course) -> Course:
            is_left = bit_sets.count(course.left) > 0
            return memory.when(is_left, lambda course, where: always(place, course), course)

    course = memory.fori_loop(num_turns, step, course)
    state = one_state.closed(kind, problem, course.state)
    return state, bit_sets.write(assigned, course.assigned)


def _in_kernels(
    setup: Setup, kind: Type, problem: Any, keys: Key, states: Any, active: jax.Array
) -> tuple[Any, jax.Array]:
    """Like `_natively`, in a program per state, or per variable for what is drawn."""
    keep, is_independent = setup.ratings == "stored", heuristics.is_independent(kind.heuristic)
    shared, n = (kind.heuristic, problem), kind.heuristic.num_variables
    launch = functools.partial(
        backends.launch,
        num_warps=_num_warps(kind.heuristic, active.shape[0]),
        interpret=setup.implementation == "interpret",
    )

    def open_one(i: jax.Array, shared: Any, state: Any) -> Any:
        heuristic, problem = shared
        return one_state.opened(kind._replace(heuristic=heuristic), problem, state)

    def draw_one_variable(i: jax.Array, data: Any, own: Any) -> Any:
        ((heuristic, problem), (key, state)), (variable, _) = data, own
        draw_one = one_state.draw_from(kind._replace(heuristic=heuristic), problem, key, keep)
        return variable, one_state.as_number(draw_one(state, variable))

    def assign(i: jax.Array, shared: Any, own: Any) -> Any:
        (heuristic, problem), (key, drawn, state, active, assigned) = shared, own
        one = kind._replace(heuristic=heuristic)
        if drawn is None:
            state = one_state.opened(one, problem, state)
            draw_one = one_state.draw_from(one, problem, key, keep)
        else:
            draw_one = one_state.drawn_before(drawn)
        state, assigned = _in_turn(one, problem, key, draw_one, state, active, assigned)
        return key, drawn, state, active, assigned

    drawn, num_states = None, active.shape[0]
    if is_independent:
        if heuristics.has_hook(kind.heuristic, "before_state"):
            states = launch(open_one, jnp.int32(1), shared, states)
        variables = jnp.tile(lax.iota(jnp.int32, n), num_states)
        own = variables, jnp.zeros_like(variables)
        _, drawn = launch(draw_one_variable, jnp.int32(1), shared, own, between=(keys, states))
        drawn = drawn.reshape(num_states, n)
    own = keys, drawn, states, active, jnp.zeros_like(active)
    _, _, states, _, assigned = launch(assign, jnp.int32(1), shared, own)
    return states, assigned


def _num_warps(heuristic: Any, num_programs: int) -> int:
    """Returns the warps of a program, a power of two: one where programs are many."""
    most = heuristics.num_lanes(heuristic) // memory.LANES
    most = max(1, min(most, _WARPS_AT_ONCE // num_programs, _MAX_WARPS))
    return 1 << most.bit_length() - 1


_WAYS = {
    "xla": _side_by_side,
    "native": _natively,
    "triton": _in_kernels,
    "interpret": _in_kernels,
}
