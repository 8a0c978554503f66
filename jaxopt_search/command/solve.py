"""`jaxopt-search solve`, a TSP or a QAP from a file, and `jaxopt-search queens`."""

import argparse
from typing import Any

import jaxopt_search as js
from jaxopt_search.command import endings, files, reading, starts


def run(args: argparse.Namespace) -> int:
    """Solves, writes and shows; returns the exit status.

    Raises:
      ValueError, OSError: for bad input, before the search.
    """
    instance = None
    with starts.agreed(args):
        if args.command == "queens":
            starts.check_paths(args, files.OF_KIND["queens"])
        else:
            starts.check_paths(args, *files.OF_KIND.values())
            instance = _read(args)
    starts.use_machine(args)
    if instance is not None and starts.is_lead(args):
        endings.tell_person(args, [f"read        {instance.text}"])
    options = starts.options_of(args)
    if instance is None:
        result = js.solve_nqueens(args.n, args.count, **options)
    else:
        target = {} if args.target is None else {"target": args.target}
        if instance.kind == "qap":
            result = js.solve_qap(*instance.data, **options, **target)
        else:
            result = js.solve_tsp(*instance.data, metric=instance.metric, **options, **target)
    if not starts.is_lead(args):
        return endings.status_of(result, 0)
    wanted = [(args.out, _write), (args.plot, _draw)]
    num_failed = endings.write_all(wanted, instance, result)
    endings.show(args, _facts(args, instance, result) | endings.facts_of(result), result)
    return endings.status_of(result, num_failed)


def _read(args: argparse.Namespace) -> reading.Instance:
    instance = reading.read(args.file, args.kind, args.columns)
    if args.out is not None:
        files.check_suffix("--out", args.out, files.OF_KIND[instance.kind])
        if args.out.suffix.lower() == ".sln" and not instance.is_integral:
            raise ValueError(f"--out {args.out}: .sln holds integer costs, which these are not")
    return instance


def _write(path: Any, instance: reading.Instance | None, result: Any) -> None:
    if instance is None:
        files.write_placements(path, result.solutions)
    else:
        files.write_solution(path, instance.kind, result.x, result.fun)


def _draw(path: Any, instance: reading.Instance | None, result: Any) -> None:
    if instance is not None:
        files.draw_run(path, result, instance.coordinates)
    elif len(result.solutions):
        files.draw_board(path, result.solutions[0])
    else:
        raise ValueError("there is no placement to draw")


def _facts(
    args: argparse.Namespace, instance: reading.Instance | None, result: Any
) -> dict[str, Any]:
    """Returns what is known of this kind of run, for JSON."""
    if instance is None:
        found = {"found": len(result.solutions), "solutions": result.solutions.tolist()}
        return {"n": args.n, "seed": args.seed} | found
    return {
        "file": args.file,
        "read": instance.text,
        "seed": args.seed,
        "cost": result.fun,
        "gap": result.gap,
        "evaluations": result.nfev,
        "solution": result.x.tolist(),
    }
