"""A tour that is cut into regions and put together again."""

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from probes import edges

import jaxopt_search as js
from jaxopt_search.backends import random
from jaxopt_search.datasets import distances
from jaxopt_search.problems.tsp import curves, regions
from jaxopt_search.solvers.regional import part_of

N, ROOM = 300, 96
POINTS = np.random.default_rng(3).random((N, 2)) * 100
PROBLEM = js.tsp_from_coords(POINTS, storage="coordinates")
CELLS = curves.cells_of(jnp.asarray(POINTS, jnp.float32))
TOUR = np.random.default_rng(4).permutation(N).astype(np.int32)
NUM = 7


def key(number: int) -> jax.Array:
    return random.start_key(random.as_key(0), jnp.uint32(number))


@pytest.fixture(scope="module", params=["curve", "random"])
def tour(request: pytest.FixtureRequest) -> np.ndarray:
    """A tour that leaves regions rarely, and one that leaves them with nearly each edge."""
    is_random = request.param == "random"
    return TOUR if is_random else np.asarray(curves.tour_through(CELLS, key(1)))


def cut(tour: np.ndarray, room: int = 3 * N) -> regions.Regions:
    along = curves.tour_through(CELLS, key(2))
    return jax.device_get(regions.cut(along, jnp.asarray(tour), NUM, room))


@jax.jit
def neighbors_after(tour: Any, part: regions.Regions, orders: Any) -> jax.Array:
    return regions.neighbors_after(tour, part, orders)


def edges_of(neighbors: Any) -> set[frozenset[int]]:
    return {frozenset((city, to)) for city, row in enumerate(np.array(neighbors)) for to in row}


def length(tour: np.ndarray) -> float:
    return math.fsum(np.hypot(*(POINTS[tour] - POINTS[np.roll(tour, -1)]).T))


def blocks(number: np.ndarray) -> list[list[int]]:
    """Returns the runs of tied cities of a region, the one over its end first."""
    found = [[0]]
    for i in range(1, len(number)):
        if abs(number[i] - number[i - 1]) == 1:
            found[-1].append(i)
        else:
            found.append([i])
    if len(found) > 1:
        found[0] = found.pop() + found[0]
    return found


def shuffled(part: regions.Regions, generator: np.random.Generator) -> np.ndarray:
    """Returns a random order of each region that parts no tied cities."""
    orders = np.tile(np.arange(part.number.shape[1], dtype=np.int32), (len(part.count), 1))
    for order, number, count in zip(orders, part.number, part.count.tolist(), strict=True):
        runs = blocks(number[:count])
        runs = [runs[i][:: generator.choice([1, -1])] for i in generator.permutation(len(runs))]
        order[:count] = np.concatenate(runs)
    return orders


def test_each_edge_is_free_in_one_region(tour: np.ndarray) -> None:
    """And tied cities are those between which the tour leads elsewhere, also over the end."""
    part, free = cut(tour), []
    for at, number, count in zip(part.position, part.number, part.count.tolist(), strict=True):
        assert (np.diff(at[:count]) > 0).all()
        gaps = np.abs(np.diff(number[:count].astype(np.int64)))
        free += [frozenset(tour[at[i : i + 2]].tolist()) for i in np.flatnonzero(gaps != 1)]
        assert number[0] - number[count - 1] == 1
        apart = np.abs(number[:count, None] - number[None, :count])
        assert (apart == 1).sum() == 2 * ((gaps == 1).sum() + 1)
    (closing,) = edges(tour) - set(free)  # which no region has both ends of in order
    assert closing == frozenset((tour[0], tour[-1]))
    assert len(free) == len(set(free)) == N - 1


@pytest.mark.parametrize("room", [3 * N, ROOM])
def test_changes_of_all_regions_come_together(tour: np.ndarray, room: int) -> None:
    """All that regions change is in the tour but for the edges that join cycles, none else."""
    part, generator = cut(tour, room), np.random.default_rng(5)
    same = np.tile(np.arange(room, dtype=np.int32), (NUM, 1))
    assert edges_of(neighbors_after(tour, part, same)) == edges(tour)
    orders = shuffled(part, generator)
    neighbors = neighbors_after(tour, part, orders)
    wanted = edges(tour)
    each = zip(orders, part.position, part.number, part.count.tolist(), strict=True)
    for order, at, number, count in each:
        steps = zip(order[:count].tolist(), np.roll(order[:count], -1).tolist(), strict=True)
        own = zip(range(count), [*range(1, count), 0], strict=True)
        for change, pairs in ((set.discard, own), (set.add, steps)):
            for i, j in pairs:
                if abs(int(number[i]) - int(number[j])) != 1:
                    change(wanted, frozenset(tour[at[[i, j]]].tolist()))
    assert edges_of(neighbors) == wanted
    label = np.asarray(regions.cycles(neighbors))
    number = len(set(label.tolist()))
    after = np.asarray(regions.tour_of(regions.joined(PROBLEM, CELLS, key(6), neighbors)))
    assert sorted(after.tolist()) == list(range(N))
    assert number > 1 and len(edges(after) - wanted) <= 2 * (number - 1)


def test_a_region_that_parts_tied_cities_stays(tour: np.ndarray) -> None:
    part = cut(tour)
    orders = np.tile(np.arange(part.number.shape[1], dtype=np.int32), (NUM, 1))
    for order, count in zip(orders, part.count.tolist(), strict=True):
        order[:count] = np.random.default_rng(7).permutation(count)
    assert edges_of(neighbors_after(tour, part, orders)) == edges(tour)


@pytest.mark.parametrize("seed", range(4))
def test_two_cycles_are_joined_where_it_costs_least(seed: int) -> None:
    """Of few cities, all are close along the curve: brute force finds nothing better."""
    generator, num = np.random.default_rng(seed), 6
    points = generator.integers(0, 99, (15, 2))
    problem = js.tsp_from_coords(points, metric="EUC_2D", storage="coordinates")
    orders = np.split(generator.permutation(15).astype(np.int32), [num])
    neighbors = np.zeros((15, 2), np.int32)
    for order in orders:
        neighbors[order] = np.stack([np.roll(order, 1), np.roll(order, -1)], axis=1)
    cells = curves.cells_of(jnp.asarray(points, jnp.float32))
    after = regions.tour_of(regions.joined(problem, cells, key(8), jnp.asarray(neighbors)))
    turned = [np.roll(orders[0], i)[::step] for i in range(num) for step in (1, -1)]
    joined = [
        np.concatenate([one, np.roll(orders[1], j)]) for one in turned for j in range(15 - num)
    ]
    assert problem.host.cost(np.asarray(after)) == min(map(problem.host.cost, joined))


def test_distances_in_a_part_are_those_of_the_instance() -> None:
    """Also of coordinates that are halves."""
    halves = np.round(2 * POINTS) / 2
    problem = js.tsp_from_coords(halves, metric="EUC_2D", storage="coordinates")
    part = cut(TOUR)
    one = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), part)
    found = dataclasses.replace(part_of(problem, jnp.asarray(TOUR), one).problem, ties=None)
    cities = TOUR[part.position[0, : part.count[0]]]
    other = jnp.arange(1, len(cities), dtype=jnp.int32)
    expected = distances.euc_2d(halves[cities[0]], halves[cities[1:]])
    np.testing.assert_array_equal(found.distance(jnp.zeros_like(other), other), expected)


def test_the_cost_of_a_part_changes_as_the_tour(tour: np.ndarray) -> None:
    """Lengths of orders of a region differ by as much as the tour with them, where ties hold."""
    part = cut(tour)
    orders = shuffled(part, np.random.default_rng(9))
    for number in range(NUM):
        one = jax.tree.map(lambda leaf, number=number: jnp.asarray(leaf[number]), part)
        problem, *_ = part_of(PROBLEM, jnp.asarray(tour), one)
        same = np.arange(orders.shape[1], dtype=np.int32)
        before, after = (float(problem.cost(jnp.asarray(each))) for each in (same, orders[number]))
        alone = np.tile(same, (NUM, 1))
        alone[number] = orders[number]
        changed = edges_of(neighbors_after(tour, part, alone))
        lengths = [
            math.fsum(math.dist(*POINTS[sorted(edge)]) for edge in each)
            for each in (changed, edges(tour))
        ]
        assert after - before == pytest.approx(lengths[0] - lengths[1], abs=0.2)
