"""Graph bisection, the example of a problem of one's own: the laws, the kernel, and the guide."""

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


def test_cost_by_hand():
    """The path 0 - 1 - 2 - 3 with weights 5, 7, 9: {0, 1} and {2, 3} cut 7, {0, 2} cuts all."""
    weight = np.diag([5, 7, 9], 1)
    problem = script.graph_bisection(weight + weight.T)
    assert int(problem.cost(jnp.array([0, 1, 2, 3]))) == 7
    assert int(problem.cost(jnp.array([2, 0, 3, 1]))) == 21


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


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("options", [{}])
def test_it_has_a_kernel(n, options):
    """It can be emitted, which needs no GPU."""
    search = annealing(script.ExchangeByGain(), **options)
    for implementation in ("auto", "cuda"):
        assert choose(implementation, random_problem(n), search) == ("cuda", "")


def test_the_script_runs(monkeypatch, capsys):
    """A small run prints its cut and its speed."""
    monkeypatch.setattr(common, "use_cpu_cores", lambda: None)
    assert script.main(["--vertices", "8", "--steps", "200", "--searches", "2"]) == 0
    assert f"moves priced: {200 * 2 * 12} in " in capsys.readouterr().out


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
