"""How many generations per second islands of a genetic algorithm make on the QAP.

    python -m experiments.islands.speed
    python -m experiments.islands.speed --facilities 25,50 --islands 1,132 --out speed.jsonl

Flows and distances are random. In a generation each individual has a child, which is priced in
full: n * n reads of a distance between random locations, whose number per second is in the table.
"""

import argparse
import itertools
import sys
from collections.abc import Sequence
from statistics import median
from typing import Any

import jax
import numpy as np

import jaxopt_search as js
from experiments import common, flag_types
from experiments.common import Runs

_REPETITIONS = 3


def instance(n: int) -> js.QAP:
    """Returns a random instance."""
    return js.qap(*np.random.default_rng(n).integers(0, 100, (2, n, n)))


def measure(n: int, islands: int, population: int, seconds: float) -> dict[str, Any]:
    """Returns the record of islands of this size."""
    problem, search = instance(n), js.genetic(population_size=population)
    state = js.init(0, problem, search, num_searches=islands)

    def advance(generations: int) -> float:
        nonlocal state
        state, taken = common.timed(js.advance, problem, search, state, generations)
        return taken

    compile_seconds = advance(0)
    generations, taken = 50, 0.0
    while taken < seconds / 4:
        taken = advance(generations)
        generations = max(generations, int(generations * min(seconds / taken, 8)))
    rates = [generations / advance(generations) for _ in range(_REPETITIONS)]
    settings = {"n": n, "islands": islands, "population": population, "how": "auto"}
    measured = {"generations_per_s": rates, "compile_seconds": compile_seconds}
    known = {"experiment": "qap_islands_speed", "settings": settings}
    return known | measured | common.provenance([jax.devices()[0]])


def report(records: Sequence[dict[str, Any]], args: argparse.Namespace) -> str:
    """Returns a line for each record."""
    rows = []
    for record in records:
        n, islands, population, how = record["settings"].values()
        rate = median(record["generations_per_s"])
        children = rate * islands * population
        figures = (1e6 / rate, rate * islands, children, children * n * n)
        sizes = map(str, (n, islands, population, how))
        rows.append([*sizes, *(f"{figure:.3g}" for figure in figures)])
    header = "n | islands | individuals | runs as | us/generation | islands' generations/s"
    return common.table(f"{header} | children/s | distances/s", rows, markdown=args.markdown)


def execute(args: argparse.Namespace, runs: Runs) -> list[dict[str, Any]]:
    """Measures all sizes, and adds the records to the file."""
    records = []
    for sizes in itertools.product(args.facilities, args.islands, args.individuals):
        records.append(measure(*sizes, args.seconds))
        runs.add(records[-1])
    return records


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""
    flags = common.parser("islands.speed", __doc__, "qap_islands_speed")
    add, numbers = flags.add_argument, flag_types.integers
    add("--facilities", type=numbers, default=[30])
    add("--islands", type=numbers, default=[2])
    add("--individuals", type=numbers, default=[128])
    add("--seconds", type=flag_types.limit, default=0.3, help="of each repetition, about")
    return common.run_script(flags, arguments, lambda args: args, report, execute)


if __name__ == "__main__":
    sys.exit(main())
