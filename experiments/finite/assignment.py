"""Generalized assignment of types C, D and E: `js.solve_assignment` and OR-Tools' CP-SAT.

    python -m experiments.finite.assignment --seeds 3 --seconds 5 --out assignment.jsonl
    python -m experiments.finite.assignment --report assignment.jsonl --markdown

Instances are drawn by the rules of the field, for each seed another one (Chu, Beasley, "A genetic
algorithm for the generalised assignment problem", 1997; E: Laguna, Kelly, Gonzalez-Velarde, Glover,
"Tabu search for the multilevel generalized assignment problem", 1995). Capacities are 0.8 of the
mean load. CP-SAT has a Boolean for each agent and job, and as many workers as there are CPU cores;
its seconds count from the call of the solver on. Ours are of search, after compilation.
"""

import argparse
import itertools
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from importlib import metadata
from typing import Any

import numpy as np

import jaxopt_search as js
from experiments import common, flag_types
from experiments.common import Job
from experiments.finite.timed_runs import by_group, measured, with_machines
from jaxopt_search.engine.devices import find_devices

OURS, CP_SAT = WAYS = "ours", "cp-sat"
KINDS, SIZES = ("C", "D", "E"), ("100x10", "200x20", "400x40")


def instance(kind: str, n: int, m: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns costs and loads, [m, n], and capacities, [m], of a type: "C", "D" or "E"."""
    draw = np.random.default_rng(seed)
    if kind == "C":
        loads, costs = draw.integers(5, 26, (m, n)), draw.integers(10, 51, (m, n))
    elif kind == "D":
        loads = draw.integers(1, 101, (m, n))
        costs = 111 - loads + draw.integers(-10, 11, (m, n))
    else:
        loads = np.floor(1 - 10 * np.log(1 - draw.random((m, n)))).astype(int)
        costs = np.floor(1000 / loads - 10 * draw.random((m, n))).astype(int)
    return costs, loads, (0.8 * loads.sum(axis=1) / m).astype(int)


def jobs_of(args: argparse.Namespace) -> list[Job]:
    """Returns the runs that flags ask for: a job for each type, size and way."""
    kinds = itertools.product(args.kinds, args.sizes, args.ways)
    return [_job(args, *one) for one in kinds]


def _job(args: argparse.Namespace, kind: str, size: str, way: str) -> Job:
    n, m = map(int, size.split("x"))
    settings = {"kind": kind, "size": size, "way": way, "seconds": args.seconds}
    name, run = f"{kind}-{size}", _ours if way == OURS else _cp_sat

    def make(seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
        for seed in seeds:
            given = instance(kind, n, m, seed)
            known = {"experiment": "assignment", "instance": name, "seed": seed}
            known |= {"settings": settings}
            known |= {"bound": js.generalized_assignment(*given).lower_bound()}
            yield known | run(*given, seed, args.seconds, args.devices)

    return Job(settings, name, range(args.seeds), f"{name} {way}", make)


def _ours(
    costs: Any, loads: Any, capacities: Any, seed: int, seconds: float, devices: Any
) -> dict[str, Any]:
    limits = {"max_seconds": seconds, "devices": devices}
    result = js.solve_assignment(costs, loads, capacities, seed, **limits)
    return {"cost": result.fun if result.feasible else None, **measured(result, devices)}


def _cp_sat(
    costs: Any, loads: Any, capacities: Any, seed: int, seconds: float, devices: Any
) -> dict[str, Any]:
    from ortools.sat.python import cp_model

    model, (m, n) = cp_model.CpModel(), costs.shape
    does = [[model.new_bool_var("") for _ in range(n)] for _ in range(m)]
    for job in range(n):
        model.add_exactly_one(row[job] for row in does)
    for row, load, capacity in zip(does, loads.tolist(), capacities.tolist(), strict=True):
        model.add(cp_model.LinearExpr.weighted_sum(row, load) <= capacity)
    every = [one for row in does for one in row]
    model.minimize(cp_model.LinearExpr.weighted_sum(every, costs.ravel().tolist()))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = common.num_cores()
    solver.parameters.random_seed = seed
    solver.parameters.max_time_in_seconds = seconds
    began = time.perf_counter()
    status = solver.solve(model)
    is_found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    return {
        "cost": round(solver.objective_value) if is_found else None,
        "seconds": time.perf_counter() - began,
        "version": metadata.version("ortools"),
        **common.provenance(find_devices("cpu")),
    }


def table(records: Sequence[dict[str, Any]], args: argparse.Namespace) -> str:
    """Returns a line per type, size and way: mean cost and mean gap to the Lagrangian bound."""
    rows = []
    groups = by_group(records, "kind", "size", "way", "seconds")
    for (kind, size, way, seconds), group in groups.items():
        found = [record for record in group if record["cost"] is not None]
        row = [f"{kind} {size}", way, f"{seconds:g}", "-", "-", f"{len(found)}/{len(group)}"]
        if found:
            row[3] = f"{statistics.mean(record['cost'] for record in found):.1f}"
            row[4] = f"{statistics.mean(one['cost'] / one['bound'] - 1 for one in found):.3%}"
        rows.append(row)
    header = "jobs x agents | way | s | mean cost | above the bound | feasible"
    return with_machines(records, common.table(header, rows, markdown=args.markdown))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""
    flags = common.parser("finite.assignment", __doc__, "assignment")
    add, some_of = flags.add_argument, flag_types.some_of
    add("--kinds", type=some_of(*KINDS), default=list(KINDS), help="some of C,D,E")
    add("--sizes", type=flag_types.words, default=list(SIZES), help="jobs x agents")
    add("--ways", type=some_of(*WAYS), default=[OURS], help=", ".join(WAYS))
    add("--seeds", type=flag_types.positive, default=1, help="instances of each")
    add("--seconds", type=flag_types.limit, default=5.0, help="of each run")
    add("--devices", type=flag_types.devices, default="all")
    return common.run_script(flags, arguments, jobs_of, table)


if __name__ == "__main__":
    sys.exit(main())
