"""Graph bisection, the example of a problem of one's own: the laws, the kernel, and the guide."""

import dataclasses
import itertools
import pathlib
import re
import textwrap

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import Case

import jaxopt_search as js
from experiments import common
from experiments.finite import graph_bisection as script
from jaxopt_search.engine import stepping

ROOT = pathlib.Path(__file__).resolve().parents[3]
GUIDE = (ROOT / "docs" / "your_own_problem.md").read_text(encoding="utf-8")
SIZES = (4, 10, 40)  # beyond 32 vertices a commit takes two tiles


def random_problem(n, seed=0):
    """Returns a graph with weights of both signs."""
    weight = np.triu(np.random.default_rng(seed).integers(-50, 100, (n, n)), 1)
    return script.graph_bisection(weight + weight.T)


def annealing(moves, **options):
    options = {"moves_per_search": 6} | options
    return js.simulated_annealing(moves, js.geometric(100.0, 0.9, 50), **options)


def run(problem, search, implementation, **options):
    options = {"num_searches": 3, "max_steps": 500} | options
    return js.run(3, problem, search, implementation=implementation, **options)


def choose(implementation, problem, search):
    return stepping.choose(implementation, "cuda", problem, search)


@pytest.mark.parametrize("n", SIZES)
def test_delta_is_the_change_in_full_cost(n):
    """Prices and representations agree with full evaluation; a rejected move changes nothing."""
    problem, moves = random_problem(n), script.ExchangeByGain()

    def check(key, words):
        order = problem.init(key)
        before = moves.init(problem, order)
        move = moves.propose(problem, before, words)
        after = moves.commit(problem, before, move, jnp.bool_(True))
        found = moves.solution(problem, moves.snapshot(after))
        return {
            "delta": (
                moves.delta(problem, before, move),
                problem.cost(found) - problem.cost(order),
            ),
            "solution": (found, script.Exchange().apply(problem, order, move)),
            "commit": (after, moves.init(problem, found)),
            "rejected": (moves.commit(problem, before, move, jnp.bool_(False)), before),
        }

    results = jax.jit(jax.vmap(check))(*Case("", problem, moves).draws(300))
    for found, expected in results.values():
        chex.assert_trees_all_equal(found, expected)
    assert np.asarray(results["delta"][0]).any()


@pytest.mark.parametrize("n", [4, 10])
def test_every_exchange_is_proposed(n):
    """Of the vertices' places, one is in the left half and one in the right."""
    problem, moves = random_problem(n), script.Exchange()
    _, words = Case("", problem, moves).draws(2000)
    left, right = moves.propose(problem, None, words)
    found = set(zip(left.tolist(), right.tolist(), strict=True))
    assert found == set(itertools.product(range(n // 2), range(n // 2, n)))


def test_cost_by_hand():
    """The path 0 - 1 - 2 - 3 with weights 5, 7, 9: {0, 1} and {2, 3} cut 7, {0, 2} cuts all."""
    weight = np.diag([5, 7, 9], 1)
    problem = script.graph_bisection(weight + weight.T)
    assert int(problem.cost(jnp.array([0, 1, 2, 3]))) == 7
    assert int(problem.cost(jnp.array([2, 0, 3, 1]))) == 21


@pytest.mark.slow
@pytest.mark.parametrize(
    "moves", [script.ExchangeByGain(), script.Exchange()], ids=["gain", "full"]
)
def test_the_optimum_of_eight_vertices(moves):
    """Brute force over all bisections."""
    problem = random_problem(8, seed=1)
    halves = itertools.combinations(range(8), 4)
    orders = jnp.asarray([[*left, *(set(range(8)) - set(left))] for left in halves], jnp.int32)
    optimum = int(jax.jit(jax.vmap(problem.cost))(orders).min())
    result = js.solve(problem, annealing(moves), 0, num_searches=8, max_steps=2000, target=optimum)
    assert result.success
    assert result.fun == optimum == int(problem.cost(jnp.asarray(result.x)))


@pytest.mark.slow
@pytest.mark.parametrize(("n", "moves_per_search"), [(4, 6), (40, 1)])
def test_every_implementation_makes_the_same_searches(n, moves_per_search):
    """Abreast, one after the other, and in an interpreted kernel: the same bits."""
    problem = random_problem(n)
    search = annealing(script.ExchangeByGain(), moves_per_search=moves_per_search)
    expected = run(problem, search, "xla")
    for implementation in ("native", "interpret") if n == 40 else ("interpret",):
        chex.assert_trees_all_equal(expected, run(problem, search, implementation))
    assert int(expected.info.accepted.sum()) > 0


def test_full_evaluation_makes_the_same_searches():
    """The O(1) price changes the speed only."""
    problem = random_problem(12)
    found = [
        run(problem, annealing(moves), "xla")
        for moves in (script.Exchange(), script.ExchangeByGain())
    ]
    costs = [(state.searches.cost, state.searches.best_cost, state.info) for state in found]
    chex.assert_trees_all_equal(*costs)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("options", [{}, {"keep_best": "standard"}, {"moves_per_search": 256}])
def test_it_has_a_kernel(n, options):
    """It lowers for an NVIDIA GPU, without one."""
    search = annealing(script.ExchangeByGain(), **options)
    for implementation in ("auto", "triton"):
        assert choose(implementation, random_problem(n), search) == ("triton", "")


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Sorting(script.ExchangeByGain):
    """What the guide says cannot be done."""

    def propose(self, problem, representation, words):
        words = tuple(jnp.sort(word) if word.ndim else word for word in words)
        return script.random_pair(problem.n, words)


def test_what_has_no_kernel_is_named():
    """The reason names the user's function, its file and line, and the operation."""
    problem = random_problem(10)
    with pytest.raises(js.NotPortable, match=r"\(test_graph_bisection.py:\d+\) uses sort, which"):
        choose("triton", problem, annealing(Sorting()))
    assert choose("auto", problem, annealing(script.Exchange())).implementation == "xla"


@pytest.mark.parametrize(
    ("weight", "text"),
    [
        (np.zeros((5, 5), int), "n even and 4 or more"),
        (np.zeros((2, 2), int), "n even and 4 or more"),
        (np.zeros(4, int), r"expected \(n, n\)"),
        (np.zeros((4, 4)), "weight has dtype float64"),
        (np.triu(np.ones((4, 4), int), 1), "asymmetric"),
        (np.eye(4, dtype=int), "loops"),
        ((1 - np.eye(4, dtype=int)) * 2**26, "too large"),
    ],
)
def test_graphs_are_checked(weight, text):
    """What is no graph for int32 is refused in one line."""
    with pytest.raises(ValueError, match=text):
        script.graph_bisection(weight)


def test_the_planted_cut_belongs_to_a_bisection():
    """With no edge between the halves the planted cut is 0, and the search finds it."""
    weight, cut = script.planted_graph(16, inside=0.9, between=0.0, seed=3)
    assert cut == 0
    assert (weight == weight.T).all()
    search = annealing(script.ExchangeByGain())
    result = js.solve(script.graph_bisection(weight), search, 0, target=0, max_steps=2000)
    assert result.fun == 0
    _, cut = script.planted_graph(4, inside=0.0, between=1.0, seed=0)
    assert 4 <= cut <= 36


@pytest.mark.parametrize("pricing", ["gain", "full"])
def test_the_script_runs(pricing, tmp_path, monkeypatch, capsys):
    """A small run prints its cut and its speed, and writes a record."""
    monkeypatch.setattr(common, "use_cpu_cores", lambda: None)
    out = tmp_path / "runs.jsonl"
    flags = f"--vertices 8 --steps 200 --searches 2 --devices 1 --pricing {pricing} --out {out}"
    assert script.main(flags.split()) == 0
    printed = capsys.readouterr().out
    (line,) = common.read(out)
    assert f"cut found: {line['cost']}, planted: {line['planted']}" in printed
    assert f"implementation: {line['env']['implementation']} on" in printed
    assert line["moves"] == 200 * 2 * 12


def guide_blocks():
    """Returns the indented blocks of the guide."""
    found = re.findall(r"(?:^ {4}.*\n|^\n+(?= {4}))+", GUIDE, flags=re.MULTILINE)
    return [textwrap.dedent(block).strip("\n") for block in found]


def test_the_guide_shows_the_script():
    """Blocks that define something stand in the script, word for word."""
    source = pathlib.Path(script.__file__).read_text(encoding="utf-8")
    definitions = [block for block in guide_blocks() if re.search("^(class|def) ", block, re.M)]
    assert len(definitions) == 3
    assert all(f"{block}\n" in source for block in definitions)


def test_the_code_of_the_guide_runs(capsys):
    """All blocks in one namespace, in order; their assertions hold."""
    blocks = guide_blocks()
    assert len(blocks) == 9
    names = {"__name__": "guide"}
    for block in blocks:
        exec(compile(block, "your_own_problem.md", "exec"), names)
    assert names["fast"].fun == names["result"].fun
    assert capsys.readouterr().out.startswith(str(names["result"].fun))
