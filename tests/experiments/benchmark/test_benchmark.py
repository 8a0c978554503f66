"""The benchmarks run, and their figures are what they say."""

from experiments import common
from experiments.benchmark import __main__ as benchmark


def test_benchmark_command(tmp_path, capsys):
    """One line per case, one record per repetition, on one device and on all."""
    out = tmp_path / "speed.jsonl"
    command = "--cities 9 --searches 4 --moves 2 --repetitions 2 --seconds 0.01"
    assert benchmark.main([*command.split(), "--out", str(out)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum("1 x cpu" in line for line in lines) == 1
    assert sum("4 x cpu" in line for line in lines) == 1
    records = common.read(out)
    assert len(records) == 4
    assert all(record["sses"] == record["moves"] / record["seconds"] for record in records)
