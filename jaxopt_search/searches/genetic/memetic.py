"""Memetic search: before they compete, children are improved by a search of their own.

Under XLA only. Moscato, "On evolution, search, optimization, genetic algorithms and martial arts:
towards memetic algorithms", 1989.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends import loops, random
from jaxopt_search.searches.genetic.island import GeneticState
from jaxopt_search.types import Cost, Problem, Search, Solution, Stream


class Improvement(NamedTuple):
    """A search that starts from each child.

    Attributes:
      search: the search.
      num_steps: how many steps it makes.
    """

    search: Search
    num_steps: int

    def of_children(
        self, stream: Stream, problem: Problem, state: GeneticState, num_words: int
    ) -> GeneticState:
        """Returns the state with the best that the search finds from each child, and their costs.

        Args:
          num_words: how many words of each child's slot serve for other things.
        """
        number = lax.iota(jnp.uint32, state.costs.shape[0])
        words = stream.words(number, num_words + 2)
        keys = random.Key(*words[num_words:])
        improve = jax.vmap(self._improved, in_axes=(None, 0, 0))
        children, costs = improve(problem, state.children, keys)
        return state._replace(children=children, child_costs=costs)

    def _improved(
        self, problem: Problem, child: Solution, key: random.Key
    ) -> tuple[Solution, Cost]:
        search = self.search

        def step(i: jax.Array, state: Any) -> Any:
            own = random.Stream(key, i.astype(jnp.uint32), i)
            return search.step(own, search.control(i), problem, state)[0]

        end = loops.fori_loop(0, self.num_steps, step, search.init(problem, child))
        return search.best(problem, end), search.best_cost(end)
