"""Islands whose fitness counts attacks by a scheme."""

import pytest

from experiments import common
from experiments.islands import queens as nqueens_islands


def test_all_schemes_make_the_same_generations(tmp_path, capsys):
    """They count alike, so that runs of one seed end alike; and a record is found again."""
    out = tmp_path / "runs.jsonl"
    flags = ["--queens", "6", "--islands", "2", "--individuals", "8", "--runs", "2"]
    flags += ["--schemes", "fine_index,histogram,serial", "--out", str(out)]
    assert nqueens_islands.main(flags) == 0
    runs = common.read(out)
    assert len(runs) == 6
    assert all(run["reached"] for run in runs)
    made = {}
    for run in runs:
        made.setdefault(run["settings"]["scheme"], []).append(run["generations"])
    assert made["fine_index"] == made["histogram"] == made["serial"]
    printed = capsys.readouterr().out
    assert nqueens_islands.main(flags) == 0
    assert capsys.readouterr().out == printed
    assert common.read(out) == runs


def test_the_report_by_hand():
    """Means of runs that all ended; a dash where one was cut off."""
    settings = {"scheme": "coarse", "islands": 3, "population": 8}
    runs = [
        {"instance": "9 queens", "settings": settings, "reached": True, "seconds": s}
        | {"generations": 100}
        for s in (0.1, 0.3)
    ]
    row = nqueens_islands.report(runs, markdown=False).splitlines()[1].split()
    assert row == ["9", "queens", "coarse", "3", "8", "2/2", "100", "0.2", "2e+03"]
    runs[0]["reached"] = False
    row = nqueens_islands.report(runs, markdown=False).splitlines()[1].split()
    assert row[5:8] == ["1/2", "-", "-"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [(["--queens", "0"], "'0' holds 0"), (["--schemes", "guess"], "evaluation is 'guess'")],
)
def test_wrong_flags_end_with_one_line(flags, message, monkeypatch, capsys):
    monkeypatch.setattr(common, "use_cpu_cores", lambda: None)
    with pytest.raises(SystemExit):
        nqueens_islands.main(flags)
    assert message in capsys.readouterr().err
