"""What `coloring.py` and `maxcut.py` share: runs for a limited time, ours and on one core."""

import argparse
import math
import time
from collections.abc import Callable, Sequence
from itertools import product
from operator import itemgetter
from typing import Any, NamedTuple

import jax

import jaxopt_search as js
from experiments import common, flag_types, one_core
from experiments.common import Job
from experiments.peers.levels import improvements
from jaxopt_search.engine.devices import find_devices

OURS, CORE = "ours", "numba"

_STEPS_OF_A_CHUNK = 5000


class Prepared(NamedTuple):
    """A graph, and how it is searched.

    Attributes:
      instance: its name, with the seed if it is made from that.
      settings: of the run, besides those that all have.
      make: `make(way, seconds, searches, devices)` returns what is measured.
    """

    instance: str
    settings: dict[str, Any]
    make: Callable[..., dict[str, Any]]


def run_script(
    experiment: str,
    text: str | None,
    arguments: Sequence[str] | None,
    groups: dict[str, Sequence[str]],
    default: list[str],
    prepare: Callable[[str, int], Prepared],
    table: Callable[..., str],
    ways: Sequence[str],
) -> int:
    """Runs the script `experiments.finite.EXPERIMENT`, and returns its exit status.

    Args:
      text: what `--help` says about it.
      groups: the names of graphs that there are, by the name of a group.
      default: of these names.
      prepare: makes a graph by its name and the seed of a run.
      table: returns the table of records, by the flags.
      ways: those that there are.
    """

    def job(args: argparse.Namespace, name: str, way: str, seed: int) -> Job:
        one = prepare(name, seed)
        searches = 1 if way == CORE else args.searches
        settings = {"graph": name, "way": way, "seconds": args.seconds, "searches": searches}
        settings |= one.settings
        known = {"experiment": experiment, "instance": one.instance, "seed": seed}
        known |= {"settings": settings}
        make = lambda _: [known | one.make(way, args.seconds, searches, args.devices)]  # noqa: E731
        return Job(settings, one.instance, [seed], f"{one.instance} {way}", make)

    def jobs_of(args: argparse.Namespace) -> list[Job]:
        if CORE in args.ways and not one_core.has_numba():
            raise ValueError("numba is not installed, expected it for the way 'numba'")
        names = [one for name in args.graphs for one in groups.get(name, [name])]
        return [job(args, *one) for one in product(names, args.ways, range(args.seeds))]

    flags = common.parser(f"finite.{experiment}", text, experiment)
    add, number, some_of = flags.add_argument, flag_types.positive, flag_types.some_of
    graphs = [name for group in groups.values() for name in group]
    graphs_help = f"some of {','.join(graphs)}, or of the groups {','.join(groups)}"
    add("--graphs", type=some_of(*graphs, *groups), default=default, help=graphs_help)
    add("--ways", type=some_of(*ways), default=[OURS], help=", ".join(ways))
    add("--seeds", type=number, default=3, help="runs of each, from 0 on")
    add("--seconds", type=flag_types.limit, default=10.0, help="longest run")
    add("--searches", type=number, help="side by side (default: as the solver has them)")
    add("--devices", type=flag_types.devices, default="all")
    return common.run_script(flags, arguments, jobs_of, table)


def measured(result: js.Result, devices: Any) -> dict[str, Any]:
    """Returns the fields of the record of a run of ours that any problem has.

    Seconds are the search's; what is prepared and compiled before is `seconds_before`.
    """
    common.unless_interrupted(result)
    return {
        "searches": len(result.costs),
        "seconds": result.elapsed - result.compile_seconds,
        "seconds_before": result.compile_seconds,
        "steps": result.nit,
        "first_step": None if result.first_hit is None else result.first_hit.step,
        "course": improvements([(line.seconds, line.best) for line in result.history]),
        **common.provenance(find_devices(devices)),
    }


def on_a_core(
    advance: Callable[[int], int], best: Callable[[], int], seconds: float
) -> dict[str, Any]:
    """Runs a compiled search until its cost is 0 or its time is over; returns record fields.

    Args:
      advance: makes this many steps at most, and returns how many it made.
      best: returns the lowest cost so far.
    """
    steps, course = 0, []
    advance(0)  # compiles
    began = time.perf_counter()
    while True:
        steps += advance(_STEPS_OF_A_CHUNK)
        passed, found = time.perf_counter() - began, best()
        course.append((passed, found))
        if found == 0 or passed >= seconds:
            break
    return {
        "searches": 1,
        "seconds": passed,
        "steps": steps,
        "first_step": None if found else steps,
        "course": improvements(course),
        **common.provenance(jax.devices("cpu")[:1]),
    }


def seconds_to(record: dict[str, Any], cost: float) -> float:
    """Returns when a run had this cost or a lower one, infinity if it never had."""
    return next((seconds for seconds, found in record["course"] if found <= cost), math.inf)


def by_group(records: Sequence[dict[str, Any]], *names: str) -> dict[tuple, list[dict[str, Any]]]:
    """Returns records by these of their settings, the seeds of a group together."""
    parts = itemgetter(*names)
    return common.grouped(records, lambda record: parts(record["settings"]))


def microseconds_per_step(records: Sequence[dict[str, Any]]) -> str:
    """Returns how long a step took, or a dash where a random start was all that it took."""
    seconds, steps = (sum(record[name] for record in records) for name in ("seconds", "steps"))
    return f"{1e6 * seconds / steps:.3g}" if steps else "-"


def with_machines(records: Sequence[dict[str, Any]], table: str) -> str:
    """Returns a table under a note that says on what runs were made."""
    where = {}
    for record in records:
        way, env = record["settings"]["way"], record["env"]
        where[way] = f"1 core, {env['cpu']}" if way == CORE else env["devices"]
    note = "; ".join(f"{way}: {on}" for way, on in where.items())
    return f"{note}\n\n{table}"
