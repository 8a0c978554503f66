"""Problems and searches whose course is known by hand, and what the fault tests share."""

import contextlib
import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple
from unittest import mock

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxopt_search as js
from jaxopt_search.backends import random
from jaxopt_search.backends.counts import Steps
from jaxopt_search.engine import loop, starting
from jaxopt_search.types import Info


@js.pytree
@dataclasses.dataclass(frozen=True)
class Line(js.Problem):
    """A solution is one number, and its own cost; every random start is `start`."""

    start: jax.Array

    def init(self, key: jax.Array) -> jax.Array:
        return self.start

    def cost(self, solution: jax.Array) -> jax.Array:
        return solution


class Course(NamedTuple):
    number: jax.Array
    lowest: jax.Array


@js.pytree
@dataclasses.dataclass(frozen=True)
class Countdown(js.Search):
    """Lowers its number by 1 a step, but not below `floor`."""

    floor: jax.Array

    def evaluations_per_step(self, problem: Line) -> int:
        return 3

    def init(self, problem: Line, solution: jax.Array) -> Course:
        return Course(solution, solution)

    def step(self, stream: Any, control: None, problem: Line, state: Course) -> tuple[Course, Info]:
        number = jnp.maximum(state.number - 1, self.floor.astype(state.number.dtype))
        accepted = (number != state.number).astype(jnp.int32)
        return Course(number, jnp.minimum(number, state.lowest)), Info(accepted)

    def best_cost(self, state: Course) -> jax.Array:
        return state.lowest

    def best(self, problem: Line, state: Course) -> jax.Array:
        return state.lowest

    def current_cost(self, state: Course) -> jax.Array:
        return state.number

    def current(self, problem: Line, state: Course) -> jax.Array:
        return state.number

    def adopt(self, problem: Line, state: Course, solution: jax.Array) -> Course:
        return Course(solution, jnp.minimum(state.lowest, solution))


@js.pytree
@dataclasses.dataclass(frozen=True)
class Walk(Countdown):
    """Changes its number by -3 to 3 at random."""

    def step(self, stream: Any, control: None, problem: Line, state: Course) -> tuple[Course, Info]:
        (word,) = stream.words(jnp.uint32(0), 1)
        number = state.number + random.below(word, 7) - 3
        accepted = (number != state.number).astype(jnp.int32)
        return Course(number, jnp.minimum(number, state.lowest)), Info(accepted)


def line(start: int = 20, dtype: Any = jnp.int32) -> Line:
    return Line(jnp.asarray(start, dtype))


def countdown(floor: int = -(10**9)) -> Countdown:
    return Countdown(jnp.int32(floor))


def walk() -> Walk:
    return Walk(jnp.int32(0))


def small_tsp(n: int = 8) -> js.TSP:
    """Returns an integer instance with different distances, the same at each call."""
    i, j = np.indices((n, n))
    return js.tsp((7 * (i + j) + 11 * np.abs(i - j) + 3 * (i * j % 5)) * (i != j))


MATRIX_OF_FOUR = np.array([[0, 3, 4, 5], [3, 0, 6, 4], [4, 6, 0, 7], [5, 4, 7, 0]])


def changed(row: int, column: int, value: Any, dtype: Any = float) -> np.ndarray:
    """Returns `MATRIX_OF_FOUR` with another entry."""
    matrix = MATRIX_OF_FOUR.astype(dtype)
    matrix[row, column] = value
    return matrix


def shortest(matrix: Any) -> Any:
    """Returns the length of the shortest tour, by the recursion of Held and Karp."""
    distance = np.asarray(matrix, float)
    last = len(distance) - 1  # where tours start
    length = np.full((1 << last, last), np.inf)
    length[1 << np.arange(last), np.arange(last)] = distance[last, :last]
    for visited, city in itertools.product(range(1 << last), range(last)):
        before = visited & ~(1 << city)
        if before not in (0, visited):
            length[visited, city] = (length[before] + distance[:last, city]).min()
    return (length[-1] + distance[:last, last]).min()


def edges(tour: Any) -> set[frozenset[int]]:
    """Returns the edges of a tour, whichever way round."""
    cities = np.asarray(tour)
    return set(map(frozenset, zip(cities.tolist(), np.roll(cities, -1).tolist(), strict=True)))


def distances_of(points: Any) -> np.ndarray:
    """Returns the Euclidean distances of all pairs of points."""
    return np.hypot(*np.moveaxis(points[:, None] - points, 2, 0))


@jax.jit
def costs_of(problem: js.Problem, solutions: jax.Array) -> jax.Array:
    """Returns the full cost of each of [..., n] solutions, as a device computes it."""
    return jnp.vectorize(problem.device_cost, signature="(n)->()")(solutions)


def annealing(temperature: Any = 30.0, moves_per_search: int = 2) -> js.LocalSearch:
    return js.simulated_annealing(js.Relocate(), temperature, moves_per_search=moves_per_search)


def at_step(state: js.RunState, step: int) -> js.RunState:
    """Returns `state` as if this many steps had been made."""
    return state._replace(step=Steps(jnp.uint32(step >> 32), jnp.uint32(step & 0xFFFFFFFF)))


def assert_same(a: Any, b: Any) -> None:
    """Checks that two pytrees are equal bit for bit, dtypes included, wherever they are."""
    a, b = jax.device_get((a, b))
    chex.assert_trees_all_equal_shapes_and_dtypes(a, b)
    chex.assert_trees_all_equal(a, b)


def assert_same_results(a: js.Result, b: js.Result) -> None:
    """Checks that two results agree in all but times and devices."""
    for name in ("fun", "success", "status", "nit", "gap", "first_hit", "feasible"):
        assert getattr(a, name) == getattr(b, name), name
    assert_same((a.x, a.costs, a.solutions), (b.x, b.costs, b.solutions))
    no_info = {"info": None}
    assert_same(a.state._replace(**no_info), b.state._replace(**no_info))


@contextlib.contextmanager
def refuses(kind: type[Exception], *texts: str) -> Iterator[None]:
    """Checks that the body raises just `kind`, in one line with `texts`, and compiles nothing."""

    def fail(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("the loop was compiled before the arguments were checked")

    with (
        mock.patch.object(starting, "begin", fail),
        mock.patch.object(loop, "advance_by", fail),
        pytest.raises(kind) as caught,
    ):
        yield
    message = str(caught.value)
    assert type(caught.value) is kind, f"{type(caught.value).__name__}: {message}"
    for text in texts:
        assert text in message, message
    assert "\n" not in message, message


def broken_at(monkeypatch: Any, part: type, name: str, call: int) -> None:
    """Lets the call of a method with this number, from 1, end with a Ctrl-C at its start."""
    plain, calls = getattr(part, name), []

    def counted(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == call:
            raise KeyboardInterrupt
        return plain(*arguments)

    monkeypatch.setattr(part, name, counted)
