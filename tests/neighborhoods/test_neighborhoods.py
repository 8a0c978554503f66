"""The laws of neighborhoods, for every problem and neighborhood in the table."""

import collections
import functools
import itertools

import chex
import jax
import jax.numpy as jnp
import kernels
import numpy as np
import pytest
from cases import NEIGHBORHOOD_CASES, Case, coords_tsp, ends, linear_ordering, matrix_tsp

import jaxopt_search as js
from jaxopt_search.neighborhoods.relocate import LinkedTour, Relocation
from jaxopt_search.portable import memory
from jaxopt_search.types import null_delta

NUM_DRAWS = 300


def per_draw(fn, cases=NEIGHBORHOOD_CASES):
    """Runs a test's `check(case, key, words)` on many draws at once."""

    @pytest.mark.parametrize("case", cases, ids=str)
    @functools.wraps(fn)
    def test(case):
        fn(case, *case.draws(NUM_DRAWS))

    del test.__wrapped__  # pytest reads the signature
    return test


@per_draw
def test_delta_is_the_change_in_full_cost(case, keys, words):
    """Incremental and full evaluation agree, for moves and for representations."""
    problem, hood = case.problem, case.neighborhood

    @jax.jit
    @jax.vmap
    def evaluate(solution):
        return hood.init(problem, solution), problem.cost(solution)

    @jax.jit
    @jax.vmap
    def change(state, words):
        move = hood.propose(problem, state, words)
        delta = hood.delta(problem, state, move)
        is_real = delta != null_delta(delta.dtype)
        state = hood.commit(problem, state, move, is_real)
        return jnp.where(is_real, delta, 0), state, hood.solution(problem, state)

    # In full before and after: compiled once, which takes longer than all that is computed here.
    state, before = evaluate(jax.jit(jax.vmap(problem.init))(keys))
    delta, state, solution = change(state, words)
    fresh, after = evaluate(solution)
    expected = after - before
    if case.is_exact:
        chex.assert_trees_all_equal((delta, state), (expected, fresh))
    else:
        chex.assert_trees_all_close((delta, state), (expected, fresh), rtol=1e-5, atol=1e-2)


@pytest.mark.slow
@per_draw
def test_solutions_stay_solutions_and_change(case, keys, words):
    """A committed move gives another solution; a rejected one changes nothing at all."""
    problem, hood = case.problem, case.neighborhood

    def check(key, words):
        before = hood.init(problem, problem.init(key))
        move = hood.propose(problem, before, words)
        delta = hood.delta(problem, before, move)
        is_real = delta != null_delta(delta.dtype)
        rejected = hood.commit(problem, before, move, jnp.bool_(False))
        accepted = hood.commit(problem, before, move, is_real)
        return before, rejected, hood.solution(problem, accepted), is_real

    before, rejected, after, is_real = jax.jit(jax.vmap(check))(keys, words)
    chex.assert_trees_all_equal(before, rejected)
    assert_are_solutions(problem, np.asarray(after))
    start = jax.vmap(lambda snapshot: hood.solution(problem, snapshot))(before)
    meaning = edges if isinstance(hood, js.TwoOpt) else np.asarray
    changed = (meaning(after) != meaning(start)).any(axis=-1)
    np.testing.assert_array_equal(changed, is_real)
    assert np.asarray(is_real).any()


def assert_are_solutions(problem, solutions):
    """Checks that all are permutations, or vectors within the domains."""
    if getattr(problem, "space", None) == "vector":
        assert ((solutions >= 0) & (solutions < np.asarray(problem.domain_sizes))).all()
    else:
        expected = np.broadcast_to(np.arange(problem.n), solutions.shape)
        np.testing.assert_array_equal(np.sort(solutions, axis=1), expected)


def edges(tours):
    """Returns [S, n]: the edges of each tour as sorted numbers, whichever way round."""
    tours = np.asarray(tours)
    n, following = tours.shape[1], np.roll(tours, -1, axis=1)
    return np.sort(np.minimum(tours, following) * n + np.maximum(tours, following), axis=1)


@per_draw
def test_solution_undoes_init(case, keys, words):
    """A representation, or only its snapshot, stands for the solution it was made from."""
    problem, hood = case.problem, case.neighborhood

    def check(key):
        solution = problem.init(key)
        representation = hood.init(problem, solution)
        return solution, hood.solution(problem, hood.snapshot(representation))

    solution, found = jax.jit(jax.vmap(check))(keys)
    if isinstance(hood, js.Relocate):  # a cyclic tour starts where it likes: at city 0
        first = jnp.argmin(solution, axis=1)
        solution = jax.vmap(lambda tour, start: jnp.roll(tour, -start))(solution, first)
    chex.assert_trees_all_equal(solution, found)


@pytest.mark.slow
@functools.partial(per_draw, cases=ends(NEIGHBORHOOD_CASES))
def test_lanes_are_scalars_side_by_side(case, keys, words):
    """Proposing and pricing M moves at once is the same as one by one."""
    problem, hood = case.problem, case.neighborhood
    state = hood.init(problem, problem.init(keys[0]))

    def price(words):
        return hood.delta(problem, state, hood.propose(problem, state, words))

    chex.assert_trees_all_equal(jax.jit(price)(words), jax.jit(jax.vmap(price))(words))


@pytest.mark.parametrize("n", [3, 4, 7])
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


def words(number):
    return tuple(jnp.uint32(0) for _ in range(number))


@pytest.mark.parametrize("n", [1, 2])
def test_tours_too_small_to_change_get_null_moves(n):
    """Up to two cities no relocation exists: whatever is proposed has the null delta."""
    problem, hood = matrix_tsp(n), js.Relocate()
    tour = hood.init(problem, jnp.arange(n, dtype=jnp.int32))
    move = hood.propose(problem, tour, words(2))
    assert int(hood.delta(problem, tour, move)) == null_delta(jnp.int32)


class ProposeOnly:
    num_words = 1

    def propose(self, problem, solution, words):
        return words[0]


class DeltaOnly(ProposeOnly):
    def delta(self, problem, representation, move):
        return 0


class NotAPytree(js.Relocate):
    pass


def test_full_evaluation_names_what_is_missing():
    """An object that is no neighborhood is refused by the name of what it lacks."""
    with pytest.raises(TypeError, match="ProposeOnly with neither delta nor apply"):
        js.simulated_annealing(ProposeOnly(), 1.0)
    with pytest.raises(TypeError, match="a DeltaOnly with delta but no init"):
        js.simulated_annealing(DeltaOnly(), 1.0)
    with pytest.raises(TypeError, match="a NotAPytree, expected a pytree; decorate the class"):
        js.simulated_annealing(NotAPytree(), 1.0)
    search = js.simulated_annealing(js.Swap(), 1.0)
    assert search.neighborhood == js.FullEvaluation(js.Swap())


def test_annealing_a_problem_without_a_delta():
    """The default price is enough: linear ordering of 7 items to its brute-force optimum."""
    problem = linear_ordering(7)
    orders = jnp.asarray(list(itertools.permutations(range(7))), jnp.int32)
    optimum = int(jax.vmap(problem.cost)(orders).min())
    search = js.simulated_annealing(js.Swap(), js.geometric(50.0, 0.9, 20), moves_per_search=4)
    result = js.solve(problem, search, 0, num_searches=8, max_steps=2000, target=optimum)
    assert result.success
    assert result.fun == optimum == int(problem.cost(jnp.asarray(result.x)))


@pytest.mark.parametrize("problem", [matrix_tsp(9), coords_tsp(9)], ids=["matrix", "coords"])
def test_relocate_is_portable(problem):
    """Proposing, pricing and committing do the same inside a kernel, which lowers for CUDA."""
    hood = js.Relocate()
    tour = hood.init(problem, jnp.arange(9, dtype=jnp.int32)[::-1])
    data, structure = jax.tree.flatten(problem)
    lanes = jnp.asarray(np.random.default_rng(0).integers(0, 2**32, (2, 8), dtype=np.uint32))

    def body(successor_ref, predecessor_ref, lanes_ref, *refs):
        *data_refs, deltas_ref, successor_out, predecessor_out = refs
        always = lanes_ref[0, 0] == lanes_ref[0, 0]
        memory.copy(successor_out, successor_ref, always)
        memory.copy(predecessor_out, predecessor_ref, always)
        tour = LinkedTour(successor_out, predecessor_out)
        problem = jax.tree.unflatten(structure, data_refs)
        words = (lanes_ref[0, :], lanes_ref[1, :])
        moves = hood.propose(problem, tour, words)
        deltas_ref[...] = hood.delta(problem, tour, moves)
        move = hood.propose(problem, tour, (jnp.uint32(1 << 30), jnp.uint32(1 << 31)))
        hood.commit(problem, tour, move, jnp.bool_(True))

    def expected(successor, predecessor, lanes, *data):
        problem, tour = jax.tree.unflatten(structure, data), LinkedTour(successor, predecessor)
        moves = hood.propose(problem, tour, (lanes[0], lanes[1]))
        move = hood.propose(problem, tour, (jnp.uint32(1 << 30), jnp.uint32(1 << 31)))
        return (
            hood.delta(problem, tour, moves),
            *hood.commit(problem, tour, move, jnp.bool_(True)),
        )

    shape = jax.ShapeDtypeStruct
    out_shape = (shape((8,), jnp.int32), shape((9,), jnp.int32), shape((9,), jnp.int32))
    kernels.check_in_kernel(body, out_shape, expected, *tour, lanes, *data)
