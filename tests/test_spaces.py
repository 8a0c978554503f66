"""Searches for permutations refuse problems with other solutions, in one line."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import linear_ordering, matrix_tsp, small_qap

import jaxopt_search as js


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class MaxCut:
    """Vertices on two sides, [n] 0 or 1, as a user may write it."""

    weight: jax.Array

    def init(self, key):
        return jax.random.bernoulli(key, shape=self.weight.shape[:1]).astype(self._dtype())

    def cost(self, side):
        apart = side[:, None] != side[None, :]
        return -jnp.sum(jnp.where(apart, self.weight, 0), dtype=jnp.int32) // 2

    def _dtype(self):
        return jnp.int32


class ByteCut(MaxCut):
    """A kind of solution that is told by its dtype alone."""

    def _dtype(self):
        return jnp.int8


jax.tree_util.register_dataclass(ByteCut, ["weight"], [])


@dataclasses.dataclass(frozen=True)
class Flip:
    num_words = 1

    def propose(self, problem, side, words):
        return js.random.below(words[0], side.shape[0])

    def apply(self, problem, side, vertex):
        return side.at[vertex].set(1 - side[vertex])


def max_cut(n=20, kind=MaxCut):
    weight = np.triu(np.random.default_rng(0).integers(0, 5, (n, n)), 1)
    return kind(jnp.asarray(weight + weight.T, jnp.int32))


ANNEALING = js.simulated_annealing(Flip(), 2.0)
GENETIC = js.genetic(population_size=8)
EXCHANGE = js.recombine(every=10)
MESSAGE = r"^problem is a MaxCut whose solutions may be \[[01], .*\], expected permutations .* for "


@pytest.mark.parametrize("crossover", ["pmx", "ox"])
def test_a_genetic_algorithm_refuses_what_is_no_permutation(crossover):
    """It gave x = 0...n-1 with a cost that no cut has, as a success."""
    search = js.genetic(population_size=8, crossover=crossover)
    with pytest.raises(ValueError, match=MESSAGE + "Genetic$"):
        js.solve(max_cut(), search, 0, num_searches=2, max_steps=50)
    for begin in (js.run, js.init):
        limit = {"max_steps": 5} if begin is js.run else {}
        with pytest.raises(ValueError, match=MESSAGE + "Genetic$"):
            begin(0, max_cut(), search, num_searches=2, **limit)


def test_recombination_refuses_what_is_no_permutation():
    """Whichever function it is handed to; annealing alone takes the problem."""
    options = {"num_searches": 4, "max_steps": 50}
    with pytest.raises(ValueError, match=MESSAGE + "Recombine$"):
        js.solve(max_cut(), ANNEALING, 0, exchange=EXCHANGE, **options)
    state = js.run(0, max_cut(), ANNEALING, **options)
    with pytest.raises(ValueError, match=MESSAGE + "Recombine$"):
        js.advance(max_cut(), ANNEALING, state, 5, exchange=EXCHANGE)
    assert js.best(max_cut(), ANNEALING, state)[1] < 0


def test_a_problem_known_when_a_function_is_traced_is_refused_there():
    """A closed-over one is looked at as outside; of an argument the dtype is all there is."""
    problem = max_cut()
    with pytest.raises(ValueError, match=MESSAGE):
        jax.jit(lambda seed: js.run(seed, problem, GENETIC, num_searches=2, max_steps=5))(0)
    with pytest.raises(ValueError, match=r"are int8\[20\], expected permutations"):
        jax.jit(lambda one: js.run(0, one, GENETIC, num_searches=2, max_steps=5))(
            max_cut(kind=ByteCut)
        )


def test_solutions_of_several_parts_are_refused():
    @jax.tree_util.register_static
    class Pair:
        def init(self, key):
            return jnp.arange(3), jnp.arange(2)

        def cost(self, solution):
            return jnp.int32(0)

    with pytest.raises(ValueError, match="problem is a Pair whose solutions are not one array"):
        js.run(0, Pair(), GENETIC, num_searches=2, max_steps=5)


def test_permutation_problems_are_taken_whether_they_say_so_or_not():
    """The library's declare it; a user's own is taken for what its random starts are."""
    for problem in (small_qap(5), matrix_tsp(5), js.nqueens(5)):
        assert problem.space == "permutation"
    assert not hasattr(linear_ordering(6), "space")
    assert js.solve(linear_ordering(6), GENETIC, 0, num_searches=2, max_steps=5).nit == 5


def test_what_a_problem_declares_counts():
    """Its starts are not drawn then, and another kind is refused by name."""

    @jax.tree_util.register_static
    class Words:
        space = "words"

        def init(self, key):
            return jnp.arange(4, dtype=jnp.int32)

        def cost(self, solution):
            return solution[0]

    with pytest.raises(ValueError, match="problem is a Words whose solutions are 'words'"):
        js.run(0, Words(), GENETIC, num_searches=2, max_steps=5)
