"""The PSPM experiment: formulas, independent runs, interruption and resumption, tables."""

import copy
import dataclasses

import jax
import numpy as np
import pytest

import jaxopt_search as js
from experiments import compiled_tsp, pspm, pspm_runs, pspm_tables
from experiments.common import Progress, Runs
from experiments.pspm_runs import SCHEMES, Cooling, Job, Limit
from jaxopt_search.engine import device_split, starting

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
    assert pspm_tables.sses(1_146_000 * 98 * 12, 2.950) == pytest.approx(456.8e6, rel=1e-3)
    assert pspm_tables.sec(8305.5, 7910) == pytest.approx(5.0)
    assert pspm_tables.sec(8305.5, None) is None
    assert pspm_tables.tc([1.0, 2.0, 3.0], 3) == pytest.approx(0.5)
    assert pspm_tables.tc([1.0, 2.0, 5.0], 2) == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("name", "searches", "moves", "every"),
    [("sspm", 1, 12, None), ("pssm", 12, 1, 1000 * 12), ("pspm", 98, 12, 1000 * 12)],
)
def test_each_scheme_has_the_settings_of_the_papers_table_1(name, searches, moves, every):
    """From the command's defaults: searches, moves, temperatures, sweeps, exchanges, light storing.

    On 12 cities: 120 steps at each temperature, and 100 temperatures from exchange to exchange.
    """
    the_plan = pspm.plan_from_arguments(pspm.parser().parse_args(["--instances", "all"]))
    (stage,) = [one for one in pspm.stages(the_plan) if one.scheme.name == name]
    own = job(scheme=stage.scheme)._replace(cooling=stage.cooling)
    search, rule = pspm_runs.annealing(own), pspm_runs.exchange(own)
    assert own.num_searches == 2 * searches
    assert search.evaluations_per_step(None) == moves
    assert (search.choose, search.keep_best) == ("best", "light")
    assert isinstance(search.neighborhood, js.Relocate)
    temperatures = [float(search.control(jax.numpy.int32(step))) for step in (0, 119, 120, 240)]
    np.testing.assert_allclose(temperatures, [1e4, 1e4, 9900, 9801], rtol=1e-6)
    steps = stage.cooling.steps(12)
    assert steps == 1146 * 120
    last, after = (float(search.control(jax.numpy.int32(at))) for at in (steps - 1, steps))
    assert last > 0.1 > after > 0.098
    if every is None:
        assert rule is None
    else:
        assert (int(rule.every), rule.group_size) == (every, searches)


def test_the_best_spreads_in_its_run_at_each_exchange():
    """By the function that makes the runs: not a step before, and in every run of the batch."""
    one = job(scheme=SCHEMES["pssm"])
    problem, advance = pspm_runs._prepared(one)
    search = pspm_runs.annealing(one)
    every = TINY.exchange_every * TINY.sweeps * 12
    before = advance(pspm_runs.start(one, problem), every - 1)
    after = advance(before, 1)

    def costs(state):
        return np.asarray(jax.vmap(search.current_cost)(state.searches)).reshape(2, 12)

    assert all(len(set(run)) > 1 for run in costs(before))
    best = np.asarray(search.best_cost(after.searches)).reshape(2, 12).min(axis=1)
    np.testing.assert_array_equal(costs(after), np.tile(best[:, None], 12))


@pytest.mark.parametrize("changed", [0, 1, 2])
def test_runs_of_a_batch_do_not_affect_one_another(changed):
    """If one group starts at the optimum, the other groups' searches do not change at all.

    With one broadcast among all searches, the optimum would spread.
    """
    batch = job(seeds=(0, 1, 2))
    problem, advance = pspm_runs._prepared(batch)
    search, size = pspm_runs.annealing(batch), batch.scheme.searches
    starts = np.stack([np.random.default_rng(i).permutation(12) for i in range(3 * size)])
    better = starts.copy()
    better[changed * size : (changed + 1) * size] = [0, 1, 2, 3, 7, 11, 10, 6, 5, 9, 8, 4]

    def advance_all(state, num_steps):
        everyone = js.broadcast_best(every=TINY.exchange_every * TINY.sweeps * 12)
        return js.advance(problem, search, state, num_steps, exchange=everyone)

    def others(tours, advance):
        tours = jax.numpy.array(tours)
        state = starting.init(5, problem, search, num_searches=3 * size, solutions=tours)
        searches = advance(state, TINY.steps(12)).searches
        is_other = np.arange(3 * size) // size != changed
        return jax.tree.map(lambda leaf: np.asarray(leaf)[is_other], searches)

    kept, same = (others(tours, advance) for tours in (starts, better))
    jax.tree.map(np.testing.assert_array_equal, kept, same)
    assert (search.best_cost(others(better, advance_all)) == 1200).all()


def test_the_first_run_of_a_batch_is_the_run_alone():
    """Same seed, same searches, whatever runs beside it: the record's cost and steps agree."""
    alone, together = pspm_runs.make(job(seeds=(7,))), pspm_runs.make(job(seeds=(7, 8, 9)))
    assert (alone[0]["cost"], alone[0]["steps"]) == (together[0]["cost"], together[0]["steps"])
    assert [record["seed"] for record in together] == [7, 8, 9]


@pytest.mark.devices(2)
def test_devices_do_not_change_the_results():
    """A batch on two devices gives the costs that it gives on one."""
    costs = [[r["cost"] for r in pspm_runs.make(job(devices=d))] for d in (1, 2)]
    assert costs[0] == costs[1]


def test_a_record_adds_up():
    """Moves are those of the run; its speed counts the whole batch; the cost is the best tour's."""
    for record in pspm_runs.make(job(scheme=SCHEMES["pspm"])):
        assert record["steps"] == TINY.steps(12) == 7 * 2 * 12
        assert record["moves"] == record["steps"] * 98 * 12
        assert record["sses"] == pytest.approx(2 * record["moves"] / record["seconds"])
        assert record["sec"] == pytest.approx(100 * (record["cost"] - 1200) / 1200)


def test_costs_are_exact_and_never_get_worse():
    """Trace goes through several coolings; best costs only fall, and no lower than the optimum."""
    points = [point for point, _ in zip(pspm_runs.trace(job()), range(4), strict=False)]
    assert points[-1].steps == 4 * TINY.steps(12)  # a cooling of 7 temperatures is one chunk
    costs = np.stack([point.costs for point in points])
    assert (np.diff(costs, axis=0) <= 0).all() and (costs >= 1200).all()


def test_a_threshold_is_met_strictly_or_given_up():
    """Below the optimum nothing is reached within the step limit; above any tour it is at once."""
    steps = 2 * TINY.steps(12)
    never = pspm_runs.make(job(kind="throughput", limit=Limit(steps, threshold=1200)))
    assert [(r["reached"], r["steps"]) for r in never] == [(False, steps)] * 2
    at_once = pspm_runs.make(job(kind="throughput", limit=Limit(steps, threshold=10**6)))
    assert [(r["reached"], r["steps"]) for r in at_once] == [(True, steps // 2)] * 2


def test_throughput_runs_are_not_the_runs_that_gave_the_threshold():
    """Regression: with the same keys the first cooling repeats the threshold's own run."""
    starts = [
        pspm_runs.start(job(kind=kind), js.tsp_from_instance(INSTANCES[0])).searches.cost
        for kind in pspm_runs.KINDS
    ]
    assert not np.array_equal(starts[0], starts[1])
    assert not np.array_equal(starts[1], starts[2])


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
    """Seeds are averaged, the paper's figure stands beside, the order is judged per instance."""
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
    """Compiled cores beside PSPM; PSPM by its exchanges; and one search that is always cold."""
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


@pytest.mark.parametrize("scheme", [*pspm_runs.CORE_SCHEMES, pspm_runs.STRICT])
def test_a_core_makes_complete_runs(scheme, monkeypatch):
    """As plain Python: a record for each seed, with the fields that those of a device have."""
    anneal = compiled_tsp.build(lambda fn: fn)
    monkeypatch.setattr(pspm_runs, "_compiled", lambda: (anneal, 0.0))
    on_core, on_device = (pspm_runs.make(job(scheme=s)) for s in (scheme, SCHEMES["sspm"]))
    assert [record["seed"] for record in on_core] == [0, 1]
    for record in on_core:
        assert record["steps"] == TINY.steps(12)
        assert record["moves"] == TINY.steps(12) * scheme.moves
        assert record["sses"] == pytest.approx(record["moves"] / record["seconds"])
        assert 1200 <= record["cost"] < 4000 and record["env"]["cpu"]
        assert record["settings"]["device_kind"] == "core"
        assert set(record) == set(on_device[0])
    runs = Runs(None)
    for record in on_core:
        runs.add(record)
    assert all(runs.has(job(scheme=scheme).settings(), "grid-3x4-d100", seed) for seed in (0, 1))


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
    """The status is that of an interrupted command, and the finished scheme is in the table."""
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
