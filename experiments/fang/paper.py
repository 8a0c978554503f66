"""The figures of Köster, Groß and Krüger, "FANG: Fast and Efficient Successor-State Generation for
Heuristic Optimization on GPUs", Tables 1 and 2: milliseconds, medians of 100 executions.

All variables of all states get a new value once. An NVIDIA GeForce GTX 1080 Ti and GTX Titan X, an
Intel Core i9 7940X of 14 cores and an AMD Ryzen 7 2700X of eight, on all of their cores.
"""

from typing import NamedTuple

CORES = {"i9 7940X": 14, "R. 2700X": 8}


class Row(NamedTuple):
    """What is assigned in a row of a table; of both tables a key.

    Attributes:
      load: goals, and so distances computed for each possibility.
      states: how many there are.
      variables: of a state; all of them are active.
      possibilities: of a variable.
    """

    load: int
    states: int
    variables: int
    possibilities: int


class Time(NamedTuple):
    """Milliseconds, and their standard deviation."""

    median: float
    deviation: float


MACHINES_1 = ("1080 Ti", "Titan X", "i9 7940X", "R. 2700X")
MACHINES_2 = ("1080 Ti", "i9 7940X")

_TABLE_1 = (
    (1024, 8, 1224, 2.20, 0.09, 3.04, 0.12, 3.26, 0.72, 4.61, 0.20),
    (1024, 8, 4488, 3.34, 0.14, 4.73, 0.10, 10.42, 1.16, 14.95, 1.21),
    (1024, 8, 9800, 5.05, 0.33, 7.66, 0.10, 22.28, 1.43, 31.06, 1.12),
    (1024, 32, 1224, 6.97, 0.63, 10.85, 0.44, 11.06, 1.40, 16.03, 0.91),
    (1024, 32, 4488, 9.85, 0.89, 17.13, 0.13, 40.02, 1.29, 56.18, 1.82),
    (1024, 32, 9800, 16.90, 1.22, 28.49, 0.22, 87.31, 1.81, 121.75, 2.64),
    (4096, 8, 1224, 6.48, 0.57, 11.54, 0.11, 12.08, 1.44, 16.73, 0.49),
    (4096, 8, 4488, 9.84, 0.71, 17.75, 0.12, 40.18, 1.54, 55.50, 1.40),
    (4096, 8, 9800, 16.94, 0.98, 30.13, 0.10, 85.09, 1.79, 118.61, 2.25),
    (4096, 32, 1224, 23.27, 1.47, 44.33, 0.44, 42.21, 1.79, 60.32, 1.31),
    (4096, 32, 4488, 37.78, 2.19, 70.08, 0.69, 154.70, 1.96, 217.85, 3.86),
    (4096, 32, 9800, 66.30, 1.75, 118.56, 0.53, 336.196, 3.96, 471.87, 6.80),
)
_TABLE_2 = (
    (1, 1024, 8, 1224, 2.20, 0.09, 3.26, 0.72),
    (8, 1024, 8, 1224, 1.88, 0.05, 7.81, 0.11),
    (16, 1024, 8, 1224, 1.82, 0.02, 14.05, 0.15),
    (1, 1024, 8, 4488, 3.34, 0.14, 10.42, 1.16),
    (8, 1024, 8, 4488, 3.40, 0.13, 27.39, 0.47),
    (16, 1024, 8, 4488, 2.75, 0.02, 50.11, 0.55),
    (1, 4096, 8, 1224, 6.48, 0.57, 12.08, 1.44),
    (8, 4096, 8, 1224, 6.26, 0.03, 29.42, 0.28),
    (16, 4096, 8, 1224, 6.26, 0.02, 53.70, 0.44),
    (1, 4096, 8, 4488, 9.84, 0.71, 40.18, 1.54),
    (8, 4096, 8, 4488, 10.00, 0.89, 104.61, 0.86),
    (16, 4096, 8, 4488, 9.91, 0.70, 193.39, 0.98),
)


def _times(machines: tuple[str, ...], numbers: tuple[float, ...]) -> dict[str, Time]:
    pairs = zip(numbers[::2], numbers[1::2], strict=True)
    return {name: Time(*pair) for name, pair in zip(machines, pairs, strict=True)}


TABLE_1 = {Row(1, *row[:3]): _times(MACHINES_1, row[3:]) for row in _TABLE_1}
TABLE_2 = {Row(*row[:4]): _times(MACHINES_2, row[4:]) for row in _TABLE_2}
"""Of each row the time on each machine, in the order of the paper."""
