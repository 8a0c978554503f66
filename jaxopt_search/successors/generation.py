"""FANG's successors of many states: generated, estimated in memory, and compared."""

import functools
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer

from jaxopt_search import backends
from jaxopt_search.backends import Implementation, bit_sets, memory, native, random
from jaxopt_search.backends.random import Key
from jaxopt_search.checks import check_count, check_option
from jaxopt_search.engine import memory as room
from jaxopt_search.engine import stepping
from jaxopt_search.engine.devices import Devices, Team, devices_of, find_devices, is_cpu
from jaxopt_search.engine.memory import num_bytes
from jaxopt_search.engine.split import split_up
from jaxopt_search.interrupts import refuse_orphans
from jaxopt_search.successors import algorithm, checking, heuristics
from jaxopt_search.successors.algorithm import Order, Ratings, Variables
from jaxopt_search.successors.checking import Kind

Storage: TypeAlias = Literal["auto", "stored", "recomputed"]

_MAX_WARPS = 8
_WARPS_AT_ONCE = 2112  # four for each scheduler of an H200
_SMALL = 2**24  # bytes for which the free memory is not looked up
_SHARE = 0.25  # of the free memory that stored ratings may take unless they are asked for


class Setup(NamedTuple):
    """How successors are generated; hashable.

    Attributes:
      num_successors: of each state.
      order: in which the variables of a type are assigned.
      ratings: what becomes of them between their aggregation and their mapping.
      implementation: `"xla"`, `"native"`, `"cuda"` or `"interpret"`.
    """

    num_successors: int
    order: Order
    ratings: Ratings
    implementation: Implementation


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


def generate(
    key: Any,
    heuristic: Any,
    problem: Any,
    states: Any,
    *,
    active: Any = None,
    num_successors: int = 1,
    order: Order = "fixed",
    ratings: Storage = "auto",
    implementation: Implementation = "auto",
    devices: Devices = None,
    donate: bool = False,
) -> Successors:
    """Returns random successors of states, steered by local heuristics.

    In each successor, the active variables are assigned one after the other: all possibilities of a
    variable are rated and weighed, and one is drawn by its weight. Later variables see what earlier
    ones were given. What is drawn is a function of the key, the numbers of the state and of the
    successor, and the variable; so it is the same in all implementations and on any number of
    devices, as far as ratings are.

    Koester, Gross, Krueger, "FANG: Fast and Efficient Successor-State Generation for Heuristic
    Optimization on GPUs". A segment here is a lane's possibilities, not a run of 32; see `draw`.

    Args:
      key: an integer seed or a `jax.random.key`.
      heuristic: a `LocalHeuristic`; or several, one for each type of variables, which are assigned
        one type after the other.
      problem: a pytree of arrays that the heuristics read; None if they need none.
      states: a pytree, leaves [X, ...].
      active: which variables are to be assigned: for each type, [X, ceil(n / 32)] uint32 as
        `bit_sets.pack` returns it, or without the axis of states; None for all of them.
      num_successors: k, of each state.
      order: of the variables of a type: `"fixed"`, by number, or `"random"`.
      ratings: `"stored"`, from when they are aggregated to when they are mapped to weights, or
        `"recomputed"`, which takes less memory; `"auto"` by what is faster and fits.
      implementation: how to run, as in `solve`.
      devices: over which the states are split, as in `solve`; None for the one they are on.
      donate: whether `states` may be overwritten: of one successor each, on one device, the arrays
        are deleted then.

    Raises:
      TypeError: if a heuristic, or what one of its functions returns, is not as it should be.
      ValueError: if an argument is out of range.
      MemoryError: if it takes more memory than there is, with how much.
      NotPortable: if an implementation is asked for that the heuristics cannot run in.

    Example:
      >>> import jax, jax.numpy as jnp, jaxopt_search as js
      >>> @jax.tree_util.register_static
      ... class OtherThanBefore(js.successors.LocalHeuristic):
      ...     num_variables, max_possibilities = 3, 2
      ...     def rate(self, problem, state, variable, possibility):
      ...         before = js.memory.load(state, jnp.maximum(variable - 1, 0))
      ...         return (variable > 0) & (possibility == before)
      ...     def weight(self, problem, rating, aggregates):
      ...         return jnp.where(rating, 0, 1)
      ...     def assign(self, problem, state, variable, possibility, where):
      ...         return js.memory.store(state, variable, possibility, where)
      >>> colors = jnp.zeros((1, 3), jnp.int32)
      >>> generate(0, OtherThanBefore(), None, colors, num_successors=3).states.tolist()
      [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    """
    refuse_orphans()
    types = checking.as_types(heuristic)
    num_successors = check_count("num_successors", num_successors)
    check_option("order", order, ("fixed", "random"))
    check_option("ratings", ratings, ("auto", "stored", "recomputed"))
    kind = checking.kind_of(types, problem, states)
    num_states = checking.look_at(kind).num_states
    active = checking.as_active(active, types, num_states)
    known = [leaf for leaf in jax.tree.leaves(states) if not isinstance(leaf, Tracer)]
    there = devices_of([leaf for leaf in known if isinstance(leaf, jax.Array)][:1])
    is_left_to_states = devices is None and there
    found = find_devices(min(there, key=lambda one: one.id) if is_left_to_states else devices)
    first, shared = Team(found).own[0], (types, problem, random.as_argument(key))
    leaves = jax.tree.leaves((shared, states, active))
    is_traced = any(isinstance(leaf, Tracer) for leaf in leaves)

    def find_obstacle() -> str:
        return _why_not_portable(kind) or stepping.distrust(first)

    is_portable = all(one.is_portable for one in types)
    choice = backends.choose(implementation, first, is_portable, is_traced, find_obstacle)
    ratings = _choose_ratings(ratings, kind, num_successors, choice.implementation, found)
    setup = Setup(num_successors, order, ratings, choice.implementation)
    if not is_traced and not all(
        isinstance(leaf, np.generic) or (isinstance(leaf, jax.Array) and leaf.devices() == {first})
        for leaf in leaves
    ):
        shared, states, active = jax.device_put((shared, states, active), first)
    if len(found) > 1:
        index = np.arange(num_states, dtype=np.uint32)
        if active is not None:
            active = tuple(np.broadcast_to(own, (num_states, own.shape[-1])) for own in active)
        return split_up(found, _on_each(setup), shared, (states, active, index))
    if donate and num_successors == 1:
        return _donating(setup, shared, states, active, None)
    return _keeping(setup, shared, states, active, None)


def run(
    setup: Setup,
    shared: tuple[tuple[Any, ...], Any, Any],
    states: Any,
    active: tuple[jax.Array, ...] | None,
    index: Any,
) -> Successors:
    """Returns the successors of some of all states.

    Args:
      shared: the heuristics of the types of variables, the problem, and the user's key.
      states: the user's, leaves [X, ...].
      active: for each type of variables, [X, words] uint32, or [words] for all states; None for all
        variables.
      index: [X] uint32, which states these are; None for all from 0 on.
    """
    (types, problem, key), times = shared, setup.num_successors
    num_states = jax.tree.leaves(states)[0].shape[0]
    if index is None:
        index = lax.iota(jnp.uint32, num_states)
    if active is None:
        active = tuple(jnp.asarray(bit_sets.full(one.num_variables)) for one in types)
    sets = tuple(jnp.broadcast_to(own, (num_states, own.shape[-1])) for own in active)
    repeat = functools.partial(jnp.repeat, repeats=times, axis=0)
    states, sets, index = jax.tree.map(repeat, (states, sets, index))
    number = lax.iota(jnp.uint32, num_states * times) % jnp.uint32(times)
    keys = random.successor_key(random.as_key(key), index, number)
    in_kernels = functools.partial(_assign_in_kernels, implementation=setup.implementation)
    ways = {"xla": algorithm.assign_side_by_side, "native": _assign_natively}
    assign = ways.get(setup.implementation, in_kernels)
    assigned: list[jax.Array] = []
    for number, heuristic in enumerate(types):
        of = Variables(heuristic, problem, number, setup.order, setup.ratings)
        states, done = assign(of, keys, states, sets[number])
        assigned.append(done)
    return Successors(states, index.astype(jnp.int32), tuple(assigned))


_keeping = jax.jit(run, static_argnums=0)
_donating = jax.jit(run, static_argnums=0, donate_argnums=2)


@functools.cache
def _on_each(setup: Setup) -> Any:
    """Returns the function that each of several devices runs, the same one for the same setup."""
    return lambda shared, entries: run(setup, shared, *entries)


def _assign_natively(
    of: Variables, keys: Key, states: Any, active: jax.Array
) -> tuple[Any, jax.Array]:
    """Like `algorithm.assign_side_by_side`, one state after the other in a compiled function."""

    def assign(
        heuristic: Any, problem: Any, key: Key, state: Any, active: jax.Array
    ) -> tuple[Any, jax.Array]:
        own, nothing = of._replace(heuristic=heuristic, problem=problem), jnp.zeros_like(active)
        state = algorithm.open_state(own, state)
        return algorithm.assign_in_turn(own, key, None, state, active, nothing)

    one = native.as_one_function(assign)
    never = lax.population_count(keys.first[0]) > 32  # which a compiler cannot tell
    assign_all = jax.vmap(one, in_axes=(None, None, None, 0, 0, 0))
    return assign_all(never, of.heuristic, of.problem, keys, states, active)


def _assign_in_kernels(
    of: Variables, keys: Key, states: Any, active: jax.Array, implementation: str
) -> tuple[Any, jax.Array]:
    """Like `algorithm.assign_side_by_side`, in a program per state.

    What is drawn for an independent type is drawn before, in a program per variable.
    """
    data, n, num_states = (of.heuristic, of.problem), of.heuristic.num_variables, active.shape[0]
    # One warp where programs are many, else several: a power of two.
    lanes, _ = heuristics.lanes_and_blocks(of.heuristic)
    most = max(1, min(lanes // memory.LANES, _WARPS_AT_ONCE // num_states, _MAX_WARPS))
    num_warps = 1 << most.bit_length() - 1

    def launch(body: Any, carry: Any, between: Any = ()) -> Any:
        """Has every program call `body` once, with its heuristic and problem as buffers."""

        def one(i: jax.Array, shared: Any, carry: Any) -> Any:
            (heuristic, problem), own = shared if between else (shared, ())
            return body(of._replace(heuristic=heuristic, problem=problem), own, carry)

        options = {"num_warps": num_warps, "implementation": implementation}
        return backends.launch(one, jnp.int32(1), data, carry, between=between, **options)

    def draw_one(of: Variables, given: Any, carry: Any) -> Any:
        (key, state), (variable, _) = given, carry
        return variable, algorithm.draw_for(of, key, state, variable)

    def assign(of: Variables, given: Any, carry: Any) -> Any:
        key, drawn, state, active, assigned = carry
        if drawn is None:
            state = algorithm.open_state(of, state)
        state, assigned = algorithm.assign_in_turn(of, key, drawn, state, active, assigned)
        return key, drawn, state, active, assigned

    drawn = None
    if of.heuristic.independent:
        if of.heuristic.before_state is not None:
            states = launch(lambda of, given, state: algorithm.open_state(of, state), states)
        variables = jnp.tile(lax.iota(jnp.int32, n), num_states)
        _, drawn = launch(draw_one, (variables, jnp.zeros_like(variables)), (keys, states))
        drawn = drawn.reshape(num_states, n)
    carry = keys, drawn, states, active, jnp.zeros_like(active)
    _, _, states, _, assigned = launch(assign, carry)
    return states, assigned


@functools.lru_cache(maxsize=256)
def _why_not_portable(kind: Kind) -> str:
    """Returns why heuristics cannot run in a kernel, found by lowering one for a single state."""
    types, problem, state, _ = checking.look_at(kind)
    states = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((1, *leaf.shape), leaf.dtype), state)

    def launch(types: Any, problem: Any, states: Any) -> Successors:
        setup = Setup(1, "fixed", "recomputed", "cuda")
        return run(setup, (types, problem, random.as_key(0)), states, None, None)

    return backends.obstacle(launch, types, problem, states)


def memory_estimate(
    heuristic: Any,
    problem: Any,
    states: Any,
    *,
    num_successors: int = 1,
    ratings: Ratings = "stored",
    implementation: Implementation = "xla",
) -> int:
    """Returns about how many bytes `generate` takes besides its checking.

    With stored ratings XLA takes, as the paper does (section 3.7), an entry per possibility in each
    state, and for an independent type in each of its variables. Kernels keep ratings in registers,
    and the loops of a CPU handle one state at a time.

    Args:
      heuristic, problem, states: as in `generate`; only shapes and dtypes count.
      num_successors: of each state.
      ratings, implementation: what is to run.

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.graph_coloring([[0, 1], [1, 2]], 2)
      >>> colors = jnp.zeros((1000, 3), jnp.int32)
      >>> states = js.types.Tallied(colors, jax.vmap(problem.tally)(colors))
      >>> heuristic = js.successors.ByDelta(num_variables=3, max_possibilities=2)
      >>> [memory_estimate(heuristic, problem, states, num_successors=k) for k in (1, 2)]
      [98000, 300000]
    """
    kind = checking.kind_of(checking.as_types(heuristic), problem, states)
    return _estimate(kind, num_successors, implementation, ratings)


def _choose_ratings(
    ratings: Storage,
    kind: Kind,
    num_successors: int,
    implementation: Implementation,
    devices: tuple[jax.Device, ...],
) -> Ratings:
    """Returns whether ratings are stored or recomputed.

    Raises:
      MemoryError: if it does not fit, with the sizes.
    """
    estimate = functools.partial(_estimate, kind, num_successors, implementation)
    if (stored := estimate("stored")) < _SMALL:
        return "stored" if ratings == "auto" else ratings
    first, times = devices[0], 1 if is_cpu(devices[0]) else len(devices)
    if ratings == "auto":
        is_little = stored <= _SHARE * times * room.free_bytes(first)
        ratings = "stored" if is_little else "recomputed"
    further = ", or ratings='recomputed'" if ratings == "stored" else ""
    what = f"num_successors is {num_successors} of {checking.look_at(kind).num_states} states"
    advice = f"fewer states or successors{further}"
    room.check_bytes(estimate(ratings) / times, what, first, "", advice)
    return ratings


@functools.lru_cache(maxsize=256)
def _estimate(
    kind: Kind, num_successors: int, implementation: Implementation, ratings: Ratings
) -> int:
    """Returns the bytes that `generate` takes besides its arguments."""
    types, problem, state, num_states = checking.look_at(kind)

    def aside(heuristic: Any) -> int:
        """Returns the bytes that the variables of a type take in each state."""
        is_drawn_before = heuristic.independent and implementation != "native"
        num_drawn = heuristic.num_variables if is_drawn_before else 0
        if implementation not in ("xla", "native"):
            return 4 * num_drawn
        lanes, blocks = heuristics.lanes_and_blocks(heuristic)
        # Sums in parts of 16 bits, up to and including each lane, and those before it.
        per_lane = 32 if heuristics.is_wide(heuristic) else 8
        per_lane += num_bytes([one.neutral for one in heuristic.aggregates])
        if ratings == "stored":
            none, one = jnp.int32(0), lax.iota(jnp.int32, 1)
            rate = lambda heuristic, *given: heuristic.rate(*given, none, one)  # noqa: E731
            rating = jax.eval_shape(rate, heuristic, problem, state)
            # Where a loop combines their values, XLA has a copy of them.
            orders = [one.combine not in algorithm.REDUCTIONS for one in heuristic.aggregates]
            copies = 2 if implementation == "xla" and any(orders) else 1
            per_lane += blocks * copies * num_bytes(rating)
        draws_at_once = max(num_drawn, 1) if implementation == "xla" else 1
        return 4 * num_drawn + lanes * per_lane * draws_at_once

    sets = sum(4 * bit_sets.num_words(one.num_variables) for one in types)
    copies = 1 if num_successors == 1 else 2  # of the states, and what becomes of them
    each = copies * (num_bytes(state) + sets) + 4 + 8  # a parent and a key
    successors = num_states * num_successors
    side_by_side = 1 if implementation == "native" else successors
    return successors * each + max(map(aside, types)) * side_by_side


@jax.jit
def duplicates(states: Any, parent: jax.Array | None = None) -> jax.Array:
    """Returns which states are equal to one before them.

    States are compared with their neighbors in the order of a hash of 64 bits; so a duplicate is
    missed if, by a chance of about 2**-64, another state has its hash. None is found that is not.

    Args:
      states: a pytree, leaves [N, ...]; floats are compared by their bits.
      parent: [N] int32, of which state each is a successor: only successors of the same state are
        compared then; None for all.

    Returns:
      [N] bool.

    Example:
      >>> duplicates(jnp.array([[1, 2], [2, 1], [1, 2]])).tolist()
      [False, False, True]
    """
    if not jax.tree.leaves(states)[0].shape[0]:
        return jnp.zeros(0, bool)
    words = _words(states if parent is None else (states, parent))
    number = lax.iota(jnp.int32, words.shape[0])
    *_, order = lax.sort((*_hash(words), number), num_keys=3)
    in_order = words[order]
    is_equal = (in_order[1:] == in_order[:-1]).all(axis=1)
    found = jnp.concatenate([jnp.zeros(1, bool), is_equal])
    return jnp.zeros_like(found).at[order].set(found)


def distinct(successors: Successors) -> Successors:
    """Returns the successors without those that equal an earlier one of the same state.

    On the host, because how many are left is not known before.

    Example:
      >>> states, parent = jnp.array([3, 4, 3, 3]), jnp.array([0, 0, 0, 1])
      >>> distinct(Successors(states, parent, ())).states.tolist()
      [3, 4, 3]
    """
    keep = np.flatnonzero(~np.asarray(duplicates(successors.states, successors.parent)))
    return jax.tree.map(lambda leaf: leaf[keep], successors)


def _words(tree: Any) -> jax.Array:
    """Returns all bits of each entry of a pytree with leaves [N, ...], [N, words] uint32."""
    parts = []
    for leaf in jax.tree.leaves(tree):
        flat = jnp.asarray(leaf).reshape(leaf.shape[0], -1)
        if flat.dtype == jnp.bool_:
            flat = flat.astype(jnp.uint8)
        size = flat.dtype.itemsize
        bits = lax.bitcast_convert_type(flat, {1: jnp.uint8, 2: jnp.uint16}.get(size, jnp.uint32))
        parts.append(bits.reshape(flat.shape[0], -1).astype(jnp.uint32))
    return jnp.concatenate(parts, axis=1)


def _hash(words: jax.Array) -> list[jax.Array]:
    """Returns two random words for each row, [N] uint32: the sums over its words."""
    place = lax.broadcasted_iota(jnp.uint32, words.shape, 1)
    mixed = random.threefry2x32((jnp.uint32(0), place), (words, jnp.uint32(0)))
    return [jnp.sum(word, axis=1, dtype=jnp.uint32) for word in mixed]
