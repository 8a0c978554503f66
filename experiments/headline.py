"""The chart of the README: how many times as fast as others, from kept records.

    python -m experiments.headline
    python -m experiments.headline --picture headline.svg
    python -m experiments.headline --report FILES --markdown

Each dot is an instance: the other's time over ours. Right of 1 the library is faster, left of it
slower. On 2 CPU cores all ran on one machine, and times are those to the best known cost, after
compilation; instances whose best known cost neither reached are left out. For sets of tours, each
of our runs is compared with the shortest run of the other whose tours are no longer on average. On
a GPU the other side is a loop compiled for one core of the same machine, or a paper's own GPU.
"""

import argparse
import math
import pathlib
import statistics
import sys
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from experiments import common, flag_types
from experiments.fang.paper import TABLE_1 as FANG
from experiments.fang.runs import Setting
from experiments.islands import records as islands
from experiments.islands.paper import TABLE_2 as ISLANDS
from experiments.multistart.tables import CORE, per_step
from experiments.peers.levels import time_to_level
from jaxopt_search.results import plotting

RECORDS = (
    *(f"experiments/peers/results/peers_{name}_cpu.jsonl" for name in ("tsp", "qap", "nqueens")),
    "experiments/tsp/results/tsp_many_cpu.jsonl",
    "experiments/multistart/results/qap_multistart_h200.jsonl",
    "experiments/islands/results/qap_islands_h200.jsonl",
    "experiments/fang/results/fang_h100.jsonl",
)
_OURS = "jaxopt_search"
_FAR = 3000.0  # where what the other did not reach is drawn
_FASTER, _SLOWER = "#0072b2", "#d55e00"  # told apart by the color-blind


class Line(NamedTuple):
    """A line of the chart.

    Attributes:
      what: what was run.
      against: whose time is over ours.
      ratios: one for each instance; infinite where the other did not reach the cost.
    """

    what: str
    against: str
    ratios: list[float]


def lines(records: Sequence[dict[str, Any]]) -> dict[str, list[Line]]:
    """Returns the lines by the hardware that ours ran on."""
    of = common.grouped(records, itemgetter("experiment"))
    times = _times(of["peers"])
    scipy = {solver for _, solver in times if solver.startswith("scipy")}
    return {
        "2 CPU cores": [
            Line("tours of 100 to 1002 cities", "fast-tsp, 1 thread", _over(times, {"fast-tsp"})),
            Line("1,000 tours of 100", "fast-tsp, 2 processes", _sets_of_tours(of["tsp_many"])),
            Line("tours of 100 to 1002 cities", "LKH in elkai, 1 thread", _over(times, {"elkai"})),
            Line("QAPs", "compiled tabu search, 1 thread", _over(times, {"compiled tabu"})),
            Line("QAPs", "SciPy's best method, 1 process", _over(times, scipy)),
            Line("N-Queens", "compiled search, 1 thread", _over(times, {"compiled search"})),
        ],
        "1 NVIDIA GPU": [
            Line("QAP, a step of tabu search", "1 core, compiled", _steps(of["qap_multistart"])),
            Line("QAP, islands", "the paper's 2 GTX 285", _islands(of["qap_islands"])),
            Line("FANG's successors", "the paper's GTX 1080 Ti", _successors(of["fang"])),
        ],
    }


def _times(records: Sequence[dict[str, Any]]) -> dict[tuple[str, str], float]:
    """Returns by instance and solver the median seconds to the best known cost, as the tables."""
    seeds: dict[tuple[str, str], dict[int, list[float]]] = {}
    for record in records:
        if record["settings"]["call"] != "first":
            name = record["instance"], record["settings"]["solver"]
            time = time_to_level(record["trace"], record["best_known"], 0.0)
            seeds.setdefault(name, {}).setdefault(record["seed"], []).append(time)
    return {name: statistics.median(map(min, own.values())) for name, own in seeds.items()}


def _over(times: dict[tuple[str, str], float], others: set[str]) -> list[float]:
    """Returns the time of the best of the others over ours, where one of both got there."""
    found = []
    for (instance, solver), own in times.items():
        theirs = [times[instance, name] for name in others if (instance, name) in times]
        if solver == _OURS and math.isfinite(min([own, *theirs])) and theirs:
            found.append(min(theirs) / own if math.isfinite(own) else 0.0)
    return found


def _sets_of_tours(records: Sequence[dict[str, Any]]) -> list[float]:
    by = common.grouped(records, lambda record: record["settings"]["solver"] == _OURS)
    ours, others = by[True], by[False]
    found = []
    for own in ours:
        good = [r["seconds"] for r in others if r["mean_length"] <= own["mean_length"]]
        found.append(min(good, default=math.inf) / own["seconds"])
    return found


def _steps(records: Sequence[dict[str, Any]]) -> list[float]:
    ways: dict[str, dict[bool, list[float]]] = {}
    for record in records:
        if record["settings"]["algorithm"] == "ts":
            own = ways.setdefault(record["instance"], {})
            own.setdefault(record["settings"]["way"] == CORE, []).append(per_step(record))
    return [statistics.median(own[True]) / statistics.median(own[False]) for own in ways.values()]


def _islands(records: Sequence[dict[str, Any]]) -> list[float]:
    records = islands.completed(records)
    most = max(record["settings"]["islands"] for record in records)
    return [
        paper.sixty / statistics.mean(islands.times_of(records, name, islands=most, on="all"))
        for name, paper in ISLANDS.items()
    ]


def _successors(records: Sequence[dict[str, Any]]) -> list[float]:
    found = []
    for record in records:
        setting = Setting.of(record)
        if setting.row in FANG and setting.way == "cuda" and not setting.in_floats:
            paper = FANG[setting.row]["1080 Ti"].median
            found.append(paper / (1e3 * statistics.median(record["seconds"])))
    return found


def table(found: dict[str, list[Line]], *, markdown: bool = False) -> str:
    """Returns the least, the median and the greatest ratio of each line."""
    rows = []
    for hardware, own in found.items():
        for what, against, ratios in own:
            three = map(_shown, (min(ratios), statistics.median(ratios), max(ratios)))
            rows.append([what, hardware, against, str(len(ratios)), *three])
    header = "what | ours on | against | instances | least | median | most"
    return common.table(header, rows, markdown=markdown)


def _shown(ratio: float) -> str:
    return f"{ratio:.2g}" if ratio < 10 else f"{ratio:.0f}" if math.isfinite(ratio) else "inf"


def draw(found: dict[str, list[Line]], path: pathlib.Path) -> None:
    """Writes the chart: one row for each line, and a dot for each instance."""
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "headline", "svg.fonttype": "path"}):
        ax = plotting.detached_axes((8.2, 4.3))
        labels, y = [], 0.0
        for hardware, own in found.items():
            ax.text(0.0033, y - 0.62, f"ours on {hardware}", fontsize=9, weight="bold")
            for line in own:
                for ratio in line.ratios:
                    color = _FASTER if ratio > 1 else _SLOWER
                    marker = {0.0: "<", math.inf: ">"}.get(ratio, "o")
                    at = min(max(ratio, 0.0035), _FAR)
                    how = {"markersize": 6, "alpha": 0.75, "markeredgewidth": 0}
                    ax.plot(at, y, marker, color=color, **how)
                labels.append((y, f"{line.what}\nagainst {line.against}"))
                y += 1
            y += 0.8
        ax.axvline(1, color="black", linewidth=1, zorder=1)
        ax.set_xscale("log")
        ax.set_xlim(0.003, 2 * _FAR)
        ax.set_ylim(y - 1.2, -1.1)
        ax.set_xticks([0.01, 0.1, 1, 10, 100, 1000], ["1/100", "1/10", "1", "10", "100", "1000"])
        ax.set_yticks([at for at, _ in labels], [text for _, text in labels], fontsize=8)
        ax.grid(axis="x", color="#dddddd", zorder=0)
        ax.set_axisbelow(True)
        ax.minorticks_off()
        about = "a dot is an instance, a triangle at an edge: one did not get there"
        ax.set_xlabel(f"times as fast; {about}")
        ax.text(0.9, -1.25, "slower than the other", ha="right", fontsize=9, color=_SLOWER)
        ax.text(1.1, -1.25, "faster than the other", ha="left", fontsize=9, color=_FASTER)
        path.parent.mkdir(parents=True, exist_ok=True)
        ax.figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns the exit status."""
    flags = argparse.ArgumentParser(prog="experiments.headline")
    add = flags.add_argument
    add("--picture", type=pathlib.Path, default=pathlib.Path("docs/images/headline.svg"))
    shown = "only print the table of these records, separated by commas"
    add("--report", metavar="FILES", type=flag_types.words, help=shown)
    add("--markdown", action="store_true", help="a table for a web page")
    args = flags.parse_args(arguments)
    found = lines(common.read_all(args.report or RECORDS))
    print(table(found, markdown=args.markdown))
    if not args.report:
        draw(found, args.picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
