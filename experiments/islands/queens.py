"""Islands of a genetic algorithm on N-Queens, whose fitness is a scheme that counts attacks.

    python -m experiments.islands.queens
    python -m experiments.islands.queens --queens 30 --islands 30 --runs 10 --out queens.jsonl
    python -m experiments.islands.queens --report queens.jsonl --markdown

Each child of each island is evaluated in full, by one of the schemes of `evaluation.SCHEMES`. All
count the same, so that runs of one seed make the same generations by each of them; what differs is
how long those take. A run ends once an island has a placement without attacks. Seconds are those
from the first populations to the end, without compilation.
"""

import argparse
import functools
import math
import sys
import time
from collections.abc import Sequence
from statistics import mean
from typing import Any

import jax

import jaxopt_search as js
from experiments import common, flag_types
from experiments.common import Job
from experiments.islands.records import mean_time, num_found, times_in
from jaxopt_search.problems.queens.attacks import SCHEMES

_CHECK_EVERY = 20  # generations


def jobs_from_arguments(args: argparse.Namespace) -> list[Job]:
    """Returns the runs to be made."""
    name, search = f"{args.queens} queens", js.genetic(population_size=args.individuals)
    sizes = {"islands": args.islands, "population": args.individuals, "limit": args.generations}
    jobs = []
    for scheme in args.schemes:
        problem, settings = js.nqueens(args.queens, scheme), {"scheme": scheme} | sizes
        for seed in range(args.runs):
            make = functools.partial(_make, problem, search, name, settings, seed)
            jobs.append(Job(settings, name, seed, f"{name}, {scheme}", make))
    return jobs


def _make(
    problem: js.NQueens, search: Any, name: str, settings: dict[str, Any], seed: int
) -> dict[str, Any]:
    """Returns the record of a run, compiled before."""

    def advance(generations: int) -> tuple[js.RunState, float]:
        state = js.init(seed, problem, search, num_searches=settings["islands"])
        jax.block_until_ready(state)
        began = time.perf_counter()
        options = {"target": 0, "check_every": _CHECK_EVERY}
        state = js.advance(problem, search, state, generations, **options)
        return jax.block_until_ready(state), time.perf_counter() - began

    advance(0)
    state, seconds = advance(settings["limit"])
    made, island = js.first_hit(state)
    found = {"reached": int(island) >= 0, "seconds": seconds}
    found["generations"] = int(made.low) if found["reached"] else settings["limit"]
    return common.record("nqueens_islands", name, seed, settings, [jax.devices()[0]], **found)


def report(records: Sequence[dict[str, Any]], *, markdown: bool) -> str:
    """Returns a line for each scheme: runs that found a placement, generations and times."""
    kinds: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for record in records:
        settings = record["settings"]
        parts = (settings[name] for name in ("scheme", "islands", "population"))
        kinds.setdefault((record["instance"], *parts), []).append(record)
    rows = []
    for (name, scheme, islands, population), runs in kinds.items():
        times, made = times_in(runs), [run["generations"] for run in runs]
        generations = f"{mean(made):.0f}" if math.isfinite(mean(times)) else "-"
        row = [name, scheme, str(islands), str(population), num_found(times), generations]
        pace = 1e6 * sum(run["seconds"] for run in runs) / sum(made)
        rows.append([*row, mean_time(times), f"{pace:.3g}"])
    header = "instance | scheme | islands | individuals | found | generations | T s | us/generation"
    return common.table(header, rows, markdown=markdown)


def parser() -> argparse.ArgumentParser:
    """Returns the flags of this script."""
    flags = argparse.ArgumentParser(
        prog="experiments.islands.queens",
        description="Islands of a genetic algorithm on N-Queens.",
    )
    add, number = flags.add_argument, flag_types.positive
    default = ["fine_pairs", "fine_index", "coarse", "subtasks", "histogram"]
    schemes = f"some of {', '.join(SCHEMES)}"
    add("--queens", type=number, default=12)
    add("--schemes", type=flag_types.words, default=default, help=schemes)
    add("--islands", type=number, default=4)
    add("--individuals", type=number, default=128, help="of an island")
    add("--runs", type=number, default=3, help="of each scheme, seeds from 0 on")
    add("--generations", type=number, default=10_000, help="of the longest run")
    common.add_record_arguments(flags, "nqueens_islands")
    return flags


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""
    return common.run_script(
        parser(),
        arguments,
        jobs_from_arguments,
        lambda records, args: report(records, markdown=args.markdown),
    )


if __name__ == "__main__":
    sys.exit(main())
