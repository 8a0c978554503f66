"""The tables of islands, by hand."""

import math

import pytest

from experiments.islands import figures, studies, tables


def records(times, generations=100, instance="kra30a", **settings):
    settings = {
        "islands": 1,
        "population": 128,
        "restarts": True,
        "mutation": 1.0,
        "local_steps": 0,
        "on": "all",
        "limit": 9,
    } | settings
    return [
        {
            "experiment": "qap_islands",
            "instance": instance,
            "seed": seed,
            "settings": settings,
            "reached": math.isfinite(time),
            "seconds": time if math.isfinite(time) else 9.0,
            "generations": generations,
        }
        for seed, time in enumerate(times)
    ]


def cells(text):
    return [line.split() for line in text.splitlines()]


def test_table_1_by_hand():
    """Successes, mean, shortest and longest, of runs that found it; then the paper's."""
    runs = records([math.inf, 2.0, 4.0], restarts=False) + records([1.0, 3.0, 8.0])
    row = cells(tables.table_1(runs))[1]
    assert row == ["kra30a", "2/3", "3", "2", "4", "3/3", "4", "1", "8", "1", "30", "10.03"]


def test_table_2_by_hand():
    """Gains over one island, and exponential times predict a gain of nearly p."""
    quantiles = [-10 * math.log(1 - (k + 0.5) / 200) for k in range(200)]
    runs = records(quantiles) + records([0.2, 0.4], 25, islands=30)
    _, one, thirty = cells(tables.table_2(runs))
    assert one[:3] == ["kra30a", "1", "200/200"]
    assert one[8:] == ["100", "1", "34.25", "1", "-"]
    mean_of_one = sum(quantiles) / 200
    assert thirty[1:6] == ["30", "2/2", "0.3", "0.141", f"{mean_of_one / 0.3:.3g}"]
    assert float(thirty[6]) == pytest.approx(10 / 30, rel=0.02)
    assert float(thirty[7]) == pytest.approx(0.3 - 10 / 30, abs=0.01)
    assert thirty[8:] == ["25", "4", "1.35", "25.4", "0.79"]


def test_what_did_not_end_has_no_mean():
    """A run that was cut off makes means and gains unknown, not short."""
    runs = records([1.0, math.inf]) + records([0.5], islands=30)
    _, one, thirty = cells(tables.table_2(runs))
    assert one[2:6] == ["1/2", "-", "-", "-"]
    assert one[8] == "-"
    assert thirty[5] == thirty[9] == "-"
    runs = records([1.0] * 19 + [math.inf], generations=300) + records([0.5], islands=30)
    _, one, thirty = cells(tables.table_2(runs))
    assert one[2:6] == ["19/20", ">1.4", "-", "-"]
    assert thirty[5] == ">2.8"
    assert (one[8], thirty[9]) == (">300", ">3")


def test_table_2_keeps_kinds_of_islands_apart():
    """Islands that differ in their size, say, have lines of their own; Table 1's have none."""
    runs = records([1.0, 2.0]) + records([3.0, 5.0], population=32) + records([0.5], islands=30)
    runs += records([9.0], restarts=False)
    rows = cells(tables.table_2(runs))[1:]
    assert [row[1:3] + row[4:5] for row in rows] == [
        ["32", "1", "4"],
        ["128", "1", "1.5"],
        ["128", "30", "0.5"],
    ]


def test_table_3_by_hand():
    """Generations of all, times what one takes on a core; the shortest mean is the tuned size."""
    runs = records([1.0, 1.0], islands=30)
    for size, pace, generations in ((128, 0.01, (800, 600)), (512, 0.03, (50, 100))):
        runs += records([100 * pace] * 2, population=size, on="core")
        for run, made in zip(records([0.1, 0.1], population=size), generations, strict=True):
            runs.append(run | {"generations": made})
    runs += records([0.1], population=64, on="core") + records([0.1, math.inf], population=64)
    row = cells(tables.table_3(runs))[1]
    paper = ["6.64", "1024", "21.45", "0.7"]
    assert row == ["kra30a", "1", "2.25", "512", "7", "2.25", "7", *paper]
    without_a_core = [run for run in runs if run["settings"]["on"] == "all"]
    row = cells(tables.table_3(without_a_core))[1]
    assert row == ["kra30a", "1", "-", "128", "-", "-", "-", *paper]
    runs += [run | {"instance": "kra30b", "seconds": 2 * run["seconds"]} for run in runs]
    *_, mean = cells(tables.table_3(runs))
    assert mean == ["mean", "2.25", "7", f"{(0.70 + 1.63 / 2) / 2:.3g}"]


def test_table_4_by_hand():
    """Gains over the fewest devices, with as many islands in all, and with as many on each."""
    exponential = [-10 * math.log(1 - (k + 0.5) / 200) for k in range(200)]
    runs = records(exponential)
    for islands, on, times in ((30, "1", (4.0, 6.0)), (60, "1", (4.0, 5.0)), (60, "2", (2.0, 3.0))):
        runs += records(times, islands=islands, on=on)
    for run in runs:
        run |= {"island": 3, "generations": 50 + run["seed"], "best_cost": 7.0}
    runs[-1]["generations"] += 1
    _, thirty, sixty, two = cells(studies.table_4(runs))
    assert thirty[1:] == ["30", "1", "2/2", "5", "1", "1", "1", "2/2"]
    assert sixty[1:7] == ["60", "1", "2/2", "4.5", "1", "1"]
    assert two[1:7] == ["60", "2", "2/2", "2.5", "1.8", "2"]
    assert float(two[7]) == pytest.approx(2, rel=0.1)
    assert two[8] == "1/2"


OTHERS = {"population": 32, "mutation": 0.1, "local_steps": 10, "encoding": "paper"}
OTHERS |= {"crossover": "ox", "keep_best": True, "exchange": "ring"}


@pytest.mark.parametrize(
    ("report", "kept"),
    [(tables.table_1, ()), (tables.table_3, ("population",)), (studies.table_4, ())]
    + [(studies.table_6, ()), (studies.table_7, ("encoding",))]
    + [(draw, ()) for draw in figures.FIGURES.values()],
)
def test_other_tables_refuse_several_kinds_of_islands(report, kept):
    for part, other in OTHERS.items():
        runs = records([1.0, 2.0]) + records([3.0], **{part: other})
        if part in kept:
            report(runs)
        else:
            with pytest.raises(ValueError, match=rf"several kinds \(.*{part}.*expected one$"):
                report(runs)


def test_table_5_by_hand():
    """Generations of each variant, and how many times as many as the usual islands'."""
    runs = records([1.0, 3.0], 40, islands=30, encoding="paper")
    runs += records([2.0, 2.0], 60, islands=30, encoding="paper", crossover="ox")
    runs += records([2.0, math.inf], islands=30, encoding="file")
    as_filed = [run | {"instance": "kra32"} for run in runs]  # as the paper has it
    _, usual, ox, filed, *others = studies.table_5([*runs, *as_filed]).splitlines()
    assert ["exchanged" in line for line in others] == [False, False]
    assert usual.split()[-6:] == ["II", "2/2", "2", "40", "0", "1"]
    assert ox.split()[1:] == ["OX", "2/2", "2", "60", "0", "1.5"]
    assert filed.split()[-5:] == ["1/2", "-", "-", "-", "-"]


def test_table_6_tells_which_distribution_fits():
    """Exponential times, which a gamma distribution has for its shape 1; the normal one has not."""
    times = [-10 * math.log(1 - (k + 0.5) / 200) for k in range(200)]
    _, row = cells(studies.table_6(records(times)))
    assert row[:2] == ["kra30a", "200"]
    gamma, normal, exponential, _ = map(float, row[2:])
    assert max(gamma, exponential) < 0.01 < 0.1 < normal


def test_table_7_by_hand():
    runs = records([1.0, 1.0, 1.0], 50, encoding="paper") + records([1.0, 2.0], 100)
    _, row = cells(studies.table_7([*runs, *(run | {"instance": "kra32"} for run in runs)]))
    assert row == ["kra30a", "3", "50", "0", "2", "100", "0", "0.5"]


def test_table_8_by_hand():
    runs = records([1.0, math.inf, math.inf], 300, restarts=False, mutation=0.1)
    runs += records([1.0, 1.0, math.inf], 800, restarts=False)
    _, row = cells(studies.table_8(runs))
    assert row == ["kra30a", "1/3", "300", "2/3", "800", "1/30"]
