"""Public names stand in the reference exactly once, and have examples; without Sphinx.

A public name is one in the `__all__` of the package, or of a module that is public itself. What has
several, such as `js.Relocate` and `js.neighborhoods.Relocate`, stands under the shortest.
"""

import abc
import collections
import doctest
import enum
import functools
import importlib.util
import inspect
import pathlib
import re
import sys
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


@functools.cache
def examples(module):
    """Returns what the examples in a module, which pytest runs, show, by names."""
    found = doctest.DocTestFinder().find(sys.modules[module])
    return {one.name: {each.want for each in one.examples} for one in found}


def needs_example(thing, names):
    """Returns whether something is a function, or a class that one makes oneself.

    So are not exceptions, enums, named tuples, protocols, abstract classes, and classes that say
    "Build it with `x`" if x is public.
    """
    if not inspect.isclass(thing):
        return inspect.isroutine(inspect.unwrap(thing))
    is_contract = abc.ABC in thing.__bases__ or getattr(thing, "_is_protocol", False)
    is_result = hasattr(thing, "_fields") or issubclass(thing, enum.Enum | BaseException)
    built = re.search(r"\bBuild it with `(\w+)`", thing.__doc__ or "")
    is_built = built is not None and built[1] in names
    return not (is_contract or inspect.isabstract(thing) or is_result or is_built)


def test_functions_and_classes_have_examples():
    """That show more than a truth, but of functions that return nothing."""
    names = public_names()
    last = {name.rpartition(".")[2] for name in names}
    things = [thing for thing in map(site.found, names) if needs_example(thing, last)]
    assert len(things) > 100
    for thing in things:
        name = f"{thing.__module__}.{thing.__qualname__}"
        shown = examples(thing.__module__).get(name, set())
        is_silent = (
            not inspect.isclass(thing) and inspect.signature(thing).return_annotation is None
        )
        assert shown - {"", "True\n"} or (shown and is_silent), name
