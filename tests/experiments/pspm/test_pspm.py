"""The PSPM experiment: formulas, independent runs, interruption and resumption, tables."""

import copy

import jaxopt_search as js
from experiments.common import Runs
from experiments.pspm import __main__ as pspm
from experiments.pspm import runs as pspm_runs
from experiments.pspm.runs import SCHEMES, Cooling

TINY = Cooling(start=100.0, end=1.0, alpha=0.5, sweeps=2, exchange_every=2)
INSTANCE = js.datasets.grid_tsp(3, 4, spacing=100)


def execute(the_plan, path):
    runs = Runs(path)
    pspm.execute(the_plan, runs)
    return runs


def without_times(records):
    timed = ("seconds", "compile_seconds", "sses", "date")
    records = [{k: v for k, v in record.items() if k not in timed} for record in records]
    for record in records:
        limit = record["settings"]["limit"]
        limit["max_seconds"] = limit["max_seconds"] is not None
    return records


def test_an_interrupted_experiment_resumes(tmp_path, monkeypatch):
    """Killed at any run and started again, the file holds what an unbroken run writes."""
    the_plan = pspm.Plan(2, [INSTANCE], [SCHEMES["pssm"]], TINY, num_runs=3, batch=2, devices=1)
    whole = without_times(copy.deepcopy(execute(the_plan, tmp_path / "whole.jsonl").records))
    path, make = tmp_path / "broken.jsonl", pspm_runs.make

    for allowed in (1, 100):
        count = iter(range(allowed))

        def interrupted(batch, count=count):
            if next(count, None) is None:
                raise KeyboardInterrupt
            return make(batch)

        monkeypatch.setattr(pspm_runs, "make", interrupted)
        try:
            execute(the_plan, path)
        except KeyboardInterrupt:
            path.write_bytes(path.read_bytes()[:-7])  # and the last line is torn
    assert without_times(Runs(path).records) == whole


def test_the_command_runs_and_reports(tmp_path, monkeypatch, capsys):
    """Arguments reach the plan; a second call only prints; `--report` prints the same table."""
    out = str(tmp_path / "runs.jsonl")
    monkeypatch.setattr(pspm, "Cooling", lambda: TINY)
    monkeypatch.setattr(pspm.common, "find_instances", lambda *args: [INSTANCE])
    command = ["--schemes", "sspm,pssm", "--runs", "2", "--devices", "1", "--out", out]
    tables = []
    for arguments in (command, command, ["--report", out]):
        assert pspm.main(arguments) == 0
        tables.append(capsys.readouterr().out.partition("Table 2.")[2])
    assert "grid-3x4-d100" in tables[0]
    assert tables[0] == tables[1] == tables[2]
