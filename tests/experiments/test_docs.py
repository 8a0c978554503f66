"""Documents whose tables are made from records."""

import pathlib

import pytest

from experiments import common, docs

COMMAND = "python -m experiments.islands.speed --report {} --markdown"
TEXT = "Before.\n\n<!-- table: {} -->\nold\n<!-- end -->\n\nAfter.\n"


@pytest.fixture
def records(tmp_path):
    settings = {"n": 9, "islands": 3, "population": 8, "how": "xla"}
    run = {"experiment": "qap_islands_speed", "settings": settings}
    path = tmp_path / "runs.jsonl"
    common.append(path, run | {"generations_per_s": [1000.0]})
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
    (row,) = [line for line in lines if line.startswith("| 9")]
    assert [cell.strip() for cell in row.split("|")[4:7]] == ["xla", "1e+03", "3e+03"]
    assert docs.main([str(path), "--check"]) == 0


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("rm -r docs", "expected python -m experiments"),
        ("python -m experiments.islands.speed", "makes runs"),
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
