"""Islands whose fitness counts attacks by a scheme."""

from experiments import common
from experiments.islands import queens as nqueens_islands


def test_schemes_make_the_same_generations(tmp_path, capsys):
    """They count alike, so that runs of one seed end alike; and a record is found again."""
    out = tmp_path / "runs.jsonl"
    flags = ["--queens", "6", "--islands", "2", "--individuals", "8", "--runs", "1"]
    flags += ["--schemes", "fine_index,histogram", "--out", str(out)]
    assert nqueens_islands.main(flags) == 0
    runs, printed = common.read(out), capsys.readouterr().out
    assert [run["settings"]["scheme"] for run in runs] == ["fine_index", "histogram"]
    assert all(run["reached"] for run in runs)
    assert runs[0]["generations"] == runs[1]["generations"]
    assert nqueens_islands.main(flags) == 0
    assert capsys.readouterr().out == printed and common.read(out) == runs
