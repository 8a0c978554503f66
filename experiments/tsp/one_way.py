"""How good the tours of `solve_tsp` are where distances depend on the direction.

    python -m experiments.tsp.one_way --sizes 40,60,100 --seconds 2 --seeds 6

Uniformly random distances from 0 to 999, each pair of cities by itself. Gaps are to the shortest
cycles through all cities (the assignment problem), a lower bound: those to the optimum are smaller.
And graphs with a tour of random edges among three one-way edges for each city, others being
forbidden: whether a tour is found that has none of these.
"""

import argparse
import sys
from collections.abc import Sequence

import numpy as np

import jaxopt_search as js
from experiments import common, flag_types


def random_distances(n: int, seed: int) -> tuple[np.ndarray, float]:
    """Returns [n, n] distances and a lower bound of the shortest tour."""
    from scipy.optimize import linear_sum_assignment

    distances = np.random.default_rng(seed).integers(0, 1000, (n, n)).astype(float)
    np.fill_diagonal(distances, np.inf)
    bound = float(distances[linear_sum_assignment(distances)].sum())
    np.fill_diagonal(distances, 0)
    return distances, bound


def few_edges(n: int, seed: int) -> np.ndarray:
    """Returns [n, n] distances, +inf but for about three edges from each city."""
    rng = np.random.default_rng(seed)
    distances, tour = np.full((n, n), np.inf), rng.permutation(n)
    distances[tuple(rng.integers(0, n, (2, 2 * n)))] = rng.integers(1, 100, 2 * n)
    distances[tour, np.roll(tour, -1)] = rng.integers(1, 100, n)
    return distances


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints a line for each size, and returns the exit status."""
    flags = argparse.ArgumentParser(prog="experiments.tsp.one_way")
    flags.add_argument("--sizes", type=flag_types.words, default=["40", "60", "100"])
    flags.add_argument("--seconds", type=float, default=1.0)
    flags.add_argument("--seeds", type=flag_types.positive, default=2, help="how many, from 0 on")
    args = flags.parse_args(arguments)
    common.use_cpu_cores()
    for n in map(int, args.sizes):
        gaps, found = [], 0
        for seed in range(args.seeds):
            distances, bound = random_distances(n, seed)
            gaps.append(js.solve_tsp(distances, seed, max_seconds=args.seconds).fun / bound - 1)
            options = {"forbidden": "inf", "max_seconds": args.seconds}
            found += js.solve_tsp(few_edges(n, seed), seed, **options).feasible
        print(f"{n} cities: {np.mean(gaps):.2%} above the bound, {max(gaps):.2%} at most;")
        print(f"  of few edges, {found} of {args.seeds} tours without a forbidden one", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
