"""Islands whose fitness counts attacks by a scheme."""

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
