"""The experiment on memory: its cases, its records, its table."""

import pytest

from experiments.memory.__main__ import main


@pytest.mark.slow
def test_a_run(tmp_path, capsys):
    """One case, measured in a process of its own, and continued without a second one."""
    file = tmp_path / "memory.jsonl"
    for _ in range(2):
        assert main(["--cases", "tsp1002-ring", "--out", str(file)]) == 0
    assert len(file.read_text().splitlines()) == 1
    assert "1 of 1" in capsys.readouterr().out
