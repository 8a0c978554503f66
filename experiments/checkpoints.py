"""What a checkpoint costs: bytes, seconds, and the share of a run at the default interval.

    python -m experiments.checkpoints
    python -m experiments.checkpoints --searches 128 --cities 200 --folder .

Searches anneal random cities by 2-opt, as many as fill a large GPU. Their state is kept as often as
`--times` says, from the device to the disk, and then read. Prints one JSON line.
"""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

import jaxopt_search as js
from experiments import flag_types
from jaxopt_search.driver import checkpoints, environment
from jaxopt_search.driver.checkpoints import Snapshot


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns the exit status."""
    flags = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    flags.add_argument("--searches", type=flag_types.positive, default=8448)
    flags.add_argument("--cities", type=flag_types.positive, default=1000)
    flags.add_argument("--times", type=flag_types.positive, default=5)
    flags.add_argument("--folder", type=pathlib.Path, help="on the disk that is measured")
    args = flags.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        print(json.dumps(measured(args, pathlib.Path(folder, "run.npz"))))
    return 0


def measured(args: argparse.Namespace, path: pathlib.Path) -> dict[str, Any]:
    """Returns what the checkpoints of a run take, seconds as medians."""
    problem = js.tsp_from_coords(np.random.default_rng(0).random((args.cities, 2)))
    search = js.simulated_annealing(js.two_opt(problem), 0.1)
    state = js.init(0, problem, search, num_searches=args.searches)
    best = jax.device_get(js.best(problem, search, state)[0])
    own = checkpoints.identity_of(problem, search, None, 100)
    keeper = checkpoints.Keeper(path, checkpoints.DEFAULT_SECONDS, None)

    def keep() -> None:
        # A copy of its own, as JAX remembers what it has brought to the host.
        fresh = jax.block_until_ready(jax.tree.map(lambda leaf: leaf.copy(), state))
        began = time.perf_counter()
        keeper.write(own, lambda: Snapshot(jax.device_get(fresh), best, {}))
        seconds.append(time.perf_counter() - began)

    seconds: list[float] = []
    for _ in range(args.times):
        keep()
    to_read = _seconds_of(lambda: checkpoints.read(path, own, lambda _: (state, best)))
    to_write = statistics.median(seconds)
    return {
        "searches": args.searches,
        "cities": args.cities,
        "bytes": path.stat().st_size,
        "seconds": round(to_write, 3),
        "seconds_to_resume": round(to_read, 3),
        "share": round(to_write / checkpoints.DEFAULT_SECONDS, 5),
        "env": environment.of(tuple(jax.local_devices()[:1])),
    }


def _seconds_of(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main())
