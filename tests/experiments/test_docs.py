"""Documents whose tables are made from records."""

import pathlib

import pytest

from experiments import common, docs

COMMAND = "python -m experiments.islands.queens --report {} --markdown"
TEXT = "Before.\n\n<!-- table: {} -->\nold\n<!-- end -->\n\nAfter.\n"


@pytest.fixture
def records(tmp_path):
    settings = {"scheme": "coarse", "islands": 3, "population": 8, "limit": 50}
    path = tmp_path / "runs.jsonl"
    for seed in range(2):
        run = {"experiment": "nqueens_islands", "instance": "9 queens", "seed": seed}
        run |= {"settings": settings, "reached": True}
        common.append(path, run | {"seconds": 0.5, "generations": 20 + seed})
    return path


def test_a_table_is_written_again(records, tmp_path):
    """Between its comments and nowhere else, once; `--check` only tells."""
    path = tmp_path / "page.md"
    path.write_text(TEXT.format(COMMAND.format(records)))
    before = path.read_text()
    assert docs.main([str(path), "--check"]) == 1
    assert path.read_text() == before
    assert docs.main([str(path)]) == 0
    lines = path.read_text().splitlines()
    assert (lines[0], lines[-1]) == ("Before.", "After.")
    assert "old" not in lines
    (row,) = [line for line in lines if line.startswith("| 9 queens")]
    assert [cell.strip() for cell in row.split("|")[5:8]] == ["2/2", "20", "0.5"]
    assert docs.main([str(path), "--check"]) == 0


def test_a_table_without_its_records_stays(tmp_path, capsys):
    path = tmp_path / "page.md"
    path.write_text(TEXT.format(COMMAND.format("nowhere.jsonl")))
    assert docs.main([str(path), "--check"]) == 0
    assert "left as it is, without nowhere.jsonl" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("rm -r docs", "expected python -m experiments"),
        ("python -m experiments.islands.queens", "makes runs"),
    ],
)
def test_only_reports_are_run(command, message, tmp_path, capsys):
    path = tmp_path / "page.md"
    path.write_text(TEXT.format(command))
    with pytest.raises(SystemExit):
        docs.main([str(path)])
    *_, last = capsys.readouterr().err.splitlines()
    assert message in last


@pytest.mark.parametrize(
    "name", sorted(path.name for path in (pathlib.Path(docs.ROOT) / "docs").glob("*.md"))
)
def test_tables_of_the_documents_agree_with_their_records(name):
    assert docs.main([str(docs.ROOT / "docs" / name), "--check"]) == 0
