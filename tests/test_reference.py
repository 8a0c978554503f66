"""The reference has every public name exactly once; what makes pages of it; without Sphinx.

A public name is one in the `__all__` of the package, or of a module that is public itself. What has
several, such as `js.Relocate` and `js.neighborhoods.Relocate`, stands under the shortest.
"""

import collections
import importlib.util
import pathlib
import re
from types import ModuleType

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
