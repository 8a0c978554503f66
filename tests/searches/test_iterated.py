"""Iterated local search: its course by a slow reference, and what it refuses."""

import collections
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import coords_tsp, small_qap
from probes import edges, refuses
from references import course, stream_at

import jaxopt_search as js
from jaxopt_search.searches.acceptance import Trial

STEPS = 100


def near_enough(tour, city, lists, distances):
    """Returns the number of moves to candidates that are nearer than a neighbor, or before one."""
    at = int(np.argmax(tour == city))
    reach = max(distances[city, end] for end in (tour[at - 1], tour[(at + 1) % len(tour)]))
    near = [k + 1 for k, other in enumerate(lists[city]) if distances[city, other] < reach]
    return 12 * max(near, default=0)


def tours():
    problem = coords_tsp(12)
    hood = js.two_opt(problem, num_candidates=6)
    lists = np.asarray(hood.candidates)
    search = js.iterated_local_search(
        hood, js.DoubleBridge(4), acceptance=js.acceptance.metropolis(20.0)
    )
    cities = jnp.arange(12)
    distances = np.asarray(problem.distance(cities[:, None], cities[None]))
    return problem, search, functools.partial(near_enough, lists=lists, distances=distances)


def assignments():
    problem = small_qap(7, symmetric=False)
    return problem, js.iterated_local_search(js.SwapTable(), num_kicks=3), lambda *_: 7


@jax.jit
def make(hood, problem, at, move):
    return hood.commit(problem, at, move, jnp.bool_(True)), hood.touched(problem, at, move)


class Slow:
    """Written from the description: costs are computed anew, and the queue is a deque."""

    def __init__(self, problem, search, state, count_of):
        self.problem, self.search, self.count_of = problem, search, count_of
        self.at, self.queue = state.representation, collections.deque(range(problem.n))
        self.home, self.home_cost = self.at, self.cost
        self.moves, self.kicked = jax.jit(self._moves), jax.jit(self._kicked)
        self.passes = jax.jit(self._passes)

    @property
    def solution(self):
        hood = self.search.neighborhood
        return np.asarray(hood.solution(self.problem, hood.snapshot(self.at)))

    @property
    def cost(self):
        return self.problem.host.cost(self.solution)

    def _commit(self, at, move):
        return self.search.neighborhood.commit(self.problem, at, move, jnp.bool_(True))

    def _moves(self, at, element):
        """Returns the moves of an element, where there are any, and where they lead."""
        hood = self.search.neighborhood
        number = jnp.arange(hood.num_moves_of(self.problem), dtype=jnp.int32)
        moves, are = hood.moves_of(self.problem, at, element, number)
        are = are & (hood.delta(self.problem, at, moves) != js.null_delta(jnp.int32))

        def cost_after(move):
            after = hood.snapshot(self._commit(at, move))
            return self.problem.cost(hood.solution(self.problem, after))

        return moves, are, jax.vmap(cost_after)(moves)

    def step(self, i):
        if not self.queue:
            self.end_descent(i)
            for number in range(self.search.num_kicks):
                move, is_kick = self.kicked(self.at, jnp.int32(i), jnp.uint32(number))
                if is_kick:
                    self.make(self.search.kick, move)
        element = self.queue.popleft()
        moves, are, costs = jax.device_get(self.moves(self.at, jnp.int32(element)))
        count = self.count_of(self.solution, element)
        real = [(costs[k], k) for k in np.flatnonzero(are) if k < count]
        if real and min(real)[0] < self.cost:
            best = min(real)[1]
            self.make(self.search.neighborhood, jax.tree.map(lambda leaf: leaf[best], moves))

    def end_descent(self, i):
        if self.passes(jnp.int32(i), jnp.int32(self.home_cost), jnp.int32(self.cost)):
            self.home, self.home_cost = self.at, self.cost
        self.at = self.home

    def _passes(self, i, home_cost, cost):
        rule = self.search.acceptance
        words = stream_at(i).words(jnp.uint32(0), rule.num_words)
        return rule.passes(Trial(rule.control(i), None, home_cost, cost - home_cost, words))

    def _kicked(self, at, i, number):
        """Returns a kick, and whether it is one."""
        kick = self.search.kick
        move = kick.propose(self.problem, at, stream_at(i).words(number + 1, kick.num_words))
        return move, kick.delta(self.problem, at, move) != js.null_delta(jnp.int32)

    def make(self, hood, move):
        after, touched = make(hood, self.problem, self.at, move)
        touched = [int(element) for element in touched]
        for element in touched:
            if element not in self.queue:
                self.queue.append(element)
        before = self.solution
        self.at = after
        if isinstance(self.problem, js.TSP):
            assert set(touched) >= set().union(*edges(before) ^ edges(self.solution))
        else:
            assert set(touched) == set(np.flatnonzero(before != self.solution))


@pytest.mark.parametrize("case", [tours, assignments])
def test_the_course_is_that_of_a_slow_reference(case):
    """Bit for bit, homes that it goes back to included."""
    problem, search, count_of = case()
    state = search.init(problem, problem.init(jax.random.key(1)))
    slow = Slow(problem, search, state, count_of)
    states, _ = course(problem, search, state, STEPS)
    found = np.asarray(jax.vmap(search.current, (None, 0))(problem, states))
    costs, best = states.cost, jax.vmap(search.best_cost)(states)
    lowest, homes = slow.cost, set()
    for i in range(STEPS):
        slow.step(i)
        lowest = min(lowest, slow.cost)
        np.testing.assert_array_equal(found[i], slow.solution, err_msg=f"step {i}")
        assert costs[i] == slow.cost and best[i] == lowest
        homes.add(slow.home_cost)
    assert len(homes) > 1


def test_a_refresh_lets_a_descent_go_on():
    """With float costs: the queue and the home stay, and costs are those of the solutions."""
    points = np.random.default_rng(0).random((12, 2))
    problem = js.tsp_from_coords(points)
    search = js.iterated_local_search(js.two_opt(problem, num_candidates=6), js.DoubleBridge(4))
    state = search.init(problem, problem.init(jax.random.key(1)))
    step, i = jax.jit(search.step), 0
    while i < 40 or (state.home.city == state.representation.city).all():
        state, _ = step(stream_at(i), None, problem, state)
        i += 1
    off = state._replace(cost=state.cost + 1, home_cost=state.home_cost + 2, best_cost=jnp.inf)
    found = search.refresh(problem, off)
    for name in ("cost", "home_cost"):
        np.testing.assert_allclose(getattr(found, name), getattr(state, name), rtol=1e-6)
    np.testing.assert_array_equal(found.home.city, state.home.city)
    jax.tree.map(np.testing.assert_array_equal, found.queue, state.queue)
    assert found.best_cost <= found.cost


def test_an_empty_neighborhood_ends_no_run():
    """Of one city and of two there is no move: whatever is looked at, nothing changes."""
    for n in (1, 3):
        problem = coords_tsp(n)
        search = js.iterated_local_search(js.two_opt(problem), js.DoubleBridge())
        result = js.solve(problem, search, 0, num_searches=2, max_steps=20)
        assert sorted(result.x.tolist()) == list(range(n))
        assert result.fun == problem.host.cost(np.arange(n))


def test_what_it_refuses():
    with refuses(TypeError, "neighborhood is a Relocate, expected a js.ByElement"):
        js.iterated_local_search(js.Relocate())
    with refuses(TypeError, "kick is a Relocate, expected a neighborhood with touched"):
        js.iterated_local_search(js.SwapTable(), js.Relocate())
    with refuses(ValueError, "num_kicks is 0"):
        js.iterated_local_search(js.SwapTable(), num_kicks=0)
    with refuses(ValueError, "max_path is 0"):
        js.DoubleBridge(0)
    with refuses(ValueError, "max_length is 2.5"):
        js.InsertSegment(2.5)
