"""N-Queens with room for more queens: the same bits as without, whatever the room is."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from probes import refuses
from queens import permutations, repair, slow_count
from ways import KERNEL

import jaxopt_search as js
from jaxopt_search.backends import random
from jaxopt_search.problems import padding
from jaxopt_search.problems.queens import symmetry


def own(problem, queens):
    """Returns the entries that are queens, of one placement or several; the rest has to stay."""
    queens = np.asarray(queens)
    rest = np.arange(problem.host.num_entries or problem.n, problem.capacity)
    np.testing.assert_array_equal(
        queens[..., problem.capacity - len(rest) :],
        np.broadcast_to(rest, (*queens.shape[:-1], len(rest))),
    )
    return problem.host.own(queens)


def variants(n, room):
    return [js.nqueens(n), js.nqueens(n).padded(room)]


@pytest.mark.parametrize("n", [1, 9])
def test_solutions_and_costs(n):
    """Random ones, those near them, greedy ones, and their fingerprints; only queens cost."""

    def made(problem):
        start, near, greedy = jax.random.split(jax.random.key(n), 3)
        queens = [problem.init(start), problem.perturb(near, problem.init(start))]
        queens.append(js.greedy_placement(greedy, problem.n, 4, problem.capacity))
        queens = jnp.stack(queens)
        words = [
            jax.vmap(lambda one, by=by: symmetry.fingerprint(one, by, problem.num_entries))(queens)
            for by in ("raw", "symmetry")
        ]
        return queens, jax.vmap(problem.cost)(queens), words

    results = []
    for problem in variants(n, 20):
        queens, costs, words = jax.jit(made)(problem)
        results.append((own(problem, queens), costs, words))
        assert costs.tolist() == slow_count(results[-1][0]).tolist()
        assert costs.tolist() == [problem.host.cost(np.asarray(row)) for row in queens]
        assert problem.is_trivial == (n == 1)
    chex.assert_trees_all_equal(*results)


SEARCH = js.min_conflicts(js.QueenSwap(), 0.3, moves_per_search=5)


@pytest.mark.parametrize(
    ("n", "way"),
    [
        (9, KERNEL),
        (2, "xla"),
    ],
)
def test_searches_take_the_same_course(n, way):
    """Whatever runs them: the same costs, placements and moves made, bit for bit."""

    def course(problem, way):
        start = js.init(5, problem, SEARCH, num_searches=3)
        end = js.advance(problem, SEARCH, start, 60, implementation=way)
        best, current = (part.queens for part in (end.searches.best, end.searches.representation))
        bare = end.searches._replace(representation=None, best=None)
        return own(problem, best), own(problem, current), end._replace(searches=bare)

    expected = course(js.nqueens(n), way)
    assert (np.asarray(expected[2].info.accepted) > 0).all()
    chex.assert_trees_all_equal(expected, course(js.nqueens(n).padded(20), way))


@pytest.mark.parametrize(("n", "width", "room"), [(6, 2**17, 9), (61, 16, 90)])
def test_repair_takes_the_same_course(n, width, room):
    """It moves the same queens, and counts those left that are attacked."""
    starts, results = permutations(n)[[0, -2, -1]], []
    for problem in variants(n, room):
        filled = jnp.asarray(padding.filled(starts, problem.capacity))
        for key, start in enumerate(filled):
            for max_rounds in (8, 200):
                queens, attacked = repair(
                    random.as_key(key), problem, start, max_rounds=max_rounds, width=width
                )
                results.append((own(problem, queens), int(attacked)))
    each = len(results) // 2
    chex.assert_trees_all_equal(results[:each], results[each:])


def test_what_a_user_gets_is_of_the_queens():
    """`solve` takes starts and returns placements of n queens, and other sizes compile nothing."""
    starts = permutations(9)[-2:]
    options = {"num_searches": 2, "max_steps": 200, "target": 0, "devices": 1}
    results = [
        js.solve(problem, SEARCH, 0, initial=starts, **options) for problem in variants(9, 16)
    ]
    for result in results:
        assert result.solutions.shape == (2, 9)
        assert (result.x.tolist(), result.fun) == (results[0].x.tolist(), results[0].fun)
    problem = js.nqueens(9).padded()
    assert (problem.capacity, js.nqueens(17).padded().capacity) == (16, 24)
    assert jax.tree.structure(problem) == jax.tree.structure(js.nqueens(12).padded())


def test_what_cannot_be_padded():
    """Twice, to less than there is or more than diagonals have numbers for, by another scheme."""
    problem = js.nqueens(9)
    for capacity in (8, 2**29 + 1, 9.5):
        with refuses(ValueError, f"capacity is {capacity}, expected an integer from 9"):
            problem.padded(capacity)
    with refuses(ValueError, "problem is padded already"):
        problem.padded().padded()
    with refuses(ValueError, "evaluation is 'serial', expected 'histogram'"):
        js.nqueens(9, "serial").padded()
    with refuses(ValueError, "capacity is 8"):
        js.greedy_placement(jax.random.key(0), 9, 4, 8)
