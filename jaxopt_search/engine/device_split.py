# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false
"""The one place that knows about devices: searches split over them with `jax.pmap`.

What a search does depends on its global index only, so the split changes no result. Where the
searches do not divide evenly, copies of the last one fill up the devices and count for nothing.
"""

import dataclasses
import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import jax
import numpy as np
from jax.sharding import Sharding

from jaxopt_search.backends import Implementation
from jaxopt_search.engine import apart, exchanging, loop, outcome, placing, processes, stepping
from jaxopt_search.engine.kept_programs import Kept, Program
from jaxopt_search.engine.outcome import Outcome
from jaxopt_search.engine.placing import AXIS, split_leaf
from jaxopt_search.engine.processes import Team
from jaxopt_search.engine.state import Rules, RunState
from jaxopt_search.engine.tracing import default_device
from jaxopt_search.guards.forks import refuse_orphans

Devices: TypeAlias = int | str | jax.Device | Sequence[jax.Device] | None

Tree = TypeVar("Tree")

# The parts of a run's state with an entry per search; the others are the same on every device.
_PER_SEARCH = ("index", "searches", "ancestor", "hit", "info")
AXES = RunState._make(0 if name in _PER_SEARCH else None for name in RunState._fields)
"""The axes of a state from `DeviceSplit.split`, as `pmap` takes them."""


def find_devices(devices: Devices) -> tuple[jax.Device, ...]:
    """Returns the devices a user means.

    Args:
      devices: None for the default device; `"all"`; a platform such as `"gpu"` for all of it; how
        many of this process's devices; one device, or several. After `jax.distributed.initialize`,
        those of all processes count as all.

    Raises:
      ValueError: if there are no such devices, with the list of those there are.
      RuntimeError: if JAX cannot work here; see `forks`.
    """
    refuse_orphans()
    found = _matching_devices(devices)
    if not found or len(set(found)) < len(found):
        names = ", ".join(str(device) for device in jax.devices())
        if isinstance(devices, str):
            raise ValueError(f"devices is {devices!r}, of which JAX sees none; it sees {names}")
        raise ValueError(f"devices is {devices!r}, expected different ones of: {names}")
    return processes.check(found)


def _matching_devices(devices: Devices) -> tuple[jax.Device, ...]:
    local = jax.local_devices()
    match devices:
        case None:
            return (default_device(),)
        case "all":
            return tuple(jax.devices())
        case str():
            return tuple(_platform_devices(devices))
        case jax.Device():
            return (devices,)
        case bool() | np.bool_():
            return ()
        case int() | np.integer():
            return tuple(local[:devices]) if 0 < devices <= len(local) else ()
        case Sequence() if all(isinstance(device, jax.Device) for device in devices):
            return tuple(devices)
        case _:
            return ()


def _platform_devices(platform: str) -> list[jax.Device]:
    try:
        return jax.devices(platform) if platform else []
    except RuntimeError:
        return []


@dataclasses.dataclass(frozen=True)
class DeviceSplit:
    """Runs `loop.advance` with the searches spread over `devices`."""

    devices: tuple[jax.Device, ...]

    @functools.cached_property
    def team(self) -> Team:
        """The processes that the devices belong to."""
        return Team(self.devices)

    @property
    def first(self) -> jax.Device:
        """The first device of this process."""
        return self.team.own[0]

    def bring(self, tree: Tree) -> Tree:
        """Returns a pytree with all of its arrays on the first device of this process."""
        return tree if self._has(tree) else jax.device_put(tree, placing.only_on(self.first))

    def brought(self, tree: Tree) -> Tree:
        """Returns what `bring` returns, or its shapes."""
        return tree if self._has(tree) else placing.shapes(tree, placing.only_on(self.first))

    def _has(self, tree: Any) -> bool:
        """Returns whether all arrays are on the first device; elsewhere they are to be bound."""
        arrays = (leaf for leaf in jax.tree.leaves(tree) if isinstance(leaf, jax.Array))
        is_default = self.first == default_device()
        return is_default and all(
            array.devices() == {self.first} and jax.typeof(array).sharding.mesh.empty
            for array in arrays
        )

    def split(self, state: RunState) -> RunState:
        """Returns `state` for `advance`: on several devices with leaves [D, S / D, ...].

        Of D devices in several processes, each process has the leaves of its own ones.
        """
        if len(self.devices) == 1:
            return self.bring(state)
        num_searches = state.index.shape[0]
        padding = -num_searches % len(self.devices)

        split_each = functools.partial(split_leaf, len(self.devices))
        split = _map_searches(split_each, jax.device_get(state))
        is_padding = np.arange(num_searches + padding) >= num_searches
        index = np.where(is_padding.reshape(split.index.shape), np.int32(-1), split.index)
        return self._put(split._replace(index=index))

    def _put(self, split: RunState) -> RunState:
        """Places the own parts as `pmap` returns them, so that the first chunk compiles for all."""
        split = _map_searches(operator.itemgetter(self.team.rows), split)
        return RunState._make(map(jax.device_put, split, self._shardings))

    @property
    def _shardings(self) -> list[Sharding]:
        """Where the parts of a state lie on several devices."""
        each, whole = placing.in_parts(self.team.own), placing.everywhere(self.team.own)
        return [each if name in _PER_SEARCH else whole for name in RunState._fields]

    def shapes(self, state: RunState, *parts: Any) -> RunState:
        """Returns the shapes of what `split` makes of a state.

        Args:
          state: arrays or shapes.
          parts: the state is made of, such as the problem.
        """
        num = len(self.devices)
        if num == 1:
            return placing.shapes(state, self._where(parts))
        split = _map_searches(functools.partial(placing.split_shape, num), state)
        return RunState._make(map(placing.shapes, split, self._shardings))

    def _offer_shapes(self, state: RunState, parts: tuple[Any, Any, Any]) -> exchanging.Offer:
        """Returns the shapes of what the exchange, the first part, offers to such searches."""
        offer, num = exchanging.offer_shape(*parts, state.searches), len(self.devices)
        if num == 1:
            return placing.shapes(offer, self._where(parts))
        split = jax.tree.map(functools.partial(placing.split_shape, num), offer)
        return placing.shapes(split, placing.in_parts(self.team.own))

    def _where(self, parts: Any) -> Sharding | None:
        """Returns where arrays made of these parts are bound to lie on one device, if at all."""
        is_bound = not self._has(parts) or placing.is_bound(parts)
        return placing.only_on(self.first) if is_bound else None

    @property
    def compiles_ahead(self) -> bool:
        """Whether programs are there before they are called: not `pmap`'s of several processes."""
        is_off = getattr(jax.config, "jax_disable_jit", False)
        return not is_off and (len(self.devices) == 1 or jax.process_count() == 1)

    def advance(
        self,
        problem: Any,
        search: Any,
        state: RunState,
        num_steps: int,
        rules: Rules,
        implementation: Implementation = "auto",
    ) -> RunState:
        """Like `loop.advance`, of a state from `split` and by rules from `make_rules`."""
        chosen = implementation
        if chosen == "auto":
            chosen = stepping.choose(chosen, self.first, problem, search).implementation
        steps = self._steps(chosen, problem, search, state, rules)
        is_apart = apart.is_apart(rules.exchange, self.first)
        if apart.is_apart_at_first(rules.exchange, self.first):
            is_apart = steps.is_awaited()
        if is_apart:
            return self._in_parts(chosen, problem, search, state, num_steps, rules)
        return steps.ready()(problem, search, state, np.int32(num_steps), rules)

    def _in_parts(
        self,
        implementation: Implementation,
        problem: Any,
        search: Any,
        state: RunState,
        num_steps: int,
        rules: Rules,
    ) -> RunState:
        """Like `advance`, by steps and exchanges in turn."""
        exchange = rules.exchange
        assert exchange is not None
        every, since = map(int, jax.device_get((exchange.every, state.since.exchange)))
        first, later = (apart.without(rules, every, continues) for continues in (False, True))
        steps = self._steps(implementation, problem, search, state, first).ready()
        offers = self._offered(exchange, problem, search, state)
        calls_both = not num_steps and bool(offers.to_compile())  # else it was compiled ahead
        offered, adopted = offers.ready(), list[Callable[..., RunState]]()  # once there is an offer

        def make(state: RunState, length: int, is_first: bool) -> RunState:
            return steps(problem, search, state, np.int32(length), first if is_first else later)

        def exchange_if(is_due: bool, state: RunState) -> RunState:
            own = exchange, problem, search, state
            own = *own, offered(*own)
            if not adopted:
                adopted.append(self._adopted(*own).ready())
            return adopted[0](*own, np.bool_(is_due))

        return apart.in_turns(make, exchange_if, state, num_steps, (every, since), calls_both)

    def _steps(
        self, implementation: Implementation, problem: Any, search: Any, state: Any, rules: Rules
    ) -> Program:
        """Returns the program of `advance`, for a state or its shapes."""
        if len(self.devices) == 1:
            return loop.program(implementation, problem, search, state, rules)
        steps = _pmapped(self.devices, implementation)
        return Program(steps, (problem, search, state, np.int32(0), rules), {})

    def _offered(self, *own: Any) -> Program:
        """Returns the first program of an exchange apart, likewise."""
        if len(self.devices) == 1:
            return Program(apart.offered, own, {"axis_name": None})
        return Program(_pmapped_offered(self.devices), own, {})

    def _adopted(self, *own: Any) -> Program:
        """Returns the second one."""
        arguments = (*own, np.bool_(False))
        if len(self.devices) == 1:
            return Program(apart.adopted, arguments, {"axis_name": None})
        return Program(_pmapped_adopted(self.devices), arguments, {})

    def programs(
        self,
        problem: Any,
        search: Any,
        shape: RunState,
        rules: Rules,
        implementation: Implementation,
    ) -> tuple[dict[str, Program], Program | None]:
        """Returns the programs of a run after its start, by the moments of `room`.

        And the one that takes over from steps and exchange once a thread has compiled it; None if
        none does.

        Args:
          shape: of the state: `starting.shape`.
        """
        own, exchange = (problem, search, self.shapes(shape, problem, search)), rules.exchange
        look = outcome.packed if len(self.devices) == 1 else _pmapped_look(self.devices)
        look_at = {"look": Program(look, own, {})}
        if not apart.is_apart(exchange, self.first):
            return {"steps": self._steps(implementation, *own, rules)} | look_at, None
        at_steps = apart.without(rules, 0, continues=False)
        offer = self._offer_shapes(shape, (exchange, problem, search))
        programs = {
            "steps": self._steps(implementation, *own, at_steps),
            "exchange": self._offered(exchange, *own),
            "adoption": self._adopted(exchange, *own, offer),
        }
        is_replaced = apart.is_apart_at_first(exchange, self.first)
        later = self._steps(implementation, *own, rules) if is_replaced else None
        return programs | look_at, later

    def look(self, problem: Any, search: Any, state: RunState) -> Outcome:
        """Returns what the host looks at of a state from `split` or `advance`."""
        if len(self.devices) == 1:
            return outcome.look(problem, search, state)
        *packed, everyone = _pmapped_look(self.devices)(problem, search, state)
        fetched, numbers = self.team.gathered(packed), range(len(self.devices))
        parts = [jax.tree.map(operator.itemgetter(number), fetched) for number in numbers]
        return outcome.merged(list(map(outcome.read, parts)))._replace(all_best=everyone)

    def all_best(self, seen: Outcome, num_searches: int) -> tuple[Any, Any]:
        """Returns the best solutions of all searches, leaves [S, ...], and their costs, NumPy's."""
        axes = 1 if len(self.devices) == 1 else 2
        return jax.tree.map(
            lambda leaf: np.array(leaf).reshape(-1, *leaf.shape[axes:])[:num_searches],
            self.team.gathered(seen.all_best),
        )

    def join(self, state: RunState, num_searches: int) -> RunState:
        """Returns the state as `split` got it, on the first device of this process."""
        if len(self.devices) == 1:
            return state
        if self.team.is_shared:
            state = _map_searches(self.team.gathered, state)

        def joined(leaf: Any) -> jax.Array:
            # Leaf by leaf: there is no room for all of them twice.
            return jax.device_put(leaf, self.first).reshape(-1, *leaf.shape[2:])[:num_searches]

        whole = _map_searches(joined, state)
        return jax.device_put(whole, self.first)


def _map_searches(change: Callable[[Any], Any], state: RunState) -> RunState:
    """Applies `change` to the leaves that have an entry per search."""
    parts = {name: jax.tree.map(change, getattr(state, name)) for name in _PER_SEARCH}
    return state._replace(**parts)


def pmapped(
    devices: tuple[jax.Device, ...], fn: Callable[..., Any], in_axes: Any, out_axes: Any = 0
) -> Kept:
    """Returns a function of `jax.pmap`, called only here, with programs compiled ahead."""
    made = jax.pmap(fn, axis_name=AXIS, in_axes=in_axes, out_axes=out_axes, devices=devices)
    return Kept(made, in_folder=False, in_turn=len(devices) > 1)


@functools.cache
def _pmapped(devices: tuple[jax.Device, ...], implementation: Implementation) -> Kept:
    steps = functools.partial(loop.advance_by, implementation, axis_name=AXIS)
    return pmapped(devices, steps, (None, None, AXES, None, None), AXES)


@functools.cache
def _pmapped_offered(devices: tuple[jax.Device, ...]) -> Kept:
    return pmapped(
        devices, functools.partial(apart.offered, axis_name=AXIS), (None, None, None, AXES)
    )


@functools.cache
def _pmapped_adopted(devices: tuple[jax.Device, ...]) -> Kept:
    adopted = functools.partial(apart.adopted, axis_name=AXIS)
    return pmapped(devices, adopted, (None, None, None, AXES, 0, None), AXES)


@functools.cache
def _pmapped_look(devices: tuple[jax.Device, ...]) -> Kept:
    return pmapped(devices, outcome.packed, (None, None, AXES))
