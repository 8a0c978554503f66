"""The heuristics of `heuristics.py` in plain Python."""

import jax
import numpy as np
from successors import heuristics as parts
from successors import traces


class _Plain:
    """A heuristic for the reference.

    Its `aggregates` are triples (combine, neutral, of) on tuples of NumPy scalars.
    """

    aggregates = ()

    def __init__(self, heuristic, problem):
        self.problem = jax.tree.map(np.asarray, problem)
        for name in ("num_variables", "max_possibilities", "number", "offset"):
            setattr(self, name, getattr(heuristic, name, 0))
        self.independent = getattr(heuristic, "independent", False)

    def note(self, state, event, variable=0, possibility=0):
        code = traces.code(event, self.number, variable, possibility)
        state.trace = (state.trace ^ code) * traces.FNV_PRIME % 2**32

    def before_state(self, state):
        self.note(state, traces.BEFORE_STATE)

    def after_state(self, state):
        self.note(state, traces.AFTER_STATE)

    def before_variable(self, state, variable):
        self.note(state, traces.BEFORE_VARIABLE, variable)

    def after_variable(self, state, variable):
        self.note(state, traces.AFTER_VARIABLE, variable)

    def could_not_assign(self, state, variable):
        state.values[self.offset + variable] = traces.WITHOUT_VALUE
        self.note(state, traces.COULD_NOT_ASSIGN, variable)

    def active_now(self, state, left):
        return left

    def assign(self, state, variable, possibility):
        state.values[self.offset + variable] = possibility
        self.note(state, traces.ASSIGN, variable, possibility)


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


class _PlainApart(_PlainTable):
    def before_variable(self, state, variable): ...

    def after_variable(self, state, variable): ...


class _PlainSwitching(_PlainTable):
    def switched(self, state, variable, possibility):
        at = (variable + possibility + self.offset + 1) % len(state.used)
        state.used[at] = 1 + (variable + possibility) % 2

    def could_not_assign(self, state, variable):
        super().could_not_assign(state, variable)
        self.switched(state, variable, 0)

    def assign(self, state, variable, possibility):
        super().assign(state, variable, possibility)
        self.switched(state, variable, possibility)

    def active_now(self, state, left):
        switches = dict(enumerate(state.used[self.offset :][: self.num_variables]))
        return {v for v in switches if switches[v] == 1 or (switches[v] == 0 and v in left)}


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
            mixed = parts.mix(*map(_plain_bits, words))
            return int(parts.mix(mixed, *map(_plain_bits, rating)) % np.uint32(5))


def _plain_bits(value):
    kind = np.float32 if isinstance(value, np.floating) else np.int32
    return np.asarray(value, kind).view(np.uint32)[()]


_PLAIN = {
    parts.Table: _PlainTable,
    parts.Apart: _PlainApart,
    parts.Switching: _PlainSwitching,
    parts.Mapped: _PlainMapped,
}


def plain(heuristic, problem):
    """Returns the heuristic in plain Python."""
    return _PLAIN[type(heuristic)](heuristic, problem)
