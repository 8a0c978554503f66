"""FANG's tables: the heuristic of the paper, the compiled core, and what is recorded."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxopt_search as js
from experiments import common, fang
from experiments.fang import compiled, draws, heuristic, paper, runs, script, tables
from experiments.fang.heuristic import Goals, Nearer, Points
from experiments.fang.paper import Row, Time
from jaxopt_search.backends import portability, random
from jaxopt_search.successors import generation

TINY = Row(16, 3, 2, 288)  # 17 x 17 cells: two blocks, the second not full; goals in two parts


@pytest.fixture(scope="module")
def moved():
    """Points after the library moved them, and what is needed to do so again."""
    nearer = Nearer(num_variables=2, side=17, load=16)
    goals, points = heuristic.start(3, nearer, seed=4)
    given = jax.tree.map(jnp.asarray, (goals, points))
    found = js.successors.generate(5, nearer, *given, implementation="native")
    return goals, points, found.states


@pytest.mark.parametrize("how", ["plain", pytest.param("numba", marks=pytest.mark.slow)])
def test_the_compiled_core_makes_the_same_successors(how, moved):
    goals, points, expected = moved
    if how == "numba":
        pytest.importorskip("numba")
        loop = compiled.compiled(17, 16)
    else:
        loop = compiled.build(lambda fn: fn, 17, 16)
    x, y = (np.copy(leaf) for leaf in points)
    loop(x, y, *goals, 0, 5)
    assert not np.array_equal(x, points.x)
    np.testing.assert_array_equal(x, expected.x)
    np.testing.assert_array_equal(y, expected.y)


def test_sums_of_floats_move_points_alike(moved):
    """The heuristic is written otherwise and weighs alike, so nothing changes."""
    goals, points, expected = moved
    nearer = Nearer(num_variables=2, side=17, load=16, in_floats=True)
    given = jax.tree.map(jnp.asarray, (goals, points))
    found = js.successors.generate(5, nearer, *given, implementation="xla")
    np.testing.assert_array_equal(found.states.x, expected.x)
    np.testing.assert_array_equal(found.states.y, expected.y)


@pytest.mark.parametrize("in_floats", [False, True])
def test_the_heuristic_becomes_a_kernel(in_floats):
    """On a machine without a GPU, too, it can be lowered to one."""
    nearer = Nearer(num_variables=2, side=17, in_floats=in_floats)
    given = jax.tree.map(jnp.asarray, heuristic.start(2, nearer))

    def launch(problem, states):
        setup = generation.Setup(1, "fixed", "stored", "triton")
        shared = (nearer,), problem, random.as_key(0)
        return generation.run(setup, shared, states, None, None)

    assert portability.obstacle(launch, *given) == ""


@pytest.mark.parametrize(("side", "load"), [(3, 1), (5, 3)])
def test_possibilities_are_the_cells_around_a_point(side, load):
    """Each once but for its own; rated by sums of distances; assigned where it is said."""
    nearer = Nearer(num_variables=2, side=side, load=load)
    goals, points = heuristic.start(1, nearer, seed=1)
    problem, state = jax.tree.map(jnp.asarray, (goals, Points(points.x[0], points.y[0])))
    number, variable = nearer.max_possibilities, jnp.int32(1)
    assert number == side * side - 1
    cells = []
    for possibility in range(number):
        there = nearer.assign(problem, state, variable, jnp.int32(possibility), jnp.bool_(True))
        assert (there.x[0], there.y[0]) == (state.x[0], state.y[0])
        cells.append((int(there.x[1]), int(there.y[1])))
    kept = nearer.assign(problem, state, variable, jnp.int32(0), jnp.bool_(False))
    assert np.array_equal(kept.x, state.x) and np.array_equal(kept.y, state.y)
    x, y, half = int(state.x[1]), int(state.y[1]), side // 2
    window = {(x + dx, y + dy) for dx in range(-half, half + 1) for dy in range(-half, half + 1)}
    assert set(cells) == window - {(x, y)} and len(set(cells)) == number

    own = range(load, 2 * load)  # goals of variable 1
    as_floats = dataclasses.replace(nearer, in_floats=True)
    distances = [
        sum(abs(a - int(goals.x[k])) + abs(b - int(goals.y[k])) for k in own) for a, b in cells
    ]
    rating = nearer.rate(problem, state, variable, jnp.arange(number, dtype=jnp.int32))
    np.testing.assert_array_equal(rating, distances)
    in_bits = as_floats.rate(problem, state, variable, jnp.arange(number, dtype=jnp.int32))
    np.testing.assert_array_equal(in_bits - rating, np.float32(2**23).view(np.int32))
    weight = np.asarray(nearer.weight(problem, rating, (jnp.max(rating),)))
    np.testing.assert_array_equal(weight, max(distances) + 1 - np.array(distances))
    assert weight.min() == 1


def test_no_weight_is_above_what_is_promised():
    """A goal in a corner of the window, the farthest cell opposite: the promise is met exactly."""
    nearer = Nearer(num_variables=1, side=5, load=2)
    problem, state = Goals(*jnp.full((2, 2), 2)), Points(*jnp.zeros((2, 1), jnp.int32))
    rating = nearer.rate(problem, state, jnp.int32(0), jnp.arange(24, dtype=jnp.int32))
    weight = nearer.weight(problem, rating, (jnp.max(rating),))
    assert int(weight.max()) == nearer.max_weight == 17


@pytest.mark.parametrize("side", [1, 3, 35, 67, 99, 255])
def test_division_by_multiplication(side):
    factor, shift = heuristic.division_by(side)
    cells = range(side * side)
    assert [cell * factor >> shift for cell in cells] == [cell // side for cell in cells]
    assert (side * side - 1) * factor < 2**31


def test_the_two_tables_of_the_paper_agree():
    """They share four rows and two machines; sizes are squares of odd numbers, but for a cell."""
    assert len(paper.TABLE_1) == len(paper.TABLE_2) == 12
    shared = paper.TABLE_1.keys() & paper.TABLE_2.keys()
    assert len(shared) == 4
    for row in shared:
        for machine, time in paper.TABLE_2[row].items():
            assert paper.TABLE_1[row][machine] == time
    for row in paper.TABLE_1 | paper.TABLE_2:
        nearer = runs.Setting(*row, "xla").heuristic
        assert (nearer.max_possibilities, nearer.load) == (row.possibilities, row.load)
    # Sums over the columns of the paper, added up from its text apart from this file.
    medians = [sum(t[m].median for t in paper.TABLE_1.values()) for m in paper.MACHINES_1]
    np.testing.assert_allclose(medians, [204.92, 364.29, 844.806, 1185.46])
    medians = [sum(t[m].median for t in paper.TABLE_2.values()) for m in paper.MACHINES_2]
    np.testing.assert_allclose(medians, [64.14, 546.42])


def record(row, way, seconds, devices=1, in_a_program=()):
    setting = runs.Setting(*row, way, devices)
    return {
        "experiment": "fang",
        "instance": setting.name,
        "seed": 0,
        "settings": setting._asdict(),
        "seconds": seconds,
        "seconds_in_a_program": list(in_a_program),
        "compile_seconds": 1.25,
    }


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_a_table_has_ours_and_the_papers():
    """Medians, spread and ratios of the first row, worked out by hand; ways can be chosen.

    The lowest ratios are told of a way that has all rows, and of no other.
    """
    first, second, *others = paper.TABLE_1
    records = [
        record(first, "native", [0.02, 0.01, 0.03], devices=2),
        record(first, "triton", [1e-4], in_a_program=[4e-5]),
        record(second, "triton", [2e-4]),
        *(record(row, "triton", [1e-6]) for row in others),
    ]
    lines = tables.table_1(records, markdown=True).splitlines()
    ours = ["1024", "8", "1224", "triton", "1", "1.2", "0.1", "0.04", "0.00399"]
    theirs = ["2.20 ± 0.09", "3.04 ± 0.12", "3.26 ± 0.72", "4.61 ± 0.20"]
    assert cells(lines[2]) == [*ours, *theirs, "22", "32.6", "-"]
    assert cells(lines[14])[0] == "lowest" and cells(lines[14])[-3:] == ["16.7", "32.6", "-"]
    ours = ["1024", "8", "1224", "native x 2", "3", "1.2", "20 ± 10", "-", "1.99"]
    assert cells(lines[15]) == [*ours, *theirs, "0.11", "0.163", "1.14"]
    (line,) = tables.table_1(records, markdown=True, ways=["native"]).splitlines()[2:]
    assert [cells(line)] == list(map(cells, lines[15:]))


def test_loads_are_compared_with_a_load_of_1():
    rows = list(paper.TABLE_2)[:3]
    records = [
        record(row, "xla", [t]) for row, t in zip(rows, (0.001, 0.0013, 0.0015), strict=True)
    ]
    lines = tables.table_2(records, markdown=True).splitlines()[2:5]
    assert [cells(line)[10] for line in lines] == ["1.00", "1.30", "1.50"]
    assert [cells(line)[13] for line in lines] == ["1.00", "0.85", "0.83"]


def test_chi_square_by_hand():
    """Of 100 draws; weights too small for ten draws share a bin, and weights of 0 have none."""
    chi_square, degrees = draws.chi_square_of(np.array([40, 60]), np.array([1, 1]))
    assert (chi_square, degrees) == (4.0, 1)
    counts, weights = np.array([52, 3, 4, 5, 36, 0]), np.array([50, 3, 4, 4, 39, 0])
    chi_square, degrees = draws.chi_square_of(counts, weights)
    assert (chi_square, degrees) == (pytest.approx(4 / 50 + 9 / 39 + 1 / 11), 2)


def test_chances_agree_with_chi_square():
    stats = pytest.importorskip("scipy.stats")
    for degrees in (1, 2, 10, 1000, 9799):
        for share in (1e-4, 0.01, 0.3, 0.99 if degrees > 2 else 0.49):
            value = stats.chi2.isf(share, degrees)
            assert draws.chance_above(value, degrees) == pytest.approx(share, abs=0.01)


def test_draws_follow_the_weights_and_no_others():
    """The test passes for the weights that were drawn by, and fails for slightly other ones."""
    weights = np.where(np.arange(300) % 3, 2**32 - 1, 0).astype(np.uint32)
    counts = draws.sample(weights, "native", 8192, seed=0)
    assert counts.sum() == 8192 and not counts[weights == 0].any()
    assert draws.chance_above(*draws.chi_square_of(counts, weights)) > 1e-6
    others = weights // (1 + (np.arange(300) < 150)).astype(np.uint32)
    assert draws.chance_above(*draws.chi_square_of(counts, others)) < 1e-9
    again = draws.sample(weights, "native", 8192, seed=1)
    assert not np.array_equal(counts, again)


@pytest.fixture
def tiny(monkeypatch):
    """One row that takes no time."""
    monkeypatch.setattr(common, "use_cpu_cores", lambda: None)
    monkeypatch.setattr(script, "_ROWS", {1: (TINY,), 2: ()})
    monkeypatch.setattr(tables, "TABLE_1", {TINY: dict.fromkeys(paper.MACHINES_1, Time(2.0, 0.1))})


def test_the_command_measures_and_reports(tiny, tmp_path, capsys):
    """A record of as many executions as asked for; once made, it is only read."""
    out = str(tmp_path / "fang.jsonl")
    command = ["--ways", "native", "--executions", "4", "--out", out]
    assert fang.main(command) == 0
    printed = capsys.readouterr().out
    (made,) = common.read(out)
    assert len(made["seconds"]) == 4 and min(made["seconds"]) > 0
    assert made["settings"]["way"] == "native" and made["compile_seconds"] > 0
    assert fang.main(command) == 0 and len(common.read(out)) == 1
    capsys.readouterr()
    assert fang.main(["--report", out]) == 0
    assert capsys.readouterr().out == printed and "288" in printed


def test_executions_in_one_program_are_timed():
    """On a GPU, next to the times of calls; five programs."""
    seconds = runs.in_one_program(runs.Setting(*TINY, "xla"), 0.05)
    assert len(seconds) == 5 and min(seconds) > 0


def test_times_include_the_wait_for_the_device(monkeypatch):
    """Of calls and of programs: here only waiting takes time, a second each."""
    clock = [0.0]

    def wait(tree):
        clock[0] += 1.0
        return tree

    def generate(key, heuristic, problem, states, **options):
        return js.successors.Successors(states, None, ())

    monkeypatch.setattr(runs.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(jax, "block_until_ready", wait)
    monkeypatch.setattr(js.successors, "generate", generate)
    setting = runs.Setting(*TINY, "xla")
    made = runs.measure(setting, runs.Limits(3, 9.0))
    assert (made["compile_seconds"], made["seconds"]) == (1.0, [1.0] * 3)
    assert runs.in_one_program(setting, 0.05) == [0.5] * 5


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["--rows", "2"], "rows has 2, expected numbers up to 1"),
        (["--ways", "cuda"], "'cuda' is not among triton, xla, native, compiled"),
        (["--ways", "compiled", "--floats"], "floats are no choice"),
        (["--ways", "native", "--devices", "99"], "devices is 99, expected at most"),
        (["--draws", "--weights", "odd"], "weights has 'odd', expected some of"),
    ],
)
def test_what_cannot_run_is_refused(tiny, command, message, capsys):
    with pytest.raises(SystemExit):
        fang.main(command)
    assert message in capsys.readouterr().err


def test_the_command_draws(tmp_path, monkeypatch, capsys):
    """A line for each shape, and one for each way, since different ways draw the same numbers."""
    monkeypatch.setattr(common, "use_cpu_cores", lambda: None)
    monkeypatch.setattr(draws, "sample", lambda weights, *_: (weights > 0) * 50)
    out = str(tmp_path / "draws.jsonl")
    command = [
        "--draws",
        "--ways",
        "xla,native",
        "--weights",
        "equal,only the last",
        "--seeds",
        "2",
    ]
    assert fang.main([*command, "--out", out, "--markdown"]) == 0
    lines = [cells(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[2][:3] == ["equal", "xla", "1224"]
    assert lines[3] == ["only the last", "xla", "777", "5", "776", "100", "0", "0.0", "0", "1.000"]
    for way, line in zip(("xla", "native"), lines[6:], strict=True):
        assert line[:2] == ["all", way] and line[5] == "122500"
    assert len(common.read(out)) == 8
