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
import math
import sys
import time
from collections.abc import Sequence
from statistics import mean
from typing import Any

import jax

import jaxopt_search as js
from experiments import common, flag_types
from experiments.common import Progress, Runs
from jaxopt_search.problems.queens.attacks import SCHEMES

_CHECK_EVERY = 20  # generations


class Task:
    """How runs by a scheme are made."""

    def __init__(self, args: argparse.Namespace, scheme: str):
        self.problem = js.nqueens(args.queens, scheme)
        self.search = js.genetic(population_size=args.individuals)
        self.name, self.scheme, self.islands = f"{args.queens} queens", scheme, args.islands
        self.settings = {
            "scheme": scheme,
            "islands": args.islands,
            "population": args.individuals,
            "limit": args.generations,
        }

    def make(self, seed: int, generations: int) -> dict[str, Any]:
        """Returns the record of a run."""
        state = js.init(seed, self.problem, self.search, num_searches=self.islands)
        jax.block_until_ready(state)
        began = time.perf_counter()
        state = jax.block_until_ready(
            js.advance(
                self.problem, self.search, state, generations, target=0, check_every=_CHECK_EVERY
            )
        )
        seconds = time.perf_counter() - began
        made, island = js.first_hit(state)
        return {
            "experiment": "nqueens_islands",
            "instance": self.name,
            "seed": seed,
            "settings": self.settings,
            "reached": int(island) >= 0,
            "seconds": seconds,
            "generations": int(made.low) if int(island) >= 0 else generations,
            **common.provenance([jax.devices()[0]]),
        }


def plan_from_arguments(args: argparse.Namespace) -> list[Task]:
    """Returns what to run.

    Raises:
      ValueError: if a setting is out of range.
    """
    return [Task(args, scheme) for scheme in args.schemes]


def execute(plan: Sequence[Task], args: argparse.Namespace, runs: Runs) -> list[dict[str, Any]]:
    """Makes the runs that are not in the file yet; returns the records of all."""
    progress, wanted = Progress(len(plan) * args.runs), []
    for task in plan:
        seeds = range(args.runs)
        wanted += [(task.settings, task.name, seed) for seed in seeds]
        missing = [seed for seed in seeds if not runs.has(task.settings, task.name, seed)]
        progress.skip(args.runs - len(missing))
        if missing:
            task.make(missing[0], 0)
        for seed in missing:
            runs.add(task.make(seed, args.generations))
            progress.step(1, f"{task.name}, {task.scheme}")
    return runs.those(wanted)


def report(records: Sequence[dict[str, Any]], *, markdown: bool) -> str:
    """Returns a line for each scheme: runs that found a placement, generations and times."""
    kinds: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for record in records:
        settings = record["settings"]
        parts = (settings[name] for name in ("scheme", "islands", "population"))
        kinds.setdefault((record["instance"], *parts), []).append(record)
    rows = []
    for (name, scheme, islands, population), runs in kinds.items():
        seconds = [run["seconds"] if run["reached"] else math.inf for run in runs]
        made = [run["generations"] for run in runs]
        is_done = all(map(math.isfinite, seconds))
        rows.append(
            [
                name,
                scheme,
                str(islands),
                str(population),
                f"{sum(map(math.isfinite, seconds))}/{len(runs)}",
                f"{mean(made):.0f}" if is_done else "-",
                f"{mean(seconds):.3g}" if is_done else "-",
                f"{1e6 * sum(run['seconds'] for run in runs) / sum(made):.3g}",
            ]
        )
    header = ("instance", "scheme", "islands", "individuals", "found", "generations", "T s")
    return common.table((*header, "us/generation"), rows, markdown=markdown)


def parser() -> argparse.ArgumentParser:
    """Returns the flags of this script."""
    flags = argparse.ArgumentParser(
        prog="experiments.islands.queens",
        description="Islands of a genetic algorithm on N-Queens.",
    )
    flags.add_argument("--queens", type=flag_types.positive, default=12)
    flags.add_argument(
        "--schemes",
        type=flag_types.words,
        default=["fine_pairs", "fine_index", "coarse", "subtasks", "histogram"],
        help=f"some of {', '.join(SCHEMES)}",
    )
    flags.add_argument("--islands", type=flag_types.positive, default=4)
    flags.add_argument("--individuals", type=flag_types.positive, default=128, help="of an island")
    flags.add_argument(
        "--runs", type=flag_types.positive, default=3, help="of each scheme, seeds from 0 on"
    )
    flags.add_argument(
        "--generations", type=flag_types.positive, default=10_000, help="of the longest run"
    )
    common.add_record_arguments(flags, "nqueens_islands")
    return flags


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""
    flags = parser()
    args = flags.parse_args(arguments)
    records, status = common.measured_or_read(
        flags, args, plan_from_arguments, lambda plan, runs: execute(plan, args, runs)
    )
    if not status:
        print(report(records, markdown=args.markdown))
    return status


if __name__ == "__main__":
    sys.exit(main())
