"""The notebooks: made from their scripts, with outputs, all with the same beginning."""

import ast
import base64
import io
import json
import re

import pytest

import jaxopt_search as js
from experiments import notebooks

SCRIPTS = notebooks.sources()


def cells_of(script):
    return json.loads(script.with_suffix(".ipynb").read_text(encoding="utf-8"))["cells"]


def code_of(script):
    """Returns the code cells of a notebook, as text; magics are comments."""
    codes = ["".join(c["source"]) for c in cells_of(script) if c["cell_type"] == "code"]
    return [re.sub(r"^(\s*)%", r"\1pass  # %", code, flags=re.MULTILINE) for code in codes]


def test_notebooks_agree_with_their_scripts():
    """`python -m experiments.notebooks` has been run after the last change; all are in the README.

    What they print is not compared. The first cell is the same in all: it installs the package and
    tells what runs here; the cache comes before anything is compiled.
    """
    for script in SCRIPTS:
        kept = json.loads(script.with_suffix(".ipynb").read_text(encoding="utf-8"))
        for cell in kept["cells"]:
            if cell["cell_type"] == "code":
                assert cell["execution_count"], f"{script.stem} has not run"
                cell |= {"execution_count": None, "outputs": []}
        assert kept == notebooks.notebook(script), f"{script.stem} is not made from its script"
    names = [path.stem for path in SCRIPTS]
    assert [path.stem for path in sorted(notebooks.FOLDER.glob("*.ipynb"))] == names
    readme = (notebooks.FOLDER / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| \[\w+\]\((\w+)\.ipynb\)", readme, re.MULTILINE) == names
    ((install, second),) = {
        (code_of(one)[0], "js.enable_compilation_cache()" in code_of(one)[1]) for one in SCRIPTS
    }
    assert "pip install" in install and "js.doctor()" in install and second


def test_outputs_are_small_and_name_no_folder():
    for path in notebooks.FOLDER.glob("*.ipynb"):
        text = path.read_text(encoding="utf-8")
        assert len(text) < 300_000
        assert not re.search(r"(?<![\w.~])/(home|root|tmp|Users|content)/", text)


def test_a_notebook_runs(tmp_path, monkeypatch):
    """What its cells print is kept, and pictures with few colors."""
    pytest.importorskip("nbclient")
    code = "import matplotlib.pyplot as plt\nprint(6 * 7)\nplt.plot([1, 2])\nplt.show()\n"
    script = tmp_path / "one.py"
    script.write_text(f"# %% [markdown]\n# # One\n\n# %%\n{code}", encoding="utf-8")
    monkeypatch.setattr(notebooks, "FOLDER", tmp_path)
    assert notebooks.main([]) == 0
    ((_, cell),) = [json.loads((tmp_path / "one.ipynb").read_text())["cells"]]
    printed, drawn = cell["outputs"]
    assert "".join(printed["text"]) == "42\n"
    picture = io.BytesIO(base64.b64decode(drawn["data"]["image/png"]))
    assert pytest.importorskip("PIL.Image").open(picture).mode == "P"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_code_uses_what_there_is(script):
    """Every `js.name.name` in its cells leads somewhere; Jupytext reads the same cells."""
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
    read = pytest.importorskip("jupytext").read(script)
    cells = [(cell.cell_type, cell.source) for cell in read.cells]
    assert cells == [(cell["cell_type"], "".join(cell["source"])) for cell in cells_of(script)]
