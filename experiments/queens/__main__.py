"""See `experiments.queens`."""

import argparse
import itertools
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import jaxopt_search as js
from experiments import common, flag_types, one_core, queens
from experiments.queens.compiled import COMPILED
from experiments.queens.runs import Measurement, execute
from experiments.queens.tables import FIGURES, TABLES
from jaxopt_search.problems.queens import attacks as evaluation

DEFAULTS: dict[str, list[int]] = {
    "figure 2": [100, 300, 1000, 3000, 10_000],
    "figure 4": [100, 300, 1000, 3000, 10_000],
    "figure 6": [100, 1000, 10_000],
    "figure 7": [100, 300, 1000, 3000],
    "table 3": [1000, 10_000],
    "table 4": [100_000],
}
SAME = {
    "figure 1": "figure 7",
    "figure 3": "figure 2",
    "figure 5": "figure 4",
    "table 4": "table 3",
}
"""What is made of the same measurements."""
THRESHOLDS = [2**k for k in range(10, 18)]
ANNEALED = (*COMPILED, "coarse", "histogram", "nothing", "deltas")
_SCHEMES = (*COMPILED, *evaluation.SCHEMES, "nothing", "deltas")
_STEPS = {"deltas": 10_000}
"""Of annealing, where not 1000."""
_SOLVED_BY = {"num_searches": 32, "moves_per_search": 256, "temperature": 0.1}


def measurements_of(args: argparse.Namespace) -> list[Measurement]:
    """Returns what the flags ask for."""
    if args.solve:
        return [
            Measurement("solve", n, {"search": search} | _SOLVED_BY)
            for n in args.solve
            for search in ("annealing", "min_conflicts")
        ]
    if args.anneal:
        return _to_the_end(args)
    if args.set:
        return [Measurement("set", n, {"solutions": args.solutions}) for n in args.set]
    what = f"table {args.table}" if args.table else f"figure {args.figure}"
    sizes = args.sizes or DEFAULTS.get(what) or DEFAULTS[SAME[what]]
    jobs = [job for n in sizes for job in _jobs(SAME.get(what, what), n, args.threads)]
    return _runnable([job for job in jobs if job.settings["scheme"] in (args.schemes or _SCHEMES)])


def _to_the_end(args: argparse.Namespace) -> list[Measurement]:
    """Returns what `--anneal` asks for."""
    kept = ("searches", "temperature", "alpha", "steps_per_temperature")
    chosen = {name: getattr(args, name) for name in kept} | {"max_seconds": args.limit}
    js.schedules.geometric(args.temperature, args.alpha, args.steps_per_temperature)  # refuses
    schemes = args.schemes or ("coarse",)
    if nothing := {"nothing", "numba_nothing", "deltas"} & set(schemes):
        raise ValueError(f"--schemes: {', '.join(sorted(nothing))} is no full evaluation")
    return _runnable(
        [
            Measurement("anneal to the end", n, {"scheme": scheme} | chosen)
            for n in args.anneal
            for scheme in schemes
            if scheme not in COMPILED or args.searches == 1
        ]
    )


def _runnable(jobs: list[Measurement]) -> list[Measurement]:
    """Returns the jobs, without compiled loops where there is no compiler."""
    has_compiler = one_core.has_numba()
    return [job for job in jobs if has_compiler or job.settings["scheme"] not in COMPILED]


def _evaluation(scheme: str, **settings: Any) -> dict[str, Any]:
    return {"scheme": scheme, "placement": "random", "batch": 1} | settings


def _jobs(what: str, n: int, threads: Sequence[int] | None) -> Iterator[Measurement]:
    match what:
        case "figure 7":
            for scheme in ANNEALED:
                yield Measurement(
                    "anneal", n, {"scheme": scheme, "steps": _STEPS.get(scheme, 1000)}
                )
        case "figure 2":
            counts = threads or [1 << k for k in range(8) if 1 << k <= 2 * common.num_cores()]
            yield Measurement("evaluate", n, _evaluation("numba"))
            for scheme, count in itertools.product(evaluation.ON_HOST, counts):
                yield Measurement("evaluate", n, _evaluation(scheme, num_threads=count))
        case "figure 4":
            for scheme in ("numba", "numba_histogram", *evaluation.SCHEMES):
                yield Measurement("evaluate", n, _evaluation(scheme))
        case "figure 6":
            for placement in ("random", "valid"):
                yield Measurement("evaluate", n, _evaluation("coarse", placement=placement))
        case "table 3":
            yield Measurement("evaluate", n, _evaluation("coarse"))
            for threshold in THRESHOLDS:
                if threshold < n:
                    yield Measurement("evaluate", n, _evaluation("subtasks", threshold=threshold))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""

    def show(records: Sequence[dict[str, Any]], args: argparse.Namespace) -> str:
        extra = [name for name in TABLES if getattr(args, name)]
        table = TABLES[extra[0]] if extra else FIGURES[args.figure]
        return table(records, markdown=args.markdown)

    def plan(args: argparse.Namespace) -> tuple[list[Measurement], range, float]:
        return measurements_of(args), range(args.runs), args.limit

    flags = common.parser("queens", queens.__doc__, "nqueens")
    add, numbers, number = flags.add_argument, flag_types.integers, flag_types.positive
    add("--figure", type=int, choices=range(1, 8), default=4)
    add("--table", type=int, choices=(3, 4))
    add("--solve", type=numbers, help="sizes to solve")
    add("--anneal", type=numbers, help="sizes to anneal by full evaluation")
    add("--searches", type=number, default=1, help="side by side")
    add("--temperature", type=flag_types.limit, default=0.1, help="the first one")
    add("--alpha", type=flag_types.limit, default=1.0, help="cooling: factor of it")
    add("--steps-per-temperature", type=number, default=1, help="of the factor")
    add("--threads", type=numbers, help="numbers of threads to measure")
    add("--set", type=numbers, help="sizes to find sets for")
    add("--solutions", type=number, default=10_000, help="of a set")
    add("--schemes", type=flag_types.some_of(*_SCHEMES), help="only these of a figure or table")
    add("--sizes", type=numbers, help="of figures and tables")
    add("--runs", type=number, default=1, help="of each, seeds from 0 on")
    add("--limit", type=flag_types.limit, default=60.0, help="seconds of one line")
    return common.run_script(flags, arguments, plan, show, execute)


if __name__ == "__main__":
    sys.exit(main())
