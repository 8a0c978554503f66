"""Calls, records and tables are what they say; measured processes do what they are asked."""

import pytest

import jaxopt_search as js
from experiments import common
from experiments.first_call import __main__ as script
from experiments.first_call import cases, processes, runs

CITIES = js.datasets.grid_tsp(3, 4)
XY, MATRIX = (cases.tsp_case(CITIES, form) for form in ("xy", "matrix"))
PLANTED = cases.qap_case(js.datasets.planted_qap(2, 3, seed=0))
QUEENS = cases.queens_case(8)
ENV = {"jaxopt_search": "1.2", "devices": "1 x cpu"}


class Answers:
    """Stands in for measured processes; keeps what it was asked."""

    def __init__(self):
        self.asked = []

    def __call__(self, kind, calls, seconds, cache=None):
        self.asked.append(calls)
        answer = {"process_seconds": 4.0, "import_seconds": 0.75, "call_seconds": 2.5}
        if not calls:
            return answer | {"env": ENV}
        answer |= {"first_step_seconds": 1.5, "env": ENV | {"implementation": "native"}}
        arrays, _ = calls[-1]
        size = len(arrays[0])
        return answer | {"solution": list(range(size))}


@pytest.fixture
def answers(monkeypatch):
    found = Answers()
    monkeypatch.setattr(runs, "answer", found)
    return found


def test_command_writes_records_and_continues(answers, monkeypatch, tmp_path, capsys):
    """The same command again makes no run; `--report` shows the same tables."""
    monkeypatch.setattr(cases, "cases", lambda names, data: [PLANTED])
    out = tmp_path / "first.jsonl"
    command = ["--states", "second_call,cold", "--seeds", "2", "--out", str(out)]
    assert script.main(command) == 0
    shown, num_asked = capsys.readouterr().out, len(answers.asked)
    assert [r["settings"]["state"] for r in common.read(out)] == ["cold", "second_call"] * 2
    assert script.main(command) == 0 and script.main(["--report", str(out)]) == 0
    assert capsys.readouterr().out == 2 * shown
    assert len(answers.asked) == num_asked + 1  # which devices there are


def test_a_process_answers_for_its_last_call(monkeypatch, tmp_path):
    """Eight queens after fifteen, on one device; its cache has what it compiles."""
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    (tmp_path / "cache").mkdir(mode=0o700)
    calls = runs.calls(QUEENS, "second_size", 0)
    answer = processes.answer("nqueens", calls, 5.0, tmp_path / "cache")
    record = runs.record(QUEENS, {"seconds": 5.0}, 0, answer)
    assert (record["cost"], record["env"]["devices"]) == (0, "1 x cpu")
    assert record["implementation"] == answer["env"]["implementation"]
    assert 0 < answer["compile_seconds"] <= answer["first_step_seconds"] <= answer["call_seconds"]
    parts = sum(answer[f"{name}_seconds"] for name in ("import", "device", "call"))
    assert parts < answer["process_seconds"]
    assert list((tmp_path / "cache" / "jax").iterdir())
