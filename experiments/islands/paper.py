"""The figures of Tsutsui and Fujimoto, "An Analytical Study of GPU Computation for Solving QAPs by
Parallel Evolutionary Computation with Independent Run", Tables I to III.

Seconds until an acceptable assignment is found: the best known cost, within 0.06 % of it on tai50b.
An island has 128 individuals. One core of an Intel Core i7 965, one and two NVIDIA GTX 285.
"""

from typing import NamedTuple

INSTANCES = (
    "tai25b",
    "kra30a",
    "kra30b",
    "tai30b",
    "kra32",
    "tai35b",
    "ste36b",
    "tai40b",
    "tai50b",
)
FLOW = dict.fromkeys(INSTANCES, 2) | {"kra32": 1}
"""Which matrix of an instance's QAPLIB file, the first or the second, is f of equation 1: the flow.

The other one holds the distances d: it is symmetric and has hardly a zero off its diagonal, as
between places on a grid or in the plane. In equation 1 an individual maps facilities to locations.
With the matrices exchanged it maps locations to facilities: the same costs, but other children.
"""
POPULATION = 128
"""Individuals of an island."""
GAPS = {"tai50b": 0.0006}
"""How far above the best known cost is acceptable, where that is not 0."""


class Restart(NamedTuple):
    """A line of Table I: successes of 30 runs of one island on the CPU, and their mean seconds."""

    without: int
    with_: int
    seconds: float


class Islands(NamedTuple):
    """Seconds of Table II with 1, 30 (one GPU) and 60 islands (two), and M(30) and M(60)."""

    one: float
    thirty: float
    sixty: float
    predicted_thirty: float
    predicted_sixty: float


class OneThread(NamedTuple):
    """Of Table III: seconds on one core with a tuned population, its size, and with 128."""

    tuned: float
    size: int
    same: float


_TABLE_1 = (
    (6, 30, 0.07),
    (1, 30, 10.03),
    (0, 30, 25.20),
    (0, 30, 3.96),
    (0, 30, 10.70),
    (0, 30, 29.69),
    (0, 30, 17.00),
    (1, 30, 6.96),
    (0, 30, 48.07),
)
_TABLE_2 = (
    (2.02, 0.21, 0.19, 0.03, 0.00),
    (34.25, 1.35, 0.70, 0.79, 0.34),
    (113.69, 3.17, 1.63, 2.92, 1.21),
    (14.31, 0.71, 0.46, 0.45, 0.16),
    (56.18, 2.13, 1.12, 1.78, 0.83),
    (92.08, 3.67, 1.65, 3.25, 1.66),
    (70.82, 2.57, 1.35, 1.63, 0.66),
    (19.07, 1.15, 0.90, 0.46, 0.12),
    (212.55, 8.75, 4.28, 6.19, 2.72),
)
_TABLE_3 = (
    (0.82, 128, 0.82),
    (6.64, 1024, 21.45),
    (25.20, 128, 25.20),
    (2.05, 512, 3.96),
    (10.70, 128, 10.70),
    (12.16, 512, 29.64),
    (15.07, 256, 16.99),
    (4.44, 512, 6.98),
    (18.76, 512, 48.07),
)
TABLE_1 = {name: Restart(*row) for name, row in zip(INSTANCES, _TABLE_1, strict=True)}
TABLE_2 = {name: Islands(*row) for name, row in zip(INSTANCES, _TABLE_2, strict=True)}
TABLE_3 = {name: OneThread(*row) for name, row in zip(INSTANCES, _TABLE_3, strict=True)}
