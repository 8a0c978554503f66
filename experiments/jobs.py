"""Runs that are to be made one after the other, unless they are in the file already."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from experiments.common import Progress, Runs


class Job(NamedTuple):
    """A run that is to be made.

    Attributes:
      settings: with the instance and the seed, what tells it from others; as in its record.
      text: what is shown when it is made.
      make: makes it and returns its record.
    """

    settings: dict[str, Any]
    instance: str
    seed: int
    text: str
    make: Callable[[], dict[str, Any]]


def make_missing(jobs: Sequence[Job], runs: Runs) -> list[dict[str, Any]]:
    """Makes the runs that are not in the file yet; returns the records of all."""
    progress = Progress(len(jobs))
    for job in jobs:
        if runs.has(job.settings, job.instance, job.seed):
            progress.skip(1)
            continue
        runs.add(job.make())
        progress.step(1, job.text)
    return runs.those([(job.settings, job.instance, job.seed) for job in jobs])
