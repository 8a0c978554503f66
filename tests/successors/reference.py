"""Successor generation once more: slowly, one number after the other, in Python's integers.

Köster, Groß, Krüger, "FANG: Fast and Efficient Successor-State Generation for Heuristic
Optimization on GPUs", Algorithms 1 to 4, with the numbers drawn as the library documents them. It
shares no code with the library, the generator included, so that a fault in one does not hide in
the other. Heuristics are those of `plain.py`, for which a state is any object, changed in place.
"""

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

_ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
_WORD = 2**32
_MAX_LANES = 256
_FOR_STATE, _FOR_SUCCESSOR, _FOR_ORDER = 6, 7, 2**31


class Successors(NamedTuple):
    """The successors of all states, each as an object, with what is known of each.

    Attributes:
      states: successor s of state i is number i * k + s.
      parent: number of its state.
      assigned: for each type the sets of variables that got a value.
    """

    states: list[Any]
    parent: list[int]
    assigned: list[list[set[int]]]


def threefry2x32(key: tuple[int, int], counter: tuple[int, int], rounds: int) -> tuple[int, int]:
    """Returns two words of Threefry-2x32 (Salmon et al., 2011, section 3.3)."""
    schedule = (*key, 0x1BD11BDA ^ key[0] ^ key[1])
    x, y = (counter[0] + key[0]) % _WORD, (counter[1] + key[1]) % _WORD
    for number in range(1, rounds + 1):
        distance = _ROTATIONS[(number - 1) % 8]
        x = (x + y) % _WORD
        y = (y * 2**distance % _WORD + y // 2 ** (32 - distance)) ^ x
        if number % 4 == 0:
            round4 = number // 4
            x = (x + schedule[round4 % 3]) % _WORD
            y = (y + schedule[(round4 + 1) % 3] + round4) % _WORD
    return x, y


def successor_key(key: tuple[int, int], state: int, successor: int) -> tuple[int, int]:
    """Returns the key of all that is drawn for one successor of a state."""
    own = threefry2x32(key, (state, _FOR_STATE), 20)
    return threefry2x32(own, (successor, _FOR_SUCCESSOR), 20)


def num_lanes(max_possibilities: int) -> int:
    """Returns how many possibilities are looked at together: a power of two, at most 256."""
    lanes = 1
    while lanes < max_possibilities and lanes < _MAX_LANES:
        lanes *= 2
    return lanes


def drawn(weights: Sequence[int], random: int, max_possibilities: int) -> int | None:
    """Returns the possibility that a random number below 2**64 picks; None if all weigh nothing.

    The possibilities are lined up lane by lane: those of lane 0 in ascending order, then those of
    lane 1, and so on.
    """
    rest = random * sum(weights) >> 64
    lanes = num_lanes(max_possibilities)
    for lane in range(lanes):
        for possibility in range(lane, len(weights), lanes):
            if rest < weights[possibility]:
                return possibility
            rest -= weights[possibility]
    return None


def aggregated(
    values: Sequence[tuple], combine: Callable, neutral: tuple, max_possibilities: int
) -> tuple:
    """Returns all values combined: those of each lane in ascending order, then lanes by halves."""
    lanes = num_lanes(max_possibilities)
    totals = [neutral] * lanes
    for first in range(0, max_possibilities, lanes):
        for lane in range(lanes):
            beyond = first + lane >= len(values)
            value = neutral if beyond else values[first + lane]
            totals[lane] = combine(totals[lane], value)
    while len(totals) > 1:
        half = len(totals) // 2
        totals = [combine(totals[lane], totals[lane + half]) for lane in range(half)]
    return totals[0]


def weights_of(heuristic: Any, state: Any, variable: int) -> list[int]:
    """Returns the weight of each possibility that the variable has."""
    most = heuristic.max_possibilities
    number = min(max(heuristic.num_possibilities(state, variable), 0), most)
    ratings = [heuristic.rate(state, variable, possibility) for possibility in range(number)]
    is_number = [not any(math.isnan(part) for part in rating) for rating in ratings]
    found = []
    for combine, neutral, of in heuristic.aggregates:
        values = [
            of(rating) if is_number[possibility] else neutral
            for possibility, rating in enumerate(ratings)
        ]
        found.append(aggregated(values, combine, neutral, most))
    return [
        max(int(heuristic.weight(rating, tuple(found))), 0) if is_number[possibility] else 0
        for possibility, rating in enumerate(ratings)
    ]


def next_of(own: tuple[int, int], number: int, turn: int, left: Iterable[int], order: str) -> int:
    """Returns which variable of type `number` has its turn, of those that are left."""
    if order == "fixed":
        return min(left)
    word = threefry2x32(own, (turn, _FOR_ORDER + number), 13)[0]
    left = sorted(left)
    return left[word * len(left) >> 32]


def choose(
    heuristic: Any, state: Any, own: tuple[int, int], number: int, variable: int
) -> int | None:
    """Returns the possibility drawn for a variable of type `number`."""
    high, low = threefry2x32(own, (variable, number), 13)
    weights = weights_of(heuristic, state, variable)
    return drawn(weights, high * _WORD + low, heuristic.max_possibilities)


def assign_type(
    heuristic: Any,
    state: Any,
    own: tuple[int, int],
    number: int,
    active: Iterable[int],
    order: str,
) -> set[int]:
    """Assigns the active variables of one type in place; returns those that got a value."""
    assigned, waiting = set(), set(range(heuristic.num_variables))
    heuristic.before_state(state)
    left, turn, decided = heuristic.active_now(state, set(active)), 0, {}
    if heuristic.independent:
        decided = {v: choose(heuristic, state, own, number, v) for v in left}
    while left:
        variable = next_of(own, number, turn, left, order)
        heuristic.before_variable(state, variable)
        if not heuristic.independent:
            decided[variable] = choose(heuristic, state, own, number, variable)
        if decided[variable] is None:
            heuristic.could_not_assign(state, variable)
        else:
            heuristic.assign(state, variable, decided[variable])
            assigned.add(variable)
        heuristic.after_variable(state, variable)
        waiting.remove(variable)
        left, turn = heuristic.active_now(state, left & waiting) & waiting, turn + 1
    heuristic.after_state(state)
    return assigned


def generate(
    key: tuple[int, int],
    heuristics: Sequence[Any],
    states: Sequence[Any],
    active: Sequence[Sequence[Iterable[int]]] | None = None,
    num_successors: int = 1,
    order: str = "fixed",
) -> Successors:
    """Returns the successors of all states.

    Args:
      key: the two words of the key.
      heuristics: one per type.
      states: any objects that can be copied.
      active: for each type the active variables of each state; None if all are.
      num_successors: of each state.
      order: "fixed" or "random".
    """
    found = Successors([], [], [[] for _ in heuristics])
    for i, source in enumerate(states):
        for s in range(num_successors):
            own, state = successor_key(key, i, s), copy.deepcopy(source)
            for number, heuristic in enumerate(heuristics):
                variables = range(heuristic.num_variables)
                chosen = set(variables) & set(variables if active is None else active[number][i])
                assigned = assign_type(heuristic, state, own, number, chosen, order)
                found.assigned[number].append(assigned)
            found.states.append(state)
            found.parent.append(i)
    return found
