"""What the guide promises: the code of its pages runs, and parts that it shows keep the laws."""

import itertools
import re
import sys
import types

import jax
import numpy as np
import pages
import pytest

import jaxopt_search as js


def module_of(page, num_blocks, monkeypatch):
    """Returns a module of all blocks of a page, in order; their assertions hold."""
    found = pages.blocks(f"docs/{page}")
    assert len(found) == num_blocks
    module = types.ModuleType("guide_page")
    monkeypatch.setitem(sys.modules, "guide_page", module)
    for block in found:
        block = block.replace("max_seconds=2", "max_steps=50")
        exec(compile(block, page, "exec"), module.__dict__)
    return module


def test_the_code_of_the_page_on_searches_runs(monkeypatch):
    module = module_of("your_own_search.md", 8, monkeypatch)
    optimum = 459 % 2  # the sum of the numbers is odd, and they are many
    assert module.result.fun == module.noisy.fun == optimum


def test_parts_of_a_newcomer_run_everywhere(monkeypatch):
    """A problem, moves and a rule from one page, in at most 110 lines, keep all laws."""
    lines = [line for block in pages.blocks("docs/all_your_own.md") for line in block.splitlines()]
    assert len([line for line in lines if line.strip()]) <= 110
    page = module_of("all_your_own.md", 5, monkeypatch)
    problem = page.LinearOrdering(page.problem.weight[:49], 7)
    js.testing.check_neighborhood(page.SegmentInsertion(), problem, implementations=False)
    js.testing.check_implementations(page.search, problem)
    order = np.array(list(itertools.permutations(range(7))), np.int32)
    found = js.run(0, problem, page.search, num_searches=8, max_steps=500)
    assert js.best(problem, page.search, found)[1] == jax.vmap(problem.cost)(order).min()


@pytest.mark.slow
def test_the_code_of_the_page_on_jit_runs(monkeypatch):
    """And the model has learned: what makes the scores lower for far cities, and the loss falls."""
    module = module_of("inside_your_jit.md", 10, monkeypatch)
    assert module.weights["slope"].sum() < 0
    assert module.losses[-1] < 0.7 * module.losses[0]


def test_each_algorithm_stands_in_the_file_that_the_concepts_name():
    text = (pages.ROOT / "docs/concepts.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\|.*\| \[.*\]\(\.\./(.*)\) \| (.*) \|$", text, flags=re.MULTILINE)
    assert len(rows) == 14
    for path, names in rows:
        code = (pages.ROOT / path).read_text(encoding="utf-8")
        for name in re.findall(r"`(\w+)`", names):
            assert re.search(rf"\b(def|class) {name}\b", code), f"{path} has no {name}"
