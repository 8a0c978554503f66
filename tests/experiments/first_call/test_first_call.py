"""Calls, records and tables are what they say; measured processes do what they are asked."""

import doctest
import os
import re
import subprocess
import sys
import types

import numpy as np
import pytest

import jaxopt_search as js
from experiments import common
from experiments.first_call import cases, processes, runs, script, tables
from experiments.packages import qap as packages_qap

CITIES = js.datasets.grid_tsp(3, 4)
XY, MATRIX = (cases.tsp_case(CITIES, form) for form in ("xy", "matrix"))
PLANTED = cases.qap_case(js.datasets.planted_qap(2, 3, seed=0))
QUEENS = cases.queens_case(8)
ENV = {"jaxopt_search": "1.2", "devices": "1 x cpu"}


def plan(*own, **changes):
    fields = {"states": runs.STATES, "peers": {}, "seconds": 1.0, "seeds": range(2)}
    return runs.Plan(cases=own, is_busy=False, env=ENV, **(fields | changes))


class Answers:
    """Stands in for measured processes; keeps what it was asked."""

    def __init__(self):
        self.asked = []

    def __call__(self, request, cache=None):
        self.asked.append((request, cache))
        answer = {"process_seconds": 4.0, "import_seconds": 0.75, "call_seconds": 2.5}
        if not request.calls:
            return answer | {"env": ENV}
        if request.peer is None:
            answer |= {"first_step_seconds": 1.5, "env": ENV | {"implementation": "native"}}
        (size,) = {len(request.calls[-1].arrays[0])}
        return answer | {"solution": list(range(size))}


@pytest.fixture
def answers(monkeypatch):
    found = Answers()
    for module in (runs, script):
        monkeypatch.setattr(module, "answer", found)
    return found


def test_examples():
    """The examples in the docstrings hold."""
    assert doctest.testmod(cases) == (0, 1)


def test_cases_without_files_are_generated_once(tmp_path, capsys):
    """Both forms are of one instance, and one line tells of it; nothing is known of its optimum."""
    xy, matrix, nug = cases.cases(["eil51-xy", "eil51-matrix", "nug12"], str(tmp_path))
    assert xy.instance is matrix.instance
    assert len(re.findall("no file of eil51", capsys.readouterr().out)) == 1
    assert [case.instance.best_known for case in (xy, nug)] == [None, None]
    assert [a.shape for a in (*xy.arrays, *matrix.arrays, *nug.arrays)] == [
        (51, 2), (51, 51), (12, 12), (12, 12),
    ]  # fmt: skip
    assert [len(case.larger[0]) for case in (xy, matrix, nug)] == [52, 52, 13]
    with pytest.raises(ValueError, match="case 'eil51' is unknown, expected some of"):
        cases.cases(["eil51"], str(tmp_path))


@pytest.mark.parametrize(
    ("state", "sizes", "seeds"),
    [("cold", [12], [3]), ("cached", [12], [3]), ("second_size", [13, 12], [3, 3]),
     ("second_call", [12, 12], [4, 3])],
)  # fmt: skip
def test_the_measured_call_is_the_last(state, sizes, seeds):
    """Of the instance of the case, with the seed of the record; what comes before differs."""
    made = runs.calls(MATRIX, state, 3)
    assert [len(call.arrays[0]) for call in made] == sizes
    assert [call.seed for call in made] == seeds


def test_solvers_are_told_no_best_known_cost():
    """They get arrays of numbers and nothing else."""
    for case in (XY, MATRIX, PLANTED, QUEENS):
        assert all(type(array) is np.ndarray for array in (*case.arrays, *case.larger))
    assert CITIES.best_known is not None


def test_a_record_by_hand():
    """The cost is counted anew, whatever the solver says; what peers do not tell is None."""
    answer = {"call_seconds": 2.5, "fun": 1.5, "solution": list(range(12)), "env": ENV}
    cost = CITIES.tour_length(np.arange(12))
    record = runs.record(XY, {"seconds": 1.0}, 7, answer)
    assert (record["fun"], record["cost"], record["overhead"]) == (1.5, cost, 1.5)
    assert record["gap"] == (cost - CITIES.best_known) / CITIES.best_known
    assert (record["seed"], record["n"], record["first_step_seconds"]) == (7, 12, None)
    with pytest.raises(ValueError, match="permutation"):
        runs.record(XY, {"seconds": 1.0}, 7, answer | {"solution": [0] * 12})


def test_gaps_that_are_unknown_or_have_no_end():
    """Of a generated instance, and of queens that were not placed."""
    unknown = cases.qap_case(js.datasets.uniform_qap(3, seed=0))
    answer = {"call_seconds": 1.0, "solution": [2, 0, 1], "env": ENV}
    assert runs.record(unknown, {"seconds": 1.0}, 0, answer)["gap"] is None
    for solution, cost, gap in ((np.zeros((0, 8)), 1, None), ([[0, 4, 7, 5, 2, 6, 1, 3]], 0, 0)):
        record = runs.record(QUEENS, {"seconds": 1.0}, 0, answer | {"solution": solution})
        assert (record["cost"], record["fun"], record["gap"]) == (cost, cost, gap)


def test_a_cache_is_filled_once_before_it_is_measured(answers, tmp_path):
    """By the same call of a process that is not recorded; other states have none."""
    records = runs.execute(plan(XY, states=("cold", "cached")), common.Runs(None))
    assert [r["settings"]["state"] for r in records] == ["cold", "cached"] * 2
    with_cache = [cache is not None for _, cache in answers.asked]
    assert with_cache == [False, True, True, False, True]
    assert len({cache for _, cache in answers.asked if cache}) == 1
    filling, measured = (answers.asked[i][0] for i in (1, 2))
    assert filling == measured


def test_peers_take_matrices_and_run_cold(answers, capsys):
    """What a peer refuses is left out with one line; its version is known."""
    takes = types.SimpleNamespace(name="p", version="9", runs_on="1 thread", prepare=lambda _: 0)
    refuses = types.SimpleNamespace(name="q", prepare=lambda _: int("no"))
    made = runs.execute(
        plan(XY, MATRIX, states=("second_call",), peers={"tsp": [takes, refuses]}),
        common.Runs(None),
    )
    found = [r for r in made if r["settings"]["solver"] != runs.OURS]
    assert [(r["settings"]["case"], r["settings"]["state"]) for r in found] == [
        (MATRIX.name, "cold")
    ] * 2
    assert {r["settings"]["version"] for r in found} == {"9"}
    assert capsys.readouterr().out.count(f"q is left out on {MATRIX.name}") == 1


def line(state, overhead, gap, solver=runs.OURS, **others):
    settings = {"case": "c-xy", "kind": "tsp", "solver": solver, "version": "2", "state": state}
    settings |= {"seconds": 1.0, "busy": False, "machine": "1 x cpu"}
    times = {"import_seconds": 0.5, "device_seconds": 0.25, "first_step_seconds": overhead / 2}
    costs = {"gap": gap, "best_known": 100, "cost": 101, "process_seconds": overhead + 3}
    return (
        {"settings": settings, "overhead": overhead, "implementation": "xla"}
        | times
        | costs
        | others
    )


def test_a_table_by_hand():
    """Medians by state; a peer below our line, with dashes for what it does not have."""
    peer = line("cold", 0.0, None, "fast-tsp", first_step_seconds=None)
    records = [line("cold", s, g) for s, g in ((4.0, 0.5), (3.0, 0.02), (5.0, 0.01))]
    records = [*records, peer, line("second_call", -0.25, 0.03)]
    text = tables.report(records, markdown=False).splitlines()
    rows = [re.split(" {2,}", row) for row in text if row.startswith("c-xy")]
    assert rows == [
        ["c-xy", "jaxopt_search", "4.00", "2.00%", "-0.25", "3.00%"],
        ["c-xy", "fast-tsp 2", "0.00", "-", "-", "-"],
        ["c-xy", "jaxopt_search", "2.00", "-0.12", "6.00"],
        ["c-xy", "fast-tsp 2", "-", "-", "2.00"],
    ]
    assert text[0] == "max_seconds=1; 1 x cpu, xla; idle machine; medians; seeds: 1 to 3"
    assert "0.50 s to import" in text[-1]


def test_queens_are_counted_and_loads_are_kept_apart():
    """Runs that found a placement stand in place of a gap."""
    found = [line("cold", 1.0, None, best_known=0, cost=cost) for cost in (0, 1, 0)]
    assert tables.over_and_gap({"cold": found}, ["cold"])[2:] == ["1.00", "2/3"]
    busy = line("cold", 1.0, 0.0)
    busy["settings"]["busy"] = True
    text = tables.report([line("cold", 1.0, 0.0), busy], markdown=True)
    assert (text.count("idle machine"), text.count("all cores busy")) == (1, 1)


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


def test_what_the_command_refuses(monkeypatch, capsys):
    """Unknown states and cases, on one line, before anything is run."""
    monkeypatch.setattr(subprocess, "run", None)
    for words, text in ((["--states", "warm"], "'warm' is unknown"), (["--cases", "x"], "'x' is")):
        with pytest.raises(SystemExit):
            script.main(words)
        assert text in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("with_variables", [True, False])
def test_processes_see_no_cache_but_their_own(with_variables, monkeypatch, tmp_path):
    """Caches that the user has set are out of sight, also CUDA's; other settings remain."""
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "/elsewhere")
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "5")
    monkeypatch.setenv("XLA_FLAGS", "--some")
    none = processes.surroundings(None, tmp_path, with_variables=with_variables)
    assert not [name for name in none if "CACHE" in name and name.startswith("JAX")]
    assert (none["XLA_FLAGS"], none["CUDA_CACHE_PATH"]) == ("--some", str(tmp_path / "cuda"))
    own = processes.surroundings(tmp_path / "c", tmp_path, with_variables=with_variables)
    shown = own["CUDA_CACHE_PATH"], own.get("JAX_COMPILATION_CACHE_DIR")
    cuda, jax_cache = (str(tmp_path / "c" / name) for name in ("cuda", "jax"))
    assert shown == (cuda, jax_cache if with_variables else None)


def test_busy_cores_are_idle_afterwards():
    """Also if what they are kept busy for fails; a process whose parent is gone ends by itself."""
    with pytest.raises(KeyError), processes.busy_cores(1) as spinning:
        assert [process.poll() for process in spinning] == [None]
        raise KeyError
    assert [process.poll() is None for process in spinning] == [False]
    orphan = [sys.executable, "-S", "-c", processes._SPIN.format(os.getppid())]
    assert subprocess.run(orphan, timeout=300).returncode == 0


def test_a_process_answers_for_its_last_call(monkeypatch, tmp_path):
    """Eight queens after fifteen; what it compiles is in the cache that it was given."""
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    devices = re.compile("--xla_force_host_platform_device_count=[0-9]+")
    monkeypatch.setenv("XLA_FLAGS", devices.sub("", os.environ["XLA_FLAGS"]).strip())
    request = processes.Request("nqueens", runs.calls(QUEENS, "second_size", 0), 5.0)
    (tmp_path / "cache").mkdir(mode=0o700)
    answer = processes.answer(request, tmp_path / "cache")
    record = runs.record(QUEENS, {"seconds": 5.0}, 0, answer)
    assert (record["cost"], record["env"]["devices"]) == (0, "1 x cpu")
    assert record["implementation"] == answer["env"]["implementation"]
    assert 0 < answer["compile_seconds"] <= answer["first_step_seconds"] <= answer["call_seconds"]
    parts = sum(answer[f"{name}_seconds"] for name in ("import", "device", "call"))
    assert parts < answer["process_seconds"]
    assert list((tmp_path / "cache" / "jax").iterdir())


def test_a_process_of_a_peer_imports_no_jax(monkeypatch):
    """So its seconds are the package's own; what it cannot import is told on one line."""
    where = (packages_qap.SciPy.__module__, "SciPy")
    request = processes.Request("qap", runs.calls(PLANTED, "cold", 0), 0.5, where)
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    imported = []

    def run(*args, **options):
        done = subprocess_run(*args, **options)
        imported.append(done.stderr)
        return done

    subprocess_run = subprocess.run
    monkeypatch.setattr(subprocess, "run", run)
    assert PLANTED.cost(processes.answer(request)["solution"]) == PLANTED.instance.best_known
    assert "scipy" in imported[0] and not re.search(r"\| +jax", imported[0])
    monkeypatch.delenv("PYTHONPROFILEIMPORTTIME")
    with pytest.raises(ChildProcessError, match=r"ended with 1: ModuleNotFoundError.*'absent'$"):
        processes.answer(request._replace(peer=("absent", "X")))
