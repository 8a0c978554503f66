"""`jaxopt-search solve`: a TSP or a QAP from a file."""

import argparse
from typing import Any

import jaxopt_search as js
from jaxopt_search.command import endings, files, pictures, reading, starts


def run(args: argparse.Namespace) -> int:
    """Solves, writes and shows; returns the exit status.

    Raises:
      ValueError, OSError: for bad input, before the search.
    """
    with starts.agreed(args):
        starts.check_paths(args, *files.OF_KIND.values())
        instance = reading.read(args.file, args.kind, args.columns)
        if args.out is not None:
            files.check_suffix("--out", args.out, files.OF_KIND[instance.kind])
            if args.out.suffix.lower() == ".sln" and not instance.is_integral:
                raise ValueError(f"--out {args.out}: .sln holds integer costs, which these are not")
    starts.use_machine(args)
    if starts.is_lead(args):
        endings.tell_person(args, [f"read        {instance.text}"])
    result = _solved(instance, args)
    if not starts.is_lead(args):
        return endings.status_of(result, 0)
    wanted = [(args.out, _write), (args.plot, _draw)]
    num_failed = endings.write_all(wanted, instance, result)
    endings.show(args, _facts(args, instance, result), result)
    return endings.status_of(result, num_failed)


def _solved(instance: reading.Instance, args: argparse.Namespace) -> js.Result:
    options = starts.options_of(args) | starts.files_of(args)
    if args.target is not None:
        options["target"] = args.target
    if instance.kind == "qap":
        return js.solve_qap(*instance.data, **options)
    return js.solve_tsp(*instance.data, metric=instance.metric, **options)


def _write(path: Any, instance: reading.Instance, result: js.Result) -> None:
    files.write_solution(path, instance.kind, result.x, result.fun)


def _draw(path: Any, instance: reading.Instance, result: js.Result) -> None:
    pictures.draw_run(path, result, instance.coordinates)


def _facts(
    args: argparse.Namespace, instance: reading.Instance, result: js.Result
) -> dict[str, Any]:
    return {
        "file": args.file,
        "read": instance.text,
        "seed": args.seed,
        "cost": result.fun,
        "gap": result.gap,
        "evaluations": result.nfev,
        "solution": result.x.tolist(),
    } | endings.facts_of(result)
