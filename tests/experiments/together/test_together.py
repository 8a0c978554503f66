"""The script for a GPU and cores together, on two halves of the CPU's devices."""

import threading
import types

import pytest

import jaxopt_search as js
from experiments import common
from experiments import together as command
from experiments.together import runs

GRID = js.datasets.grid_tsp(4, 4, seed=0)


def test_the_first_to_meet_the_target_ends_both(monkeypatch):
    """Of two calls, one of which never meets it, and has no other limit that it reaches."""
    ended, have_begun = [], threading.Barrier(2, timeout=60)

    def solve(instance, *, key, devices, target, max_seconds, callback):
        have_begun.wait()
        cost = target if devices == ("first",) else target + 1
        while not callback(types.SimpleNamespace(fun=cost)):
            pass
        ended.append(devices)
        return types.SimpleNamespace(nfev=1, elapsed=1.0, compile_seconds=0.0)

    monkeypatch.setattr(js, "solve_tsp", solve)
    first, second = runs.race(GRID, [("first",), ("second",)], 0, 1e9, 16.0)
    assert sorted(ended) == [("first",), ("second",)]
    assert first.met_at is not None and second.met_at is None


@pytest.mark.slow
@pytest.mark.devices(4)
def test_the_command(tmp_path, monkeypatch, capsys):
    """Each half alone and both; the table can be printed again."""
    qap = js.datasets.planted_qap(2, 3, seed=0)
    found = iter([[qap], [GRID]])
    monkeypatch.setattr(common, "use_cpu_cores", lambda: None)
    monkeypatch.setattr(common, "find_instances", lambda *_: next(found))
    out = tmp_path / "both.jsonl"
    assert command.main(["--seconds", "0.2", "--runs", "1", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    records = common.read(out)
    assert len(records) == 2 * 3 * 2
    speeds = [one for one in records if one["settings"]["target"] is None]
    assert all(rate > 0 for one in speeds for rate in one["moves_per_second"])
    assert sum(one["seconds"] is not None for one in records) == 6  # of the races, all
    assert command.main(["--report", str(out)]) == 0
    assert capsys.readouterr().out in printed
