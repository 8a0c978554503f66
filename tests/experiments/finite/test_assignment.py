"""The script on generalized assignment: its instances, its table, a small run."""

import json

import numpy as np
import pytest

from experiments.finite import assignment


@pytest.mark.parametrize("kind", ["C", "D", "E"])
def test_instances_keep_the_rules(kind):
    """Ranges of 20,000 entries, means, and how loads and costs go together."""
    costs, loads, capacities = assignment.instance(kind, 1000, 20, seed=1)
    np.testing.assert_array_equal(capacities, np.floor(0.8 * loads.sum(axis=1) / 20))
    if kind == "C":
        assert (loads.min(), loads.max(), costs.min(), costs.max()) == (5, 25, 10, 50)
        assert abs(np.corrcoef(costs.ravel(), loads.ravel())[0, 1]) < 0.05
    elif kind == "D":
        assert (loads.min(), loads.max()) == (1, 100)
        assert set((costs + loads - 111).ravel().tolist()) == set(range(-10, 11))
    else:
        assert loads.min() == 1 and 10 < loads.mean() < 11
        assert (np.abs(costs + 5 - 1000 / loads) <= 6).all()


def test_a_small_run(tmp_path, capsys):
    """Its record and its table."""
    out = tmp_path / "runs.jsonl"
    flags = ["--kinds", "D", "--sizes", "12x3", "--seconds", "0.2", "--out", str(out)]
    assert assignment.main(flags) == 0
    record = json.loads(out.read_text())
    assert record["bound"] <= record["cost"] <= 1.2 * record["bound"]
    assert "D 12x3" in capsys.readouterr().out
