"""Files of records survive killed runs and other processes; what is no record is named by line."""

import argparse
import json
import pathlib
import subprocess
import sys

import pytest

from experiments import flag_types, record_files

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
    runs.add(first | {"cost": 4})  # made twice: the first stays
    for known in (runs, record_files.Runs(path)):
        assert known.has({"b": [2.5, None], "a": 1}, "x", 0)
        assert not known.has({"b": [2.5, None], "a": 2}, "x", 0)
        assert not known.has({"b": [2.5, None], "a": 1}, "y", 0)
        assert not known.has({"b": [2.5, None], "a": 1}, "x", 1)
        assert known.records == [first]


@pytest.mark.parametrize(
    ("content", "line", "text"),
    [
        (b"{}\n", 1, "it has no 'experiment'"),
        (b"\x7fELF\x02\x00", 1, "the line is not JSON"),
        (json.dumps(record(0, experiment="tour")).encode(), 1, "is of 'tour', expected trial"),
    ],
)
def test_what_is_no_record_is_named_and_kept(tmp_path, content, line, text):
    """One line with the file and the line; a file of something else loses nothing."""
    path = tmp_path / "runs.jsonl"
    path.write_bytes(content)
    for make in (flag_types.files_to_report, flag_types.file_to_add_to):
        with pytest.raises(argparse.ArgumentTypeError, match=rf"runs.jsonl:{line}: .*{text}") as e:
            make("trial")(str(path))
        assert "\n" not in str(e.value)
    assert path.read_bytes() == content


def test_a_run_counts_once_as_it_was_made_last(tmp_path):
    """Equal but for what was measured; a repetition is a run of its own, as is a seedless one."""
    path = tmp_path / "runs.jsonl"
    bare = {"experiment": "trial", "settings": {}}
    for each in (
        record(0, cost=1),
        record(1, cost=2),
        record(0, cost=3, settings={"moves": 13}),
        record(0, cost=4),
        record(0, cost=5, repetition=1),
        record(0, cost=6, experiment="tour"),
        bare,
        bare,
    ):
        record_files.append(path, each)
    assert [each.get("cost") for each in record_files.read(path)] == [4, 2, 3, 5, 6, None, None]


PROCESS = """
import sys
from experiments import record_files
path, number = sys.argv[1], int(sys.argv[2])
runs = record_files.Runs(path)
for seed in range(40):
    common = {"experiment": "trial", "settings": {"text": "x" * 9000}, "instance": "x"}
    record_files.append(path, common | {"seed": seed, "repetition": number})
    runs.add(common | {"seed": 1000 + seed, "by": number})
assert len(runs.those([(common["settings"], "x", 1000 + seed) for seed in range(40)])) == 40
"""


def test_processes_that_share_a_file_lose_nothing_and_count_nothing_twice(tmp_path):
    """Each of three keeps all of its own lines; the runs that all of them make are there once."""
    path = tmp_path / "runs.jsonl"
    started = [
        subprocess.Popen([sys.executable, "-c", PROCESS, path, str(number)], cwd=ROOT)
        for number in range(3)
    ]
    assert [each.wait() for each in started] == [0, 0, 0]
    records = [json.loads(line) for line in path.read_text().splitlines()]
    own = sorted((each["repetition"], each["seed"]) for each in records if "repetition" in each)
    assert own == [(number, seed) for number in range(3) for seed in range(40)]
    assert sorted(r["seed"] for r in records if "by" in r) == list(range(1000, 1040))


@pytest.mark.parametrize("kind", ["folder", "device"])
def test_what_cannot_be_written_is_told_before_the_first_run(tmp_path, kind):
    """In one line that names it."""
    path = tmp_path if kind == "folder" else pathlib.Path("/dev/full")
    with pytest.raises(argparse.ArgumentTypeError, match=path.name) as error:
        flag_types.file_to_add_to("trial")(str(path))
    assert "\n" not in str(error.value)


KEPT = sorted(EXPERIMENTS.glob("*/results/*.jsonl"))


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_kept_files_have_each_run_once(path):
    """And no half line."""
    assert len(record_files.read(path)) == len(path.read_bytes().splitlines())
