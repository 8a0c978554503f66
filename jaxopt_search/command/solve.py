"""`jaxopt-search solve`, a TSP or a QAP from a file, and `jaxopt-search queens`."""

import argparse
import json
import math
import sys
from typing import Any

import jaxopt_search as js
from jaxopt_search.command import files, flags, reading, starts
from jaxopt_search.command.main import reason_of, say, status_of, tell


def run(args: argparse.Namespace) -> int:
    """Solves, writes and shows; returns the exit status.

    Raises:
      ValueError, OSError: for bad input, before the search.
    """
    instance, is_shown = None, not (args.json or args.quiet)
    with starts.agreed(args) as is_lead:
        kind = "queens"
        if args.command == "solve":
            instance = reading.read(args.file, args.kind, args.columns, args.metric, args.forbidden)
            kind = instance.kind
            for name in (*flags.OF_TOURS, "metric"):
                if kind == "qap" and getattr(args, name) is not None:
                    raise ValueError(f"--{name} is {getattr(args, name)}, expected none for a QAP")
            if str(args.out).endswith(".sln") and not instance.is_integral:
                raise ValueError(f"--out {args.out}: .sln holds integer costs, which these are not")
        files.check_paths(args.out, args.plot, kind, is_lead)
    starts.use_machine(args)
    is_watched = sys.stderr is not None and sys.stderr.isatty() and not args.quiet
    options = {name: getattr(args, name) for name in flags.OPTIONS}
    options["show_progress"] = args.progress or is_watched
    result: Any = None
    if instance is None:
        result = js.solve_nqueens(args.n, args.count, **options)
        facts: dict[str, Any] = {
            "n": args.n,
            "found": len(result.solutions),
            "solutions": result.solutions,
        }
    else:
        if is_lead and is_shown:
            tell(f"read        {instance.text}")
        if args.target is not None:
            options["target"] = args.target
        if kind == "qap":
            result = js.solve_qap(*instance.data, dtype=args.dtype, **options)
        else:
            options |= {name: getattr(args, name) for name in flags.OF_TOURS}
            options["metric"] = args.metric or instance.metric
            result = js.solve_tsp(*instance.data, dtype=args.dtype, **options)
        facts = {"file": args.file, "read": instance.text, "cost": result.fun, "gap": result.gap}
        facts |= {"evaluations": result.nfev, "solution": result.x}
        if instance.names:
            facts["names"] = [instance.names[city] for city in result.x]
    if not is_lead:
        return status_of(result)
    coordinates = None if instance is None else instance.coordinates
    found = (result.solutions, 0) if instance is None else (result.x, result.fun)
    writes: list[tuple[Any, ...]] = [
        (args.out, files.write_solution, kind, *found, facts.get("names")),
        (args.plot, files.draw, result, coordinates),
    ]
    num_failed = 0
    for path, write, *what in writes:
        try:
            if path is not None:
                write(path, *what)
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
