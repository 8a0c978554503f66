"""Local heuristics for the tests, each in portable JAX and once more in plain Python.

What they do is data: weights, counts, how much a variable sees of those before it. So many cases
share one compilation. Every hook enters what it did into `State.trace`, from which the order of all
events can be told.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from successors import reference

import jaxopt_search as js
import jaxopt_search.successors
from jaxopt_search.portable import memory

_register = jax.tree_util.register_dataclass
_static = functools.partial(dataclasses.field, metadata={"static": True})

FNV_PRIME = 16777619
UNTOUCHED, WITHOUT_VALUE = -1, -2
(
    BEFORE_STATE,
    AFTER_STATE,
    BEFORE_VARIABLE,
    AFTER_VARIABLE,
    ASSIGN,
    COULD_NOT_ASSIGN,
) = range(1, 7)


class State(NamedTuple):
    """A state of any of these heuristics, without the axis of states.

    Attributes:
      values: [total] int32, the possibility of each variable of all types, or why it has none.
      used: [values] int32, how many variables have each value; only `AllDifferent` counts them.
      last: [] int32, a number that assignments change and ratings may look at.
      trace: [] uint32, all events in their order.
    """

    values: Any
    used: Any
    last: Any
    trace: Any


def states(number, total, num_values=1, seed=0):
    """Returns [number] states, which differ in what no assignment changes by itself."""
    numbers = jnp.arange(number, dtype=jnp.uint32)
    return State(
        values=jnp.full((number, total), UNTOUCHED, jnp.int32),
        used=jnp.zeros((number, num_values), jnp.int32),
        last=(numbers * jnp.uint32(7) + jnp.uint32(seed)).astype(jnp.int32),
        trace=jnp.uint32(seed) ^ numbers,
    )


class Coupling(NamedTuple):
    """The problem of `Table`: how much of the past its variables see. A pytree of scalars.

    Attributes:
      weight: [] uint32, times `State.last` it is added to weights above 0.
      count: [] int32, times `State.last % 3` it is taken from the number of possibilities.
      step: [] int32, what events other than assignments add to `State.last`.
    """

    weight: Any
    count: Any
    step: Any


ALONE = Coupling(jnp.uint32(0), jnp.int32(0), jnp.int32(0))
COUPLED = Coupling(jnp.uint32(77), jnp.int32(1), jnp.int32(3))


def _code(event, number, variable, possibility):
    return event + 8 * (number + 8 * (variable + 256 * possibility))


def noted(state, where, event, number, variable=None, possibility=None):
    """Returns `state` with an event in its trace."""
    zero = jnp.int32(0)
    code = _code(
        jnp.int32(event),
        jnp.int32(number),
        zero if variable is None else variable,
        zero if possibility is None else possibility,
    )
    trace = (state.trace ^ code.astype(jnp.uint32)) * jnp.uint32(FNV_PRIME)
    return state._replace(trace=jnp.where(where, trace, state.trace))


class _Noting:
    """The hooks that only enter what happened."""

    is_portable = True

    def after_state(self, problem, state, where):
        return noted(state, where, AFTER_STATE, self.number)

    def after_variable(self, problem, state, variable, where):
        return noted(state, where, AFTER_VARIABLE, self.number, variable)

    def before_state(self, problem, state, where):
        return noted(state, where, BEFORE_STATE, self.number)

    def before_variable(self, problem, state, variable, where):
        return noted(state, where, BEFORE_VARIABLE, self.number, variable)

    def could_not_assign(self, problem, state, variable, where):
        at = variable + jnp.int32(self.offset)
        values = memory.store(state.values, at, jnp.int32(WITHOUT_VALUE), where)
        state = state._replace(values=values)
        return noted(state, where, COULD_NOT_ASSIGN, self.number, variable)

    def assign(self, problem, state, variable, possibility, where):
        values = memory.store(state.values, variable + jnp.int32(self.offset), possibility, where)
        state = state._replace(values=values)
        return noted(state, where, ASSIGN, self.number, variable, possibility)


@_register
@dataclasses.dataclass(frozen=True, kw_only=True)
class Table(_Noting):
    """Weights from a table, as they are or changed by what was assigned before.

    Attributes:
      weights: [num_variables, max_possibilities] uint32.
      counts: [num_variables] int32, possibilities of each variable, before clipping.
      rating: what `rate` returns: "uint32", "int32" (weights below 2**31), "float32" (below 2**24)
        or "pair" of the halves of a word.
    """

    weights: Any
    counts: Any
    num_variables: int = _static()
    max_possibilities: int = _static()
    number: int = _static(default=0)
    offset: int = _static(default=0)
    rating: str = _static(default="uint32")
    independent: bool = _static(default=False)
    max_weight: int = _static(default=2**32 - 1)

    def num_possibilities(self, problem, state, variable):
        return memory.load(self.counts, variable) - problem.count * (state.last % 3)

    def rate(self, problem, state, variable, possibility):
        weight = memory.load(self.weights, (variable, possibility))
        more = problem.weight * state.last.astype(jnp.uint32)
        weight = jnp.where(weight == 0, weight, weight + more)
        if self.rating == "pair":
            return {"low": weight & jnp.uint32(0xFFFF), "high": weight >> jnp.uint32(16)}
        return weight.astype(self.rating)

    def weight(self, problem, rating, aggregates):
        if self.rating == "pair":
            return (rating["high"] << jnp.uint32(16)) | rating["low"]
        return rating if self.rating == "int32" else rating.astype(jnp.uint32)

    def before_state(self, problem, state, where):
        state = state._replace(last=jnp.where(where, state.last + problem.step, state.last))
        return super().before_state(problem, state, where)

    def before_variable(self, problem, state, variable, where):
        state = state._replace(last=jnp.where(where, state.last + problem.step, state.last))
        return super().before_variable(problem, state, variable, where)

    def assign(self, problem, state, variable, possibility, where):
        last = (state.last + possibility) & jnp.int32(0xFFFF)
        state = state._replace(last=jnp.where(where, last, state.last))
        return super().assign(problem, state, variable, possibility, where)


def table(weights, counts=None, **options):
    """Returns a `Table` of a table, by default with all its possibilities."""
    weights = np.asarray(weights, np.uint32)
    counts = np.full(len(weights), weights.shape[1]) if counts is None else counts
    return Table(
        weights=jnp.asarray(weights),
        counts=jnp.asarray(counts, jnp.int32),
        num_variables=weights.shape[0],
        max_possibilities=weights.shape[1],
        **options,
    )


@_register
@dataclasses.dataclass(frozen=True, kw_only=True)
class AllDifferent(_Noting):
    """Variables that must differ; `weights` and `counts` as in `Table`."""

    weights: Any
    counts: Any
    num_variables: int = _static()
    max_possibilities: int = _static()
    number: int = _static(default=0)
    offset: int = _static(default=0)

    def num_possibilities(self, problem, state, variable):
        return memory.load(self.counts, variable)

    def rate(self, problem, state, variable, possibility):
        weight = memory.load(self.weights, (variable, possibility))
        is_free = memory.load(state.used, possibility) == 0
        return is_free, weight

    def weight(self, problem, rating, aggregates):
        is_free, weight = rating
        return jnp.where(is_free, weight, jnp.uint32(0))

    def assign(self, problem, state, variable, possibility, where):
        count = memory.load(state.used, possibility) + jnp.int32(1)
        state = state._replace(used=memory.store(state.used, possibility, count, where))
        return super().assign(problem, state, variable, possibility, where)


def all_different(weights, counts=None):
    plain = table(weights, counts)
    return AllDifferent(
        weights=plain.weights,
        counts=plain.counts,
        num_variables=plain.num_variables,
        max_possibilities=plain.max_possibilities,
    )


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Positions(_Noting):
    """Each variable is assigned how many were assigned before it."""

    num_variables: int
    max_possibilities = 1
    number = offset = 0

    def rate(self, problem, state, variable, possibility):
        return possibility

    def weight(self, problem, rating, aggregates):
        return jnp.ones_like(rating)

    def assign(self, problem, state, variable, possibility, where):
        values = memory.store(state.values, variable, state.last, where)
        last = jnp.where(where, state.last + 1, state.last)
        return state._replace(values=values, last=last)


class Points(NamedTuple):
    """The problem of `Manhattan`: [num_variables] int32 goals."""

    goal_x: Any
    goal_y: Any


class Walkers(NamedTuple):
    """The state of `Manhattan`: [num_variables] int32 points."""

    x: Any
    y: Any


def _highest(of=None):
    kwargs = {} if of is None else {"of": of}
    return js.successors.Aggregate(jnp.maximum, np.int32(-(2**31)), **kwargs)


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Manhattan:
    """The paper's heuristic: each point goes to one of its side * side - 1 neighbors.

    Nearer to the goal is better: the weight is what the distance lacks to the longest.
    """

    num_variables: int
    side: int
    aggregates: tuple = (_highest(),)
    is_portable = True

    @property
    def max_possibilities(self):
        return self.side**2 - 1

    def moved(self, problem, state, variable, possibility):
        cell = possibility + (possibility >= self.max_possibilities // 2).astype(jnp.int32)
        dx, dy = cell % self.side - self.side // 2, cell // self.side - self.side // 2
        return memory.load(state.x, variable) + dx, memory.load(state.y, variable) + dy

    def rate(self, problem, state, variable, possibility):
        x, y = self.moved(problem, state, variable, possibility)
        goal_x, goal_y = (memory.load(goal, variable) for goal in problem)
        return jnp.abs(x - goal_x) + jnp.abs(y - goal_y)

    def weight(self, problem, rating, aggregates):
        (longest,) = aggregates
        return longest - rating

    def assign(self, problem, state, variable, possibility, where):
        x, y = self.moved(problem, state, variable, possibility)
        return Walkers(
            memory.store(state.x, variable, x, where), memory.store(state.y, variable, y, where)
        )


class Rated(NamedTuple):
    """A rating of `Mapped`."""

    value: Any
    key: Any


def _mix(*words):
    """Returns a word that depends on every bit of all words, in JAX or in NumPy's uint32."""
    found = words[0]
    for word in words[1:]:
        found = (found ^ (found >> np.uint32(15))) * np.uint32(0x2C1B3C6D) ^ word
    return found ^ (found >> np.uint32(13))


def _bits(value):
    return jax.lax.bitcast_convert_type(value, jnp.uint32)


def _better(a, b):
    """Returns the pair with the higher value, of equal ones that with the lower key."""
    takes_a = (a.value > b.value) | ((a.value == b.value) & (a.key <= b.key))
    return Rated(jnp.where(takes_a, a.value, b.value), jnp.where(takes_a, a.key, b.key))


_SEVERAL = (
    js.successors.Aggregate(jnp.maximum, np.float32(-np.inf), of=lambda rating: rating.value),
    js.successors.Aggregate(jnp.minimum, np.float32(np.inf), of=lambda rating: rating.value),
    js.successors.Aggregate(jnp.add, np.float32(0), of=lambda rating: rating.value),
    js.successors.Aggregate(_better, Rated(np.float32(-np.inf), np.int32(2**31 - 1))),
    js.successors.Aggregate(jnp.bitwise_xor, np.int32(0), of=lambda rating: rating.key),
)


@_register
@dataclasses.dataclass(frozen=True, kw_only=True)
class Mapped(_Noting):
    """Weights that depend on every bit of five aggregates, a sum of floats and a pair among them.

    Attributes:
      ratings: [num_variables, max_possibilities] float32; NaN forbids.
      counts: [num_variables] int32.
    """

    ratings: Any
    counts: Any
    num_variables: int = _static()
    max_possibilities: int = _static()
    number: int = _static(default=0)
    offset: int = _static(default=0)
    aggregates: tuple = _static(default=_SEVERAL)

    def num_possibilities(self, problem, state, variable):
        return memory.load(self.counts, variable)

    def rate(self, problem, state, variable, possibility):
        return Rated(memory.load(self.ratings, (variable, possibility)), possibility)

    def weight(self, problem, rating, aggregates):
        highest, lowest, total, best, parity = aggregates
        words = (highest, lowest, total, best.value, best.key, parity)
        mixed = _mix(*(_bits(word) for word in words))
        return _mix(mixed, _bits(rating.value), _bits(rating.key)) % jnp.uint32(5)


def mapped(ratings, counts, **options):
    return Mapped(
        ratings=jnp.asarray(ratings, jnp.float32),
        counts=jnp.asarray(counts, jnp.int32),
        num_variables=ratings.shape[0],
        max_possibilities=ratings.shape[1],
        **options,
    )


# The same in plain Python.


class _Plain(reference.Heuristic):
    def __init__(self, heuristic, problem):
        self.problem = jax.tree.map(np.asarray, problem)
        for name in ("num_variables", "max_possibilities", "number", "offset"):
            setattr(self, name, getattr(heuristic, name, 0))
        self.independent = getattr(heuristic, "independent", False)

    def note(self, state, event, variable=0, possibility=0):
        code = _code(event, self.number, variable, possibility)
        state.trace = (state.trace ^ code) * FNV_PRIME % 2**32

    def before_state(self, state):
        self.note(state, BEFORE_STATE)

    def after_state(self, state):
        self.note(state, AFTER_STATE)

    def before_variable(self, state, variable):
        self.note(state, BEFORE_VARIABLE, variable)

    def after_variable(self, state, variable):
        self.note(state, AFTER_VARIABLE, variable)

    def could_not_assign(self, state, variable):
        state.values[self.offset + variable] = WITHOUT_VALUE
        self.note(state, COULD_NOT_ASSIGN, variable)

    def assign(self, state, variable, possibility):
        state.values[self.offset + variable] = possibility
        self.note(state, ASSIGN, variable, possibility)


class _PlainTable(_Plain):
    def __init__(self, heuristic, problem):
        super().__init__(heuristic, problem)
        self.weights = np.asarray(heuristic.weights).tolist()
        self.counts = np.asarray(heuristic.counts).tolist()
        self.added, self.taken, self.step = map(int, problem)

    def num_possibilities(self, state, variable):
        return self.counts[variable] - self.taken * (state.last % 3)

    def rate(self, state, variable, possibility):
        weight = self.weights[variable][possibility]
        return ((weight + self.added * state.last) % 2**32 if weight else 0,)

    def weight(self, rating, aggregates):
        return rating[0]

    def before_state(self, state):
        state.last += self.step
        super().before_state(state)

    def before_variable(self, state, variable):
        state.last += self.step
        super().before_variable(state, variable)

    def assign(self, state, variable, possibility):
        state.last = (state.last + possibility) % 2**16
        super().assign(state, variable, possibility)


class _PlainAllDifferent(_Plain):
    def __init__(self, heuristic, problem):
        super().__init__(heuristic, problem)
        self.weights = np.asarray(heuristic.weights).tolist()
        self.counts = np.asarray(heuristic.counts).tolist()

    def num_possibilities(self, state, variable):
        return self.counts[variable]

    def rate(self, state, variable, possibility):
        return state.used[possibility], self.weights[variable][possibility]

    def weight(self, rating, aggregates):
        return 0 if rating[0] else rating[1]

    def assign(self, state, variable, possibility):
        state.used[possibility] += 1
        super().assign(state, variable, possibility)


class _PlainManhattan(reference.Heuristic):
    aggregates = ((lambda a, b: max(a, b), (-(2**31),), lambda rating: rating),)

    def __init__(self, heuristic, problem):
        self.num_variables, self.side = heuristic.num_variables, heuristic.side
        self.max_possibilities = self.side**2 - 1
        self.goals = list(zip(*(np.asarray(goal).tolist() for goal in problem), strict=True))
        reach = range(-(self.side // 2), self.side // 2 + 1)
        self.steps = [(dx, dy) for dy in reach for dx in reach if dx or dy]

    def rate(self, state, variable, possibility):
        goal, step = self.goals[variable], self.steps[possibility]
        x, y = state.x[variable] + step[0], state.y[variable] + step[1]
        return (abs(x - goal[0]) + abs(y - goal[1]),)

    def weight(self, rating, aggregates):
        return aggregates[0][0] - rating[0]

    def assign(self, state, variable, possibility):
        step = self.steps[possibility]
        state.x[variable] += step[0]
        state.y[variable] += step[1]


def _better_pair(a, b):
    return a if (a[0], -a[1]) >= (b[0], -b[1]) else b


class _PlainMapped(_Plain):
    aggregates = (
        (max, (np.float32(-np.inf),), lambda rating: rating[:1]),
        (min, (np.float32(np.inf),), lambda rating: rating[:1]),
        (lambda a, b: (a[0] + b[0],), (np.float32(0),), lambda rating: rating[:1]),
        (_better_pair, (np.float32(-np.inf), 2**31 - 1), lambda rating: rating),
        (lambda a, b: (a[0] ^ b[0],), (0,), lambda rating: rating[1:]),
    )

    def __init__(self, heuristic, problem):
        super().__init__(heuristic, problem)
        self.ratings = np.asarray(heuristic.ratings)
        self.counts = np.asarray(heuristic.counts).tolist()

    def num_possibilities(self, state, variable):
        return self.counts[variable]

    def rate(self, state, variable, possibility):
        return self.ratings[variable, possibility], possibility

    def weight(self, rating, aggregates):
        words = [word for aggregate in aggregates for word in aggregate]
        with np.errstate(over="ignore"):
            mixed = _mix(*map(_plain_bits, words))
            return int(_mix(mixed, *map(_plain_bits, rating)) % np.uint32(5))


def _plain_bits(value):
    kind = np.float32 if isinstance(value, np.floating) else np.int32
    return np.asarray(value, kind).view(np.uint32)[()]


_PLAIN = {
    Table: _PlainTable,
    AllDifferent: _PlainAllDifferent,
    Manhattan: _PlainManhattan,
    Mapped: _PlainMapped,
}


def plain(heuristic, problem):
    """Returns the heuristic in plain Python."""
    return _PLAIN[type(heuristic)](heuristic, problem)
