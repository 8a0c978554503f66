# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false
"""A run spread over devices with `jax.pmap`, which is called here only.

What a search does depends on its global index only, so the split changes no result. Where the
searches do not divide evenly, copies of the last one fill up the devices and count for nothing.
"""

import dataclasses
import functools
import operator
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import numpy as np
from jax.sharding import Sharding

from jaxopt_search.backends import Implementation
from jaxopt_search.engine import devices as on
from jaxopt_search.engine import exchange, loop, outcome, processes, stepping
from jaxopt_search.engine.compile import Jitted, Program
from jaxopt_search.engine.devices import AXIS, split_leaf
from jaxopt_search.engine.outcome import Outcome
from jaxopt_search.engine.processes import Team
from jaxopt_search.engine.state import Later, Rules, RunState
from jaxopt_search.results import Status
from jaxopt_search.types import Exchange

Tree = TypeVar("Tree")

# The parts of a run's state with an entry per search; the others are the same on every device.
_PER_SEARCH = ("index", "searches", "ancestor", "hit", "info")
AXES = RunState._make(0 if name in _PER_SEARCH else None for name in RunState._fields)
"""The axes of a state from `DeviceSplit.split`, as `pmap` takes them."""


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
        has_all = on.is_all_on(tree, self.first)
        return tree if has_all else jax.device_put(tree, on.only_on(self.first))

    def brought(self, tree: Tree) -> Tree:
        """Returns what `bring` returns, or its shapes."""
        has_all = on.is_all_on(tree, self.first)
        return tree if has_all else on.shapes(tree, on.only_on(self.first))

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
        each, whole = on.in_parts(self.team.own), on.everywhere(self.team.own)
        return [each if name in _PER_SEARCH else whole for name in RunState._fields]

    def shapes(self, state: RunState, *parts: Any) -> RunState:
        """Returns the shapes of what `split` makes of a state.

        Args:
          state: arrays or shapes.
          parts: the state is made of, such as the problem.
        """
        num = len(self.devices)
        if num == 1:
            return on.shapes(state, self._where(parts))
        split = _map_searches(functools.partial(on.split_shape, num), state)
        return RunState._make(map(on.shapes, split, self._shardings))

    def _where(self, parts: Any) -> Sharding | None:
        """Returns where arrays made of these parts are bound to lie on one device, if at all."""
        is_bound = not on.is_all_on(parts, self.first) or on.is_bound(parts)
        return on.only_on(self.first) if is_bound else None

    @property
    def compiles_ahead(self) -> bool:
        """Whether programs are there before they are called: not `pmap`'s of several processes."""
        is_off = getattr(jax.config, "jax_disable_jit", False)
        return not is_off and (len(self.devices) == 1 or processes.are_alone())

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
        if implementation == "auto":
            implementation = stepping.choose("auto", self.first, problem, search).implementation
        own, rule = (problem, search), rules.exchange
        if not isinstance(rule, Exchange) or not rule.compiles_apart:
            steps = self._steps(implementation, *own, state, rules).ready()
            return steps(*own, state, np.int32(num_steps), rules)
        every, left = map(int, jax.device_get((rule.every, state.since.exchange)))
        until = max(every - left, 1)  # the next exchange
        at_first, later = (_without_exchange(rules, every, is_later) for is_later in (False, True))
        steps = self._steps(implementation, *own, state, at_first).ready()
        exchanges = self._exchange(rule, *own, state)
        if not num_steps:
            if self.compiles_ahead:
                exchanges.temporaries()  # it is compiled now, unless it was before
            return steps(*own, state, np.int32(0), at_first)
        left, status, now = num_steps, None, at_first
        while left > 0:
            length = min(left, until)
            state = steps(*own, state, np.int32(length), now)
            left, until, now = left - length, until - length, later
            if until == 0:
                state, until = exchanges.ready()(rule, *own, state), every
            # Asked one round late: the device need not wait for the host.
            if status is not None and int(jax.device_get(status)) != Status.RUNNING:
                break
            status = state.status
        return state

    def _steps(
        self, implementation: Implementation, problem: Any, search: Any, state: Any, rules: Rules
    ) -> Program:
        """Returns the program of `advance`, for a state or its shapes."""
        if len(self.devices) == 1:
            return loop.program(implementation, problem, search, state, rules)
        steps = _pmapped(self.devices, implementation)
        return Program(steps, (problem, search, state, np.int32(0), rules), {})

    def _exchange(self, *own: Any) -> Program:
        """Returns the program of an exchange by itself, likewise."""
        if len(self.devices) == 1:
            return Program(exchange.exchange_apart, own, {"axis_name": None})
        return Program(_pmapped_exchange(self.devices), own, {})

    def programs(
        self,
        problem: Any,
        search: Any,
        shape: RunState,
        rules: Rules,
        implementation: Implementation,
    ) -> dict[str, Program]:
        """Returns the programs of a run after its start, by the moments of `MemoryEstimate`.

        Args:
          shape: of the state: `starting.shape`.
        """
        own, rule = (problem, search, self.shapes(shape, problem, search)), rules.exchange
        look = outcome.packed if len(self.devices) == 1 else _pmapped_look(self.devices)
        programs = {"look": Program(look, own, {})}
        if isinstance(rule, Exchange) and rule.compiles_apart:
            programs["exchange"] = self._exchange(rule, *own)
            rules = _without_exchange(rules, 0, continues=False)
        return programs | {"steps": self._steps(implementation, *own, rules)}

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


def _without_exchange(rules: Rules, every: int, continues: bool) -> Rules:
    """Returns the rules of steps between which another program makes the exchange."""
    return rules._replace(exchange=Later(np.int32(every), np.bool_(continues)))


def _map_searches(change: Callable[[Any], Any], state: RunState) -> RunState:
    """Applies `change` to the leaves that have an entry per search."""
    parts = {name: jax.tree.map(change, getattr(state, name)) for name in _PER_SEARCH}
    return state._replace(**parts)


def pmapped(
    devices: tuple[jax.Device, ...], fn: Callable[..., Any], in_axes: Any, out_axes: Any = 0
) -> Jitted:
    """Returns a function of `jax.pmap`, called only here, with programs compiled ahead."""
    made = jax.pmap(fn, axis_name=AXIS, in_axes=in_axes, out_axes=out_axes, devices=devices)
    return Jitted(made, in_folder=False, in_turn=len(devices) > 1)


@functools.cache
def _pmapped(devices: tuple[jax.Device, ...], implementation: Implementation) -> Jitted:
    steps = functools.partial(loop.advance_by, implementation, axis_name=AXIS)
    return pmapped(devices, steps, (None, None, AXES, None, None), AXES)


@functools.cache
def _pmapped_exchange(devices: tuple[jax.Device, ...]) -> Jitted:
    apart = functools.partial(exchange.exchange_apart, axis_name=AXIS)
    return pmapped(devices, apart, (None, None, None, AXES), AXES)


@functools.cache
def _pmapped_look(devices: tuple[jax.Device, ...]) -> Jitted:
    return pmapped(devices, outcome.packed, (None, None, AXES))


def split_up(
    devices: tuple[jax.Device, ...], fn: Callable[[Any, Tree], Any], shared: Any, tree: Tree
) -> Any:
    """Returns `fn(shared, tree)` of leaves [N, ...], of which each device handles some.

    Args:
      fn: gives leaves [N * k, ...] for N entries, each of which depends on its own entry only.
      shared: a pytree that every device gets whole.
      tree: a pytree, leaves [N, ...].
    """
    number, team = jax.tree.leaves(tree)[0].shape[0], Team(devices)
    padding = -number % len(devices)
    split = jax.tree.map(lambda leaf: split_leaf(len(devices), leaf)[team.rows], tree)
    made = _pmapped_fn(devices, fn)(shared, split)
    if team.is_shared:
        made = team.gathered(made)

    def join_leaf(leaf: Any) -> jax.Array:
        leaf = jax.device_put(leaf, team.own[0]).reshape(-1, *leaf.shape[2:])
        return leaf[: leaf.shape[0] * number // (number + padding)]

    return jax.tree.map(join_leaf, made)


@functools.cache
def _pmapped_fn(devices: tuple[jax.Device, ...], fn: Callable[..., Any]) -> Jitted:
    return pmapped(devices, fn, (None, 0))
