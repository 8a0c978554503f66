"""The innermost loop: steps of every search, between which nothing else happens.

`Search.step` is the same code in all of the ways to run it: all searches abreast, one after the
other, or each in a program of a fused kernel.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search import kernels, memory, random, steps
from jaxopt_search.kernels import Choice, Implementation, portability
from jaxopt_search.steps import Steps
from jaxopt_search.types import Info


class Course(NamedTuple):
    """What steps change.

    Attributes:
      search: the state of the search.
      hit: steps after which it first met the target.
      info: sums over steps.
    """

    search: Any
    hit: Steps
    info: Info


class Setup(NamedTuple):
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


def max_steps(implementation: str) -> int:
    """Returns how many steps `run` makes at most."""
    is_kernel = implementation in ("triton", "interpret")
    return kernels.MAX_STEPS if is_kernel else steps.MAX_INT32


def run(
    setup: Setup, keys: random.Key, courses: Course, num_steps: jax.Array, implementation: str
) -> Course:
    """Returns the courses after `num_steps` steps of each search.

    Args:
      keys: [S] of the searches.
      courses: leaves [S, ...].
      num_steps: [] int32, at most `max_steps(implementation)`.
      implementation: one of `kernels.Implementation`, not `"auto"`.
    """
    match implementation:
        case "xla":
            return _abreast(setup, keys, courses, num_steps)
        case "sequential":
            return _one_after_the_other(setup, keys, courses, num_steps)
    return _in_a_kernel(setup, keys, courses, num_steps, implementation == "interpret")


def _abreast(setup: Setup, keys: random.Key, courses: Course, num_steps: jax.Array) -> Course:
    step_all = jax.vmap(_one_step, in_axes=(None, 0, None, None, 0))

    def step(i: jax.Array, courses: Course) -> Course:
        return step_all(setup, keys, i, _control(setup, i), courses)

    return lax.fori_loop(0, num_steps, step, courses)


def _one_after_the_other(
    setup: Setup, keys: random.Key, courses: Course, num_steps: jax.Array
) -> Course:
    def all_steps(own: tuple[random.Key, Course]) -> Course:
        key, course = own

        def step(i: jax.Array, course: Course) -> Course:
            return _one_step(setup, key, i, _control(setup, i), course)

        with memory.one_search("xla"):
            return lax.fori_loop(0, num_steps, step, course)

    return lax.map(all_steps, (keys, courses))


def _in_a_kernel(
    setup: Setup, keys: random.Key, courses: Course, num_steps: jax.Array, interpret: bool
) -> Course:
    def step(i: jax.Array, setup: Setup, control: Any, own: Any) -> Any:
        key, course = own
        return key, _one_step(setup, key, i, control, course)

    # Computed here because a kernel's exponential may differ from XLA's in the last bit.
    every_step = lax.iota(jnp.int32, kernels.MAX_STEPS)
    controls = jax.vmap(functools.partial(_control, setup))(every_step)
    num_warps = getattr(setup.search, "num_warps", 1)
    return kernels.launch(
        step,
        num_steps,
        setup,
        controls,
        (keys, courses),
        num_warps=num_warps,
        interpret=interpret,
    )[1]


def _control(setup: Setup, i: jax.Array) -> Any:
    return setup.search.control(steps.as_int32(steps.add(setup.start, i)))


def _one_step(setup: Setup, key: random.Key, i: jax.Array, control: Any, course: Course) -> Course:
    problem, search, start, target = setup
    before = steps.add(start, i)
    stream = random.Stream(key, before.low, steps.as_int32(before))
    state, info = search.step(stream, control, problem, course.search)
    after = steps.add(before, jnp.int32(1))
    return Course(
        state,
        note_hit(search, target, state, course.hit, after),
        jax.tree.map(jnp.add, course.info, info),
    )


def note_hit(search: Any, target: jax.Array | None, state: Any, hit: Steps, now: Steps) -> Steps:
    """Returns `hit`, or `now` if the search meets the target for the first time."""
    if target is None:
        return hit
    is_first = (search.best_cost(state) <= target) & steps.is_never(hit)
    return Steps(jnp.where(is_first, now.high, hit.high), jnp.where(is_first, now.low, hit.low))


def choose(
    implementation: Implementation, platform: str, problem: Any, search: Any, searches: Any
) -> Choice:
    """Returns which implementation runs for this search, and why.

    Args:
      implementation: one of `kernels.Implementation`.
      platform: of the devices.
      searches: states of the searches, leaves [S, ...], or their shapes.
    """
    leaves, structure = jax.tree.flatten((problem, search, searches))
    shapes = tuple((jnp.shape(leaf), jnp.dtype(leaf.dtype)) for leaf in leaves)
    prefers_branches = getattr(search, "prefers_branches", False)
    return kernels.choose(
        implementation, platform, prefers_branches, functools.partial(_obstacle, structure, shapes)
    )


@functools.lru_cache(maxsize=256)
def _obstacle(structure: Any, leaves: tuple[Any, ...]) -> str:
    """Returns what keeps a search out of a kernel, found by lowering one of a single search."""

    def array(shape: tuple[int, ...], dtype: Any) -> Any:
        return jax.ShapeDtypeStruct(shape, dtype)

    problem, search, searches = structure.unflatten(array(*leaf) for leaf in leaves)
    one = jax.tree.map(lambda leaf: array((1, *leaf.shape[1:]), leaf.dtype), searches)
    word, count = array((1,), jnp.uint32), array((1,), jnp.int32)
    courses = Course(one, Steps(word, word), Info(*(count for _ in Info._fields)))

    def launch(
        problem: Any, search: Any, start: Steps, keys: random.Key, courses: Course, num: jax.Array
    ) -> Course:
        return _in_a_kernel(Setup(problem, search, start, None), keys, courses, num, False)

    start, num_steps = jax.eval_shape(steps.zero), array((), jnp.int32)
    return portability.obstacle(
        launch, problem, search, start, random.Key(word, word), courses, num_steps
    )
