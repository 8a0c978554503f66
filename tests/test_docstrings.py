"""Public names have an example that runs, and shapes where arrays go in or out.

Public is what an `__all__` lists: the package's, and those of the modules that it lists.

- Functions and classes have an example, which pytest runs. It shows something other than `True`,
  unless the function returns nothing. Exceptions, enums, named tuples, protocols and abstract
  classes need none, and neither do classes that say "Build it with `x`", if x is public.
- Arguments, fields and returned values whose type is an array have a shape in brackets, such as
  [n], or words about it: in an entry of their own or, of a function, in the text above all entries.
"""

import abc
import doctest
import enum
import functools
import inspect
import re
import sys
import types
from typing import get_args

import jax
import numpy as np

import jaxopt_search as js

BUILT = re.compile(r"\bBuild it with `(\w+)`")
SHAPE = re.compile(r"\[[^\[\]]*\]|\b(shape|likewise|as in|as `)\b")
SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Example):\n((?:  .*\n|\n)+)", re.MULTILINE)
ENTRY = re.compile(r"^ {2}([\w, *]+): (.*\n(?: {3,}.*\n|\n)*)", re.MULTILINE)


def public_modules():
    """Returns the package, the modules that it lists, and those that they list."""
    found = [js]
    for module in found:
        listed = [getattr(module, name) for name in module.__all__]
        ours = [one for one in listed if inspect.ismodule(one)]
        found += [one for one in ours if one.__name__.startswith("jaxopt_search")]
    return dict.fromkeys(found)


def is_documented(member):
    """Returns whether it is a function, perhaps a compiled one, or a class; no type alias."""
    return inspect.isclass(member) or inspect.isroutine(inspect.unwrap(member))


def public_members():
    """Returns public functions and classes by the names that doctests have."""
    listed = [getattr(module, name) for module in public_modules() for name in module.__all__]
    return {
        f"{one.__module__}.{one.__qualname__}": one
        for one in listed
        if not inspect.ismodule(one) and callable(one) and is_documented(one)
    }


@functools.cache
def doctests(module):
    """Returns the examples of a module as pytest finds them, by name."""
    return {one.name: one.examples for one in doctest.DocTestFinder().find(sys.modules[module])}


def needs_example(member, built_with):
    """Returns whether a function or class needs an example of its own."""
    if not inspect.isclass(member):
        return True
    is_result = hasattr(member, "_fields") or issubclass(member, enum.Enum)
    is_contract = inspect.isabstract(member) or abc.ABC in member.__bases__
    is_contract |= getattr(member, "_is_protocol", False)
    built = BUILT.search(member.__doc__ or "")
    is_built = built is not None and built[1] in built_with
    return not (is_result or is_contract or is_built or issubclass(member, BaseException))


def returns_nothing(member):
    return not inspect.isclass(member) and inspect.signature(member).return_annotation is None


def example_faults(members):
    """Returns what is wrong with the examples of public members: lines of text."""
    found, names = [], {member.__qualname__ for member in members.values()}
    for name, member in members.items():
        examples = doctests(member.__module__).get(name, [])
        shown = {example.want.strip() for example in examples} - {""}
        if not examples:
            found += [f"{name} has no example"] if needs_example(member, names) else []
        elif not shown - {"True"} and not returns_nothing(member):
            found.append(f"{name} has an example that shows {' '.join(shown) or 'nothing'}")
        if any(doctest.SKIP in example.options for example in examples):
            found.append(f"{name} has an example that is skipped")
    return found


def is_array(annotation):
    """Returns whether a type is an array, or None besides: of a number, no shape is asked for."""
    kinds = get_args(annotation) if isinstance(annotation, types.UnionType) else [annotation]
    kinds = [kind for kind in kinds if kind is not types.NoneType]
    return bool(kinds) and all(kind is jax.Array or kind is np.ndarray for kind in kinds)


def entries(section):
    """Returns what a section says, by name; an entry may be of several names."""
    return {
        name.strip(" *"): text
        for names, text in ENTRY.findall(section)
        for name in names.split(",")
    }


def shape_faults(name, member):
    """Returns which arrays of a public member lack a shape: lines of text."""
    text = inspect.cleandoc(member.__doc__ or "") + "\n"
    sections = dict(SECTION.findall(text))
    own = SECTION.split(text)[0]
    if inspect.isclass(member):
        said = entries(sections.get("Attributes", ""))
        types_of = {field: kind for field, kind in member.__annotations__.items() if field in said}
    else:
        signature = inspect.signature(member)
        types_of = {one.name: one.annotation for one in signature.parameters.values()}
        said = entries(sections.get("Args", ""))
        returned = sections.get("Returns", own)
        if is_array(signature.return_annotation) and not SHAPE.search(returned):
            return [f"{name} returns an array without a shape"]
    return [
        f"{name} has no shape of {argument}"
        for argument, kind in types_of.items()
        if is_array(kind) and not SHAPE.search(said.get(argument, own))
    ]


MEMBERS = public_members()


def test_public_names_have_examples():
    assert not (found := example_faults(MEMBERS)), "\n".join(["", *found])


def test_arrays_have_shapes():
    found = [fault for name, member in MEMBERS.items() for fault in shape_faults(name, member)]
    assert not found, "\n".join(["", *found])
