"""How many bytes per second a device copies: the ceiling of what moves tables through its memory.

    python -m experiments.benchmark.bandwidth
    python -m experiments.benchmark.bandwidth --mebibytes 4096 --out bandwidth.jsonl

An array is copied within the memory of one device, some times over; bytes read and written count
both. It should be much larger than the device's caches.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from statistics import median

import jax
import jax.numpy as jnp
from jax import lax

from experiments import common, flag_types

_COPIES = 20
_REPETITIONS = 5


def measure(mebibytes: int) -> list[float]:
    """Returns bytes per second, one number for each repetition."""
    array = jnp.arange(mebibytes * 2**18, dtype=jnp.int32)

    @jax.jit
    def copies(array: jax.Array) -> jax.Array:
        # One bit is changed, or nothing would be copied.
        return lax.fori_loop(0, _COPIES, lambda i, array: array ^ 1, array)

    jax.block_until_ready(copies(array))
    rates = []
    for _ in range(_REPETITIONS):
        began = time.perf_counter()
        jax.block_until_ready(copies(array))
        rates.append(2 * array.nbytes * _COPIES / (time.perf_counter() - began))
    return rates


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""
    flags = argparse.ArgumentParser(
        prog="experiments.benchmark.bandwidth",
        description="How many bytes per second a device copies.",
    )
    flags.add_argument(
        "--mebibytes", type=flag_types.positive, default=256, help="size of the array"
    )
    common.add_out_argument(flags, "bandwidth")
    args = flags.parse_args(arguments)
    rates = measure(args.mebibytes)
    device = jax.devices()[0]
    if args.out:
        record = {"experiment": "bandwidth", "settings": {"mebibytes": args.mebibytes}}
        common.append(args.out, record | {"bytes_per_s": rates} | common.provenance([device]))
    low, high = min(rates), max(rates)
    print(f"{device.device_kind}: {median(rates):.3g} bytes/s read and written")
    print(f"{low:.3g} to {high:.3g} over {len(rates)} repetitions of {_COPIES} copies")
    return 0


if __name__ == "__main__":
    sys.exit(main())
