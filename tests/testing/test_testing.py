"""`js.testing` lets the library's parts pass, and finds what is wrong with broken ones."""

import dataclasses
import importlib.util
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import dense_qubo, labeling, linear_ordering, matrix_tsp, small_qap, sparse_cut

import jaxopt_search as js
from jaxopt_search.types import Tallied

_spec = importlib.util.spec_from_file_location(
    "broken", pathlib.Path(__file__).with_name("broken.py")
)
broken = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(broken)


@pytest.mark.parametrize("kind", broken.NEIGHBORHOODS)
def test_broken_neighborhoods_are_found(kind):
    """With the law, the step, the move and the costs."""
    problem = broken.cut() if issubclass(kind, js.Flip) else small_qap(5)
    with pytest.raises(AssertionError, match=broken.NEIGHBORHOODS[kind]):
        js.testing.check_neighborhood(kind(), problem, implementations=False)


@pytest.mark.parametrize("name", broken.SEARCHES)
def test_broken_searches_are_found(name):
    members, message = broken.SEARCHES[name]
    search = js.simulated_annealing(js.DeltaSwap(), 300.0, moves_per_search=2)
    with pytest.raises(AssertionError, match=message):
        js.testing.check_search(
            broken.varied(search, **members), small_qap(6), num_steps=30, implementations=False
        )


def test_portable_code_that_differs_is_found():
    """A search that draws other moves by itself, and one that no kernel can hold."""
    problem = small_qap(6)
    with pytest.raises(AssertionError, match="after 60 steps differ between 'xla' and 'native'"):
        js.testing.check_implementations(
            js.simulated_annealing(broken.OtherAlone(), 1.0),
            problem,
            implementations=("xla", "native"),
        )
    with pytest.raises(
        AssertionError, match="says that it is portable, but NotInAKernel.propose .*uses sort"
    ):
        search = js.simulated_annealing(broken.NotInAKernel(), 1.0, moves_per_search=4)
        js.testing.check_implementations(search, problem)


@pytest.mark.parametrize("hook", broken.HOOKS)
def test_broken_problems_are_found(hook):
    """A maximum cut, or a QAP, with one wrong number, or a start that is no vector."""
    change, message = broken.HOOKS[hook]
    problem = small_qap(5) if hook == "row_costs" else broken.cut()
    with pytest.raises(AssertionError, match=message):
        js.testing.check_problem(
            broken.broken_problem(problem, hook, change), implementations=False
        )


def test_what_leaves_the_space_is_found():
    """What is perturbed and is no permutation; all keys may give one start."""
    problem = linear_ordering(5)
    stuck = broken_ordering(init=lambda self, key: jnp.arange(5, dtype=jnp.int32))
    js.testing.check_problem(problem)
    # Of one start nothing is known of the costs, so only more than one is looked at.
    js.testing.check_problem(stuck)
    wild = broken_ordering(perturb=lambda self, key, solution: solution * 0)
    with pytest.raises(AssertionError, match="perturb: it is outside of its space"):
        js.testing.check_problem(wild)


def broken_ordering(**members):
    return broken.changed(linear_ordering(5), members)


@dataclasses.dataclass(frozen=True)
class Donors(js.Exchange):
    """An exchange made of one function."""

    fn: object
    every = np.int32(5)

    def donors(self, stream, costs, num_searches):
        return self.fn(costs, num_searches)


jax.tree_util.register_static(Donors)


@dataclasses.dataclass(frozen=True)
class Order(js.Exchange):
    every = np.int32(1)

    def order(self, stream, is_padding):
        return jnp.roll(jnp.arange(is_padding.size, dtype=jnp.int32), 1)


jax.tree_util.register_static(Order)


def test_broken_exchanges_are_found():
    """Donors that are none, or that depend on padding; padding that reaches a search."""
    cases = (
        (lambda costs, num: jnp.full(costs.shape, num), "search 0 of 7 continues from 7"),
        (
            lambda costs, num: jnp.argsort(costs)[::-1].astype(jnp.int32),
            "of 7 continues from .*, with padding from",
        ),
        (lambda costs, num: costs, r"donors: float32\[7\], not int32\[7\]|continues from"),
    )
    for fn, message in cases:
        with pytest.raises(AssertionError, match=message):
            js.testing.check_exchange(Donors(fn))
    with pytest.raises(AssertionError, match="brings padding, 7 and on, to a search"):
        js.testing.check_exchange(Order())


class Mean(js.Crossover):
    """A crossover whose children are no permutations."""

    def child(self, key, problem, own, given, share):
        return (own + given) // 2


def test_broken_crossovers_are_found():
    with pytest.raises(
        AssertionError, match=r"Mean.child: it is outside of its space: pair 0, own"
    ):
        js.testing.check_crossover(Mean(), matrix_tsp(6))


EXCHANGES = {
    "broadcast": js.broadcast_best(every=3, group_size=3),
    "resample": js.resample(js.geometric(30.0, 0.9), every=3),
    "recombine": js.recombine(every=3, alike=0.3),
    "shuffle": js.shuffle(every=3),
}


@pytest.mark.parametrize("name", EXCHANGES)
def test_our_exchanges_keep_the_laws(name):
    js.testing.check_exchange(EXCHANGES[name], matrix_tsp(6))


class Rotated(js.Crossover):
    """A crossover that makes children of all at once, which depend on what is beside them."""

    def child(self, key, problem, own, given, share):
        return own

    def children(self, keys, problem, own, given, share):
        return jnp.roll(own, 1, axis=0)


def test_children_of_all_at_once_are_those_of_each():
    with pytest.raises(AssertionError, match="Rotated.child: by itself it is another one"):
        js.testing.check_crossover(Rotated(), matrix_tsp(6))


def test_our_crossovers_keep_the_laws():
    js.testing.check_crossover(EXCHANGES["recombine"].crossover, matrix_tsp(6))
    js.testing.check_crossover(js.edge_assembly(matrix_tsp(6)), matrix_tsp(6))
    coloring = js.graph_coloring([[0, 1], [1, 2], [2, 3]], 3)
    js.testing.check_crossover(js.greedy_partition(), coloring)
    generations = js.recombine(every=5, crossover=js.greedy_partition(), generational=True, reach=2)
    js.testing.check_exchange(generations, coloring)
    for cut in (sparse_cut(9), dense_qubo(6)):
        js.testing.check_crossover(js.component_partition(), cut)
        js.testing.check_exchange(js.merge(every=5, crossover=js.component_partition()), cut)


SEARCHES = {
    "genetic": lambda: (
        js.genetic(population_size=6),
        small_qap(6),
        {"adopts_as_current": False},
    ),
    "in floats": lambda: (
        js.simulated_annealing(js.Swap(), 300.0),
        matrix_tsp(6, dtype=np.float64),
        {},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SEARCHES)
def test_our_searches_keep_the_laws(name):
    """Step by step; tests/backends/test_kernels.py compares the implementations."""
    search, problem, options = SEARCHES[name]()
    js.testing.check_search(search, problem, num_steps=30, implementations=False, **options)


@pytest.mark.slow
def test_our_implementations_keep_the_laws():
    js.testing.check_search(js.hill_climbing(js.Flip()), dense_qubo(6), num_steps=20)


def test_our_problems_keep_the_laws():
    js.testing.check_problem(small_qap(5), implementations=False)
    js.testing.check_problem(labeling([3, 1, 2]), implementations=False)


def test_heuristics():
    """A negative weight is found; our own heuristic passes."""
    problem = js.graph_coloring([[0, 1], [1, 2], [2, 3]], 3)
    colors = jnp.asarray([[0, 0, 1, 2], [0, 1, 0, 1]], jnp.int32)
    states = Tallied(colors, jax.vmap(problem.tally)(colors))
    heuristic = js.successors.ByDelta(num_variables=4, max_possibilities=3)
    js.testing.check_heuristic(heuristic, problem, states, implementations=("xla",))

    @jax.tree_util.register_static
    class Negative(type(heuristic)):
        def weight(self, problem, rating, aggregates):
            return jnp.full(rating.delta.shape, -1, jnp.int32)

    wrong = Negative(num_variables=4, max_possibilities=3)
    with pytest.raises(AssertionError, match=r"weight returns -1, expected 0 or more"):
        js.testing.check_heuristic(wrong, problem, states, implementations=None)


def test_the_page_prints_what_it_says(capsys):
    """docs/testing_your_parts.md: the message of its example, word for word."""
    page = pathlib.Path(__file__).parents[2] / "docs" / "testing_your_parts.md"
    text = page.read_text(encoding="utf-8")
    example = text.partition("## An example")[2].partition("It prints")[0]
    code = "\n".join(line[4:] for line in example.splitlines() if line.startswith("    "))
    exec(compile(code, str(page), "exec"), {"__name__": "page"})
    printed = " ".join(capsys.readouterr().out.split())
    said = " ".join(text.partition("both costs: `")[2].partition("`.")[0].split())
    assert printed == said
