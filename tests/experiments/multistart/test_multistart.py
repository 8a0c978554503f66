"""The script of multi-start searches on the QAP: its tables by hand, and small runs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxopt_search as js
from experiments import common, one_core
from experiments.multistart import compiled_qap, compiled_tabu, models, runs, tables
from experiments.multistart import script as qap_multistart
from experiments.multistart.paper import TABLE_1
from jaxopt_search.solvers import scales


def record(way=tables.CORE, searches=1, seconds=1.0, steps=10, algorithm="ts"):
    settings = {"algorithm": algorithm, "way": way, "searches": searches}
    gaps = {"mean_gap": 0.02, "best_gap": 0.01}
    fields = {"instance": "tai30a", "settings": settings, "seconds": seconds, "steps": steps}
    return {**fields, **gaps, "moves_priced": 435 * steps * searches}


def reached(seconds, is_there=True):
    settings = {"gap": 0.0, "seconds": 9}
    fields = {"instance": "a", "seconds": seconds, "reached": is_there, "settings": settings}
    return {**fields, "best_gap": 0.0 if is_there else 0.01, "env": {"devices": "cpu"}}


def cells(text):
    return [line.split() for line in text.splitlines()]


def test_table_1_by_hand():
    """Seconds per step and search, moves per second, and speed-ups, ours and the paper's."""
    rows = cells(tables.table_1([record(searches=4), record("gpu", searches=8, seconds=0.1)]))
    assert rows[1][2:12] == [
        *["1", "core,", "compiled", "4", "10", "1", "2.5e+04", "1.74e+04", "1", "2.00%"]
    ]
    assert rows[2][3:11] == ["8", "10", "0.1", "1.25e+03", "3.48e+05", "20", "2.00%", "1.00%"]
    assert rows[2][11:] == ["3.9", "10.8"]
    assert TABLE_1["sa", "tai100a"] == (13960.69, 3459.15, 2426.11)


def test_climbing_is_compared_by_the_search():
    """A core that climbs in fewer steps is not slower for it."""
    core = record(searches=4, steps=5, algorithm="hc")
    gpu = record("gpu", searches=8, steps=20, seconds=1.0, algorithm="hc")
    assert cells(tables.table_1([core, gpu]))[2][8] == "2"


def test_ratios_are_over_the_compiled_core_of_the_same_records():
    """Not over XLA on a core; and without the core there are none."""
    others = [record("1 core, XLA", seconds=9.0), record("gpu", 4, 0.1)]
    assert cells(tables.table_1(others))[2][8] == "-"
    assert cells(tables.table_1([*others, record()]))[2][8] == "40"
    assert cells(tables.table_1([record(), *others]))[3][8] == "40"
    assert "no records of '1 core, compiled'" in tables.figure_2([record("both", 4, 0.4)])
    named = [r | {"env": {"cpu": "EPYC", "devices": "1 x gpu"}} for r in [record(), *others]]
    assert tables.table_1(named).startswith("core: EPYC; devices: 1 x gpu\n\n")


def test_figure_2_by_hand():
    """Speed-ups over the core's step, which is told above; a dash for what was not measured."""
    text = tables.figure_2([record(), record("both", 1, 0.5), record("auto", 4, 0.4)])
    note, table = text.split("\n\n")
    assert note == "1 core, compiled: 1e+05 us a step"
    assert cells(table) == [["searches", "both", "auto"], ["1", "2", "-"], ["4", "-", "10"]]


def test_the_searches_are_the_documented_ones():
    """Best improvement; Taillard's tenures and aspiration; 32 moves, 0.3 to 0.03 mean changes."""
    problem = js.qap_from_instance(js.datasets.uniform_qap(12, seed=0))
    made = runs.searches(problem, 144)
    assert made["hc"].choose == "best"
    assert (made["ts"].tenure, made["ts"].aspiration_age) == (None, None)
    annealing, unit = made["sa"], float(scales.swap_change(problem))
    assert (annealing.choose, annealing.moves_per_search) == ("first", 32)
    for step, share in ((0, 0.3), (143, 0.03)):
        temperature = float(annealing.control(jnp.int32(step)))
        assert temperature == pytest.approx(share * unit, rel=1e-4)
    made = {type(each.neighborhood) for each in made.values()}
    assert made == {js.SwapTable}


def test_no_tenure_is_taillards_tenure():
    """The script's tabu search does not return at once to where it was, as one without would."""
    problem = js.qap_from_instance(js.datasets.uniform_qap(8, seed=0))
    search = runs.searches(problem, 64)["ts"]
    state, seen = js.init(0, problem, search, num_searches=1), []
    for _ in range(40):
        state = js.advance(problem, search, state, 1)
        seen.append(tuple(state.searches.representation.location[0].tolist()))
    assert all(one != other for one, other in zip(seen, seen[2:], strict=False))


def in_python(monkeypatch):
    """Lets a core run what numba would compile, whether it is installed or not."""
    makers = {
        "climber": compiled_qap.build_climber,
        "annealer": compiled_qap.build_annealer,
        "tabu": compiled_tabu.build,
    }
    monkeypatch.setattr(one_core, "has_numba", lambda: True)
    monkeypatch.setattr(runs, "_compiled", lambda name: makers[name](lambda fn: fn))


@pytest.mark.parametrize("algorithm", ["hc", "sa", "ts"])
def test_a_core_is_measured_as_it_says(algorithm, monkeypatch):
    """Steps, moves and gaps of a small run of each search, as plain Python."""
    in_python(monkeypatch)
    instance = js.datasets.planted_qap(3, 3, seed=0)
    way = qap_multistart.Way(tables.CORE, "numba", ())
    found = runs.measure(instance, algorithm, way, 4, 50, 0)
    assert found["settings"]["implementation"] == "numba" and found["env"]["cpu"]
    assert 0 <= found["best_gap"] <= found["mean_gap"] < 2
    if algorithm == "hc":
        assert found["moves_priced"] == found["steps"] * 4 * 36
        assert found["moves_made"] == found["steps"] * 4 - 4
    else:
        assert found["steps"] == 50
        most = 4 * 50 * (36 if algorithm == "ts" else 32)
        assert found["moves_made"] <= 4 * 50 < found["moves_priced"] <= most


def test_the_papers_models_make_the_librarys_searches():
    """Moves in turn for all searches, and searches in turn: the same assignments, bit for bit."""
    flow, distance = np.random.default_rng(0).integers(0, 9, (2, 6, 6))
    problem, search = js.qap(flow, distance), js.tabu_search(js.SwapTable())
    state = js.init(5, problem, search, num_searches=3)
    starts = jax.vmap(search.best, in_axes=(None, 0))(problem, state.searches)
    found = [
        models.algorithmic(jnp.int32(flow), jnp.int32(distance), starts, state.key, 100),
        models.iteration(problem, search, state, 100),
    ]
    ended = js.advance(problem, search, state, 100)
    for one in found:
        np.testing.assert_array_equal(one.current, ended.searches.representation.location)
        best = jax.vmap(search.best, in_axes=(None, 0))(problem, ended.searches)
        np.testing.assert_array_equal(one.best, best)
        np.testing.assert_array_equal(one.moves, ended.info.accepted)


def test_times_to_targets_by_hand():
    """Quantiles of the times, in which a run that did not get there counts as endless."""
    runs = [reached(k) for k in (3.0, 1.0, 2.0)] + [reached(9.0, False)]
    header, row = cells(tables.targets(runs))
    assert row == ["a", "0.00%", "3/4", "1.000", "2.000", "-", "0.250%", "cpu"]
    assert header[-1] == "on"


@pytest.mark.slow
def test_a_small_table_and_figure(tmp_path, monkeypatch, capsys):
    """Every algorithm and way is measured once; the same command finds all of it in the file."""
    monkeypatch.setattr(one_core, "has_numba", lambda: False)
    monkeypatch.setattr(common, "use_cpu_cores", lambda: None)
    monkeypatch.setattr(common, "data_folder", lambda data: None)
    out = tmp_path / "runs.jsonl"
    flags = ["--searches", "2", "--steps", "20", "--out", str(out)]
    assert qap_multistart.main(["--table", "1", *flags]) == 0
    printed = capsys.readouterr().out
    runs = common.read(out)
    assert {run["settings"]["algorithm"] for run in runs} == {"hc", "sa", "ts"}
    assert len(runs) == 6
    for first, second in zip(runs[::2], runs[1::2], strict=True):  # a core, and all devices
        names = ("steps", "moves_priced", "moves_made", "mean_gap", "status")
        assert [first[name] for name in names] == [second[name] for name in names]
    assert [run["status"] for run in runs] == ["LOCAL_OPTIMA"] * 2 + ["MAX_STEPS"] * 4
    assert {run["settings"]["way"] for run in runs} == {"1 core, XLA", "4 x cpu"}
    assert qap_multistart.main(["--table", "1", *flags]) == 0
    assert capsys.readouterr().out.splitlines()[-7:] == printed.splitlines()[-7:]
    assert len(common.read(out)) == 6
    assert qap_multistart.main(["--report", str(out)]) == 0
    assert capsys.readouterr().out.splitlines()[-7:] == printed.splitlines()[-7:]


@pytest.mark.slow
def test_a_small_figure_and_targets(tmp_path, monkeypatch, capsys, data_dir):
    """All models on one device; runs to the best known cost, and pictures of both."""
    monkeypatch.setattr(common, "use_cpu_cores", lambda: None)
    in_python(monkeypatch)
    plots = [tmp_path / "figure.png", tmp_path / "targets.png"]
    figure = ["--figure", "2", "--instances", "nug12", "--searches", "2", "--steps", "5"]
    figure += ["--ways", "numba,algorithmic,iteration,xla"]
    aim = ["--targets", "nug12", "--runs", "2", "--seconds", "20"]
    for flags, plot in zip((figure, aim), plots, strict=True):
        data = ["--data", str(data_dir), "--plot", str(plot)]
        assert qap_multistart.main([*flags, *data]) == 0
        assert plot.stat().st_size > 1000
    printed = capsys.readouterr().out
    assert "algorithmic" in printed and "iteration" in printed
    assert "2/2" in printed


@pytest.mark.parametrize("aim", [["--table", "1", "--ways", "native"], ["--targets", "nug12"]])
def test_an_interrupted_run_is_no_record(aim, tmp_path, monkeypatch, data_dir):
    """Ctrl-C during a call of the library ends the script, although the call returns a result."""
    monkeypatch.setattr(common, "use_cpu_cores", lambda: None)
    ended = js.solve_qap(js.datasets.planted_qap(2, 3, seed=0), max_steps=1, devices=1)
    ended = ended._replace(status=js.Status.INTERRUPTED)
    for name in ("solve", "solve_qap"):
        monkeypatch.setattr(js, name, lambda *_, **options: ended)
    out = tmp_path / "runs.jsonl"
    command = [*aim, "--data", str(data_dir), "--out", str(out)]
    assert qap_multistart.main(command) == 130
    assert common.read(out) == []


def drawn(path, monkeypatch, records, flags=()):
    """Returns the lines that the script draws from a file of records, and their labels."""
    lines = {}

    def save(path, draw, size):
        axes = common.plotting.detached_axes(size)
        draw(axes)
        lines.update({line.get_label(): line.get_xydata().tolist() for line in axes.get_lines()})

    monkeypatch.setattr(common, "save_plot", save)
    for one in records:
        common.append(path, one)
    assert qap_multistart.main(["--report", str(path), "--plot", "x.png", *flags]) == 0
    return lines


def test_figure_2_is_drawn_from_a_file(tmp_path, monkeypatch, capsys):
    """Regression: a report of Figure 2 printed Table 1 and drew nothing."""
    pytest.importorskip("matplotlib")
    ways = (record(), record("both", 1, 0.5), record("both", 4, 0.4), record("auto", 4, 0.1))
    runs = [{"experiment": "qap_multistart", "seed": 0, **one} for one in ways]
    lines = drawn(tmp_path / "f.jsonl", monkeypatch, runs, ["--figure", "2"])
    assert lines["both"] == [[1, 2], [4, 10]] and lines["auto"] == [[4, 40]]
    assert "x 1 core" not in capsys.readouterr().out
    core = [{"experiment": "qap_multistart", "seed": 0, **record()}]
    assert drawn(tmp_path / "t.jsonl", monkeypatch, core) == {}
    printed = capsys.readouterr().out
    assert "x 1 core" in printed and "no plot x.png: Table 1 has none" in printed
    times = [{"experiment": "qap_targets", "seed": 0, **reached(3.0)}]
    assert "a" in drawn(tmp_path / "a.jsonl", monkeypatch, times)


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["--runs", "2,3"], "--runs: '2,3' is a list"),
        (
            ["--targets", "nug12", "--seconds", "nan"],
            "--seconds: 'nan' is not made of",
        ),
        (["--ways", "gpu"], "'gpu' is not among numba,native,algorithmic"),
        (["--instances", "rd100"], "a TSP instance, expected a quadratic assignment problem"),
    ],
)
def test_bad_flags_are_refused(flags, text, monkeypatch, capsys, data_dir):
    """In one line."""
    monkeypatch.setattr(common, "use_cpu_cores", lambda: None)
    with pytest.raises(SystemExit):
        qap_multistart.main([*flags, "--data", str(data_dir)])
    assert text in capsys.readouterr().err
