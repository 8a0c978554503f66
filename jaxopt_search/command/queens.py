"""`jaxopt-search queens`: different valid placements."""

import argparse
from typing import Any

import jaxopt_search as js
from jaxopt_search.command import endings, files, pictures, starts


def run(args: argparse.Namespace) -> int:
    """Places queens, writes and shows; returns the exit status.

    Raises:
      ValueError: for bad arguments, before the search.
    """
    with starts.agreed(args):
        starts.check_paths(args, files.OF_KIND["queens"])
    starts.use_machine(args)
    options = starts.options_of(args) | starts.files_of(args)
    result = js.solve_nqueens(args.n, args.count, **options)
    if not starts.is_lead(args):
        return endings.status_of(result, 0)
    wanted = [(args.out, files.write_placements), (args.plot, _draw)]
    num_failed = endings.write_all(wanted, result.solutions)
    endings.show(args, _facts(args, result), result)
    return endings.status_of(result, num_failed)


def _draw(path: Any, placements: Any) -> None:
    if not len(placements):
        raise ValueError("there is no placement to draw")
    pictures.draw_board(path, placements[0])


def _facts(args: argparse.Namespace, result: js.QueensResult) -> dict[str, Any]:
    return {
        "n": args.n,
        "seed": args.seed,
        "found": len(result.solutions),
        "solutions": result.solutions.tolist(),
    } | endings.facts_of(result)
