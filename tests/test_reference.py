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
_SPEC = importlib.util.spec_from_file_location("extension", DOCS / "extension.py")
site = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(site)


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


def test_every_public_name_is_there_once():
    """Neither left out nor there by another name, too; each is something, and no module."""
    listed = site.all_names()
    number = collections.Counter(map(identity, listed))
    assert not public_names() - set(listed)
    assert not [name for name in listed if number[identity(name)] > 1]
    assert not [name for name in listed if isinstance(site.found(name), ModuleType)]


def test_every_page_is_in_the_contents():
    """Of the guide, the reports and the reference."""
    pages = {str(page.relative_to(DOCS).with_suffix("")) for page in DOCS.rglob("*.md")}
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```\{toctree\}\n(.*?)```", index, re.DOTALL)
    lines = [line for block in blocks for line in block.split("\n") if line and line[0] != ":"]
    listed = [line.partition(" <")[2].rstrip(">") or line for line in lines]
    assert sorted([*listed, "index"]) == sorted([*pages, "notebooks/*"])
