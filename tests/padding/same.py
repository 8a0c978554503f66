"""How instances with room for more are held against the instances themselves."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search.backends import counts, random
from jaxopt_search.engine import stepping
from jaxopt_search.engine.stepping import Fixed, Running
from jaxopt_search.types import Info

NUM_SEARCHES = 3


def check_same(exact, padded):
    """Checks that arrays agree bit for bit, those with room behind as far as the others go."""
    paths = jax.tree_util.tree_leaves_with_path(exact)
    for (path, own), of_more in zip(paths, jax.tree.leaves(padded), strict=True):
        assert own.dtype == of_more.dtype
        own, of_more = np.asarray(own), np.asarray(of_more)
        of_more = of_more[tuple(map(slice, own.shape))]
        np.testing.assert_array_equal(own, of_more, err_msg=jax.tree_util.keystr(path))


@functools.partial(jax.jit, static_argnames="implementation")
def after_steps(problem, search, num_steps, implementation):
    """Returns the states of some searches after some steps from random starts."""
    index = jnp.arange(NUM_SEARCHES, dtype=jnp.uint32)
    key = random.as_key(5)
    starts = jax.vmap(lambda i: random.start_key(key, i))(index)
    states = jax.vmap(lambda one: search.init_with(one, problem, problem.init(one)))
    info = Info(accepted=jnp.zeros(NUM_SEARCHES, jnp.int32))
    running = Running(states(starts), counts.never((NUM_SEARCHES,)), info)
    keys = random.search_key(key, index, jnp.uint32(0))
    fixed = Fixed(problem, search, counts.zero(), None)
    end = stepping.run(fixed, keys, running, num_steps, implementation)
    return end.search, end.info


def check_course(problem, capacity, search, implementation, num_steps=30):
    """Checks that all searches end in the same state, with and without room for more.

    Args:
      search: or a function that returns it for a problem.
    """
    search_of = search if callable(search) else lambda _: search
    num_steps = jnp.int32(num_steps)
    ends = [
        after_steps(each, search_of(each), num_steps, implementation)
        for each in (problem, problem.padded(capacity))
    ]
    check_same(*ends)
