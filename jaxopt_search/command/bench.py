"""`jaxopt-search bench`: moves priced per second, by annealing and by tabu search."""

import argparse
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax

import jaxopt_search as js
from jaxopt_search.command import endings, starts
from jaxopt_search.engine import device_split

_TEMPERATURE = 1000.0
"""Of cities below `_SIZE`; hot, so that many moves are made."""
_SIZE = 30_000


class Case(NamedTuple):
    """A line of the table: what is searched, how, and by how many searches side by side."""

    name: str
    problem: Any
    search: Any
    num_searches: int


def run(args: argparse.Namespace) -> int:
    """Measures and shows; returns the exit status.

    Raises:
      ValueError: if there are no such devices.
    """
    starts.use_machine(args)
    devices = device_split.find_devices(args.devices)
    rows = []
    for case in cases(args.cities, args.facilities, devices):
        result = js.solve(
            case.problem,
            case.search,
            0,
            num_searches=case.num_searches,
            max_seconds=args.seconds,
            devices=devices,
        )
        rows.append(row(case, result))
        if result.status == js.Status.INTERRUPTED:
            break
    endings.print_table(("moves", "searches", "moves/s", "compiling (s)", "steps by"), rows)
    endings.print_lines([("devices", f"{result.env['devices']} ({result.env['cpu']})")])
    return endings.status_of(result, 0)


def cases(
    cities: list[int], facilities: list[int], devices: tuple[jax.Device, ...]
) -> Iterator[Case]:
    """Yields what is measured: relocations and 2-opt on cities, tabu search on facilities."""
    is_on_cpu = devices[0].platform == "cpu"
    num_searches = len(devices) * (32 if is_on_cpu else 4224)
    for n in cities:
        problem = js.tsp_from_instance(js.datasets.uniform_tsp(n, seed=0, size=_SIZE))
        for name, moves in (("relocate", js.Relocate()), ("2-opt", js.two_opt(problem))):
            search = js.simulated_annealing(moves, _TEMPERATURE, moves_per_search=32)
            yield Case(f"{name}, {n} cities", problem, search, num_searches)
    for n in facilities:
        problem = js.qap_from_instance(js.datasets.uniform_qap(n, seed=0))
        search = js.tabu_search(js.SwapTable())
        num = len(devices) * (8 if is_on_cpu else 528)
        yield Case(f"tabu search, {n} facilities", problem, search, num)


def row(case: Case, result: js.Result) -> tuple[str, ...]:
    """Returns the line of a measurement; what is compiled before the search does not count."""
    seconds = max(result.history[-1].seconds, 1e-9)
    return (
        case.name,
        str(case.num_searches),
        f"{result.nfev / seconds:.2e}",
        f"{result.compile_seconds:.1f}",
        result.env["implementation"],
    )
