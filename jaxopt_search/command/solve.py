"""`jaxopt-search solve`, a TSP or a QAP from a file, and `jaxopt-search queens`.

Solutions and pictures go to files that are there as a whole or not at all.
"""

import argparse
import csv
import io
import json
import math
import pathlib
import sys
from typing import Any

import numpy as np

import jaxopt_search as js
from jaxopt_search.command import reading, starts
from jaxopt_search.command.main import OF_TOURS, OPTIONS, reason_of, say, status_of, tell
from jaxopt_search.files import beside, whole
from jaxopt_search.results import cost_text, plotting

TABLES = (".txt", ".csv", ".npy")
OF_KIND = {"tsp": (*TABLES, ".tour"), "qap": (*TABLES, ".sln"), "queens": TABLES}
"""The suffixes of files for the solutions of each kind of problem."""
PICTURES = (".png", ".svg", ".pdf")


def run(args: argparse.Namespace) -> int:
    """Solves, writes and shows; returns the exit status.

    Raises:
      ValueError, OSError: for bad input, before the search.
    """
    instance, is_shown = None, not (args.json or args.quiet)
    with starts.agreed(args) as is_lead:
        kind = "queens"
        if args.command == "solve":
            named = (getattr(args, name) for name in reading.Wanted._fields)
            instance = reading.read(args.file, reading.Wanted(*named))
            kind = instance.kind
            for name in (*OF_TOURS, "metric"):
                if kind == "qap" and getattr(args, name) is not None:
                    raise ValueError(f"--{name} is {getattr(args, name)}, expected none for a QAP")
            is_integral = instance.is_integral and args.dtype != "float32"
            if str(args.out).endswith(".sln") and not is_integral:
                raise ValueError(f"--out {args.out}: .sln holds integer costs, which these are not")
        check_paths(args.out, args.plot, kind, is_lead)
    starts.use_machine(args)
    is_watched = sys.stderr is not None and sys.stderr.isatty() and not args.quiet
    options = {name: getattr(args, name) for name in OPTIONS}
    options["show_progress"] = args.progress or is_watched
    result: Any = None
    if instance is None:
        result = js.solve_nqueens(args.n, args.count, **options)
        x, cost, coordinates = result.solutions, 0, None
        facts: dict[str, Any] = {"n": args.n, "found": len(x), "solutions": x}
    else:
        if is_lead and is_shown:
            tell(f"read        {instance.text}")
        if args.target is not None:
            options["target"] = args.target
        if kind == "qap":
            result = js.solve_qap(*instance.data, dtype=args.dtype, **options)
        else:
            options |= {name: getattr(args, name) for name in OF_TOURS}
            options["metric"] = args.metric or instance.metric
            result = js.solve_tsp(*instance.data, dtype=args.dtype, **options)
        x, cost, coordinates = result.x, result.fun, instance.coordinates
        facts = {"file": args.file, "read": instance.text, "cost": cost, "gap": result.gap}
        facts |= {"evaluations": result.nfev, "solution": x}
        if instance.names:
            facts["names"] = [instance.names[city] for city in x]
    if not is_lead:
        return status_of(result)
    num_failed = 0
    for path in filter(None, (args.out, args.plot)):
        try:
            if path is args.out:
                write_solution(path, kind, x, cost, facts.get("names"))
            else:
                draw(path, result, coordinates)
        except (OSError, ValueError) as error:
            say(f"{path} was not written: {reason_of(error)}")
            num_failed += 1
    if args.json:
        facts |= {"seed": args.key, "status": result.status.name.lower(), "steps": result.nit}
        for name in ("success", "message", "compile_seconds", "elapsed", "env"):
            facts[name] = getattr(result, name)
        for name, value in facts.items():
            if hasattr(value, "tolist"):
                facts[name] = value.tolist()
            elif isinstance(value, float) and not math.isfinite(value):
                facts[name] = None  # for which JSON has no number
        tell(json.dumps(facts, allow_nan=False))
    elif is_shown:
        tell(*str(result).splitlines())
    return status_of(result, num_failed)


def check_paths(out: pathlib.Path | None, plot: pathlib.Path | None, kind: str, here: bool) -> None:
    """Refuses `--out` and `--plot` before a search if they could not be written after it.

    Args:
      kind: of the problem.
      here: whether it is this process that writes, by writing an empty file beside them.

    Raises:
      ValueError: with the reason.
      ImportError: if there is no matplotlib for a picture.
    """
    for option, path, known in (("--out", out, OF_KIND[kind]), ("--plot", plot, PICTURES)):
        if path is None:
            continue
        if path.suffix.lower() not in known:
            found = f"the suffix {path.suffix!r}" if path.suffix else "no suffix"
            raise ValueError(f"{option} {path}: {found}, expected one of {', '.join(known)}")
        try:
            if here and path.is_dir():
                raise IsADirectoryError(0, "is a folder")
            if here:
                with beside(path):
                    pass
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise ValueError(f"{option} {path}: cannot be written: {reason}") from error
    if plot is not None:
        plotting.detached_axes()


def write_solution(
    path: pathlib.Path, kind: str, x: np.ndarray, cost: float, names: list[str] | None = None
) -> None:
    """Writes a tour, an assignment or placements in the format of the suffix.

    Args:
      path: ends in one of `OF_KIND[kind]`.
      kind: `"tsp"`, `"qap"` or `"queens"`.
      x: [n] integers from 0; of queens [B, n], one placement a line.
      cost: an integer for `.sln`.
      names: of the cities of a tour, in its order, for a `.csv`.
    """
    suffix, numbers = path.suffix.lower(), x.tolist()
    if kind == "queens":
        lines = [("," if suffix == ".csv" else " ").join(map(str, one)) for one in numbers]
    elif suffix == ".csv":
        columns = {"position": range(len(x)), "city": numbers}
        if kind != "tsp":
            columns = {"facility": range(len(x)), "location": numbers}
        if names is not None:
            columns["name"] = names
        table = io.StringIO()
        csv.writer(table, lineterminator="\n").writerows(
            [columns, *zip(*columns.values(), strict=True)]
        )
        lines = table.getvalue().split("\n")[:-1]
    elif suffix == ".tour":
        head = [f"NAME : {path.stem}", f"COMMENT : length {cost}", "TYPE : TOUR"]
        head += [f"DIMENSION : {len(numbers)}", "TOUR_SECTION"]
        lines = [*head, *(one + 1 for one in numbers), -1, "EOF"]
    elif suffix == ".sln":
        lines = [f"{len(numbers)} {cost}", " ".join(str(one + 1) for one in numbers)]
    else:
        lines = numbers
    with whole(path) as file:
        if suffix == ".npy":
            np.save(file, x, allow_pickle=False)
        else:
            file.write("".join(f"{line}\n" for line in lines).encode())


def draw(path: pathlib.Path, result: Any, coordinates: Any = None) -> None:
    """Writes a picture of a placement, or of how a run went, beside the tour of coordinates.

    Raises:
      ValueError: if there is no placement.
    """
    if not hasattr(result, "fun"):
        axes = result.plot(plotting.detached_axes((5.5, 5)))
    elif coordinates is not None:
        axes = result.plot(plotting.detached_axes((11, 5), columns=2), coords=coordinates)
    else:
        axes = [plotting.plot_convergence([result], ax=plotting.detached_axes((5.5, 5)))]
        axes[0].set_title(f"Course of the run\ncost {cost_text(result.fun, result.gap)}")
    with whole(path) as file:
        axes[0].figure.savefig(file, format=path.suffix.lower()[1:])
