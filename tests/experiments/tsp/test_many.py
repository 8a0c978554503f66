"""The script for many instances at once."""

import importlib.util

import numpy as np
import pytest

from experiments import common
from experiments.tsp import many as tsp_many


def record(solver, lengths, seconds, instance="some"):
    return {
        "instance": instance,
        "settings": {"solver": solver, "seconds": 1.0},
        "seconds": seconds,
        "lengths": lengths,
        "env": {"devices": "1 x cpu"},
    }


def test_gaps_are_to_the_shortest_of_any():
    """Worked out by hand: gaps 0 and 1 %, and 0.05 % and 0; of other instances in the file, 0."""
    records = [record("a", [100.0, 202.0], 0.5), record("b", [100.05, 200.0], 4.0)]
    records.insert(1, record("a", [50.0], 1.0, "other"))
    rows = tsp_many.report(records, markdown=False).splitlines()[1:]
    assert rows[0].split()[-5:] == ["0.50", "4", "0.500%", "1.00%", "50.0%"]
    assert rows[1].split()[-5:] == ["4.00", "0.5", "0.025%", "0.05%", "100.0%"]
    assert rows[2].split()[0] == "other" and rows[2].split()[-3:] == ["0.000%", "0.00%", "100.0%"]


def test_the_command(tmp_path, monkeypatch, capsys):
    """Two instances are solved to the optimum; the table can be printed again."""
    monkeypatch.setattr(common, "use_cpu_cores", lambda: None)
    monkeypatch.setattr(tsp_many.importlib.util, "find_spec", lambda name: None)
    out = tmp_path / "many.jsonl"
    flags = ["--instances", "2", "--cities", "7", "--seconds", "1", "--devices", "1"]
    assert tsp_many.main([*flags, "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "no fast-tsp to compare with" in printed and "100.0%" in printed
    (run,) = common.read(out)
    assert run["steps"] > 100 and len(run["lengths"]) == 2
    assert tsp_many.main(["--report", str(out)]) == 0
    assert capsys.readouterr().out in printed


@pytest.mark.skipif(not importlib.util.find_spec("fast_tsp"), reason="fast-tsp is not installed")
def test_fast_tsp_runs_on_all_cores():
    """Its tours are measured with the exact distances."""
    points = tsp_many.instances(3, 20, seed=0)
    made = tsp_many.fast_tsp(points, 0.01, seed=0)
    extent = np.ptp(points, axis=1).max(axis=1)
    assert (np.array(made["lengths"]) >= 2 * extent).all()
    assert (np.array(made["lengths"]) < 20 * extent).all()


def test_bad_flags_are_refused(monkeypatch, capsys):
    """In one line."""
    monkeypatch.setattr(common, "use_cpu_cores", lambda: None)
    with pytest.raises(SystemExit):
        tsp_many.main(["--instances", "0"])
    assert "from 1 up" in capsys.readouterr().err
