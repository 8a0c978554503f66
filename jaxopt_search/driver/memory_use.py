# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
"""`memory_estimate`: what a run will take of a device's memory, asked before it begins."""

from collections.abc import Mapping, Sequence

import jax

from jaxopt_search.backends import Implementation, random
from jaxopt_search.checks import check_count
from jaxopt_search.driver.options import refuse_tracers
from jaxopt_search.engine import room, starting, stepping
from jaxopt_search.engine.device_split import Devices, DeviceSplit, find_devices
from jaxopt_search.engine.kept_programs import Program
from jaxopt_search.engine.room import MemoryEstimate
from jaxopt_search.engine.state import RunState, make_rules, with_all_limits
from jaxopt_search.guards import capacity, contracts, spaces
from jaxopt_search.problems.host import counted_on_device
from jaxopt_search.types import Exchange, Problem, Search


def memory_estimate(
    problem: Problem,
    search: Search,
    num_searches: int = 128,
    *,
    exchange: Exchange | None = None,
    devices: Devices = None,
    implementation: Implementation = "auto",
) -> MemoryEstimate:
    """Returns how many bytes `solve` takes on the device that holds most, and what for.

    It allocates nothing. It compiles the run's programs, since what they need besides their
    arguments only XLA knows; that takes some seconds, which `solve` saves where it is called with
    the same shapes afterwards. Not counted are start solutions that are given, a state or a
    checkpoint that is continued, and what JAX and XLA hold for themselves; and on several devices,
    after `jax.distributed.initialize`, what programs need besides, as XLA does not tell it there.

    Args:
      problem: what is minimized; its arrays may be shapes, such as `jax.eval_shape` returns. Then
        the problem may be too large for any device.
      search: the algorithm, likewise.
      num_searches: S, how many searches run side by side.
      exchange: as in `solve`; its arrays may be shapes.
      devices, implementation: as in `solve`.

    Raises:
      ValueError: for arguments out of range, or more searches than arrays can index.
      TypeError: for what is no problem, search or exchange.
      RuntimeError: if called under `jit`, or in a forked process.

    Example:
      >>> import jax, jax.numpy as jnp, jaxopt_search as js
      >>> cities = jax.ShapeDtypeStruct((1000, 2), jnp.float32)
      >>> problem = jax.eval_shape(lambda xy: js.tsp_from_coords(xy, metric="EUCLID"), cities)
      >>> search = js.simulated_annealing(js.Relocate(), 1.0)
      >>> needed = memory_estimate(problem, search, num_searches=10_000)
      >>> needed.instance, needed.states // 10**6 >= 120
      (8016, True)
    """
    refuse_tracers(problem, search, exchange, caller="memory_estimate")
    contracts.check_problem(problem)
    contracts.check_search(search)
    contracts.check_exchange(exchange)
    if not any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in jax.tree.leaves(problem)):
        spaces.check(problem, search, exchange)  # which looks at values
    num_searches = check_count("num_searches", num_searches, 1, None)
    capacity.check_size(contracts.solution_shape(problem), num_searches)
    problem = counted_on_device(problem)
    split = DeviceSplit(find_devices(devices))
    chosen = stepping.choose(implementation, split.first, problem, search).implementation
    shape = starting.shape(problem, search, num_searches)
    dtype = shape.device_best.dtype
    rules = with_all_limits(make_rules(search, dtype, exchange=exchange), search, dtype)
    programs = dict[str, Program]()
    if split.compiles_ahead:
        problem, search, brought = split.brought((problem, search, exchange))
        rules, key = rules._replace(exchange=brought), split.brought(random.as_key(0))
        programs, _ = split.programs(problem, search, shape, rules, chosen)
        programs["start"] = starting.program(key, problem, search, None, num_searches)
    return of_programs(programs, (problem, search, exchange), shape, split.devices)


def of_programs(
    programs: Mapping[str, Program],
    parts: tuple[Problem, Search, Exchange | None],
    state: RunState,
    devices: Sequence[jax.Device],
) -> MemoryEstimate:
    """Returns what a run takes, by its programs; those that are not there yet are compiled.

    Args:
      programs: by the moments of `room`.
      parts, state, devices: as in `room.estimate`.
    """
    return room.estimate(
        parts,
        state,
        devices,
        solution=contracts.solution_shape(parts[0]),
        temporaries={name: program.temporaries() for name, program in programs.items()},
    )
