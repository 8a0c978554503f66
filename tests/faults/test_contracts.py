"""Problems, searches, exchanges and callbacks that are none: one line, nothing compiled."""

import dataclasses
import functools
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from probes import refuses, small_tsp

import jaxopt_search as js

SEARCH = js.simulated_annealing(js.Swap(), 5.0)
EDGE = np.asarray(small_tsp().matrix).reshape(8, 8)


def _label(value):
    """Returns the text of a case, not the text of what is given, which may hold an address."""
    return value if isinstance(value, str) else type(value).__name__


def tour_length(order):
    return jnp.asarray(EDGE, jnp.int32)[order, jnp.roll(order, -1)].sum(dtype=jnp.int32)


def in_order(key):
    return jnp.arange(8, dtype=jnp.int32)


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Own(js.Problem):
    """A problem of two functions."""

    space = "permutation"
    cost: Any = tour_length
    init: Any = in_order


class Plain(js.Problem):
    init = staticmethod(in_order)
    cost = staticmethod(tour_length)


def solve(problem, search=SEARCH, **options):
    return js.solve(problem, search, 0, **{"num_searches": 2, "max_steps": 9} | options)


def both(problem, search=SEARCH):
    """Calls `solve` and `run`, each of which has to refuse."""
    for call in (solve, functools.partial(js.run, 0)):
        yield functools.partial(call, problem, search, num_searches=2, max_steps=9)


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (EDGE, "problem is a ndarray, expected a js.Problem, as tsp_from_coords makes of"),
        (None, "problem is None, expected"),
        (js.TSP, "problem is the class TSP"),
        (
            Plain(),
            "problem is a Plain, expected a pytree; decorate the class with jaxopt_",
        ),
    ],
    ids=_label,
)
def test_no_problem(problem, text):
    """What is no problem is named, in `solve`, in `run` and in `anneal`."""
    for call in (*both(problem), functools.partial(js.anneal, problem, js.Swap(), max_steps=9)):
        with refuses(TypeError, text):
            call()


@pytest.mark.parametrize(
    ("search", "text"),
    [
        (None, "search is None, expected a js.Search, one such as simulated_annealing returns"),
        (js.LocalSearch, "search is the class LocalSearch"),
    ],
    ids=_label,
)
def test_no_search(search, text):
    """The same of searches, also of one inside another."""
    for call in both(small_tsp(), search):
        with refuses(TypeError, text):
            call()
    if search is not None:
        with refuses(TypeError, "local_" + text):
            js.genetic(local_search=search)


@pytest.mark.parametrize(
    ("cost", "text"),
    [
        (lambda order: None, "problem.cost returns None, expected one number, int32 or float32"),
        (lambda order: tour_length(order).astype(jnp.uint32), "dtype uint32"),
        (lambda order: tour_length(order) > 9, "returns a number of dtype bool"),
    ],
)
def test_costs_that_are_none(cost, text):
    """A cost is one number of 32 bits, signed or float: of others, differences are wrong."""
    problem = Own(cost)
    for call in (*both(problem), functools.partial(js.anneal, problem, js.Swap(), max_steps=9)):
        with refuses(TypeError, text):
            call()


def test_cost_that_raises():
    """An exception of the user's own is that very one."""
    error = ZeroDivisionError("mine")

    def cost(order):
        raise error

    for call in both(Own(cost)):
        with pytest.raises(ZeroDivisionError) as caught:
            call()
        assert caught.value is error


def test_static_arrays_are_refused_at_once():
    """JAX cannot compare them: a second instance would fail, or a first one be taken for it."""

    @js.pytree
    @dataclasses.dataclass(frozen=True)
    class Weighted(js.Problem):
        weights: Any = dataclasses.field(metadata={"static": True})
        init = staticmethod(in_order)
        space = "permutation"

        def cost(self, order):
            return (order * jnp.asarray(self.weights, jnp.int32)).sum(dtype=jnp.int32)

    with refuses(TypeError, "weights"):
        js.solve(Weighted(np.arange(8)), SEARCH, 0, num_searches=2, max_steps=5)
    js.init(0, Weighted(tuple(range(8))), SEARCH, num_searches=2)


def test_starts_of_an_own_problem_are_permutations():
    """If it says that its solutions are: indices out of range cost something, too."""
    with pytest.raises(ValueError, match="initial counts from 1, expected a permutation of 0 to 7"):
        solve(Own(), initial=np.arange(1, 9))


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Made(js.Crossover):
    """A crossover of a function of a parent."""

    make: Any

    def child(self, key, problem, own, given, share):
        return self.make(own)


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda own: own * 1.0, TypeError, r"Made.child returns float32\[3, 8\], expected int32"),
        (lambda own: own[:-1], TypeError, r"Made.child returns int32\[3, 7\], expected int32"),
        (lambda own: None, TypeError, "Made.child returns another pytree"),
        (lambda own: own * 0, ValueError, "the best solution holds 0 twice, expected a perm"),
    ],
)
def test_children_that_are_no_solutions(make, kind, message):
    """Neither by their dtype and shape nor, where they end as the best, by their values."""
    search = js.genetic(population_size=4, crossover="ox")
    exchange = js.recombine(every=1, alike=None, crossover=Made(make))
    with pytest.raises(kind, match=message):
        js.solve(js.tsp(EDGE), search, 0, exchange=exchange, num_searches=3, max_steps=6)


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Floating(js.Exchange):
    every: Any = 1
    passes_on: str = "best"
    order: Any = None

    def donors(self, stream, costs, num_searches):
        return jnp.zeros(costs.shape)


@pytest.mark.parametrize(
    ("exchange", "kind", "text"),
    [
        (Floating(), TypeError, "donors returns float32[3], expected int32"),
        (Floating(order=lambda *_: jnp.zeros(3)), TypeError, "order returns float32[3], expected"),
        (Floating(every=0), ValueError, "every is 0, expected an integer from 1"),
        (Floating(every=2.5), TypeError, "every is float32[], expected"),
        (Floating(passes_on="worst"), ValueError, "passes_on is 'worst', expected"),
    ],
    ids=_label,
)
def test_exchanges_of_which_nothing_comes(exchange, kind, text):
    """They are refused, also those that a callback brings."""
    search = js.genetic(population_size=4)
    options = {"num_searches": 3, "chunk_steps": 2, "max_steps": 6}
    for how in ({"exchange": exchange}, {"callback": lambda _: js.Steer(search, exchange)}):
        with pytest.raises(kind, match=re.escape(f"Floating.{text}")):
            js.solve(small_tsp(), search, 0, **how, **options)
