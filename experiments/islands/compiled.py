"""The islands' genetic algorithm compiled for one core: the sequential baseline on the QAP.

One population of Tsutsui and Fujimoto's algorithm as plain loops, children made position by
position as their Figure 7 has it; but for its random numbers, the same as `js.genetic`. It needs
numba, from the extra `peers`.
"""

from typing import Any, NamedTuple

import numpy as np


class Setup(NamedTuple):
    """What a run is; as in `js.genetic`.

    Attributes:
      population: individuals.
      mutation: the rate of mutation.
      alike: the share of individuals with the lowest cost at which the population restarts; above
        1 for never.
      restart_every: generations between looks at that.
    """

    population: int = 128
    mutation: float = 1.0
    alike: float = 0.6
    restart_every: int = 50


def build(compile_fn: Any) -> Any:
    """Returns `loop(flow, distance, setup, seed, generations, target)`, a run.

    It ends at `target`, or after this many generations. The matrices are [n, n] int32. It returns
    the generations made, the lowest cost, and [n] integers, an assignment of this cost.
    """
    fill, breed = _filler(compile_fn), _breeder(compile_fn)

    @compile_fn
    def loop(flow, distance, setup, seed, generations, target):
        size, mutation, alike, restart_every = setup
        np.random.seed(seed)  # noqa: NPY002
        n = len(flow)
        population, children = np.zeros((size, n), np.int32), np.zeros((size, n), np.int32)
        costs, child_costs = np.zeros(size, np.int64), np.zeros(size, np.int64)
        fill(flow, distance, population, costs)
        best, lowest, made = population[np.argmin(costs)].copy(), costs.min(), 0
        while made < generations and lowest > target:
            is_due = made % restart_every == 0 and made > 0
            if is_due and np.sum(costs == costs.min()) >= alike * size:
                fill(flow, distance, population, costs)
            for i in range(size):
                child_costs[i] = breed(flow, distance, population, i, mutation, children[i])
            for i in range(size):
                if child_costs[i] < costs[i]:
                    costs[i] = child_costs[i]
                    population[i] = children[i]
            made += 1
            where = np.argmin(costs)
            if costs[where] < lowest:
                lowest = costs[where]
                best = population[where].copy()
        return made, lowest, best

    return loop


def _filler(compile_fn: Any) -> Any:
    """Returns what makes a random population and its costs."""
    below, price = compile_fn(_below), compile_fn(cost)

    @compile_fn
    def fill(flow, distance, population, costs):
        for i in range(len(population)):
            for k in range(population.shape[1]):  # Fisher and Yates
                other = below(k + 1)
                population[i, k] = population[i, other]
                population[i, other] = k
            costs[i] = price(flow, distance, population[i])

    return fill


def _breeder(compile_fn: Any) -> Any:
    """Returns what writes the child of individual `i` into `child`, and returns its cost."""
    below, make_child, price = map(compile_fn, (_below, pmx, cost))

    @compile_fn
    def breed(flow, distance, population, i, mutation, child):
        size, n = population.shape
        partner = below(size - 1)
        partner += partner >= i
        cut = below(n)
        other = below(n - 1)
        other += other >= cut
        start, end = min(cut, other), max(cut, other)
        make_child(population[i], population[partner], start, end, child)
        if np.random.random() < mutation:  # noqa: NPY002
            a = below(n)
            b = below(n - 1)
            b += b >= a
            child[a], child[b] = child[b], child[a]
        return price(flow, distance, child)

    return breed


def _below(n):
    return int(np.random.random() * n)  # noqa: NPY002, what numba knows


def pmx(first, second, start, end, child):
    """Writes the child of two permutations into `child`: Figure 7 of the paper.

    It has the values of `second` at the positions from `start` to `end` - 1.
    """
    for j in range(len(first)):
        child[j] = first[j]
    for i in range(start, end):
        for j in range(len(first)):
            if second[i] == child[j]:
                child[i], child[j] = child[j], child[i]
                break


def cost(flow, distance, assignment):
    """Returns the cost of an assignment, equation 1 of the paper."""
    n, total = len(assignment), 0
    for i in range(n):
        location = assignment[i]
        for j in range(n):
            total += flow[i, j] * distance[location, assignment[j]]
    return total
