"""Graph bisection, the example of a problem of one's own: the laws, the kernel, and the guide."""

import pathlib
import re

import numpy as np
import pages

import jaxopt_search as js
from experiments.finite import graph_bisection as script


def random_problem(n, seed=0):
    """Returns a graph with weights of both signs."""
    weight = np.triu(np.random.default_rng(seed).integers(-50, 100, (n, n)), 1)
    return script.graph_bisection(weight + weight.T)


def test_moves_keep_the_laws():
    """Of 40 vertices: beyond 32 a commit takes two tiles."""
    js.testing.check_neighborhood(script.ExchangeByGain(), random_problem(40))


def test_the_script_runs(capsys):
    """A small run prints its cut and its speed."""
    assert script.main(["--vertices", "8"]) == 0
    assert f"moves priced: {20_000 * 32 * 12} in " in capsys.readouterr().out


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
