"""Tables of swap deltas stay exact; facilities that are fixed stay where they are."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import matrices, small_qap
from probes import refuses
from scipy import optimize

import jaxopt_search as js
from jaxopt_search.problems.qap.problem import QAP
from jaxopt_search.types import null_delta

FIXED = [[2, 5], [0, 1], [6, 6]]


@jax.jit
def walk(problem: QAP, key, num_swaps):
    """Returns the representation after random swaps, a fresh one, and its deltas in O(n)."""
    table = js.SwapTable()

    def swap(i, representation):
        words = tuple(jax.random.bits(jax.random.fold_in(key, i), 2))
        move = table.propose(problem, representation, words)
        return table.commit(problem, representation, move, jnp.bool_(True))

    start = table.init(problem, problem.init(key))
    end = jax.lax.fori_loop(0, num_swaps, swap, start)

    def deltas(u):
        return problem.swap_delta(end.location, u, end.facility)

    return end, table.init(problem, end.location), jax.vmap(deltas)(jnp.arange(problem.n))


def check_tables(problem, num_swaps=10_000):
    """Checks the tables after this many swaps, and all deltas in O(n) each."""
    key = jax.random.key(np.random.default_rng().integers(2**31))
    end, fresh, deltas = walk(problem, key, num_swaps)
    jax.tree.map(np.testing.assert_array_equal, end, fresh)
    is_null = np.asarray(end.location)[:, None] == np.arange(problem.n)
    expected = np.where(is_null, null_delta(deltas.dtype), deltas)
    np.testing.assert_array_equal(end.deltas, expected)


@pytest.mark.parametrize("name", ["esc16f", "tai30b", "lipa30a"])
def test_tables_of_some_qaplib_files(data_dir, name):
    """After 10,000 swaps: asymmetric, zero, and with costs that int32 does not hold."""
    check_tables(js.qap_from_instance(js.datasets.load(name, data_dir=data_dir)))


@pytest.mark.parametrize(("n", "symmetric"), [(3, False), (11, True)])
def test_tables_of_generated_instances(n, symmetric):
    """With what stands on the diagonals, after 10,000 swaps."""
    flow, distance = matrices(n, symmetric=symmetric)
    check_tables(js.qap(flow + 7 * np.eye(n, dtype=int), distance - np.diag(np.arange(n))))


def all_completions(n, fixed):
    fixed = dict(map(tuple, fixed))
    orders = (np.array(order) for order in itertools.permutations(range(n)))
    return [order for order in orders if all(order[u] == place for u, place in fixed.items())]


@pytest.mark.parametrize(
    "search",
    [
        js.tabu_search(js.SwapTable()),
        js.simulated_annealing(js.SwapTable(), js.geometric(900.0, 0.9, 10), moves_per_search=3),
        js.simulated_annealing(js.Swap(), js.geometric(900.0, 0.9, 10)),
    ],
    ids=["tabu", "annealing", "in full"],
)
def test_what_is_fixed_stays(search):
    """Every search finds the best of all completions of seven, and keeps to them."""
    problem = js.qap(*matrices(7, symmetric=False), partial_match=FIXED)
    completions = all_completions(7, FIXED)
    result = js.solve(problem, search, 0, num_searches=24, max_steps=300)
    for solution in result.solutions:
        assert any((solution == order).all() for order in completions)
    assert result.fun == min(problem.host.cost(order) for order in completions)
    assert js.SwapTable().num_moves(problem) == 6


def test_fixed_as_in_scipy():
    """`solve_qap` agrees with SciPy about what a partial match means."""
    flow, distance = matrices(7, symmetric=False)
    found = js.solve_qap(flow, distance, partial_match=FIXED, max_steps=500, devices=1)
    # SciPy 1.17 mixes up pairs that are not sorted.
    options = {"partial_match": np.array(sorted(FIXED)), "rng": np.random.default_rng(0)}
    theirs = optimize.quadratic_assignment(flow, distance, method="2opt", options=options)
    assert found.fun <= theirs.fun
    assert (found.x[[2, 0, 6]] == [5, 1, 6]).all()
    assert (theirs.col_ind[[2, 0, 6]] == [5, 1, 6]).all()
    assert found.fun == (flow * distance[np.ix_(found.x, found.x)]).sum()


def test_all_is_fixed():
    """With one free there is no move, with no pair all are there."""
    none = np.zeros((0, 2))  # as SciPy has it, floats
    assert js.SwapTable().num_moves(js.qap(*matrices(5), partial_match=none)) == 10
    pairs = [[u, (u + 2) % 5] for u in range(4)]
    data = matrices(5, symmetric=False)
    result = js.solve_qap(*data, partial_match=pairs, max_steps=200, devices=1)
    assert (result.x.tolist(), result.nit) == ([2, 3, 4, 0, 1], 0)


def test_starts_have_what_is_fixed():
    """A start solution is checked, and perturbed elsewhere only."""
    problem = js.qap(*matrices(7), partial_match=FIXED)
    search = js.simulated_annealing(js.SwapTable(), 1.0)
    good = all_completions(7, FIXED)[5]
    result = js.solve(problem, search, 0, num_searches=8, max_steps=0, initial=good)
    assert (result.solutions[0] == good).all()
    assert (result.solutions[:, [2, 0, 6]] == [5, 1, 6]).all()
    assert len(np.unique(result.solutions, axis=0)) > 1
    with refuses(ValueError, "initial has facility 2 at location 2, expected 5, as partial_match"):
        js.solve(problem, search, 0, num_searches=1, max_steps=1, initial=np.arange(7))


@pytest.mark.parametrize(
    ("pairs", "text"),
    [
        ([1, 2], "partial_match has shape (2,), expected (k, 2)"),
        ([[0.5, 1.0]], "partial_match has dtype float64, expected integers"),
        ([[0, 4]], "partial_match[0,1] is 4, expected 0 to 3"),
        ([[0, 1], [0, 2]], "partial_match has facility 0 twice"),
    ],
)
def test_bad_matches_are_refused(pairs, text):
    """By shape, dtype, range, and repeats."""
    with refuses(ValueError, text):
        js.solve_qap(*matrices(4), partial_match=pairs)
    with refuses(ValueError, "partial_match is given with a QAP"):
        js.solve_qap(small_qap(4), partial_match=[[0, 1]])
