"""Graph coloring by tabu search on FANG's N(x), compared with TabuCol compiled for one core.

    python -m experiments.finite.coloring
    python -m experiments.finite.coloring --graphs all --seeds 10 --seconds 60 --out coloring.jsonl
    python -m experiments.finite.coloring --graphs G500 --ways ours,numba --seeds 10 --seconds 60
    python -m experiments.finite.coloring --report coloring.jsonl --markdown

Queen graphs and Mycielski graphs are colored with as many colors as their chromatic number. G250
and G500 are random graphs of 250 and 500 vertices with half of all edges, to be colored with 28 and
49 colors; each seed has a graph of its own.

All run with one setting. A move gives a vertex in conflict another color, `ConflictsOnly` of
`js.successors` as the neighborhood `js.Guided`; tabu search makes the best that is not forbidden,
of equals a random one. A color that a vertex lost is forbidden for 0 to 9 steps and one more for
each edge in conflict; no color is preferred because it has not been tried for long. How many
searches run side by side follows from the size of the table of moves alone
(`timed_runs.num_searches`). Each run ends with a proper coloring or after `--seconds`.

`--ways numba` is TabuCol on one core (`compiled_coloring`), one search for the same time.
"""

import math
import statistics
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jaxopt_search as js
from experiments import common, one_core
from experiments.finite import compiled_coloring, timed_runs
from experiments.finite.timed_runs import OURS, Prepared
from jaxopt_search.datasets import GraphInstance, mycielski_graph, queen_graph, random_graph
from jaxopt_search.types import Search

NEVER = 2**30
"""Steps, as an age at which a move is preferred."""


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
    for n, colors in ((250, 28), (500, 49)):
        found[f"G{n}"] = Case(lambda seed, n=n: random_graph(n, 0.5, seed=seed), colors)
    return found


CASES = _cases()


def search() -> Search:
    """Returns the tabu search of all runs."""
    guided = js.Guided(js.successors.ConflictsOnly())
    return js.tabu_search(
        guided, tenure=(0, 9), tenure_per_cost=1.0, aspiration_age=NEVER, ties="random"
    )


def prepared(name: str, seed: int) -> Prepared:
    """Returns a graph and how it is colored."""
    graph, colors = CASES[name].make(seed), CASES[name].num_colors

    def make(way: str, seconds: float, searches: int, devices: Any) -> dict[str, Any]:
        if way == OURS:
            problem = js.graph_coloring(graph.edges, colors, num_vertices=graph.n)
            own = problem, search(), seed, searches, seconds, 0
            coloring, fields = timed_runs.ours(*own, devices=devices)
        else:
            advance, tenure = one_core.compiled(compiled_coloring.build), compiled_coloring.TENURE
            around = compiled_coloring.neighbors(graph)
            one = compiled_coloring.start(graph, colors, seed)
            step = lambda steps: advance(around.first, around.vertex, one, steps, 0, tenure)  # noqa: E731
            fields = timed_runs.on_a_core(step, lambda: int(one.numbers[2]), seconds, 0)
            coloring = one.best
        low, high = graph.edges.T
        conflicts = int((coloring[low] == coloring[high]).sum())
        return {"vertices": graph.n, "edges": len(graph.edges), "conflicts": conflicts, **fields}

    return Prepared(graph.name, graph.n, colors, {"colors": colors}, make)


def table(records: Sequence[dict[str, Any]], *, markdown: bool = False) -> str:
    """Returns a line per graph and way; a note says on what they ran.

    Seconds and steps are medians, those to the coloring; a run without one counts as longer than
    any. `us/step` is the time of a step that all searches make.
    """
    rows = []
    groups = timed_runs.by_group(records, "graph", "colors", "way", "searches", "seconds")
    for (name, colors, way, searches, _), group in groups.items():
        times, steps = (
            [math.inf if record["conflicts"] else record[what] for record in group]
            for what in ("seconds", "first_step")
        )
        left = [record["conflicts"] for record in group if record["conflicts"]]
        row = [name, str(group[0]["vertices"]), str(group[0]["edges"]), str(colors), way]
        row += [str(searches), f"{len(group) - len(left)}/{len(group)}"]
        row += map(common.shown, (statistics.median(times), max(times)))
        row += [
            common.shown(statistics.median(steps), ".0f"),
            timed_runs.microseconds_per_step(group),
        ]
        rows.append([*row, ",".join(map(str, sorted(left))) or "-"])
    header = "graph | vertices | edges | colors | way | searches | colored | median s | longest s"
    header += " | steps of a search | us/step | conflicts left"
    return timed_runs.with_machines(records, common.table(header, rows, markdown=markdown))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""
    small = ["queen5_5", "queen6_6", "myciel3", "myciel4"]
    return timed_runs.run_script(
        "coloring", __doc__, arguments, {"all": list(CASES)}, small, prepared, table
    )


if __name__ == "__main__":
    sys.exit(main())
