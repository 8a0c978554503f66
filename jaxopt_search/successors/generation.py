"""FANG's N(x): successors of states, from a user's call to the arrays that are returned."""

import functools
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from jaxopt_search import backends
from jaxopt_search.backends import Choice, Implementation, portability, random
from jaxopt_search.checks import check_count, check_option
from jaxopt_search.engine import device_split, split_entries
from jaxopt_search.engine.device_split import Devices
from jaxopt_search.engine.processes import Team
from jaxopt_search.engine.tracing import default_device
from jaxopt_search.guards import forks
from jaxopt_search.successors import arguments, heuristics, memory_use, running
from jaxopt_search.successors.arguments import Kind
from jaxopt_search.successors.memory_use import Job, Storage
from jaxopt_search.successors.one_state import Order
from jaxopt_search.successors.running import Input, Setup, Successors

_WAYS = ("auto", "xla", "native", "triton", "interpret")


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
      ... class OtherThanBefore:
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
    forks.refuse_orphans()
    types = arguments.as_types(heuristic)
    num_successors = check_count("num_successors", num_successors)
    check_option("order", order, ("fixed", "random"))
    check_option("ratings", ratings, ("auto", "stored", "recomputed"))
    check_option("implementation", implementation, _WAYS)
    kind = arguments.kind_of(types, problem, states)
    num_states = arguments.look_at(kind).num_states
    active = arguments.as_active(active, types, num_states)
    found = _devices_of(devices, states)
    shared = types, problem, random.as_argument(key)
    is_traced = any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((shared, states, active)))
    first = Team(found).own[0]
    chosen = _choose(implementation, first, kind, is_traced).implementation
    ratings = memory_use.choose(ratings, Job(kind, num_successors, chosen), found)
    setup = Setup(num_successors, order, ratings, chosen)
    if not is_traced:
        shared, states, active = _brought(first, (shared, states, active))
    if len(found) > 1:
        index = np.arange(num_states, dtype=np.uint32)
        if active is not None:
            active = tuple(np.broadcast_to(own, (num_states, own.shape[-1])) for own in active)
        return split_entries.split_up(found, _on_each(setup), shared, Input(states, active, index))
    if donate and num_successors == 1:
        return _donating(setup, shared, states, active)
    return _keeping(setup, shared, Input(states, active, None))


_keeping = jax.jit(running.run, static_argnums=0)


@functools.partial(jax.jit, static_argnums=0, donate_argnums=2)
def _donating(setup: Setup, shared: Any, states: Any, active: Any) -> Successors:
    return running.run(setup, shared, Input(states, active, None))


@functools.cache
def _on_each(setup: Setup) -> Any:
    """Returns the function that each of several devices runs, the same one for the same setup."""
    return functools.partial(running.run, setup)


def _choose(
    implementation: Implementation, device: jax.Device, kind: Kind, is_traced: bool
) -> Choice:
    """Returns which implementation runs, and why; arguments as in `backends.choose`."""
    portable = all(map(heuristics.is_portable, arguments.look_at(kind).types))
    find_obstacle = functools.partial(_why_not_portable, kind)
    return backends.choose(implementation, device, portable, is_traced, find_obstacle)


@functools.lru_cache(maxsize=256)
def _why_not_portable(kind: Kind) -> str:
    """Returns why heuristics cannot run in a kernel, found by lowering one for a single state."""
    types, problem, state, _ = arguments.look_at(kind)
    states = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((1, *leaf.shape), leaf.dtype), state)

    def launch(types: Any, problem: Any, states: Any) -> Successors:
        setup = Setup(1, "fixed", "recomputed", "triton")
        return running.run(setup, (types, problem, random.as_key(0)), Input(states, None, None))

    return portability.obstacle(launch, types, problem, states)


def _devices_of(devices: Devices, states: Any) -> tuple[jax.Device, ...]:
    """Returns the devices that are to run it: of None, the first one of the states."""
    if devices is not None:
        return device_split.find_devices(devices)
    for leaf in jax.tree.leaves(states):
        if isinstance(leaf, jax.Array) and not isinstance(leaf, Tracer):
            return (min(leaf.devices(), key=lambda device: device.id),)
    return (default_device(),)


def _brought(device: jax.Device, tree: Any) -> Any:
    """Returns a pytree with all of its leaves on a device."""
    for leaf in jax.tree.leaves(tree):
        is_array = isinstance(leaf, jax.Array)
        if not isinstance(leaf, np.generic) and not (is_array and leaf.devices() == {device}):
            return jax.device_put(tree, device)
    return tree
