"""Public names have an example that runs.

Public is what an `__all__` lists: the package's, and those of the modules that it lists. Functions
and classes have an example, which pytest runs, and which shows something other than `True` unless
the function returns nothing. Exceptions, enums, named tuples, protocols and abstract classes need
none, and neither do classes that say "Build it with `x`", if x is public.
"""

import abc
import doctest
import enum
import functools
import inspect
import re
import sys

import jaxopt_search as js

BUILT = re.compile(r"\bBuild it with `(\w+)`")


def public_members():
    """Returns public functions and classes by the names that doctests have."""
    modules, found = [js], {}
    for module in modules:
        for one in (getattr(module, name) for name in module.__all__):
            if inspect.ismodule(one):
                is_own = one.__name__.startswith("jaxopt_search") and one not in modules
                modules += [one] if is_own else []
            elif inspect.isclass(one) or inspect.isroutine(inspect.unwrap(one)):
                found[f"{one.__module__}.{one.__qualname__}"] = one
    return found


@functools.cache
def doctests(module):
    """Returns the examples of a module as pytest finds them, by name."""
    return {one.name: one.examples for one in doctest.DocTestFinder().find(sys.modules[module])}


def needs_example(member, names):
    """Returns whether a function or class needs an example of its own."""
    if not inspect.isclass(member):
        return True
    is_result = hasattr(member, "_fields") or issubclass(member, enum.Enum | BaseException)
    is_contract = inspect.isabstract(member) or abc.ABC in member.__bases__
    is_contract |= getattr(member, "_is_protocol", False)
    built = BUILT.search(member.__doc__ or "")
    return not (is_result or is_contract or (built is not None and built[1] in names))


def test_public_names_have_examples():
    members, faults = public_members(), []
    names = {member.__qualname__ for member in members.values()}
    assert len(names) > 100
    for name, member in members.items():
        examples = doctests(member.__module__).get(name, [])
        shown = {example.want.strip() for example in examples} - {"", "True"}
        shows_nothing = (
            not inspect.isclass(member) and inspect.signature(member).return_annotation is None
        )
        if not examples:
            faults += [f"{name} has no example"] if needs_example(member, names) else []
        elif not shown and not shows_nothing:
            faults.append(f"{name} has an example that shows nothing")
        if any(doctest.SKIP in example.options for example in examples):
            faults.append(f"{name} has an example that is skipped")
    assert not faults, "\n".join(["", *faults])
