"""The PSPM experiment: formulas, independent runs, interruption and resumption, tables."""

import copy
import dataclasses

import numpy as np
import pytest

import jaxopt_search as js
from experiments.common import Progress, Runs
from experiments.pspm import measures
from experiments.pspm import runs as pspm_runs
from experiments.pspm import script as pspm
from experiments.pspm import tables as pspm_tables
from experiments.pspm.runs import SCHEMES, Cooling, Job, Limit
from jaxopt_search.engine import device_split

TINY = Cooling(start=100.0, end=1.0, alpha=0.5, sweeps=2, exchange_every=2)
INSTANCES = [js.datasets.grid_tsp(3, 4, spacing=100), js.datasets.grid_tsp(2, 6, spacing=100)]


class Silent:
    """A stream that is no terminal and keeps nothing."""

    def isatty(self):
        return False

    def write(self, text):
        pass

    def flush(self):
        pass


def plan(table=2, **changes):
    settings = {
        "table": table,
        "instances": INSTANCES,
        "schemes": list(SCHEMES.values()),
        "cooling": TINY,
        "num_runs": 2,
        "first_seed": 0,
        "batch": None,
        "devices": 1,
        "max_coolings": 2,
    }
    return pspm.Plan(**(settings | changes))


def execute(the_plan, path=None):
    runs = Runs(path)
    pspm.execute(the_plan, runs, Progress(1000, Silent()))
    return runs


def job(seeds=(0, 1), scheme=SCHEMES["pssm"], kind="quality", limit=None, devices=1):
    found = device_split.find_devices(devices)
    limit = limit or Limit(max_steps=TINY.steps(12))
    return Job(INSTANCES[0], scheme, TINY, kind, limit, seeds, found)


def without_times(records):
    timed = ("seconds", "compile_seconds", "sses", "date")
    records = [{k: v for k, v in record.items() if k not in timed} for record in records]
    for record in records:
        limit = record["settings"]["limit"]
        limit["max_seconds"] = limit["max_seconds"] is not None
    return records


def test_formulas_against_the_paper():
    """Equations 4, 5 and 7 with numbers worked out by hand."""
    paper = Cooling()
    assert (paper.num_temperatures, paper.steps(100)) == (1146, 1_146_000)
    # rd100 under PSPM: 1.146e6 steps of 98 x 12 moves at 456.8e6 moves/s last 2.950 s.
    assert measures.sses(1_146_000 * 98 * 12, 2.950) == pytest.approx(456.8e6, rel=1e-3)
    assert measures.sec(8305.5, 7910) == pytest.approx(5.0)
    assert measures.sec(8305.5, None) is None
    assert measures.tc([1.0, 2.0, 3.0], 3) == pytest.approx(0.5)
    assert measures.tc([1.0, 2.0, 5.0], 2) == pytest.approx(0.25)


@pytest.mark.slow
@pytest.mark.parametrize("table, num_kinds", [(2, 3), (3, 4), (4, 4)])
def test_each_table_from_nothing(table, num_kinds, monkeypatch):
    """Each run is made once, and the table stands with the instances or numbers of moves."""
    monkeypatch.setattr(pspm, "MOVES", (4, 12))
    runs = execute(plan(table))
    keys = {(str(r["settings"]), r["instance"], r["seed"]) for r in runs.records}
    assert len(keys) == len(runs.records)
    kinds = [r for r in runs.records if r["settings"]["kind"] != "convergence"]
    assert len(kinds) == len(INSTANCES) * 2 * num_kinds
    text = pspm_tables.report(runs.records, tables=(table,))
    assert f"Table {table}" in text
    labels = [line.split()[0] for line in text.splitlines() if line]
    assert set(labels) >= ({"4", "12"} if table == 4 else {i.name for i in INSTANCES})


def test_convergence_runs_last_as_long_as_pspm_needed():
    """Their limit is the mean time of the PSPM runs that got below the threshold."""
    runs = Runs(None)
    for seed, (reached, seconds) in enumerate([(True, 1.0), (True, 2.0), (False, 9.0)]):
        times = {"reached": reached, "seconds": seconds, "cost": 1}
        runs.add(fake("x", "sspm", 1.0, seed, cost=50 + seed))
        runs.add(fake("x", "pspm", 1.0, seed, kind="throughput", **times))
    instance = dataclasses.replace(INSTANCES[0], name="x")
    the_plan = plan(3, num_runs=3, cooling=Cooling())
    limit = pspm._limit(the_plan, runs, instance, "throughput")
    assert limit == Limit(max_steps=2 * Cooling().steps(12), threshold=50)
    assert pspm._limit(the_plan, runs, instance, "convergence") == Limit(max_seconds=1.5)
    first_two = the_plan._replace(first_seed=2, num_runs=1)
    assert pspm._limit(first_two, runs, instance, "convergence") is None


def test_an_interrupted_experiment_resumes(tmp_path, monkeypatch):
    """Killed at any run and started again, the file holds what an unbroken run writes."""
    the_plan = plan(batch=2, num_runs=3)
    whole = without_times(copy.deepcopy(execute(the_plan, tmp_path / "whole.jsonl").records))
    path, make = tmp_path / "broken.jsonl", pspm_runs.make

    for allowed in (1, 3, 100):
        count = iter(range(allowed))

        def interrupted(batch, count=count):
            if next(count, None) is None:
                raise KeyboardInterrupt
            return make(batch)

        monkeypatch.setattr(pspm_runs, "make", interrupted)
        try:
            execute(the_plan, path)
        except KeyboardInterrupt:
            path.write_bytes(path.read_bytes()[:-7])  # and the last line is torn
    assert without_times(Runs(path).records) == whole


def test_a_finished_experiment_runs_nothing(tmp_path, monkeypatch):
    """The same plan over a full file makes no run, Table 3's measured limits included."""
    for table in (2, 3):
        execute(plan(table), tmp_path / "runs.jsonl")
    monkeypatch.setattr(pspm_runs, "make", lambda batch: pytest.fail("a run was made again"))
    for table in (2, 3):
        execute(plan(table), tmp_path / "runs.jsonl")


def fake(instance, scheme, sec, seed=0, kind="quality", **others):
    """Returns a record with the figures that tables use."""
    known = (*SCHEMES.values(), pspm_runs.SINGLE, *pspm_runs.CORE_SCHEMES)
    (own,) = [one for one in known if one.name == scheme]
    settings = {
        "kind": kind,
        "scheme": own._asdict(),
        "cooling": Cooling()._asdict(),
        "limit": Limit()._asdict(),
        "batch": 1,
        "device_kind": "core" if own in pspm_runs.CORE_SCHEMES else "cpu",
        "num_devices": 1,
    }
    record = {"settings": settings, "instance": instance, "seed": seed, "sec": sec, "sses": 2e6}
    return record | others


def test_table_2_averages_and_verdict():
    """Seeds are averaged, the paper's figure follows, the order is judged per instance."""
    records = [
        fake("rd100", "pspm", 1.0),
        fake("rd100", "pspm", 2.0, seed=1, sses=6e6),
        fake("rd100", "sspm", 3.0),
        fake("rd100", "pssm", 9.0),
        fake("eil101", "pspm", 4.0),
        fake("eil101", "sspm", 3.0),
        fake("eil101", "pssm", 9.0),
    ]
    lines = pspm_tables.table_2(records).splitlines()
    rd100, average = (
        next(line for line in lines if line.startswith(name)) for name in ("rd100", "average")
    )
    assert "4.0 (456.8)  1.50 (0.14)" in rd100
    assert "2.75 (0.32)" in average  # the paper's mean is over these two instances as well
    assert "1 of 2 (rd100 yes, eil101 no)" in lines[-1]


def test_the_studies_run_what_they_say():
    """Compiled cores and PSPM; PSPM by its exchanges; and one search that is always cold."""
    made = {name: pspm.stages(plan(name, exchange_every=(1, 50, None))) for name in pspm.STUDIES}
    assert {stage.kind for stages in made.values() for stage in stages} == {"quality"}
    assert [stage.scheme for stage in made["core"]] == [
        SCHEMES["pspm"],
        ("core sspm", 1, 12, False),
        ("core single", 1, 1, False),
    ]
    rules = [
        pspm_runs.exchange(job(scheme=stage.scheme)._replace(cooling=stage.cooling))
        for stage in made["exchange"]
    ]
    assert [rule and int(rule.every) for rule in rules] == [24, 50 * 24, None]
    assert all(stage.scheme[1:3] == (98, 12) for stage in made["exchange"])
    (single, *_) = made["descent"]
    assert single.scheme == ("single", 1, 1, False)
    paper = plan("descent", cooling=Cooling())
    assert pspm.stages(paper)[0].cooling.steps(100) == Cooling().steps(100)
    cold = job(scheme=single.scheme)._replace(cooling=single.cooling)
    costs = []
    problem, advance = pspm_runs._prepared(cold)
    state = pspm_runs.start(cold, problem)
    for _ in range(40):
        costs.append(np.asarray(state.searches.cost))
        state = advance(state, 5)
    assert (np.diff(costs, axis=0) <= 0).all()


def study(**others):
    """Returns records of three instances of the paper, for the tables of studies."""
    return [
        fake(name, sec=sec, **others) for name, sec in zip(THREE, (30.0, 20.0, 22.0), strict=True)
    ]


THREE = ("rd100", "eil101", "bier127")


def test_the_core_table_divides_by_the_core_of_the_same_file():
    """PSPM at 60 over cores at 2 and 6; the processor is named."""
    records = study(scheme="pspm", sses=60e6, env={"cpu": "EPYC 1"})
    records += study(scheme="core single", sses=2e6) + study(scheme="core sspm", sses=6e6)
    text = pspm_tables.report(records, tables=("core",))
    row = next(line for line in text.splitlines() if line.startswith("rd100"))
    assert row.split() == ["rd100", "2.0", "30.00", "6.0", "30.00", "60.0", "30.00", "30.0", "10.0"]
    assert "one of EPYC 1" in text and "core sspm: 1 run per instance on 1 x core" in text
    assert pspm_tables.report(records[:3], tables=("core",)) == "no finished runs"


def test_the_descent_table_tells_how_it_goes_with_the_papers_pssm():
    """Means 24 and 24.7 (31.2, 19.4 and 23.4), by hand; one instance says nothing."""
    text = pspm_tables.report(study(scheme="single"), tables=("descent",))
    assert "30.00 (31.20)" in text
    assert "over 3 instances: mean 24.0 (24.7), correlation 0.99, mean absolute" in text
    assert text.endswith("difference 1.1")
    assert "correlation" not in pspm_tables.report([fake("rd100", "single", 1.0)])


def test_the_exchange_table_has_a_column_for_each_period():
    """Of one cooling, with and without exchange; Table 2 keeps what was not exchanged apart."""
    records = []
    for every, error in ((1, 5.0), (100, 2.0), (None, 3.0)):
        record = fake("rd100", "pspm", error, sses=error * 1e6)
        settings = record["settings"]
        settings["scheme"] = settings["scheme"] | {"exchanges": every is not None}
        settings["cooling"] = settings["cooling"] | {"exchange_every": every or 100}
        records.append(record)
    lines = pspm_tables.report(records, tables=("exchange",)).splitlines()
    row = next(line for line in lines if line.startswith("rd100"))
    assert row.split() == ["rd100", "5.00", "2.00", "3.00", "5", "2", "3"]
    assert pspm_tables.report(records[:1], tables=("exchange",)) == "no finished runs"
    assert [r["sec"] for r in pspm_tables.select(records, "quality", "pspm")] == [3.0]


def test_table_2_says_what_its_quotients_are():
    """Both schemes on one device here, a GPU over 12 cores in the paper."""
    text = pspm_tables.table_2([fake("rd100", name, 1.0) for name in SCHEMES])
    assert "Quotients of speeds are ours of schemes on one and the same device" in text


def test_figure_4_is_drawn_from_a_file(tmp_path, monkeypatch, capsys):
    """Regression: a report with `--figure 4` printed all tables and drew nothing."""
    pytest.importorskip("matplotlib")
    lines = {}

    def save(path, draw, size):
        axes = pspm.common.plotting.detached_axes(size)
        draw(axes)
        lines.update({line.get_label(): line.get_xydata().tolist() for line in axes.get_lines()})

    monkeypatch.setattr(pspm.common, "save_plot", save)
    for moves in (4, 48):
        record = fake("rd100", "pspm", 1.0, sses=moves * 1e6, experiment="pspm")
        record["settings"]["scheme"] = record["settings"]["scheme"] | {"moves": moves}
        pspm.common.append(tmp_path / "runs.jsonl", record)
    command = ["--figure", "4", "--report", str(tmp_path / "runs.jsonl")]
    assert pspm.main([*command, "--plot", str(tmp_path / "f.png")]) == 0
    assert lines["PSPM, ours"] == [[4, 4], [48, 48]]
    printed = capsys.readouterr().out
    assert "Table 4" in printed and "Table 2" not in printed


def test_a_file_with_several_coolings_keeps_them_apart():
    """Quick and full runs in one file give a table each."""
    quick = fake("rd100", "pspm", 1.0)
    quick["settings"] = quick["settings"] | {"cooling": pspm_runs.QUICK._asdict()}
    text = pspm_tables.report([fake("rd100", "pspm", 2.0), quick])
    assert text.count("Table 2.") == 2 and text.count("Cooling:") == 2


def test_the_command_runs_and_reports(tmp_path, monkeypatch, capsys):
    """Arguments reach the plan; a second call only prints; `--report` prints the same table."""
    out = str(tmp_path / "runs.jsonl")
    monkeypatch.setattr(pspm, "Cooling", lambda: TINY)
    monkeypatch.setattr(pspm.common, "find_instances", lambda *args: INSTANCES[:1])
    monkeypatch.setattr(pspm.common, "use_cpu_cores", lambda: None)
    command = ["--schemes", "sspm,pssm", "--runs", "2", "--devices", "1", "--out", out]
    tables = []
    for arguments in (command, command, ["--report", out]):
        assert pspm.main(arguments) == 0
        tables.append(capsys.readouterr().out.partition("Table 2.")[2])
    assert "grid-3x4-d100" in tables[0]
    assert tables[0] == tables[1] == tables[2]


def test_ctrl_c_keeps_what_is_finished(tmp_path, monkeypatch, capsys):
    """The status tells that the command was interrupted; the finished scheme is in the table."""
    monkeypatch.setattr(pspm, "Cooling", lambda: TINY)
    monkeypatch.setattr(pspm.common, "find_instances", lambda *args: INSTANCES[:1])
    monkeypatch.setattr(pspm.common, "use_cpu_cores", lambda: None)
    make = pspm_runs.make

    def interrupted(batch):
        if batch.scheme.name == "pssm":
            raise KeyboardInterrupt
        return make(batch)

    monkeypatch.setattr(pspm_runs, "make", interrupted)
    out = tmp_path / "runs.jsonl"
    assert pspm.main(["--devices", "1", "--out", str(out)]) == 130
    assert "interrupted" in capsys.readouterr().out
    assert [r["settings"]["scheme"]["name"] for r in Runs(out).records] == ["sspm"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--table", "1"],
        ["--schemes", "pspm,other"],
        ["--runs", "0"],
        ["--table", "3", "--schemes", "pspm"],
        ["--study", "speed"],
        ["--study", "exchange", "--exchange-every", "10,0"],
        ["--study", "exchange", "--exchange-every", "often"],
    ],
)
def test_bad_arguments_are_refused(arguments, capsys):
    """One line says what is wrong, and nothing runs."""
    with pytest.raises(SystemExit) as stopped:
        pspm.main(arguments)
    assert stopped.value.code == 2
    assert "error" in capsys.readouterr().err
