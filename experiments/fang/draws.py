"""Whether what is drawn follows the weights: chi-square tests over many keys."""

import dataclasses
import functools
import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxopt_search as js
from experiments import common
from experiments.common import Job
from experiments.fang.runs import devices_of
from jaxopt_search.backends.memory import load, store

_FEWEST_EXPECTED = 10
"""Draws that are expected in a bin; possibilities of too small weight share one."""


def shapes() -> dict[str, np.ndarray]:
    """Returns weights by name, each [R] uint32."""
    rng, most = np.random.default_rng(0), 2**32 - 1
    falling = np.arange(4488, 0, -1)
    sparse = np.where(rng.random(4096) < 1 / 16, rng.integers(1, 1000, 4096), 0)
    last = np.zeros(777)
    last[-1] = 5
    named = {
        "one of one": np.ones(1),
        "1 to 3": np.array([1, 3]),
        "equal": np.ones(1224),
        "falling": falling,
        "halves": 2.0 ** np.arange(30, -2, -1) // 1,
        "geometric 0.97": (2**31 * 0.97 ** np.arange(1224)) // 1,
        "sparse": sparse,
        "only the last": last,
        "random words": rng.integers(0, most, 1000, endpoint=True),
        "all of 32 bits": np.full(1000, most),
        "a giant beside dwarfs": np.where(np.arange(1000) == 500, most, most // 1000),
        "alternating": np.where(np.arange(9800) % 2, most, 0),
    }
    return {name: weights.astype(np.uint32) for name, weights in named.items()}


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True, kw_only=True)
class ByWeight:
    """Possibilities whose weights are the problem, [R] uint32; all variables have the same.

    A state is [V] int32.
    """

    num_variables: int
    max_possibilities: int

    is_portable = True

    def rate(self, problem: jax.Array, state: jax.Array, variable: jax.Array, possibility: Any):
        return load(problem, possibility)

    def weight(self, problem: jax.Array, rating: jax.Array, aggregates: tuple[()]):
        return rating

    def assign(self, problem: Any, state: Any, variable: Any, possibility: Any, where: Any):
        return store(state, variable, possibility, where)


def sample(weights: np.ndarray, way: str, num_draws: int, seed: int) -> np.ndarray:
    """Returns how often each possibility was drawn, in about this many draws.

    Each key draws for 16 variables of 512 states.
    """
    states, variables = 512, 16
    heuristic = ByWeight(num_variables=variables, max_possibilities=len(weights))
    counts = np.zeros(len(weights), np.int64)
    (device,) = devices_of(way, 1)
    with jax.default_device(device):
        problem = jnp.asarray(weights)
        for number in range(max(1, num_draws // (states * variables))):
            found = js.successors.generate(
                seed * 2**20 + number,
                heuristic,
                problem,
                jnp.full((states, variables), -1, jnp.int32),
                implementation=way,
                devices=device,
            )
            counts += np.bincount(np.ravel(found.states), minlength=len(weights))
    return counts


def chi_square_of(counts: np.ndarray, weights: np.ndarray) -> tuple[float, int]:
    """Returns chi-square of counts, and its degrees of freedom: one less than there are bins.

    The possibilities of lowest weight share bins, in which ten draws are expected or more.
    """
    expected = counts.sum() * (weights / weights.sum(dtype=np.float64))
    order = np.argsort(-expected, kind="stable")
    order = order[expected[order] > 0]
    # A bin ends where it holds enough; what is left over joins the last one.
    ends, held = [], 0.0
    for place, number in enumerate(order):
        held += expected[number]
        if held >= _FEWEST_EXPECTED:
            ends.append(place + 1)
            held = 0.0
    starts = [0, *ends[:-1]]
    in_bins = [np.add.reduceat(values[order], starts) for values in (counts, expected)]
    chi_square = float(np.sum((in_bins[0] - in_bins[1]) ** 2 / in_bins[1]))
    return chi_square, len(starts) - 1


def chance_above(chi_square: float, degrees: int) -> float:
    """Returns the chance of more than this chi-square.

    By its cube root, which is nearly normal (Wilson, Hilferty, "The distribution of chi-square",
    1931): right to 0.01 from three degrees of freedom on, and for fewer where it is below a half.
    """
    if degrees == 0:
        return 1.0
    spread = 2 / (9 * degrees)
    deviation = ((chi_square / degrees) ** (1 / 3) - (1 - spread)) / spread**0.5
    return math.erfc(deviation / 2**0.5) / 2


def measure(name: str, weights: np.ndarray, way: str, num_draws: int, seed: int) -> dict[str, Any]:
    """Returns the record of draws by some weights."""
    counts = sample(weights, way, num_draws, seed)
    chi_square, degrees = chi_square_of(counts, weights)
    return common.record(
        "fang_draws",
        name,
        seed,
        {"way": way, "draws": num_draws},
        devices_of(way, 1),
        possibilities=len(weights),
        sum=int(weights.sum(dtype=np.uint64)),
        draws=int(counts.sum()),
        forbidden=int(np.sum(weights == 0)),
        forbidden_drawn=int(counts[weights == 0].sum()),
        degrees=degrees,
        chi_square=chi_square,
    )


def jobs(ways: list[str], num_draws: int, seeds: range, names: list[str] | None) -> list[Job]:
    """Returns the draws by weights of these names; None for all."""
    found = []
    for way, (name, weights), seed in itertools.product(ways, shapes().items(), seeds):
        if names is None or name in names:
            make = functools.partial(measure, name, weights, way, num_draws, seed)
            settings = {"way": way, "draws": num_draws}
            found.append(Job(settings, name, seed, f"{name}, {way}", make))
    return found
