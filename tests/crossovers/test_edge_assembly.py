"""Edge assembly against slow code that follows one walk after the other."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from probes import distances_of, edges

import jaxopt_search as js
from jaxopt_search.backends import random

WAYS = ("xla", "native", "interpret") if jax.default_backend() == "cpu" else ("xla", "cuda")


def instance(n, seed=0, is_float=False):
    points = np.random.default_rng(seed).random((n, 2)) * 1000
    if is_float:
        return js.tsp_from_coords(points)
    distances = np.round(1e3 * distances_of(points))  # hardly two sums are equal
    return js.tsp(distances.astype(np.int64))


def tours(n, seed=0):
    """Two tours that share some edges and differ in others."""
    generator = np.random.default_rng(seed)
    own = generator.permutation(n)
    given = own.copy()
    for _ in range(generator.integers(1, 5)):
        low, high = sorted(generator.integers(0, n, 2))
        given[low:high] = given[low:high][::-1]
    if generator.random() < 0.3:
        given = generator.permutation(n)
    return own.astype(np.int32), np.roll(given, generator.integers(n)).astype(np.int32)


def ends_of(tour):
    """The mate of each end, by the definition in the module."""
    mate = {}
    for one, other in zip(tour.tolist(), np.roll(tour, -1).tolist(), strict=True):
        mate[2 * one], mate[2 * other + 1] = 2 * other + 1, 2 * one
    return mate


def slow_walks(own, given, coin):
    """The AB-cycles, one after the other: sets of edges that each tour loses, as ends of `own`."""
    mate, others = ends_of(own), ends_of(given)
    partner = {}
    for city in range(len(own)):
        mine, theirs = (2 * city, 2 * city + 1), (2 * city, 2 * city + 1)
        shared = [(a, b) for a in mine for b in theirs if mate[a] // 2 == others[b] // 2]
        if shared:
            a, b = shared[0]
            pairs = ((a, b), (a ^ 1, b ^ 1))
        else:
            pairs = [(a, a ^ int(coin[city])) for a in mine]
        partner |= dict(pairs)
    back = {b: a for a, b in partner.items()}
    walks, left = [], set(mate)
    while left:
        walk, end = set(), min(left)
        while end not in walk:
            walk |= {end, mate[end]}
            end = back[others[partner[mate[end]]]]
        walks.append(walk)
        left -= walk
    return walks, {end: back[others[partner[end]]] for end in mate}


def parts_of(mate):
    """The cycles that ends make, as sets of cities."""
    parts, left = [], set(range(len(mate) // 2))
    while left:
        city, part, end = min(left), set(), 2 * min(left)
        while city not in part:
            part.add(city)
            end = mate[end] ^ 1
            city = end // 2
        parts.append(part)
        left -= part
    return parts


def slowly_joined(distance, candidates, mate):
    mate = list(mate)
    while len(parts := parts_of(mate)) > 1:
        smallest = min(parts, key=lambda part: (len(part), min(part)))
        moves = []
        for city in smallest:
            for near in set(candidates[city].tolist()) - smallest:
                for end, other in itertools.product(
                    (2 * city, 2 * city + 1), (2 * near, 2 * near + 1)
                ):
                    one, two = mate[end], mate[other]
                    added = distance[city, near] + distance[one // 2, two // 2]
                    lost = distance[city, one // 2] + distance[near, two // 2]
                    moves.append((added - lost, end, other, one, two))
        if not moves:
            return None
        _, end, other, one, two = min(moves)
        mate[end], mate[other], mate[one], mate[two] = other, end, two, one
    return mate


def slow_child(problem, candidates, own, given, word):
    """The edges of the child that takes all that is better, and by how much it is longer."""
    n, place = len(own), np.argsort(own)
    coin = random.mixed(jnp.uint32(word) ^ jnp.arange(n, dtype=jnp.uint32)) % 2
    walks, beyond = slow_walks(np.arange(n), place[given], np.asarray(coin))
    distance = np.asarray(problem.matrix, np.int64).reshape(n, n)[np.ix_(own, own)]
    mate = ends_of(np.arange(n))

    def length(mate, ends):
        return sum(distance[end // 2, mate[end] // 2] for end in ends) // 2

    before = length(mate, mate)
    for walk in walks:
        if length(beyond, walk) < length(mate, walk):
            mate |= {end: beyond[end] for end in walk}
    near = place[np.asarray(candidates)][own]
    joined = slowly_joined(distance, near, [mate[end] for end in range(2 * n)])
    if joined is None:
        return None, 0
    found = {
        frozenset((own[end // 2].item(), own[other // 2].item()))
        for end, other in enumerate(joined)
    }
    return found, length(joined, range(2 * n)) - before


def good_tours(problem, num):
    """Tours that hardly differ: parts of their children often cost more to join than is gained."""
    search = js.iterated_local_search(js.two_opt(problem), js.DoubleBridge())
    own = js.solve(problem, search, 0, num_searches=num, max_steps=10 * problem.n).solutions
    return own, np.roll(own, 1, axis=0)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("num_candidates", [1, 8])
def test_children_are_those_made_one_by_one(num_candidates, way):
    """AB-cycles, what they gain, and parts joined, the smallest first, by the best move.

    Where candidates do not allow it, or the child is longer, the search keeps its own.
    """
    n, num = 100, 24
    problem = instance(n)
    crossover = js.edge_assembly(problem, num_candidates=num_candidates)
    others = map(np.stack, zip(*(tours(n, seed) for seed in range(num)), strict=True))
    own, given = map(np.concatenate, zip(good_tours(problem, num), others, strict=True))
    words = jnp.arange(2 * num, dtype=jnp.uint32), jnp.ones(2 * num, jnp.uint32)
    make = jax.jit(lambda crossover, *pairs: crossover.children(*pairs, jnp.float32(1), way))
    found = make(crossover, random.typed_key(words), problem, own, given)
    changes = []
    for number, child in enumerate(np.asarray(found)):
        pair = own[number], given[number]
        expected, change = slow_child(problem, crossover.candidates, *pair, number)
        changes.append(math.inf if expected is None else change)
        assert edges(child) == (expected if changes[-1] < 0 else edges(own[number]))
        assert sorted(child.tolist()) == list(range(n))
    assert min(changes) < 0 < max(changes)


@jax.jit
def jitted_child(crossover, *arguments):
    return crossover.child(*arguments)


@jax.jit
def cost_of(problem, tour):
    return problem.cost(tour)


def child_of(problem, own, given, share, seed=0):
    key = random.typed_key((jnp.uint32(seed), jnp.uint32(1)))
    crossover = js.edge_assembly(problem)
    return np.asarray(jitted_child(crossover, key, problem, own, given, jnp.float32(share)))


def circle(n):
    angle = 2 * np.pi * np.arange(n) / n
    return js.tsp_from_coords(np.stack([np.cos(angle), np.sin(angle)], axis=1))


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_child_takes_what_is_better_and_leaves_what_is_worse(share):
    """On a circle, where each parent has a detour of its own: the child has none, whoever is own.

    There is one AB-cycle by which the tour gets shorter, so that it is taken whatever the share.
    """
    problem, best = circle(40), np.arange(40, dtype=np.int32)
    own, given = best.copy(), best.copy()
    own[[5, 6]], given[[25, 27]] = own[[6, 5]], given[[27, 25]]
    for first, second in ((own, given), (given, own)):
        assert edges(child_of(problem, first, second, share)) == edges(best)


def test_a_share_of_walks_is_taken():
    """Of twelve detours on a circle, none of them of the other tour: all, or about half."""
    n, num = 240, 12
    problem, best = circle(n), np.arange(n, dtype=np.int32)
    own = best.copy()
    for place in range(0, n, n // num):
        own[[place + 5, place + 6]] = own[[place + 6, place + 5]]

    def num_left(share, seed=0):
        return len(edges(child_of(problem, own, best, share, seed)) - edges(best)) // 2

    assert num_left(1.0) == 0
    assert num_left(0.0) == num - 1
    left = np.array([num_left(0.5, seed) for seed in range(40)])
    assert abs(left.mean() - num / 2) <= 5 * (num / 4 / len(left)) ** 0.5
    assert len(set(left.tolist())) > 2


@pytest.mark.parametrize(("n", "is_float"), [(5, False), (31, True)])
def test_children_are_tours_that_are_no_longer(n, is_float):
    """Those of equal parents are their parents, and some children are shorter than both."""
    problem, num_better = instance(n, 3, is_float), 0
    for seed in range(20):
        own, given = tours(n, seed)
        child = child_of(problem, own, given, 0.7, seed)
        assert sorted(child.tolist()) == list(range(n))
        before, after = float(cost_of(problem, own)), float(cost_of(problem, child))
        assert after < before or (child == own).all()
        num_better += after < min(before, float(cost_of(problem, given)))
        np.testing.assert_array_equal(child_of(problem, own, own[::-1].copy(), 0.7, seed), own)
    assert num_better > 0 or n < 16


@pytest.mark.parametrize("points", [np.zeros((9, 2)), np.repeat(np.eye(3)[:, :2], 3, axis=0)])
def test_equal_places_are_no_trouble(points):
    """Where nothing is better, a search keeps its own tour."""
    problem = js.tsp_from_coords(points)
    for seed in range(5):
        own, given = tours(9, seed)
        child = child_of(problem, own, given, 1.0, seed)
        assert cost_of(problem, child) < cost_of(problem, own) or (child == own).all()
