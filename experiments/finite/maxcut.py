"""Maximum cuts of the G-set's graphs by `js.solve_max_cut` and two other searches.

    python -m experiments.finite.maxcut
    python -m experiments.finite.maxcut --graphs all --seeds 10 --seconds 10 --out maxcut.jsonl
    python -m experiments.finite.maxcut --graphs G1,G43 --ways tabu,bifurcation --seconds 10
    python -m experiments.finite.maxcut --report maxcut.jsonl --markdown

The graphs are the G-set's (Helmberg and Rendl, 2000), made from their seeds by
`js.datasets.random_graph`, `toroidal_grid` and `planar_union`; nothing is read from files. G1 to G5
are random graphs of 800 vertices with 6 % of all edges, G6 to G10 the same with weights of 1 and
-1, G11 to G13 grids on a torus with such weights, and G43 a random graph of 1000 vertices with 2 %
of all edges: these are `all`. `--graphs large` are `gset.LARGE`, of 800 to 20,000 vertices.

`--ways ours` is what `js.solve_max_cut` does: `js.solve_qubo` of the graph's problem. Each run ends
with a cut as heavy as the best published one (`gset`), or after `--seconds`.

`--ways tabu` is `js.tabu_search(js.Assign())`, in which a vertex that changed sides is forbidden to
for n / 30 to n / 15 steps and of equal moves a random one is made, in 1056 searches. They stand in
a ring: every 5000 steps each continues from the best of the one before where that is better than
its own. `--ways bifurcation` is `js.simulated_bifurcation`, 1056 times, without another setting.

Other solvers are compared with `js.solve_max_cut` by `experiments.peers --problem qubo`.
"""

import argparse
import math
import statistics
import sys
from collections.abc import Sequence
from typing import Any

import jaxopt_search as js
from experiments import common
from experiments.finite import gset, timed_runs
from experiments.finite.timed_runs import OURS, Prepared

WAYS = (OURS, "tabu", "bifurcation")
NEVER = 2**30
"""Steps, as an age at which a move is preferred."""

EXCHANGE_EVERY = 5000
"""Steps, after which searches look at the best of the one before them in a ring."""

_NEAR = 0.001  # of the published best
_SEARCHES = 1056  # of the other ways: 8 times the multiprocessors of an H100 or H200


def tenure(n: int) -> tuple[int, int]:
    """Returns the least and the most steps for which a vertex of n is forbidden to change sides."""
    return n // 30, n // 15


def prepared(name: str, seed: int) -> Prepared:
    """Returns a graph and how it is cut."""
    graph, best = gset.graph(name), gset.best(name)

    def make(way: str, seconds: float, searches: int | None, devices: Any) -> dict[str, Any]:
        problem = js.max_cut(graph.weights, edges=graph.edges, num_vertices=graph.n)
        how: dict[str, Any] = {"max_seconds": seconds, "devices": devices, "history_size": 100}
        how |= {"target": -best}
        if way == OURS:
            result = js.solve_qubo(problem, seed, num_searches=searches, **how)
        else:
            one = js.simulated_bifurcation()
            if way == "tabu":
                often = {"tenure": tenure(graph.n), "aspiration_age": NEVER, "ties": "random"}
                one = js.tabu_search(js.Assign(), **often)
                how |= {"exchange": js.ring(every=EXCHANGE_EVERY)}
            result = js.solve(problem, one, seed, num_searches=searches or _SEARCHES, **how)
        known = {"vertices": graph.n, "edges": len(graph.edges), "cut": gset.cut(graph, result.x)}
        return known | timed_runs.measured(result, devices)

    return Prepared(name, {}, make)


def table(records: Sequence[dict[str, Any]], args: argparse.Namespace) -> str:
    """Returns a line per graph and way; a note says on what they ran.

    `published` is the best cut of `gset`, and gaps are below it, in shares of it.
    Times are medians over runs, of which one that did not come so far counts as longer than any.
    """
    rows = []
    groups = timed_runs.by_group(records, "graph", "way", "searches", "seconds")
    for (name, way, _, seconds), group in groups.items():
        best, searches = gset.best(name), group[0]["searches"]
        cuts = [record["cut"] for record in group]
        near, there = (
            [timed_runs.seconds_to(record, -least) for record in group]
            for least in (best * (1 - _NEAR), best)
        )
        mean = statistics.mean(cuts)
        row = [name, str(group[0]["vertices"]), str(group[0]["edges"]), str(best), way]
        row += [common.shown(float(seconds))]
        row += [str(searches), str(max(cuts)), f"{mean:.1f}", f"{1 - mean / best:.3%}"]
        row += [*_reached(near), *_reached(there)]
        rows.append([*row, timed_runs.microseconds_per_step(group)])
    header = (
        "graph | vertices | edges | published | way | limit, s | searches | best | mean | mean gap"
    )
    header += " | within 0.1 % | median s | as published | median s to it | us/step"
    return timed_runs.with_machines(records, common.table(header, rows, markdown=args.markdown))


def _reached(times: list[float]) -> tuple[str, str]:
    """Returns how many runs came so far, and their median time."""
    middle = statistics.median(times)
    number = sum(map(math.isfinite, times))
    return f"{number}/{len(times)}", common.shown(middle)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""
    groups = {"all": gset.SMALL, "large": gset.LARGE}
    return timed_runs.run_script(
        "maxcut", __doc__, arguments, groups, ["G1", "G6", "G43"], prepared, table, WAYS
    )


if __name__ == "__main__":
    sys.exit(main())
