"""Tables and plots of `__main__`."""

import math
import statistics
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from experiments import common
from experiments.multistart.paper import TABLE_1

CORE = "1 core, compiled"
"""The way over which all ratios are: the same searches compiled for one core by numba."""
MODELS = {"algorithmic": "algorithmic", "iteration": "iteration", "both": "xla", "auto": "auto"}
"""The ways of Figure 2, with their implementations; the first two are `models`."""


def per_search(record: dict[str, Any]) -> float:
    """Returns the seconds for one of all searches, from its start to its end."""
    return record["seconds"] / record["settings"]["searches"]


def per_step(record: dict[str, Any]) -> float:
    """Returns the seconds that a step of one search takes."""
    return record["seconds"] / max(record["steps"] * record["settings"]["searches"], 1)


def speed(record: dict[str, Any]) -> float:
    """Returns the moves priced per second by all searches."""
    return record["moves_priced"] / record["seconds"]


def _groups(records: Sequence[dict[str, Any]], *names: str) -> dict[tuple, list[dict[str, Any]]]:
    """Returns records by instance, algorithm, and further settings."""
    parts = itemgetter("algorithm", *names)
    return common.grouped(records, lambda record: (record["instance"], *parts(record["settings"])))


def table_1(records: Sequence[dict[str, Any]], *, markdown: bool = False) -> str:
    """Returns Table 1: a line per instance, algorithm and way; medians over executions.

    Speed-ups are of whole searches: hill climbing ends after different numbers of steps.
    """
    groups = _groups(records, "way", "searches")
    cores = {key[:2]: group for key, group in groups.items() if key[2] == CORE}
    rows = []
    for (instance, algorithm, way, num_searches), group in groups.items():
        step = statistics.median(map(per_step, group))
        core = cores.get((instance, algorithm))
        paper = TABLE_1.get((algorithm, instance))
        means, bests = ([r[name] for r in group] for name in ("mean_gap", "best_gap"))
        row = [instance, algorithm, way, str(num_searches)]
        row.append(f"{statistics.median(r['steps'] for r in group):g}")
        row.append(f"{statistics.median(r['seconds'] for r in group):.3g}")
        row += [f"{1e6 * step:.3g}", f"{statistics.median(map(speed, group)):.2e}"]
        row.append(_ratio(core, group, per_search))
        row += ["-" if None in each else f"{statistics.mean(each):.2%}" for each in (means, bests)]
        papers = (paper.cpu / paper.gpu, paper.cpu / paper.texture) if paper else ()
        rows.append(row + ([f"{ratio:.1f}" for ratio in papers] or ["-", "-"]))
    header = "instance | search | on | searches | steps | seconds | us/step | moves/s | x 1 core"
    header += " | mean gap | best | paper: GPU x CPU | texture"
    return _above(_hosts(records), common.table(header, rows, markdown=markdown))


def _ratio(core: Any, group: Any, measure: Callable[[dict[str, Any]], float]) -> str:
    """Returns how many times a group's time goes into the core's, or a dash without a core."""
    if not core:
        return "-"
    return f"{statistics.median(map(measure, core)) / statistics.median(map(measure, group)):.3g}"


def _hosts(records: Sequence[dict[str, Any]]) -> str:
    """Returns on what core and devices the records were made, as far as they tell."""
    found = [record.get("env", {}) for record in records]
    cpus = dict.fromkeys(env["cpu"] for env in found if "cpu" in env)
    devices = dict.fromkeys(env["devices"] for env in found if "devices" in env)
    return f"core: {', '.join(cpus)}; devices: {', '.join(devices)}" if cpus else ""


def _above(note: str, body: str) -> str:
    """Returns a table below a note, which may be empty."""
    return f"{note}\n\n{body}" if note else body


def speedups(records: Sequence[dict[str, Any]]) -> dict[tuple[str, int], float]:
    """Returns over the compiled core, by the steps per second, (way, searches) each.

    Raises:
      ValueError: if there are no records of the core.
    """
    groups = _groups(records, "way", "searches")
    found = {key[2:]: statistics.median(map(per_step, group)) for key, group in groups.items()}
    cores = [step for (way, _), step in found.items() if way == CORE]
    if not cores:
        raise ValueError(f"there are no records of {CORE!r}, over which the speed-ups are")
    return {key: min(cores) / step for key, step in found.items()}


def figure_2(records: Sequence[dict[str, Any]], *, markdown: bool = False) -> str:
    """Returns the speed-ups over one core by the number of searches, a line each."""
    found = speedups(records)
    names = [name for name in dict.fromkeys(way for way, _ in found) if name in MODELS]
    rows = [
        [
            str(number),
            *(f"{found[name, number]:.3g}" if (name, number) in found else "-" for name in names),
        ]
        for number in sorted({number for name, number in found if name in MODELS})
    ]
    cores = _groups([r for r in records if r["settings"]["way"] not in MODELS], "way")
    notes = [
        f"{way}: {1e6 * statistics.median(map(per_step, group)):.3g} us a step"
        for (_, _, way), group in cores.items()
    ]
    body = common.table(("searches", *names), rows, markdown=markdown)
    return _above("; ".join([*notes, *filter(None, [_hosts(records)])]), body)


def targets(records: Sequence[dict[str, Any]], *, markdown: bool = False) -> str:
    """Returns how long `solve_qap` takes to its targets, a line per instance."""
    rows = []
    for instance, group in common.grouped(records, itemgetter("instance")).items():
        times = sorted(r["seconds"] if r["reached"] else math.inf for r in group)
        shares = (times[max(math.ceil(share * len(times)) - 1, 0)] for share in (0.1, 0.5, 0.9))
        reached = sum(map(math.isfinite, times))
        settings = group[0]["settings"]
        row = [instance, f"{settings['gap']:.2%}", f"{reached}/{len(times)}"]
        row += [common.shown(each, ".3f") for each in shares]
        gap = f"{statistics.mean(r['best_gap'] for r in group):.3%}"
        rows.append([*row, gap, group[0]["env"]["devices"]])
    header = "instance | within | reached | 10% s | median s | 90% s | mean gap | on"
    return common.table(header, rows, markdown=markdown)


def draw_figure_2(records: Sequence[dict[str, Any]], ax: Any) -> None:
    """Draws the speed-ups over one core."""
    found = speedups(records)
    for name in MODELS:
        points = sorted((number, ratio) for (way, number), ratio in found.items() if way == name)
        if points:
            ax.loglog(*zip(*points, strict=True), "o-", label=name)
    ax.axhline(1, color="gray", linestyle=":", label="one core")
    ax.set(xlabel="searches", ylabel="speed-up over one core")
    ax.legend()
