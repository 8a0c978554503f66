"""Solvers of QUBOs, for `__main__`: how each is called.

Maximum cuts of the G-set's graphs (`experiments.finite.gset`) are QUBOs, too: an edge counts once
its ends differ. dwave-samplers has an annealer and a tabu search; neither is needed to import this.
"""

import time
from collections.abc import Sequence
from concurrent import futures
from importlib import metadata
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import jaxopt_search as js
from experiments.finite import gset
from experiments.peers.solver import Ours, Points, Solver

_THREADS = 2
_SWEEPS = 100
"""Of a run of the annealer."""


class Instance(NamedTuple):
    """A QUBO, to be minimized.

    Attributes:
      matrix: [n, n] integers, above the diagonal and on it; a vector x costs x' matrix x.
    """

    name: str
    n: int
    matrix: sparse.coo_array
    best_known: int


# Of Palubeckis, by `js.datasets.random_qubo`. Best sums: Glover, Lü, Hao, "Diversification-driven
# tabu search for unconstrained binary quadratic problems", 2010.
_SUMS = {
    3000: (3931583, 5193073, 5111533, 5761822, 5675625),
    4000: (6181830, 7801355, 7741685, 8711822, 8908979),
    5000: (8559680, 10836019, 10489137, 12252318, 12731803),
}
_DENSITIES = 0.5, 0.8, 0.8, 1.0, 1.0
_DENSE = {
    f"p{n}.{k + 1}": (n, _DENSITIES[k], 10 * n + 1000 * (k + 1), best)
    for n, sums in _SUMS.items()
    for k, best in enumerate(sums)
}


def instances(names: Sequence[str] | None, data: str | None) -> list[Instance]:
    """Returns QUBOs by name, all made by rule; without names, a torus and a random graph."""
    del data
    return [_dense(name) if name in _DENSE else _cut(name) for name in names or ("G11", "G43")]


def _dense(name: str) -> Instance:
    n, density, seed, best = _DENSE[name]
    matrix = js.datasets.random_qubo(n, density, seed)
    return Instance(name, n, sparse.coo_array(-(np.triu(matrix) + np.triu(matrix, 1))), -best)


def _cut(name: str) -> Instance:
    if name not in gset.GRAPHS:
        raise ValueError(f"unknown instance {name!r}, expected some of {[*gset.GRAPHS, *_DENSE]}")
    graph = gset.graph(name)
    ends, weights = graph.edges, np.repeat(graph.weights, 2)
    alone = np.bincount(ends.ravel(), weights, graph.n).astype(np.int64)
    numbers = np.concatenate([2 * graph.weights, -alone])
    places = np.vstack([ends, np.repeat(np.arange(graph.n)[:, None], 2, axis=1)])
    matrix = sparse.coo_array((numbers, (places[:, 0], places[:, 1])), (graph.n, graph.n))
    return Instance(name, graph.n, matrix, -gset.best(name))


def cost(instance: Instance, solution: Sequence[int]) -> int:
    """Returns the exact cost of zeros and ones."""
    x = np.asarray(solution, np.int64)
    if x.shape != (instance.n,) or not np.isin(x, (0, 1)).all():
        raise ValueError(f"the solution is not {instance.n} zeros and ones")
    return int(x @ (instance.matrix @ x))


class JaxoptSearch(Ours):
    """`js.solve_qubo` with its defaults."""

    call = staticmethod(js.solve_qubo)

    def prepare(self, instance: Instance) -> js.Problem:
        """Returns the problem."""
        return js.qubo(instance.matrix)


class Annealer(Solver):
    """The annealer of dwave-samplers ("neal"), one read in each of two threads.

    A run is 100 sweeps: the next limit cools twice as slowly.
    """

    name, unit, first = "dwave annealing", "runs", 1.0
    runs_on, sampler = f"{_THREADS} threads", "SimulatedAnnealingSampler"

    def __init__(self):
        import dimod
        from dwave import samplers

        self._dimod, self._sampler = dimod, getattr(samplers, self.sampler)()
        self.version = metadata.version("dwave-samplers")

    def _options(self, limit: float, target: int) -> dict[str, Any]:
        return {"num_sweeps": int(_SWEEPS * limit)}

    def prepare(self, instance: Instance) -> Any:
        """Returns the binary quadratic model."""
        rows, columns = instance.matrix.coords
        values, alone = instance.matrix.data.astype(float), rows == columns
        linear = np.zeros(instance.n)
        linear[rows[alone]] = values[alone]
        pairs = rows[~alone], columns[~alone], values[~alone]
        return self._dimod.BinaryQuadraticModel.from_numpy_vectors(linear, pairs, 0.0, "BINARY")

    def solve(self, data: Any, seed: int, limit: float, target: int) -> tuple[Any, Points]:
        """Returns the best of the threads' solutions."""
        began, options = time.perf_counter(), self._options(limit, target)

        def read(number: int) -> Any:
            own = seed * _THREADS + number
            return self._sampler.sample(data, num_reads=1, seed=own, **options).first

        with futures.ThreadPoolExecutor(_THREADS) as pool:
            best = min(pool.map(read, range(_THREADS)), key=lambda found: found.energy)
        passed = time.perf_counter() - began
        solution = [best.sample[variable] for variable in range(len(best.sample))]
        return solution, [(passed, round(best.energy))]


class Tabu(Annealer):
    """The tabu search of dwave-samplers, one in each of two threads."""

    name, unit, first, sampler = "dwave tabu", "seconds", 0.05, "TabuSampler"

    def prepare(self, instance: Instance) -> Any:
        """Likewise; it takes minutes to begin with more than 10,000 variables."""
        if instance.n > 10_000:
            raise ValueError(f"it has {instance.n} variables, expected at most 10000")
        return super().prepare(instance)

    def _options(self, limit: float, target: int) -> dict[str, Any]:
        return {"timeout": int(1000 * limit), "energy_threshold": target}


SOLVERS = {
    "jaxopt_search": JaxoptSearch,
    "dwave annealing": Annealer,
    "dwave tabu": Tabu,
}
