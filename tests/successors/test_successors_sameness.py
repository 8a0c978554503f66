"""The engine makes what the slow reference makes, state by state, however it is run."""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from successors import comparing
from successors import heuristics as parts
from ways import KERNEL, ON_GPU, needs_cpu, wide_types

import jaxopt_search as js
from jaxopt_search.backends import obstacle, random
from jaxopt_search.successors import generation

SEED = 2_718_281
CASES = [
    ("sizes", "native", "stored"),
    ("sizes", KERNEL, "recomputed"),
    ("many variables", "xla", "stored"),
    ("independent", KERNEL, "recomputed"),
    ("aggregates", "xla", "recomputed"),
    ("aggregates", KERNEL, "stored"),
    ("activated", "native", "recomputed"),
]
"""A case, what runs it, and whether ratings are kept; `golden.py` compares all implementations."""


class Case(NamedTuple):
    """What `generate` is given."""

    heuristics: tuple
    problem: Any
    states: Any
    active: Any = None
    num_successors: int = 1
    order: str = "fixed"


def random_table(rng, n, most, **options):
    """Returns a table of weights of all sizes, with 0 among them, and counts beyond both ends."""
    weights = rng.integers(0, 2**32, (n, most)) >> rng.integers(0, 33, (n, most))
    weights[rng.random((n, most)) < 0.3] = 0
    weights[0] = 2**32 - 1
    counts = rng.integers(-1, most + 3, n)
    counts[0] = most
    return parts.table(weights, counts, **options)


def tables(rng, sizes, **options):
    """Returns one table per type of `sizes`, pairs of variables and possibilities."""
    starts = np.cumsum([0, *(n for n, _ in sizes)]).tolist()
    return tuple(
        random_table(rng, n, most, number=t, offset=starts[t], **options)
        for t, (n, most) in enumerate(sizes)
    ), starts[-1]


def some_active(rng, heuristics, number):
    """Returns random sets, with bits beyond the variables, one full and one empty among them."""
    found = []
    for heuristic in heuristics:
        words = -(-heuristic.num_variables // 32)
        sets = rng.integers(0, 2**32, (number, words), dtype=np.uint32)
        sets[:2] = [[2**32 - 1] * words, [0] * words]
        found.append(jnp.asarray(sets))
    return tuple(found)


@functools.cache
def case(name):
    rng = np.random.default_rng(len(name))
    match name:
        case "sizes":
            heuristics, total = tables(rng, [(3, 1), (3, 300)], rating="pair")
            return Case(heuristics, parts.COUPLED, parts.states(3, total), None, 2)
        case "many variables":
            heuristics, total = tables(rng, [(70, 32)])
            active = some_active(rng, heuristics, 4)
            return Case(heuristics, parts.COUPLED, parts.states(4, total), active, 1, "random")
        case "independent":
            heuristics, total = tables(rng, [(40, 257)], kind=parts.Apart)
            active = some_active(rng, heuristics, 3)
            return Case(heuristics, parts.COUPLED, parts.states(3, total), active, 2, "random")
        case "activated":
            heuristics, total = tables(rng, [(12, 3), (40, 4)], kind=parts.Switching)
            active = tuple(
                sets & jnp.uint32(0x55555555) for sets in some_active(rng, heuristics, 4)
            )
            states = parts.states(4, total, total)
            return Case(heuristics, parts.COUPLED, states, active, 2, "random")
        case "three states":
            heuristics, total = tables(rng, [(36, 33)])
            return Case(heuristics, parts.COUPLED, parts.states(3, total), None, 2, "random")
        case "aggregates":
            ratings = rng.normal(size=(6, 1000)).astype(np.float32)
            ratings[rng.random(ratings.shape) < 0.2] = np.nan
            ratings[1] = np.nan
            heuristic = parts.mapped(ratings, [1000, 300, 0, 17, 257, 33])
            return Case((heuristic,), (), parts.states(3, 6))
    raise KeyError(name)


@functools.cache
def expected(name):
    return comparing.expected(SEED, *case(name))


def generate(given, seed=SEED, **options):
    return js.successors.generate(
        seed,
        given.heuristics,
        given.problem,
        given.states,
        active=given.active,
        num_successors=given.num_successors,
        order=given.order,
        **options,
    )


def check(name, **options):
    given = case(name)
    comparing.assert_equal(generate(given, **options), expected(name), given.states)


@pytest.mark.parametrize(("name", "implementation", "ratings"), CASES)
def test_the_engine_is_the_reference(name, implementation, ratings):
    """States, parents and sets of assigned variables are equal, whatever runs the heuristic."""
    if implementation == "native" and ON_GPU:
        pytest.skip("the default devices are GPUs")
    check(name, implementation=implementation, ratings=ratings)


@needs_cpu
def test_a_single_state_and_a_problem_that_is_not_read():
    """A loop over one state is none, and what nothing reads once crashed the compiler of loops."""

    @jax.tree_util.register_static
    class Highest(js.successors.LocalHeuristic):
        num_variables, max_possibilities, is_portable = 2, 3, True

        def rate(self, problem, state, variable, possibility):
            return possibility

        def weight(self, problem, rating, aggregates):
            return (rating == 2).astype(jnp.int32)

        def assign(self, problem, state, variable, possibility, where):
            return js.memory.store(state, variable, possibility, where)

    states, unread = jnp.zeros((1, 2), jnp.int32), jnp.uint32(7)
    found = js.successors.generate(0, Highest(), unread, states, implementation="native")
    assert found.states.tolist() == [[2, 2]]


@pytest.mark.devices(2)
def test_it_runs_on_the_device_that_was_asked_for():
    """A single one, whichever the states are on; without one, on that of the states."""
    given, second = case("three states"), jax.devices()[1]
    there = generate(given, devices=second)
    comparing.assert_equal(there, expected("three states"), given.states)
    moved = given._replace(states=jax.device_put(given.states, second))
    for found in (there, generate(moved), generate(given, devices=[second])):
        assert all(leaf.devices() == {second} for leaf in jax.tree.leaves(found))
    assert generate(moved, devices=1).parent.devices() == {jax.devices()[0]}


def test_settings_of_jax_change_nothing():
    """64-bit types, strict promotion and a check for NaN."""
    with wide_types(True), jax.numpy_dtype_promotion("strict"), jax.debug_nans(True):
        check("aggregates")


def test_other_data_of_the_same_shapes_is_not_compiled_again(caplog):
    """Nor is another key; and the results are those of the data that was given."""
    given = case("three states")
    generate(given)
    (heuristic,) = given.heuristics
    other = dataclasses.replace(heuristic, weights=jnp.flip(heuristic.weights, 0))
    given = given._replace(
        heuristics=(other,), states=given.states._replace(trace=given.states.trace + 1)
    )
    with jax.log_compiles():
        found = generate(given, seed=5)
    assert not [record for record in caplog.records if "ompiling" in record.getMessage()]
    comparing.assert_equal(found, comparing.expected(5, *given), given.states)


def test_keys_and_heuristics_may_be_traced():
    """By a transformation of one's own, where states and problem are not: nothing changes."""
    heuristic = parts.table(np.arange(1, 7).reshape(2, 3))
    states, keys = parts.states(2, 2), jax.random.split(jax.random.key(1), 3)

    def values(key, weights):
        own = dataclasses.replace(heuristic, weights=weights)
        return js.successors.generate(key, own, parts.ALONE, states, num_successors=9).states.values

    weights = jnp.stack([heuristic.weights, heuristic.weights[:, ::-1], heuristic.weights])
    wanted = [values(key, own) for key, own in zip(keys, weights, strict=True)]
    np.testing.assert_array_equal(jax.vmap(values)(keys, weights), wanted)
    by_key = jax.lax.scan(lambda _, key: (None, values(key, weights[0])), None, keys)[1]
    np.testing.assert_array_equal(by_key[0], wanted[0])


def test_donated_states_are_gone():
    """With one successor each they are overwritten; without being donated they stay."""
    given = case("three states")._replace(num_successors=1)
    wanted = comparing.expected(SEED, *given)
    comparing.assert_equal(generate(given), wanted, given.states)
    states = jax.tree.map(jnp.copy, given.states)
    comparing.assert_equal(generate(given._replace(states=states), donate=True), wanted, states)
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(states))
    assert not any(leaf.is_deleted() for leaf in jax.tree.leaves(given.states))


@pytest.mark.parametrize(
    ("name", "ratings"),
    [("independent", "recomputed"), ("activated", "stored")],
)
def test_it_has_kernels(name, ratings):
    """Which can be emitted."""
    given = case(name)
    setup = generation.Setup(given.num_successors, given.order, ratings, "cuda")

    def run(types, problem, states, active):
        shared = types, problem, random.as_key(0)
        return generation.run(setup, shared, states, active, None)

    own = given.heuristics, given.problem, given.states, given.active
    assert obstacle(run, *own) == ""
