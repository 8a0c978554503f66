"""N-Queens: the problem, its constructions, and its neighborhood."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import Case
from probes import refuses
from queens import assert_valid

import jaxopt_search as js
from jaxopt_search.backends import random


def placed(case, queens):
    return jax.jit(case.neighborhood.init)(case.problem, jnp.asarray(queens, jnp.int32))


def propose(case, representation, words):
    """Returns the rows of moves, two arrays on the host."""
    moves = jax.jit(case.neighborhood.propose)(case.problem, representation, tuple(words))
    return jax.device_get(moves)


@pytest.mark.parametrize(("n", "tries"), [(1, 4), (2, 1), (30, 3), (30, 40)])
def test_a_greedy_placement_is_that_of_a_slow_reference(n, tries):
    """Row by row the first column of some on which no queen before attacks, else the first."""
    key = jax.random.key(7)
    (first, second), lanes = jax.random.key_data(key), jnp.arange(tries, dtype=jnp.uint32)
    columns, queens = list(range(n)), []
    for row in range(n):
        words, _ = random.threefry2x32((first, second), (lanes, jnp.uint32(row)))
        places = [row + (int(word) * (n - row) >> 32) for word in words]
        free = [
            place
            for place in places
            if all(abs(columns[place] - a) != row - i for i, a in enumerate(queens))
        ]
        place = (free or places)[0]
        queens.append(columns[place])
        columns[place], columns[row] = columns[row], columns[place]
    np.testing.assert_array_equal(js.greedy_placement(key, n, tries), queens)


def test_hoffman_is_valid():
    for n in (1, *range(4, 301)):
        queens = js.hoffman(n)
        assert queens.dtype == np.int32
        assert_valid(queens)


@pytest.mark.parametrize(
    ("n", "text"),
    [
        (2, "n is 2, expected 1 or at least 4: no placement of 2 queens is valid"),
        (2**29 + 1, "n is 536870913, expected an integer from 1 to 536870912"),
    ],
)
def test_sizes_without_a_placement_are_refused(n, text):
    """Two and three queens are a problem all the same."""
    with refuses(ValueError, text):
        js.hoffman(n)
    if n not in (2, 3):
        with refuses(ValueError, text):
            js.nqueens(n)


def test_starts_that_are_refused():
    """More attacking pairs than int32 holds."""
    n, search = 65_537, js.simulated_annealing(js.QueenSwap(), 0.1)
    with refuses(ValueError, "attacking pairs of initial is 2147516416, expected"):
        js.solve(js.nqueens(n), search, 0, initial=np.arange(n), max_steps=1)


def test_the_most_attacking_pairs():
    """All queens on the longest diagonal that int32 can count, 32,767 below its limit."""
    problem = js.nqueens(65_536)
    queens = problem.host.check(np.arange(65_536), "initial")
    assert int(jax.jit(problem.cost)(queens)) == 65_536 * 65_535 // 2 == 2**31 - 1 - 32_767


@pytest.mark.parametrize("n", [1, 2, 9])
def test_starts_are_permutations(n):
    """Random ones, and those near another: the same if there is but one."""
    problem = js.nqueens(n)
    keys = jax.random.split(jax.random.key(1), 50)
    starts = jax.jit(jax.vmap(problem.init))(keys)
    near = jax.jit(jax.vmap(problem.perturb))(jax.random.split(jax.random.key(2), 50), starts)
    for queens in (starts, near):
        np.testing.assert_array_equal(np.sort(queens, axis=1), np.tile(np.arange(n), (50, 1)))
    assert (np.asarray(near) != starts).any() == (n > 1)


def test_counters_stay_true_over_many_moves():
    """At sizes of both types of counters, after moves that were made or not."""
    for n, dtype in ((2**15 - 1, jnp.int16), (2**15, jnp.int32)):
        case = Case("", js.nqueens(n), js.QueenSwap())
        problem, hood = case.problem, case.neighborhood
        _, words = case.draws(200)
        start = placed(case, np.random.default_rng(n).permutation(n))

        def step(state, drawn, problem=problem, hood=hood):
            move = hood.propose(problem, state, drawn[:-1])
            return hood.commit(problem, state, move, drawn[-1]), None

        end, _ = jax.jit(lambda *args: jax.lax.scan(step, *args))(start, (*words, words[0] % 3 > 0))
        queens = hood.solution(problem, hood.snapshot(end))
        assert queens.dtype == jnp.int32
        chex.assert_trees_all_equal(end, placed(case, queens))
        assert end.queens.dtype == end.rising.dtype == end.falling.dtype == dtype
        assert (np.asarray(end.queens) != start.queens).sum() > 30


def test_swaps_are_proposed_evenly():
    """Each of the n (n - 1) ordered pairs has the same chance."""
    case = Case("", js.nqueens(4), js.QueenSwap())
    state = placed(case, np.arange(4))
    _, words = case.draws(20_000, seed=int(np.random.default_rng().integers(2**31)))
    first, second = propose(case, state, words)
    counts = np.bincount(first * 4 + second, minlength=16).reshape(4, 4)
    mean = 20_000 / 12
    assert (np.diag(counts) == 0).all()
    assert np.abs(counts[~np.eye(4, dtype=bool)] - mean).max() < 7 * mean**0.5
