"""The reference has every public name exactly once; what makes pages of it; without Sphinx.

A public name is one in the `__all__` of the package, or of a module that is public itself. What has
several, such as `js.Relocate` and `js.neighborhoods.Relocate`, stands under the shortest.
"""

import collections
import importlib.util
import pathlib
import re
from types import ModuleType

import pytest

import jaxopt_search as js

DOCS = pathlib.Path(__file__).resolve().parents[1] / "docs"
INDEX = (DOCS / "index.md").read_text(encoding="utf-8")


def loaded(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


site = loaded(DOCS / "extension.py")
LISTED = site.all_names()


def identity(name):
    """Returns what two names of one thing share; numbers and texts are told apart by name."""
    thing = site.found(name)
    return name if isinstance(thing, int | str) else id(thing)


def public_names():
    """Returns the shortest name of each public thing that is no module."""
    names = {
        f"{path}.{name}"
        for path, module in site.public_modules(js)
        for name in module.__all__
        if not isinstance(getattr(module, name), ModuleType)
    }
    longest_first = sorted(names, key=lambda name: (-name.count("."), name))
    return set({identity(name): name for name in longest_first}.values())


def test_public_names_are_found():
    """At any depth, and once for each thing."""
    found = public_names()
    assert {"js.solve", "js.random.below", "js.successors.bit_sets.pack"} <= found
    assert "js.Relocate" in found and "js.neighborhoods.Relocate" not in found
    assert not any(part.startswith("_") for name in found for part in name.split("."))


def test_every_public_name_is_there():
    assert not public_names() - set(LISTED)


def test_every_name_is_something():
    """A name that has gone raises `AttributeError`; a module has a page, not an entry."""
    assert not [name for name in LISTED if isinstance(site.found(name), ModuleType)]


def test_data_have_texts():
    """Below their assignments, where Python does not keep them."""
    data = [name for name in LISTED if "py:data" in site.directive(name)]
    assert {"js.memory.LANES", "js.backends.Implementation", "js.evaluation.Scheme"} <= set(data)
    assert not [name for name in data if not site.text_of(name)]


def test_none_is_there_twice():
    """Neither by the same name nor by another one."""
    number = collections.Counter(map(identity, LISTED))
    assert not [name for name in LISTED if number[identity(name)] > 1]


def test_every_page_is_in_the_contents():
    """Of the guide, the reports and the reference."""
    pages = {str(page.relative_to(DOCS).with_suffix("")) for page in DOCS.rglob("*.md")}
    blocks = re.findall(r"```\{toctree\}\n(.*?)```", INDEX, re.DOTALL)
    lines = [line for block in blocks for line in block.split("\n") if line and line[0] != ":"]
    listed = [line.partition(" <")[2].rstrip(">") or line for line in lines]
    assert sorted([*listed, "index"]) == sorted([*pages, "notebooks/*"])


def test_names_become_directives():
    """Each by its kind, after a table of all of them."""
    page = site.with_names("# Title\n\n```{names}\njs.solve\njs.Status\njs.memory.LANES\n```\n")
    assert page.startswith("# Title\n\n```{eval-rst}\n.. autosummary::\n") and "{names}" not in page
    for line in (
        ".. autofunction:: js.solve\n",
        ".. autoclass:: js.Status\n   :members:\n   :undoc-members:\n",
        ".. py:data:: js.memory.LANES\n   :value: 32\n\n   Elements that ``copy`` and",
    ):
        assert line in page


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("[b](qap.md#one-core)", "[b](qap.md#one-core)"),
        ("[b](https://example.org)", "[b](https://example.org)"),
        ("![b](../tests/cases.py)", "![b](../tests/cases.py)"),
        ("[b](../missing.py)", "[b](../missing.py)"),  # Sphinx warns of it
        ("[b c](../tests/cases.py), [d](qap.md)", "`b c`, [d](qap.md)"),
        ("[`b`](../tests/cases.py)", "`b`"),
        ("[b](../CONTRIBUTING.md#the-tree)", "[b](/contributing.md#the-tree)"),
    ],
)
def test_links_out_of_the_site(written, shown):
    """Become plain code, but for files that are pages of it."""
    assert site.with_links(written, DOCS) == shown


def test_notebooks_are_brought(tmp_path, monkeypatch):
    """Only those that are there, with links that lead from their new place."""
    docs, notebooks = tmp_path / "docs", tmp_path / "notebooks"
    monkeypatch.setattr(site, "ROOT", tmp_path)
    monkeypatch.setattr(site, "DOCS", docs)
    (docs / "notebooks").mkdir(parents=True)
    (docs / "notebooks" / "gone.ipynb").touch()
    notebooks.mkdir()
    (notebooks / "1_first.ipynb").write_text("[a](../docs/qap.md#one-core)", encoding="utf-8")
    (notebooks / "1_first.py").touch()
    site._bring_notebooks(None)
    (brought,) = (docs / "notebooks").iterdir()
    assert brought.read_text(encoding="utf-8") == "[a](../qap.md#one-core)"
    (notebooks / "1_first.ipynb").unlink()
    site._bring_notebooks(None)
    assert not (docs / "notebooks").exists()


@pytest.mark.parametrize(
    ("code", "language"),
    [
        ("x = 1\n", "python"),
        ("    import jax\n\n    x = [\n        1]", "python"),
        ("python -m experiments.pspm --table 2", "bash"),
        ("$ jaxopt-search solve eil51.tsp\ncost  426", "console"),
    ],
)
def test_languages_of_blocks(code, language):
    assert site.language(code) == language


def test_code_in_docstrings():
    """Names of the reference are linked, with their members; ``literals`` stay as they are."""
    names = {"js.solve", "js.Result", "js.best", "js.datasets.QAPInstance"}
    for written, shown in (
        ("as `solve`, or", "as :py:obj:`solve <js.solve>`, or"),
        ("`js.Result.gap`", ":py:obj:`js.Result.gap <js.Result>`"),
        ("`QAPInstance`s", r":py:obj:`QAPInstance <js.datasets.QAPInstance>`\ s"),
        ("`key`s of ``best``: `best`", r"``key``\ s of ``best``: ``best``"),
        ("`x[i,\n  j]`", "``x[i,\n  j]``"),
    ):
        assert site.linked(written, names) == shown
