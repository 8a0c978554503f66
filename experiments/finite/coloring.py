"""Graph coloring by `js.solve_coloring`, compared with TabuCol compiled for one core.

    python -m experiments.finite.coloring
    python -m experiments.finite.coloring --graphs all --seeds 5 --seconds 60 --out coloring.jsonl
    python -m experiments.finite.coloring --graphs G250-28 --ways ours,tabu,numba --seconds 60
    python -m experiments.finite.coloring --report coloring.jsonl --markdown

Queen graphs and Mycielski graphs are colored with as many colors as their chromatic number. G250-28
are random graphs of 250 vertices with half of all edges, to be colored with 28 colors, and so on;
each seed has a graph of its own. Each run ends with a proper coloring or after `--seconds`.

`--ways tabu` is the same tabu search without recombination, and `--ways numba` TabuCol on one core
(`compiled_coloring`), one search for the same time.
"""

import argparse
import math
import statistics
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jaxopt_search as js
from experiments import common, one_core
from experiments.finite import compiled_coloring, timed_runs
from experiments.finite.timed_runs import CORE, OURS, Prepared
from jaxopt_search.datasets import GraphInstance, mycielski_graph, queen_graph, random_graph

WAYS = (OURS, "tabu", CORE)


class Case(NamedTuple):
    """A graph, made from the seed of a run, and the number of its colors."""

    make: Callable[[int], GraphInstance]
    num_colors: int


def _cases() -> dict[str, Case]:
    found = {}
    for size, colors in zip(range(5, 10), (5, 7, 7, 9, 10), strict=True):
        found[f"queen{size}_{size}"] = Case(lambda seed, n=size: queen_graph(n, n), colors)
    for k in range(3, 7):
        found[f"myciel{k}"] = Case(lambda seed, k=k: mycielski_graph(k), k + 1)
    for n, colors in ((250, 28), (500, 49), (500, 48), (1000, 83)):
        make = lambda seed, n=n: random_graph(n, 0.5, seed=seed)  # noqa: E731
        found[f"G{n}-{colors}"] = Case(make, colors)
    return found


CASES = _cases()


def prepared(name: str, seed: int) -> Prepared:
    """Returns a graph and how it is colored."""
    graph, colors = CASES[name].make(seed), CASES[name].num_colors

    def make(way: str, seconds: float, searches: int | None, devices: Any) -> dict[str, Any]:
        if way != CORE:
            how: dict[str, Any] = {"num_searches": searches, "devices": devices}
            how |= {} if way == OURS else {"exchange": None}
            how |= {"max_seconds": seconds, "history_size": 100}
            result = js.solve_coloring(graph, colors, seed, **how)
            coloring, fields = result.x, timed_runs.measured(result, devices)
        else:
            advance, tenure = one_core.compiled(compiled_coloring.build), compiled_coloring.TENURE
            around = compiled_coloring.neighbors(graph)
            one = compiled_coloring.start(graph, colors, seed)
            step = lambda steps: advance(around.first, around.vertex, one, steps, 0, tenure)  # noqa: E731
            fields = timed_runs.on_a_core(step, lambda: int(one.numbers[2]), seconds)
            coloring = one.best
        low, high = graph.edges.T
        conflicts = int((coloring[low] == coloring[high]).sum())
        return {"vertices": graph.n, "edges": len(graph.edges), "conflicts": conflicts, **fields}

    return Prepared(graph.name, {"colors": colors}, make)


def table(records: Sequence[dict[str, Any]], args: argparse.Namespace) -> str:
    """Returns a line per graph and way; a note says on what they ran.

    Seconds and steps are medians, those to the coloring; a run without one counts as longer than
    any. `us/step` is the time of a step that all searches make.
    """
    rows = []
    groups = timed_runs.by_group(records, "graph", "colors", "way", "searches", "seconds")
    for (name, colors, way, *_), group in groups.items():
        times, steps = (
            [math.inf if record["conflicts"] else record[what] for record in group]
            for what in ("seconds", "first_step")
        )
        left = [record["conflicts"] for record in group if record["conflicts"]]
        row = [name, str(group[0]["vertices"]), str(group[0]["edges"]), str(colors), way]
        row += [str(group[0]["searches"]), f"{len(group) - len(left)}/{len(group)}"]
        row += map(common.shown, (statistics.median(times), max(times)))
        row += [
            common.shown(statistics.median(steps), ".0f"),
            timed_runs.microseconds_per_step(group),
        ]
        rows.append([*row, ",".join(map(str, sorted(left))) or "-"])
    header = "graph | vertices | edges | colors | way | searches | colored | median s | longest s"
    header += " | steps of a search | us/step | conflicts left"
    return timed_runs.with_machines(records, common.table(header, rows, markdown=args.markdown))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""
    small = ["queen5_5", "queen6_6", "myciel3", "myciel4"]
    return timed_runs.run_script(
        "coloring", __doc__, arguments, {"all": list(CASES)}, small, prepared, table, WAYS
    )


if __name__ == "__main__":
    sys.exit(main())
