"""N-Queens: sets of different valid placements, found again and again: `solve_nqueens`."""

import os
from typing import Any

from jaxopt_search.backends import random
from jaxopt_search.checks import MAX_INT32, check_count, check_option
from jaxopt_search.driver import checkpoints, chunks
from jaxopt_search.driver.options import DEFAULT_SECONDS, resolve
from jaxopt_search.engine import memory
from jaxopt_search.engine.devices import Devices, host_driver, refuse_tracers
from jaxopt_search.engine.fingerprints import fingerprint
from jaxopt_search.problems.queens.problem import nqueens
from jaxopt_search.problems.queens.symmetry import Distinct
from jaxopt_search.results import QueensResult
from jaxopt_search.solvers.queens_runs import PlacementSet, Repairs, Searches

_MANY = 10_000
"""Queens from which placements are repaired, one after the other."""
_BYTES = 64  # of a queen, of 100 that were measured while it is repaired


@host_driver
def solve_nqueens(
    n: int,
    num_solutions: int = 1,
    key: Any = 0,
    *,
    distinct: Distinct = "raw",
    max_seconds: float | None = None,
    max_steps: int | None = None,
    num_searches: int | None = None,
    checkpoint: str | os.PathLike | None = None,
    checkpoint_every: float = checkpoints.DEFAULT_SECONDS,
    resume: str | os.PathLike | bool | None = None,
    devices: Devices = "all",
    show_progress: bool = False,
) -> QueensResult:
    """Returns a set of different valid placements of n queens.

    Below 10,000 queens they are found by `min_conflicts`, from there on by `repair`, each from a
    start of its own, random or greedy. On the same devices the set depends on the key only, unless
    `max_seconds` cuts it short. Ctrl-C during the search ends it with what was found.

    Args:
      n: queens.
      num_solutions: placements asked for.
      key: an integer seed or a `jax.random.key`.
      distinct: which placements count as different: `"raw"`, all that are not equal; `"symmetry"`,
        those that no turn and no mirroring of the board makes equal.
      max_seconds: seconds of search, as in `solve`: what is compiled before comes on top; 10 if no
        limit is given.
      max_steps: steps of each search, or rounds of repair of each placement.
      num_searches: searches side by side; None for a number that suits the devices.
      checkpoint, checkpoint_every, resume: as in `solve`, with the placements found so far. A run
        that resumes has as many searches as before; more placements or steps may be wanted.
      devices: as in `solve`; by default all.
      show_progress: as in `solve`.

    Raises:
      ValueError: if an argument is out of range.
      CheckpointError, OSError: as `solve`.
      MemoryError: if the searches do not fit into memory, or a device runs out of it.

    Example:
      >>> result = solve_nqueens(8, num_solutions=12, distinct="symmetry")
      >>> result.solutions.shape, result.success
      ((12, 8), True)
    """
    refuse_tracers(key, caller="solve_nqueens")
    options = resolve(
        max_steps=max_steps,
        max_seconds=max_seconds,
        devices=devices,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        resume=resume,
        show_progress=show_progress,
        most_steps=MAX_INT32,
        default_seconds=DEFAULT_SECONDS,
    )
    with memory.memory_errors_explained(f"n={n}"), options.team.same_call() as note:
        problem, num_solutions = nqueens(n), check_count("num_solutions", num_solutions)
        check_option("distinct", distinct, ("raw", "symmetry"))
        if num_searches is not None:
            num_searches = check_count("num_searches", num_searches)
        words, finds = random.as_key(key), PlacementSet(num_solutions, distinct, problem.n)
        note(n, num_solutions, fingerprint(words), distinct, num_searches)
        if problem.n >= _MANY:
            least, device = _BYTES * problem.n, options.team.own[0]
            memory.check_bytes(least, f"n is {n}", device, " at least", "fewer queens")
            run = Repairs(problem, words, finds, options)
        else:
            run = Searches(problem, words, finds, options, num_searches)
    return chunks.drive(options, f"n={n}", run.begin)
