"""Binary sequences of low autocorrelation: a cost of one's own in plain JAX, in a kernel.

    python -m experiments.finite.autocorrelation --signs 27,40 --seconds 20
    python -m experiments.finite.autocorrelation --signs 60,61,62 --seeds 5 --out labs.jsonl
    python -m experiments.finite.autocorrelation --report labs.jsonl --markdown

The energy of n signs is the sum of their squared autocorrelations, and n * n / 2 by the energy is
their merit factor (Golay, "Sieves for low autocorrelation binary sequences", 1977). Tabu search
flips one sign at a time, and prices each flip by the energy of the sequence after it. Runs end at
the least energy there is, which is known up to 66 signs (Packebusch, Mertens, "Low autocorrelation
binary sequences", 2016); here, of some n.
"""

import argparse
import dataclasses
import statistics
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

import jaxopt_search as js
from experiments import common, flag_types
from experiments.common import Job
from experiments.finite import timed_runs
from jaxopt_search.engine.devices import find_devices

LEAST = {27: 37, 40: 108, 60: 218, 61: 226, 62: 235, 63: 207, 64: 208, 65: 240, 66: 257}
_ON_CPU, _ON_GPU = 16, 4224  # searches
_TENURE = 4, 12
_BITS = 32


@js.pytree
@dataclasses.dataclass(frozen=True)
class LowAutocorrelation(js.VectorProblem):
    """Bits that stand for signs: 0 for 1, and 1 for -1.

    Attributes:
      domain_sizes: [n] int32, 2 each.
    """

    domain_sizes: jax.Array
    max_domain = 2

    def init(self, key: jax.Array) -> jax.Array:
        """Returns random bits, [n] int32."""
        return jax.random.bernoulli(key, shape=self.domain_sizes.shape).astype(jnp.int32)

    def cost(self, bits: jax.Array) -> jax.Array:
        """Returns the energy, [] int32: the bits stand in words, and 32 are compared at once."""
        n, energy = bits.shape[0], jnp.int32(0)
        words = [_word(bits[start : start + _BITS]) for start in range(0, n, _BITS)]
        words.append(jnp.uint32(0))
        for shift in range(1, n):
            (skipped, rest), unlike = divmod(shift, _BITS), jnp.int32(0)
            for k in range(-(-(n - shift) // _BITS)):
                low, high = words[k + skipped], words[k + skipped + 1]
                shifted = low >> rest | high << (_BITS - rest) if rest else low
                counted = min(n - shift - k * _BITS, _BITS)
                differs = (words[k] ^ shifted) & jnp.uint32(2**counted - 1)
                unlike += lax.population_count(differs).astype(jnp.int32)
            energy += (n - shift - 2 * unlike) ** 2
        return energy


def _word(bits: jax.Array) -> jax.Array:
    """Returns up to 32 bits as one uint32, the first one the lowest."""
    places = jnp.arange(bits.shape[0], dtype=jnp.uint32)
    return jnp.sum(bits.astype(jnp.uint32) << places, dtype=jnp.uint32)


def low_autocorrelation(n: int) -> LowAutocorrelation:
    """Returns the problem of n signs, at least 2."""
    return LowAutocorrelation(jnp.full(n, 2, jnp.int32))


def jobs_of(args: argparse.Namespace) -> list[Job]:
    """Returns the runs that flags ask for: a job for each number of signs."""
    return [_job(args, n) for n in args.signs]


def _job(args: argparse.Namespace, n: int) -> Job:
    settings = {"way": timed_runs.OURS, "signs": n, "seconds": args.seconds}

    def make(seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
        search = js.tabu_search(js.Flip(), tenure=_TENURE)
        on_cpu = find_devices(args.devices)[0].platform == "cpu"
        for seed in seeds:
            result = js.solve(
                low_autocorrelation(n),
                search,
                seed,
                num_searches=_ON_CPU if on_cpu else _ON_GPU,
                max_seconds=args.seconds,
                target=LEAST.get(n),
                devices=args.devices,
            )
            known = {"experiment": "autocorrelation", "instance": f"labs{n}", "seed": seed}
            known |= {"settings": settings, "energy": result.fun}
            yield known | timed_runs.measured(result, args.devices)

    return Job(settings, f"labs{n}", range(args.seeds), f"{n} signs", make)


def table(records: Sequence[dict[str, Any]], args: argparse.Namespace) -> str:
    """Returns a line for each number of signs; seconds are to the end of a run."""
    rows = []
    for (n, limit), group in timed_runs.by_group(records, "signs", "seconds").items():
        energies, seconds = ([run[name] for run in group] for name in ("energy", "seconds"))
        rate = sum(run["steps"] * run["searches"] * n for run in group) / sum(seconds)
        least, found = LEAST.get(n), min(energies)
        hits = "-" if least is None else f"{energies.count(least)}/{len(group)}"
        row = [str(n), str(least or "-"), f"{limit:g}", str(found), f"{n * n / 2 / found:.2f}"]
        row += [hits, *(common.shown(of(seconds)) for of in (statistics.median, max))]
        rows.append([*row, f"{rate:.2g}"])
    header = "signs | least energy | limit, s | best | its merit factor | least found | median s"
    header += " | longest s | flips priced/s"
    return timed_runs.with_machines(records, common.table(header, rows, markdown=args.markdown))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""
    flags = common.parser("finite.autocorrelation", __doc__, "autocorrelation")
    add, number = flags.add_argument, flag_types.positive
    add("--signs", type=flag_types.integers, default=[27, 40], help="such as 60,61")
    add("--seeds", type=number, default=1, help="runs of each, from 0 on")
    add("--seconds", type=flag_types.limit, default=60.0, help="limit of each run")
    add("--devices", type=flag_types.devices, default="all")
    return common.run_script(flags, arguments, jobs_of, table)


if __name__ == "__main__":
    sys.exit(main())
