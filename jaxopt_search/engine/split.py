# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false
"""A run spread over devices with `jax.pmap`, which is called here only.

What a search does depends on its global index only, so the split changes no result. Where the
searches do not divide evenly, copies of the last one fill up the devices and count for nothing.
"""

import functools
import operator
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, Sharding
from jax.sharding import PartitionSpec as P

from jaxopt_search.backends import Implementation
from jaxopt_search.engine import devices as on
from jaxopt_search.engine import loop, outcome, starting, stepping
from jaxopt_search.engine.compile import Jitted, Program
from jaxopt_search.engine.devices import AXIS, Team, split_leaf
from jaxopt_search.engine.outcome import Outcome
from jaxopt_search.engine.state import Rules, RunState

Tree = TypeVar("Tree")

# The parts of a run's state with an entry per search; the others are the same on every device.
_PER_SEARCH = ("index", "searches", "ancestor", "hit", "info")
AXES = RunState._make(0 if name in _PER_SEARCH else None for name in RunState._fields)
"""The axes of a state from `DeviceSplit.split`, as `pmap` takes them."""


class DeviceSplit:
    """Makes the programs of a run whose searches are spread over `devices`.

    Attributes:
      devices: of all processes that share the run.
      team: these processes.
      first: the first device of this process.
    """

    def __init__(self, devices: tuple[jax.Device, ...]):
        self.devices, self.team = devices, Team(devices)
        self.first = self.team.own[0]
        self._axis_name = None if len(devices) == 1 else AXIS

    def bring(self, tree: Tree) -> Tree:
        """Returns a pytree with all of its arrays on the first device of this process."""
        has_all = on.is_all_on(tree, self.first)
        return tree if has_all else jax.device_put(tree, on.only_on(self.first))

    def brought(self, tree: Tree) -> Tree:
        """Like `bring`, but where arrays would have to move, returns their shapes."""
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
        own = operator.itemgetter(self.team.rows)
        split = _map_searches(own, split._replace(index=index))
        # They lie as `pmap` returns them, so that the first chunk compiles for all.
        return RunState._make(map(jax.device_put, split, self._shardings))

    @property
    def _shardings(self) -> list[Sharding]:
        """Where the parts of a state lie on several devices."""
        mesh = Mesh(np.array(self.team.own), (AXIS,))
        each, whole = NamedSharding(mesh, P(AXIS)), NamedSharding(mesh, P())
        return [each if name in _PER_SEARCH else whole for name in RunState._fields]

    def shapes(self, state: RunState, *parts: Any) -> RunState:
        """Returns the shapes of a state that is split.

        Args:
          state: arrays or shapes.
          parts: the state is made of, such as the problem.
        """
        num = len(self.devices)
        if num == 1:
            is_bound = not on.is_all_on(parts, self.first) or on.is_bound(parts)
            return on.shapes(state, on.only_on(self.first) if is_bound else None)
        split = _map_searches(functools.partial(on.split_shape, num), state)
        return RunState._make(map(on.shapes, split, self._shardings))

    @property
    def compiles_ahead(self) -> bool:
        """Whether programs are there before they are called: not `pmap`'s of several processes."""
        is_off = getattr(jax.config, "jax_disable_jit", False)
        return not is_off and (len(self.devices) == 1 or on.are_alone())

    def program(
        self, fn: Jitted, in_axes: Any, out_axes: Any, *arguments: Any, **static: Any
    ) -> Program:
        """Returns a program with these arguments, or their shapes; by `pmap` on several devices."""
        if len(self.devices) == 1:
            return Program(fn, arguments, static)
        return Program(pmapped(self.devices, fn, in_axes, out_axes, **static), arguments, {})

    def steps(
        self,
        problem: Any,
        search: Any,
        state: RunState,
        num_steps: int,
        rules: Rules,
        implementation: Implementation = "auto",
    ) -> Program:
        """Returns the program that makes steps: `loop.advance` of a state from `split`.

        Args:
          state: or its shapes.
          rules: from `make_rules`.
        """
        if implementation == "auto":
            implementation = stepping.choose("auto", self.first, problem, search).implementation
        axes = None, None, AXES, None, None
        own = problem, search, state, np.int32(num_steps), rules
        static = {"implementation": implementation, "axis_name": self._axis_name}
        return self.program(loop.advance_by, axes, AXES, *own, **static)

    def _look(self, *own: Any) -> Program:
        return self.program(outcome.packed, (None, None, AXES), 0, *own)

    def programs(
        self,
        problem: Any,
        search: Any,
        shape: RunState,
        rules: Rules,
        implementation: Implementation,
        start: tuple[Any, Any] | None = None,
    ) -> dict[str, Program]:
        """Returns the programs of a run, by the moments of `MemoryEstimate`.

        Those that take longer to compile come first.

        Args:
          shape: of the state: `starting.shape`.
          start: the key and the start solutions, or their shapes; None without the start.
        """
        own = problem, search, self.shapes(shape, problem, search)
        programs = {"steps": self.steps(*own, 0, rules, implementation)}
        if start is not None:
            key, solutions = self.brought(start)
            static = {"num_searches": shape.index.shape[0]}
            parts = key, problem, search, solutions
            programs["start"] = Program(starting.begin, parts, static)
        return programs | {"look": self._look(*own)}

    def look(self, problem: Any, search: Any, state: RunState) -> Outcome:
        """Returns the outcome of a state from `split` or `steps`, on the host."""
        seen = self._look(problem, search, state)()
        fetched = self.team.gathered(seen._replace(all_best=None))
        if len(self.devices) == 1:
            return outcome.read(fetched, seen.all_best)
        numbers = range(len(fetched.cost))
        parts = [jax.tree.map(operator.itemgetter(number), fetched) for number in numbers]
        return outcome.merged([outcome.read(part, seen.all_best) for part in parts])

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

        def joined(leaf: Any) -> np.ndarray:
            return self.team.gathered(leaf).reshape(-1, *leaf.shape[2:])[:num_searches]

        return jax.device_put(_map_searches(joined, state), self.first)


def _map_searches(change: Callable[[Any], Any], state: RunState) -> RunState:
    """Applies `change` to the leaves that have an entry per search."""
    parts = {name: jax.tree.map(change, getattr(state, name)) for name in _PER_SEARCH}
    return state._replace(**parts)


@functools.cache
def pmapped(
    devices: tuple[jax.Device, ...],
    fn: Callable[..., Any],
    in_axes: Any,
    out_axes: Any = 0,
    **static: Any,
) -> Jitted:
    """Returns a function of `jax.pmap`, called only here, with programs compiled ahead."""
    fn, own = functools.partial(fn, **static), {"in_axes": in_axes, "out_axes": out_axes}
    made = jax.pmap(fn, axis_name=AXIS, devices=devices, **own)
    return Jitted(made, in_folder=False, in_turn=len(devices) > 1)


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
    made = pmapped(devices, fn, (None, 0))(shared, split)
    if team.is_shared:
        made = team.gathered(made)

    def join_leaf(leaf: Any) -> jax.Array:
        leaf = jax.device_put(leaf, team.own[0]).reshape(-1, *leaf.shape[2:])
        return leaf[: leaf.shape[0] * number // (number + padding)]

    return jax.tree.map(join_leaf, made)
