"""The figures of Luong, Melab, Talbi, "Parallel local search on GPU: algorithmic level", Table 1.

Seconds for 30 executions of 4096 local searches, on one core of an Intel Xeon at 3 GHz and on an
NVIDIA GTX 280, which holds the matrices in global or in texture memory. The paper does not say how
many iterations a search makes, so the seconds compare with one another only.
"""

from typing import NamedTuple


class Seconds(NamedTuple):
    """Of one algorithm on one instance."""

    cpu: float
    gpu: float
    texture: float


INSTANCES = ("tai30a", "tai35a", "tai40a", "tai50a", "tai60a", "tai80a", "tai100a")

_COLUMNS = {
    "hc": (
        (5.48, 10.71, 17.18, 44.56, 88.32, 302.43, 810.39),
        (3.19, 4.99, 7.44, 15.79, 30.06, 90.45, 224.51),
        (0.75, 1.38, 2.43, 6.69, 15.34, 56.28, 143.78),
    ),
    "sa": (
        (412.64, 636.13, 874.44, 1672.63, 2699.89, 6807.88, 13960.69),
        (92.39, 147.04, 228.98, 428.79, 749.51, 1720.87, 3459.15),
        (34.52, 57.05, 90.35, 205.74, 412.91, 1186.13, 2426.11),
    ),
    "ts": (
        (335.57, 531.35, 725.39, 1539.60, 2439.86, 6097.61, 13004.76),
        (85.41, 152.08, 228.49, 414.50, 712.74, 1632.36, 3222.01),
        (31.14, 51.06, 77.71, 176.29, 355.59, 993.25, 2083.35),
    ),
}

TABLE_1: dict[tuple[str, str], Seconds] = {
    (algorithm, instance): Seconds(*(row[k] for row in rows))
    for algorithm, rows in _COLUMNS.items()
    for k, instance in enumerate(INSTANCES)
}
"""By algorithm (`hc`, `sa` or `ts`) and instance."""
