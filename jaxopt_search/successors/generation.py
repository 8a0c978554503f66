"""FANG's N(x): successors of states, from a user's call to the arrays that are returned."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jaxopt_search import forks, kernels, loop, parallel, random
from jaxopt_search.checks import check_count, check_option
from jaxopt_search.kernels import Choice, Implementation, portability
from jaxopt_search.parallel import Devices
from jaxopt_search.successors import bit_sets, heuristics, memory_use, running
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
    ones were given. What is drawn is a function of the key, the number of the state, that of the
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
      donate: whether `states` may be overwritten; those arrays are deleted then.

    Raises:
      TypeError: if a heuristic, or what one of its functions returns, is not as it should be.
      ValueError: if an argument is out of range.
      MemoryError: if it takes more memory than there is, with how much.
      NotPortable: if an implementation is asked for that the heuristics cannot run in.

    Example:
      >>> import jaxopt_search as js
      >>> @jax.tree_util.register_static
      ... class FewerNeighbors:
      ...     num_variables, max_possibilities = 3, 3
      ...     def rate(self, problem, state, variable, possibility):
      ...         before = js.memory.load(state, jnp.maximum(variable - 1, 0))
      ...         return (variable > 0) & (possibility == before)
      ...     def weight(self, problem, rating, aggregates):
      ...         return jnp.where(rating, 0, 1)
      ...     def assign(self, problem, state, variable, possibility, where):
      ...         return js.memory.store(state, variable, possibility, where)
      >>> found = generate(0, FewerNeighbors(), None, jnp.zeros((1, 3), jnp.int32))
      >>> colors = found.states[0]
      >>> bool((colors[1:] != colors[:-1]).all())
      True
    """
    forks.refuse_orphans()
    types = heuristics.as_types(heuristic)
    num_successors = check_count("num_successors", num_successors)
    check_option("order", order, ("fixed", "random"))
    check_option("ratings", ratings, ("auto", "stored", "recomputed"))
    check_option("implementation", implementation, _WAYS)
    shapes, num_states = heuristics.one_state(states)
    heuristics.check_all(types, problem, shapes)
    active = heuristics.as_active(active, types, num_states)
    found = _devices_of(devices, states)
    is_traced = any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((problem, states, active)))
    chosen = choose(implementation, found[0], types, problem, shapes, is_traced)
    job = Job(types, problem, shapes, num_states, num_successors, chosen.implementation)
    ratings = memory_use.choose(ratings, job, found)
    setup = Setup(num_successors, order, ratings, chosen.implementation)
    shared = types, problem, random.as_key(key)
    if len(found) > 1:
        index = np.arange(num_states, dtype=np.uint32)
        if active is not None:
            active = tuple(np.broadcast_to(own, (num_states, own.shape[-1])) for own in active)
        return parallel.split_up(found, _on_each(setup), shared, Input(states, active, index))
    if donate and num_successors == 1:
        return _donating(setup, shared, states, active)
    return _keeping(setup, shared, Input(states, active, None))


_keeping = jax.jit(running.run, static_argnums=0)


@functools.partial(jax.jit, static_argnums=0, donate_argnums=2)
def _donating(setup: Setup, shared: Any, states: Any, active: Any) -> Successors:
    return running.run(setup, shared, Input(states, active, None))


@functools.cache
def _on_each(setup: Setup) -> Any:
    """Returns what each of several devices runs; the same function for the same setup."""
    return functools.partial(running.run, setup)


def choose(
    implementation: Implementation,
    device: jax.Device | str,
    types: tuple[Any, ...],
    problem: Any,
    state: Any,
    is_traced: bool = False,
) -> Choice:
    """Returns which implementation runs, and why; arguments as in `kernels.choose`.

    Args:
      types: the heuristics.
      state: the shapes of one state.
    """
    find_obstacle = functools.partial(_why_not_portable, types, problem, state)
    portable = all(map(heuristics.is_portable, types))
    return kernels.choose(implementation, device, portable, is_traced, find_obstacle)


def _why_not_portable(types: tuple[Any, ...], problem: Any, state: Any) -> str:
    leaves, structure = jax.tree.flatten((types, problem, state))
    return _obstacle(structure, tuple((jnp.shape(leaf), jnp.result_type(leaf)) for leaf in leaves))


@functools.lru_cache(maxsize=256)
def _obstacle(structure: Any, leaves: tuple[Any, ...]) -> str:
    """Returns what keeps heuristics out of a kernel, found by lowering one of a single state."""
    shapes = (jax.ShapeDtypeStruct(*leaf) for leaf in leaves)
    types, problem, state = structure.unflatten(shapes)
    states = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((1, *leaf.shape), leaf.dtype), state)
    sets = (jnp.zeros((1, bit_sets.num_words(one.num_variables)), jnp.uint32) for one in types)
    given = Input(states, tuple(sets), jnp.zeros(1, jnp.uint32))

    def launch(types: Any, problem: Any, given: Input) -> Successors:
        setup = Setup(1, "fixed", "recomputed", "triton")
        return running.run(setup, (types, problem, random.as_key(0)), given)

    return portability.obstacle(launch, types, problem, given)


def _devices_of(devices: Devices, states: Any) -> tuple[jax.Device, ...]:
    """Returns the devices that are to run it: of None, those of the states."""
    if devices is not None:
        return parallel.find_devices(devices)
    for leaf in jax.tree.leaves(states):
        if isinstance(leaf, jax.Array) and not isinstance(leaf, Tracer):
            return (next(iter(leaf.devices())),)
    return (loop.default_device(),)
