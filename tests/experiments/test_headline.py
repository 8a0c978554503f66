"""The chart of the README, from kept records."""

import math

import pytest

from experiments import common, headline

pytest.importorskip("matplotlib")


def peer(instance, solver, seconds):
    """Returns the record of a run that reached the best known cost, 5, or None if it did not."""
    return {
        "experiment": "peers",
        "instance": instance,
        "seed": 0,
        "settings": {"solver": solver, "call": "warm"},
        "best_known": 5,
        "trace": [[0.5, 9]] if seconds is None else [[0.5, 9], [seconds, 5]],
    }


def test_ratios_are_the_others_time_over_ours(tmp_path, capsys):
    """Infinite or 0 where one alone reached the cost; no dot where neither or no other ran."""
    ours = {"faster": 2.0, "slower": 8.0, "alone": 3.0, "other": None, "neither": None, "own": 1.0}
    others = {"faster": 6.0, "slower": 4.0, "alone": None, "other": 7.0, "neither": None}
    peers = [peer(name, "jaxopt_search", seconds) for name, seconds in ours.items()]
    peers += [peer(name, "fast-tsp", seconds) for name, seconds in others.items()]
    kept = [r for r in common.read_all(headline.RECORDS) if r["experiment"] != "peers"]
    found = headline.lines(kept + peers)
    cpu, gpu = found.values()
    assert cpu[0].ratios == [3.0, 0.5, math.inf, 0.0]
    assert cpu[2].ratios == []
    assert all(line.ratios for line in gpu)


def test_the_chart_and_its_table(tmp_path, capsys):
    path = tmp_path / "images" / "headline.svg"
    assert headline.main(["--picture", str(path)]) == 0
    assert "</svg>" in path.read_text(encoding="utf-8")
    assert "fast-tsp" in capsys.readouterr().out
