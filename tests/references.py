"""Slow code that reads like its source, with which several tests compare."""

import functools

import jax
import jax.numpy as jnp

from jaxopt_search.backends import random

# Salmon et al., Random123: rounds, counter, key, output.
KNOWN_VECTORS = [
    (13, (0, 0), (0, 0), (0x9D1C5EC6, 0x8BD50731)),
    (13, (0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0xFD36D048, 0x2D17272C)),
    (13, (0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xBA3E4725, 0xF27D669E)),
    (20, (0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    (20, (0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0x1CB996FC, 0xBB002BE7)),
    (20, (0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
    (32, (0, 0), (0, 0), (0xCEE3D47E, 0xA23DFD5C)),
    (32, (0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0x6E2FE0D0, 0xB1B76F82)),
]


def stream_at(step):
    """The random words of one search at a step."""
    key = random.Key(jnp.uint32(7), jnp.uint32(8))
    return random.Stream(key, jnp.uint32(step), jnp.int32(step))


@functools.partial(jax.jit, static_argnums=3)
def course(problem, search, state, num_steps):
    """Returns the states of one search after each step, and what the steps tell."""

    def step(state, i):
        stream = stream_at(i)
        state, info = search.step(stream, search.control(stream.step), problem, state)
        return state, (state, info)

    return jax.lax.scan(step, state, jnp.arange(num_steps, dtype=jnp.uint32))[1]


def below(word, size):
    """What `random.below` draws, of Python's integers."""
    return word * size >> 32


def another(word, number, size):
    """What `random.another` draws."""
    other = below(word, size - 1)
    return other + (other >= number)


def slow_pmx(first, second, is_second):
    """Position by position, along chains of values."""
    matched = {second[i]: first[i] for i in range(len(first)) if is_second[i]}
    child = []
    for own, other, takes_other in zip(first, second, is_second, strict=True):
        value = other if takes_other else own
        while not takes_other and value in matched:
            value = matched[value]
        child.append(value)
    return child


def slow_ox(first, second, is_second, start):
    """What is missing goes into the gaps, both from `start` on."""
    n = len(first)
    taken = {value for value, is_taken in zip(second, is_second, strict=True) if is_taken}
    around = [(start + k) % n for k in range(n)]
    missing = iter([first[i] for i in around if first[i] not in taken])
    child = list(second)
    for i in around:
        if not is_second[i]:
            child[i] = next(missing)
    return child


def swaps(problem, assignment):
    """Yields (facility, location, cost afterwards) in the order of the table of moves."""
    for facility in range(problem.n):
        for location in range(problem.n):
            if assignment[facility] != location:
                other = list(assignment).index(location)
                after = assignment.copy()
                after[[facility, other]] = assignment[[other, facility]]
                yield facility * problem.n + location, after, problem.host.cost(after)


def undoing_swaps(problem, assignment):
    """Yields the swaps as `slow_tabu` wants them: each undoes where both facilities are."""
    n = problem.n
    for entry, after, cost in swaps(problem, assignment):
        both = entry // n, list(assignment).index(entry % n)
        yield entry, after, cost, [u * n + int(assignment[u]) for u in both]


def climb(problem, assignment, choose):
    """Returns the local optimum to which a slow hill climbing comes, and the moves it takes."""
    cost, entry, moves = problem.host.cost(assignment), 0, 0
    while True:
        better = [swap for swap in swaps(problem, assignment) if swap[2] < cost]
        if not better:
            return assignment, moves
        by_turn = sorted(better, key=lambda swap: (swap[0] - entry) % problem.n**2)
        entry, assignment, cost = by_turn[0]
        if choose == "best":
            entry, assignment, cost = min(better, key=lambda swap: swap[2])
        moves += 1


def slow_tabu(solution, cost, until, moves, tenures, age):
    """Yields the solution and the lowest cost after each step of Taillard's tabu search.

    Args:
      until: of each entry of the table of moves, the last step in which it is forbidden; changed.
      moves: maps a solution to its moves: entry, solution and cost afterwards, entries undone.
      tenures: maps a step and the cost before it to how long each entry undone is forbidden.
      age: steps after which an entry that was not made is allowed whatever it costs.
    """
    best, now = cost, 0
    while True:
        ranked = []
        for entry, after, cost_after, undone in moves(solution):
            last = until[entry]
            if cost_after < best or last < now - age:
                key = 0, cost_after
            elif last < now:
                key = 1, cost_after
            else:
                key = 2, last
            ranked.append((key, entry, after, cost_after, undone))
        if ranked:
            lengths = tenures(now, cost)
            _, _, solution, cost, undone = min(ranked, key=lambda one: one[:2])
            for entry, length in zip(undone, lengths, strict=True):
                until[entry] = now + length
        best, now = min(best, cost), now + 1
        yield solution, best
