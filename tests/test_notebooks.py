"""The notebooks: made from their scripts, without outputs, all with the same beginning."""

import ast
import json
import re

import pytest

import jaxopt_search as js
from experiments import notebooks

SCRIPTS = notebooks.sources()
each_script = pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
INSTALL = """\
import importlib.metadata
import importlib.util

if importlib.util.find_spec("jaxopt_search") is None:
    found = {one.name: one.version for one in importlib.metadata.distributions()}
    pins = " ".join(
        f"{name}=={found[name]}" for name in ("jax", "jaxlib", "numpy") if name in found
    )
    %pip install --quiet "jaxopt_search[plot]" {pins}"""


def cells_of(script):
    return json.loads(script.with_suffix(".ipynb").read_text(encoding="utf-8"))["cells"]


def code_of(script):
    """Returns the code cells of a notebook, as text; magics are comments."""
    codes = ["".join(c["source"]) for c in cells_of(script) if c["cell_type"] == "code"]
    return [re.sub(r"^(\s*)%", r"\1pass  # %", code, flags=re.MULTILINE) for code in codes]


def test_there_is_a_script_for_each_notebook():
    """And a line for each in the table of the README."""
    names = [path.stem for path in SCRIPTS]
    assert len(names) == 6
    assert [path.stem for path in sorted(notebooks.FOLDER.glob("*.ipynb"))] == names
    readme = (notebooks.FOLDER / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| \[\w+\]\((\w+)\.ipynb\)", readme, re.MULTILINE) == names


def test_notebooks_agree_with_their_scripts(capsys):
    """`python -m experiments.notebooks` has been run after the last change."""
    assert notebooks.main(["--check"]) == 0, capsys.readouterr().out


@each_script
def test_the_beginning(script):
    """A title with the time it takes, the install cell, the cache before anything is compiled."""
    title, _, install, *_ = cells_of(script)
    text = "".join(title["source"])
    assert re.match(r"# \S", text) and text.count("\n# ") == 0
    assert "minute" in text
    assert "".join(install["source"]) == INSTALL
    assert "js.enable_compilation_cache()" in code_of(script)[1]


@each_script
def test_the_code_uses_what_there_is(script):
    """Cells are Python, and every `js.name.name` in them leads somewhere."""
    found = set()
    for code in code_of(script):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.Attribute) and ast.unparse(node).startswith("js."):
                found.add(ast.unparse(node).partition("(")[0])
    assert len(found) > 5
    for name in found:
        thing = js
        for part in name.split(".")[1:]:
            assert hasattr(thing, part), name
            thing = getattr(thing, part)


def test_a_notebook_of_a_script():
    """The header is left out, text loses its marks, and magics become magics."""
    made = notebooks.notebook(
        "# ---\n# jupyter:\n# ---\n\n# %% [markdown]\n# # Title\n#\n# Text.\n\n"
        "# %%\nif x:\n    # %pip install y\n\n\n# %%\n# A comment: 5 % more.\nx = 1\n"
    )
    cells = json.loads(made)["cells"]
    assert ["".join(cell["source"]) for cell in cells] == [
        "# Title\n\nText.",
        "if x:\n    %pip install y",
        "# A comment: 5 % more.\nx = 1",
    ]
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code", "code"]


@each_script
def test_jupytext_reads_the_same(script):
    """So a notebook can be edited either way, where Jupytext is installed (extra `notebook`)."""
    jupytext = pytest.importorskip("jupytext")
    read = jupytext.read(script)
    cells = [(cell.cell_type, cell.source) for cell in read.cells]
    assert cells == [(cell["cell_type"], "".join(cell["source"])) for cell in cells_of(script)]
