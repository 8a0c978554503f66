# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false
"""The innermost loop: steps of every search, between which nothing else happens.

`Search.step` is the same code in all of the ways to run it: all searches side by side, one after
the other in compiled CPU loops, or each in a program of a fused kernel.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search import backends, contracts
from jaxopt_search.backends import Choice, Implementation, counts, loops, memory, native, random
from jaxopt_search.backends.costs import meets
from jaxopt_search.backends.counts import Steps
from jaxopt_search.engine.compile import noted
from jaxopt_search.types import Info, Problem, Search

_NATIVE_STEPS = 2**10


class Running(NamedTuple):
    """What steps change.

    Attributes:
      search: the state of the search.
      hit: steps after which it first met the target.
      info: sums over steps.
    """

    search: Any
    hit: Steps
    info: Info


class Fixed(NamedTuple):
    """What stays the same during steps.

    Attributes:
      problem: the instance.
      search: the algorithm.
      start: steps made before.
      target: [] the highest cost that counts as a hit; None for no target.
    """

    problem: Any
    search: Any
    start: Steps
    target: jax.Array | None


def max_steps(implementation: Implementation) -> int:
    """Returns how many steps `run` makes at most."""
    if implementation == "native":
        return _NATIVE_STEPS
    return counts.MAX_INT32 if implementation == "xla" else backends.MAX_STEPS


def run(
    fixed: Fixed,
    keys: random.Key,
    running: Running,
    num_steps: jax.Array,
    implementation: Implementation,
) -> Running:
    """Returns what steps change, after `num_steps` steps of each search.

    Args:
      keys: [S] of the searches.
      running: leaves [S, ...].
      num_steps: [] int32, at most `max_steps(implementation)`.
      implementation: one of `backends.Implementation`, not `"auto"`.
    """

    def control_of(i: jax.Array) -> Any:
        return fixed.search.control(counts.as_int32(counts.add(fixed.start, i)))

    if implementation == "xla":

        def step(i: jax.Array, running: Running) -> Running:
            control = control_of(i)
            one = functools.partial(_one_step, fixed)
            return jax.vmap(one, in_axes=(0, None, None, 0))(keys, i, control, running)

        return lax.fori_loop(0, num_steps, step, running)
    # Computed for all searches together and outside of kernels, whose exponential may differ from
    # XLA's in the last bit.
    controls = jax.vmap(control_of)(lax.iota(jnp.int32, max_steps(implementation)))

    def control_at(i: jax.Array, controls: Any) -> Any:
        return jax.tree.map(lambda table: memory.load(table, i), controls)

    if implementation == "native":

        def search_alone(
            fixed: Fixed, controls: Any, key: random.Key, running: Running, num_steps: jax.Array
        ) -> Running:
            step = lambda i, to: _one_step(fixed, key, i, control_at(i, controls), to)  # noqa: E731
            return lax.fori_loop(0, num_steps, step, running)

        each = jax.vmap(native.as_one_function(search_alone), (None, None, None, 0, 0, None))
        return each(num_steps < 0, fixed, controls, keys, running, num_steps)

    def step_alone(i: jax.Array, shared: Any, own: Any) -> tuple[random.Key, Running]:
        (fixed, controls), (key, running) = shared, own
        return key, _one_step(fixed, key, i, control_at(i, controls), running)

    shared, own = (fixed, controls), (keys, running)
    num_warps = fixed.search.num_warps(fixed.problem, len(keys.first))
    how: Any = {"implementation": implementation, "num_warps": num_warps}
    return backends.launch(step_alone, num_steps, shared, own, **how)[1]


def _one_step(
    fixed: Fixed, key: random.Key, i: jax.Array, control: Any, running: Running
) -> Running:
    """Makes step i of a search."""
    problem, search, start, target = fixed
    now = counts.add(start, i)
    stream = random.Stream(key, now.low, counts.as_int32(now))
    state, info = search.step(stream, control, problem, running.search)
    hit = note_hit(search, target, state, running.hit, counts.add(start, i + 1))
    # The loops of `lax` around it carry the state: constants in it must vary over a mesh, too.
    return Running(loops.varying(state), hit, jax.tree.map(jnp.add, running.info, info))


def note_hit(search: Any, target: jax.Array | None, state: Any, hit: Steps, now: Steps) -> Steps:
    """Returns `hit`, or `now` if the search meets the target for the first time."""
    if target is None:
        return hit
    is_first = meets(search.best_cost(state), target) & counts.is_never(hit)
    return Steps(jnp.where(is_first, now.high, hit.high), jnp.where(is_first, now.low, hit.low))


def choose(
    implementation: Implementation,
    device: jax.Device | str,
    problem: Any,
    search: Any,
    is_traced: bool = False,
    is_tried: bool = True,
) -> Choice:
    """Returns which implementation runs for this search, and why.

    Args:
      implementation: one of `backends.Implementation`.
      device: one of those that are to run it, or only a platform.
      is_traced: whether the run is part of a function that is being traced.
      is_tried: whether a kernel is made to find out if the search can run in one, unless the search
        says that it cannot. Without, a kernel that is chosen may turn out not to be.
    """

    def find_obstacle() -> str:
        own = why_not_portable(problem, search) if is_tried else search.obstacle(problem)
        return own or distrust(device)

    is_portable = search.is_portable(problem)
    return backends.choose(implementation, device, is_portable, is_traced, find_obstacle)


def distrust(device: jax.Device | str) -> str:
    """Returns in one line why kernels cannot be trusted on a GPU, or ""; trust is remembered."""
    if isinstance(device, str) or not backends.runs_kernels(device):
        return ""

    def find() -> str:
        if reason := backends.distrust(device):
            raise RuntimeError(reason)  # which the next process is not to believe
        return ""

    try:
        return noted("trust", None, find)
    except RuntimeError as error:
        return str(error)


def why_not_portable(problem: Any, search: Any) -> str:
    """Returns in one line what keeps a search from running as a fused kernel; "" if nothing does.

    It is lowered for an NVIDIA GPU, which needs no GPU, takes about a second, and is remembered.

    Args:
      problem: the instance; only its shapes and dtypes count.
      search: likewise.

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.tsp_from_instance(js.datasets.grid_tsp(4, 4))
      >>> why_not_portable(problem, js.simulated_annealing(js.Relocate(), 10.0))
      ''
      >>> why_not_portable(problem, js.simulated_annealing(js.Swap(), 10.0))  # priced in full
      ''
    """
    contracts.check_part(problem, Problem)
    contracts.check_part(search, Search)
    if obstacle := search.obstacle(problem):
        return obstacle
    leaves, structure = jax.tree.flatten((problem, search))
    return _obstacle(structure, tuple((jnp.shape(leaf), jnp.result_type(leaf)) for leaf in leaves))


@functools.lru_cache(maxsize=256)
def _obstacle(structure: Any, leaves: tuple[Any, ...]) -> str:
    """Returns what keeps a search out of a kernel, found by lowering one of a single search."""

    def start(problem: Any, search: Any) -> tuple[Steps, random.Key, Running]:
        solution = problem.init(random.start_key(random.as_key(0), jnp.uint32(0)))
        info = Info(accepted=jnp.int32(0))
        running = Running(search.init(problem, solution), counts.never(()), info)
        keys, running = jax.tree.map(lambda leaf: leaf[None], (random.as_key(0), running))
        return counts.zero(), keys, running

    def launch(
        problem: Any, search: Any, made: Steps, keys: random.Key, running: Running
    ) -> Running:
        return run(Fixed(problem, search, made, None), keys, running, jnp.int32(1), "cuda")

    own = structure.unflatten(jax.ShapeDtypeStruct(*leaf) for leaf in leaves)
    return noted(
        "obstacle", own, lambda: backends.obstacle(launch, *own, *jax.eval_shape(start, *own))
    )
