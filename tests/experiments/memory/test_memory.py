"""The experiment on memory: its cases, its records, its table."""

import argparse

import pytest

from experiments.memory import cases, main, script, tables

MIB = 2**20


def a_record(estimate, measured, **fields):
    return {
        "experiment": "memory",
        "instance": "qap30-tabu",
        "num_searches": 1000,
        "estimate": estimate * MIB,
        "measured": measured * MIB,
        "parts": {"when": "steps"},
        "implementation": "native",
        "failed": "",
        "env": {"devices": "1 x cpu"},
    } | fields


def test_cases_by_their_beginnings():
    """In the order of the table; all of them can be named."""
    assert script.cases("qap30-tabu,tsp100-matrix-t") == ["tsp100-matrix-tabu", "qap30-tabu"]
    assert script.cases("all") == list(cases.CASES)
    with pytest.raises(argparse.ArgumentTypeError, match="'nothing' begins no case"):
        script.cases("nothing")


def test_what_counts_as_off():
    """The difference beyond the allowance, in parts of what was measured."""
    assert tables.off_by(a_record(100, 110)) == 0
    assert tables.off_by(a_record(100, 216)) == -100 / 216
    assert tables.off_by(a_record(216, 100)) == 1


def test_the_table():
    """A run without memory is one that is not near."""
    records = [a_record(100, 110), a_record(300, 100), a_record(1, 1, failed="no room")]
    text = tables.report(records, markdown=False)
    assert text.startswith("1 x cpu; within 20 %, beyond an allowance of 16 MiB: 1 of 3")
    assert "+184%" in text and "no memory" in text


@pytest.mark.slow
def test_a_run(tmp_path, capsys):
    """One case, measured in a process of its own, and continued without a second one."""
    file = tmp_path / "memory.jsonl"
    for _ in range(2):
        assert main(["--cases", "tsp1002-ring", "--out", str(file)]) == 0
    assert len(file.read_text().splitlines()) == 1
    assert "1 of 1" in capsys.readouterr().out
