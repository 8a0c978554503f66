"""Files of records survive killed runs and other processes; what is no record is named by line."""

import json
import pathlib
import subprocess
import sys

import pytest

from experiments import record_files
from experiments.record_files import Runs

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXPERIMENTS = ROOT / "experiments"


def record(seed, **others):
    return {
        "experiment": "trial",
        "settings": {"moves": 12},
        "instance": "x",
        "seed": seed,
        **others,
    }


@pytest.mark.parametrize("num_bytes", range(1, 40, 6))
def test_half_a_last_line_is_left_out_and_then_cut_off(tmp_path, num_bytes):
    """Wherever the writing of the second line was killed, the first survives, and a third fits."""
    path = tmp_path / "runs.jsonl"
    record_files.append(path, record(0))
    half = json.dumps(record(1)).encode()[:num_bytes]
    path.write_bytes(path.read_bytes() + half)
    assert record_files.read(path) == [record(0)]
    record_files.append(path, record(2))
    assert record_files.read(path) == [record(0), record(2)]


def test_runs_know_what_is_done(tmp_path):
    """A run is known by settings (in any order), instance and seed, also from another process."""
    path = tmp_path / "runs.jsonl"
    runs = record_files.Runs(path)
    first = record(0, settings={"a": 1, "b": [2.5, None]}, cost=3)
    runs.add(first)
    for known in (runs, record_files.Runs(path)):
        assert known.has({"b": [2.5, None], "a": 1}, "x", 0)
        assert not known.has({"b": [2.5, None], "a": 2}, "x", 0)
        assert not known.has({"b": [2.5, None], "a": 1}, "y", 0)
        assert not known.has({"b": [2.5, None], "a": 1}, "x", 1)
        assert known.records == [first]


@pytest.mark.parametrize(
    ("content", "line", "text"),
    [
        (b"{}\n", 1, "the line is no record"),
        (b"\x7fELF\x02\x00", 1, "the line is not JSON"),
        (json.dumps(record(0, experiment="tour")).encode(), 1, "is of 'tour', expected trial"),
    ],
)
def test_what_is_no_record_is_named_and_kept(tmp_path, content, line, text):
    """One line with the file and the line; a file of something else loses nothing."""
    path = tmp_path / "runs.jsonl"
    path.write_bytes(content)
    for use in (lambda: record_files.read_all([path], ["trial"]), lambda: Runs(path, ["trial"])):
        with pytest.raises(ValueError, match=rf"runs.jsonl:{line}: .*{text}") as error:
            use()
        assert "\n" not in str(error.value)
    assert path.read_bytes() == content


def test_a_run_counts_once_as_it_was_made_last(tmp_path):
    """Equal but for what was measured; a repetition is a run of its own."""
    path = tmp_path / "runs.jsonl"
    for each in (
        record(0, cost=1),
        record(1, cost=2),
        record(0, cost=3, settings={"moves": 13}),
        record(0, cost=4),
        record(0, cost=5, repetition=1),
        record(0, cost=6, experiment="tour"),
    ):
        record_files.append(path, each)
    assert [each.get("cost") for each in record_files.read(path)] == [4, 2, 3, 5, 6]


PROCESS = """
import sys
from experiments import record_files
path, number = sys.argv[1], int(sys.argv[2])
for seed in range(40):
    common = {"experiment": "trial", "settings": {"text": "x" * 9000}, "instance": "x"}
    record_files.append(path, common | {"seed": seed, "repetition": number})
"""


def test_processes_that_share_a_file_lose_nothing(tmp_path):
    """Each of three keeps all of its own lines."""
    path = tmp_path / "runs.jsonl"
    started = [
        subprocess.Popen([sys.executable, "-c", PROCESS, path, str(number)], cwd=ROOT)
        for number in range(3)
    ]
    assert [each.wait() for each in started] == [0, 0, 0]
    records = [json.loads(line) for line in path.read_text().splitlines()]
    own = sorted((each["repetition"], each["seed"]) for each in records)
    assert own == [(number, seed) for number in range(3) for seed in range(40)]


def test_what_cannot_be_written_is_told_before_the_first_run(tmp_path):
    with pytest.raises(OSError, match=tmp_path.name):
        Runs(tmp_path)


KEPT = sorted(EXPERIMENTS.glob("*/results/*.jsonl"))


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_kept_files_have_each_run_once(path):
    """And no half line."""
    assert len(record_files.read(path)) == len(path.read_bytes().splitlines())
