"""The laws of neighborhoods, for every problem and neighborhood in the table."""

import collections
import functools
import itertools
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import NEIGHBORHOOD_CASES, Case, coords_tsp, matrix_tsp

import jaxopt_search as js
from jaxopt_search.backends import memory
from jaxopt_search.neighborhoods import array_tour
from jaxopt_search.neighborhoods.relocate import Relocation
from jaxopt_search.types import null_delta

# Whose table lacks moves in some solutions: between equal values, or that the heuristic forbids.
LACKING = (js.SwapValues, js.Guided)


def edges(tours):
    """Returns [..., n]: the edges of each tour as sorted numbers, whichever way round."""
    n, following = tours.shape[-1], np.roll(tours, -1, axis=-1)
    return np.sort(np.minimum(tours, following) * n + np.maximum(tours, following), axis=-1)


def from_city_0(tours):
    """Returns tours, [..., n], that start at city 0: those of `Relocate` start where they like."""
    places = (np.arange(tours.shape[-1]) + tours.argmin(axis=-1, keepdims=True)) % tours.shape[-1]
    return np.take_along_axis(tours, places, axis=-1)


@pytest.mark.parametrize("case", NEIGHBORHOOD_CASES, ids=str)
def test_the_laws_of_neighborhoods(case):
    """Along walks from 30 random solutions: see `js.testing.check_neighborhood`."""
    meanings = {js.TwoOpt: edges, js.Relocate: from_city_0, js.ThreeOpt: from_city_0}
    meanings[js.DoubleBridge] = from_city_0
    js.testing.check_neighborhood(
        case.neighborhood,
        case.problem,
        meaning=meanings.get(type(case.neighborhood)),
        has_all_moves=not isinstance(case.neighborhood, LACKING),
        implementations=False,  # tests/golden.py compares them
    )


def test_a_tour_of_2_opt_starts_where_it_did():
    """Its representation stands for the very tour it was made from, not only for its edges."""
    problem = coords_tsp(9)
    hood, tour = js.two_opt(problem), problem.init(jax.random.key(0))
    snapshot = hood.snapshot(hood.init(problem, tour))
    np.testing.assert_array_equal(hood.solution(problem, snapshot), tour)


@pytest.mark.parametrize(("make", "n"), [(coords_tsp, 30), (matrix_tsp, 5), (matrix_tsp, 2)])
def test_the_best_move_of_a_city_is_the_best_of_all(make, n):
    """Of each city on three tours, with room for more: the first one, if several are as good."""
    problem = make(n).padded()
    hood = js.two_opt(problem, num_candidates=6)
    own = jax.jit(jax.vmap(hood.best_of, (None, None, 0)))
    of_all = jax.jit(jax.vmap(functools.partial(js.ByElement.best_of, hood), (None, None, 0)))
    for seed in range(3):
        tour = hood.init(problem, problem.init(jax.random.key(seed)))
        moves, deltas = own(problem, tour, jnp.arange(n))
        jax.tree.map(
            np.testing.assert_array_equal, (moves, deltas), of_all(problem, tour, jnp.arange(n))
        )
        assert n < 5 or (deltas < 0).any()


def test_2_opt_reads_places_of_the_tour_only(monkeypatch):
    """In a hundred moves, made or not: a kernel is promised that, and checks nothing."""
    seen = []

    def load_seen(buffer, index):
        if not isinstance(index, tuple):  # of a tour, and not of the candidates
            jax.debug.callback(lambda index: seen.append(np.asarray(index)), index)
        return memory.load(buffer, index)

    monkeypatch.setattr(array_tour, "load", load_seen)
    monkeypatch.setattr(sys.modules[js.TwoOpt.__module__], "load", load_seen)
    n, problem = 5, coords_tsp(5)
    hood = js.two_opt(problem)
    tour = hood.init(problem, jnp.arange(n, dtype=jnp.int32))

    def price_and_make(words, accept):
        move = hood.propose(problem, tour, words)
        return hood.delta(problem, tour, move), hood.commit(problem, tour, move, accept)

    _, words = Case("", problem, hood).draws(50, seed=0)
    make = jax.jit(jax.vmap(price_and_make, in_axes=(0, None)))
    for accept in (True, False):
        jax.block_until_ready(make(words, jnp.bool_(accept)))
    jax.effects_barrier()
    every = np.concatenate([each.ravel() for each in seen])
    assert every.size > 10 * 2 * 50
    assert every.min() >= 0 and every.max() < n


@pytest.mark.parametrize("n", [3, 7])
def test_relocations_are_proposed_evenly(n):
    """Each of the n (n - 2) relocations has the same chance, and nothing else is proposed."""
    case = Case("", matrix_tsp(n), js.Relocate())
    tour = case.neighborhood.init(case.problem, jnp.arange(n, dtype=jnp.int32))
    _, words = case.draws(20_000, seed=int(np.random.default_rng().integers(2**31)))
    moves = case.neighborhood.propose(case.problem, tour, words)
    counts = collections.Counter(zip(*(np.asarray(part).tolist() for part in moves), strict=True))
    expected = {
        (city, after)
        for city, after in itertools.product(range(n), repeat=2)
        if after not in (city, (city - 1) % n)
    }
    assert set(counts) == expected
    mean = 20_000 / len(expected)
    assert max(abs(count - mean) for count in counts.values()) < 7 * mean**0.5


def test_relocation_moves_the_city_where_it_says():
    """Known by hand: 0 1 2 3 4 with 1 put behind 3 is 0 2 3 1 4."""
    hood, problem = js.Relocate(), matrix_tsp(5)
    tour = hood.init(problem, jnp.arange(5, dtype=jnp.int32))
    move = Relocation(city=jnp.int32(1), after=jnp.int32(3))
    after = hood.commit(problem, tour, move, jnp.bool_(True))
    assert hood.solution(problem, after).tolist() == [0, 2, 3, 1, 4]


def test_tours_too_small_to_change_get_null_moves():
    """Of one city no relocation exists: whatever is proposed has the null delta."""
    problem, hood = matrix_tsp(1), js.Relocate()
    tour, word = hood.init(problem, jnp.zeros(1, jnp.int32)), jnp.uint32(0)
    move = hood.propose(problem, tour, (word, word))
    assert int(hood.delta(problem, tour, move)) == null_delta(jnp.int32)


class ProposeOnly:
    num_words = 1

    def propose(self, problem, solution, words):
        return words[0]


class NotAPytree(js.Relocate):
    pass


def test_what_is_no_neighborhood_is_refused():
    """By its class; moves without a price of their own are priced in full."""
    with pytest.raises(TypeError, match=r"a ProposeOnly, expected a js\.Neighborhood"):
        js.simulated_annealing(ProposeOnly(), 1.0)
    with pytest.raises(TypeError, match="a NotAPytree, expected a pytree; decorate the class"):
        js.simulated_annealing(NotAPytree(), 1.0)
    search = js.simulated_annealing(js.Swap(), 1.0)
    assert search.neighborhood == js.FullEvaluation(js.Swap())
