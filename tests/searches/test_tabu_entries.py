"""Tabu search on moves that undo one entry of their table, or several, by a slow reference."""

import dataclasses
import itertools

import chex
import jax
import jax.numpy as jnp
import numpy as np
from cases import OfSolutions
from references import slow_tabu
from ways import KERNEL

import jaxopt_search as js
from jaxopt_search.backends import random
from jaxopt_search.backends.memory import load

BITS, ROWS, STEPS, SEARCHES = 6, 11, 120, 3
TENURE, AGE = (1, 6), 40
MASKS = [3, 5, 9, 17, 33, 6, 24, 40, 48, 1, 62]


@js.pytree
@dataclasses.dataclass(frozen=True)
class Codes(js.Problem):
    """Solutions are numbers of `BITS` bits, each with a cost of its own."""

    costs: jax.Array
    masks: jax.Array

    def init(self, key):
        return jax.random.randint(key, (), 0, 2**BITS, jnp.int32)

    def cost(self, code):
        return self.costs[code]


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class FlipMasks(OfSolutions, js.Enumerable):
    """Row t of the table stands for flipping the bits of mask t, which undoes `number` rows."""

    number: int
    num_words = 1

    def propose(self, problem, representation, words):
        return random.below(words[0], ROWS)

    def delta(self, problem, code, move):
        return load(problem.costs, code ^ load(problem.masks, move)) - load(problem.costs, code)

    def commit(self, problem, code, move, accept):
        return jnp.where(accept, code ^ load(problem.masks, move), code)

    def num_moves(self, problem):
        return ROWS

    def shape(self, problem):
        return ROWS, 1

    def move_at(self, problem, code, row, column):
        return row, True

    def undone(self, problem, code, move):
        return tuple(((move + k * k) % ROWS, jnp.int32(0)) for k in range(self.number))


def codes():
    costs = np.random.default_rng(1).integers(0, 60, 2**BITS)
    return Codes(jnp.asarray(costs, jnp.int32), jnp.asarray(MASKS, jnp.int32))


def tenures(number):
    """Returns what is drawn for each entry that is undone, [S, T, number]."""
    index = jnp.arange(SEARCHES, dtype=jnp.uint32)
    keys = random.search_key(random.as_key(4), index, jnp.uint32(0))

    def at(key, step):
        first, second = random.Stream(key, step, step).words(jnp.uint32(0), 2)
        more = (jnp.uint32(k) for k in range(2, number))
        words = [first, second] + [
            random.threefry2x32((first, second), (k, jnp.uint32(0)))[0] for k in more
        ]
        low, high = TENURE
        return jnp.stack([low + random.below(word, high - low + 1) for word in words[:number]])

    of_steps = jax.vmap(jax.vmap(at, in_axes=(None, 0)), in_axes=(0, None))
    return np.asarray(jax.jit(of_steps)(keys, jnp.arange(STEPS, dtype=jnp.uint32)))


def test_the_course_is_that_of_a_slow_reference():
    """Each entry is forbidden for a time of its own; the same in every implementation."""
    number = 4
    problem, search = codes(), js.tabu_search(FlipMasks(number), tenure=TENURE, aspiration_age=AGE)
    start = js.init(4, problem, search, num_searches=SEARCHES)
    end = js.advance(problem, search, start, STEPS, implementation="xla")
    drawn, costs = tenures(number), np.asarray(problem.costs).tolist()
    assert len(np.unique(drawn[0] - drawn[0, :, :1], axis=0)) > 50

    def moves(code):
        for row, mask in enumerate(MASKS):
            undone = [(row + k * k) % ROWS for k in range(number)]
            yield row, code ^ mask, costs[code ^ mask], undone

    for index, code in enumerate(start.searches.representation.tolist()):
        until = {row: -1 - row for row in range(ROWS)}
        each = drawn[index].tolist()
        slow = slow_tabu(code, costs[code], until, moves, lambda now, _, each=each: each[now], AGE)
        *_, (end_code, lowest) = itertools.islice(slow, STEPS)
        one = jax.tree.map(lambda leaf, index=index: leaf[index], end.searches)
        found = int(one.representation), int(one.best_cost), one.until[:, 0].tolist()
        assert found == (end_code, lowest, list(until.values()))
    found = js.advance(problem, search, start, STEPS, implementation=KERNEL)
    chex.assert_trees_all_equal(end, found)
