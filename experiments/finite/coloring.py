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

import argparse
import statistics
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jaxopt_search as js
from experiments import common
from experiments.finite import compiled_coloring, timed_runs
from experiments.finite.timed_runs import OURS
from experiments.jobs import Job, make_missing
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


def color(
    name: str, seed: int, way: str, seconds: float, searches: int, devices: Any = "all"
) -> dict[str, Any]:
    """Returns what is recorded of a run."""
    case = CASES[name]
    graph = case.make(seed)
    run = _ours if way == OURS else _on_a_core
    coloring, fields = run(graph, case.num_colors, seed, seconds, searches, devices)
    low, high = graph.edges.T
    conflicts = int((coloring[low] == coloring[high]).sum())
    return {"vertices": graph.n, "edges": len(graph.edges), "conflicts": conflicts, **fields}


def _ours(
    graph: GraphInstance, num_colors: int, seed: int, seconds: float, searches: int, devices: Any
) -> tuple[Any, dict[str, Any]]:
    problem = js.graph_coloring(graph.edges, num_colors, num_vertices=graph.n)
    result, fields = timed_runs.ours(problem, search(), seed, searches, seconds, 0, devices=devices)
    return result.x, fields


def _on_a_core(
    graph: GraphInstance, num_colors: int, seed: int, seconds: float, searches: int, devices: Any
) -> tuple[Any, dict[str, Any]]:
    advance, around = compiled_coloring.compiled(), compiled_coloring.neighbors(graph)
    one = compiled_coloring.start(graph, num_colors, seed)
    fields = timed_runs.on_a_core(
        lambda steps: advance(around.first, around.vertex, one, steps, 0, compiled_coloring.TENURE),
        lambda: int(one.numbers[2]),
        seconds,
        0,
    )
    return one.best, fields


def jobs_from_arguments(args: argparse.Namespace) -> list[Job]:
    """Returns the runs to be made."""
    names = list(CASES) if args.graphs == ["all"] else args.graphs
    for name in names:
        if name not in CASES:
            raise ValueError(f"{name!r} is not among {','.join(CASES)} or all")
    ways = timed_runs.check_ways(args.ways)
    jobs = []
    for name in names:
        for way in ways:
            for seed in range(args.first_seed, args.first_seed + args.seeds):
                jobs.append(_job(name, way, seed, args))
    return jobs


def _job(name: str, way: str, seed: int, args: argparse.Namespace) -> Job:
    case = CASES[name]
    graph = case.make(seed)
    searches = args.searches or timed_runs.num_searches(graph.n, case.num_colors)
    searches = searches if way == OURS else 1
    settings = {
        "graph": name,
        "colors": case.num_colors,
        "way": way,
        "seconds": args.seconds,
        "searches": searches,
    }
    known = {"experiment": "coloring", "instance": graph.name, "seed": seed, "settings": settings}

    def make() -> dict[str, Any]:
        return known | color(name, seed, way, args.seconds, searches, args.devices)

    return Job(settings, graph.name, seed, f"{graph.name} {way}", make)


_HEADER = (
    "graph",
    "vertices",
    "edges",
    "colors",
    "way",
    "searches",
    "colored",
    "median s",
    "longest s",
    "steps of a search",
    "us/step",
    "conflicts left",
)


def table(records: Sequence[dict[str, Any]], *, markdown: bool = False) -> str:
    """Returns a line per graph and way; a note says on what they ran.

    Seconds and steps are medians, those to the coloring; a run without one counts as longer than
    any. `us/step` is the time of a step that all searches make.
    """
    rows = []
    groups = timed_runs.by_group(records, "graph", "colors", "way", "searches", "seconds")
    for (name, colors, way, searches, _), group in groups.items():
        times = [_time(record) for record in group]
        steps = [_steps(record) for record in group]
        left = [record["conflicts"] for record in group if record["conflicts"]]
        rows.append(
            [
                name,
                str(group[0]["vertices"]),
                str(group[0]["edges"]),
                str(colors),
                way,
                str(searches),
                f"{len(group) - len(left)}/{len(group)}",
                _shown(statistics.median(times), ".3g"),
                _shown(max(times), ".3g"),
                _shown(statistics.median(steps), ".0f"),
                timed_runs.microseconds_per_step(group),
                ",".join(map(str, sorted(left))) or "-",
            ]
        )
    machines = {r["settings"]["way"]: timed_runs.machine(r) for r in records}
    note = "; ".join(f"{way}: {where}" for way, where in machines.items())
    return f"{note}\n\n{common.table(_HEADER, rows, markdown=markdown)}"


_ENDLESS = float("inf")


def _time(record: dict[str, Any]) -> float:
    return _ENDLESS if record["conflicts"] else record["seconds"]


def _steps(record: dict[str, Any]) -> float:
    return _ENDLESS if record["conflicts"] else record["first_step"]


def _shown(value: float, how: str) -> str:
    return "-" if value == _ENDLESS else format(value, how)


def parser() -> argparse.ArgumentParser:
    """Returns the flags of this script."""
    small = ["queen5_5", "queen6_6", "myciel3", "myciel4"]
    description = "Colors graphs by tabu search on FANG's N(x)."
    return timed_runs.parser("coloring", description, list(CASES), small)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""
    flags = parser()
    args = flags.parse_args(arguments)
    records, status = common.measured_or_read(flags, args, jobs_from_arguments, make_missing)
    if records:
        print(table(records, markdown=args.markdown))
    return status


if __name__ == "__main__":
    sys.exit(main())
