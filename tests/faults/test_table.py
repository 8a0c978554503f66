"""Every fault of the list has a test, or a reason why there is none."""

import ast
import functools
import pathlib
import tomllib

import pytest

TESTS = pathlib.Path(__file__).resolve().parents[1]
NUM_FAULTS = 83
FAULTS = tomllib.loads((TESTS / "faults" / "faults.toml").read_text(encoding="utf-8"))["fault"]
FIELDS = {"row", "fault", "tests", "why_not", "differs"}


@functools.cache
def names_in(file):
    """Returns the functions of a file that pytest would run."""
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    return {name for name in names if name.startswith("test_")}


def test_no_fault_is_left_out():
    """They are all there, once and in order."""
    assert [fault["row"] for fault in FAULTS] == list(range(1, NUM_FAULTS + 1))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: str(fault["row"]))
def test_a_fault_has_tests_or_a_reason(fault):
    """One of the two, and the tests exist."""
    assert fault.keys() <= FIELDS and fault["fault"]
    assert bool(fault.get("tests")) != bool(fault.get("why_not"))
    named = fault.get("tests", [])
    assert len(set(named)) == len(named)
    for test in named:
        file, _, name = test.partition("::")
        assert name in names_in(file), test
