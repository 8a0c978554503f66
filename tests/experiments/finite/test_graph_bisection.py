"""Graph bisection, the example of a problem of one's own: the laws, the kernel, and the guide."""

import pathlib
import re

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pages
from cases import Case

from experiments import common
from experiments.finite import graph_bisection as script


def random_problem(n, seed=0):
    """Returns a graph with weights of both signs."""
    weight = np.triu(np.random.default_rng(seed).integers(-50, 100, (n, n)), 1)
    return script.graph_bisection(weight + weight.T)


def test_delta_is_the_change_in_full_cost():
    """Prices and representations agree with full evaluation; a rejected move changes nothing."""
    n = 40  # beyond 32 vertices a commit takes two tiles
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


def test_the_script_runs(monkeypatch, capsys):
    """A small run prints its cut and its speed."""
    monkeypatch.setattr(common, "use_cpu_cores", lambda: None)
    assert script.main(["--vertices", "8", "--steps", "200", "--searches", "2"]) == 0
    assert f"moves priced: {200 * 2 * 12} in " in capsys.readouterr().out


def test_the_code_of_the_guide_runs(capsys):
    """All blocks in one namespace, in order; their assertions hold; it shows the script's code.

    One of them is another problem, low autocorrelation, whose known optimum is found.
    """
    blocks = pages.blocks("docs/your_own_problem.md")
    assert len(blocks) == 10
    source = pathlib.Path(script.__file__).read_text(encoding="utf-8")
    of_it = [block for block in blocks if "LowAutocorrelation" not in block]
    definitions = [block for block in of_it if re.search("^(class|def) ", block, re.M)]
    assert len(definitions) == 3 and all(block in source for block in definitions)
    names = {"__name__": "guide"}
    for block in blocks:
        exec(compile(block, "your_own_problem.md", "exec"), names)
    assert names["fast"].fun == names["result"].fun
    assert capsys.readouterr().out.startswith(str(names["result"].fun))
