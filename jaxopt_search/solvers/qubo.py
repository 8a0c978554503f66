"""One call from a matrix or a graph to a low sum or a heavy cut: `solve_qubo`, `solve_max_cut`."""

from collections.abc import Callable
from typing import Any

from jaxopt_search.crossovers.partition import component_partition
from jaxopt_search.neighborhoods import Flip
from jaxopt_search.problems.finite.qubo import QUBO, Sparse, max_cut, qubo
from jaxopt_search.problems.finite.reduction import reduced
from jaxopt_search.problems.matrix_input import refuse_options
from jaxopt_search.results import Result
from jaxopt_search.solvers.anneal import anneal, completed
from jaxopt_search.solvers.maximum import Opposite, opposite, opposite_target

# As many searches on each device as have so many variables in all, from the least to the most.
_ON_CPU, _ON_GPU = (3000, 1, 4), (2**21, 132, 1056)
_MOST_COUPLED = 8  # others, of a variable on average: solutions then differ in small components


def solve_qubo(matrix: Any, key: Any = 0, **options: Any) -> Result:
    """Returns zeros and ones with a low sum of what they select: a QUBO's minimum, or close to it.

    By annealing of flips (`anneal`), with fewer searches the more variables there are. Before,
    sparse problems lose variables that three others or less decide, until too few would go to
    matter: trees are solved by that alone. Where variables are coupled with 8 others at most, on
    average, searches then go on to be reheated, and to keep the better of each part
    (`component_partition`).

    Args:
      matrix: [n, n] real numbers, dense or sparse, a dict from pairs to numbers, or a binary
        quadratic model, as `qubo` takes them; or a problem that it or `max_cut` returns. To
        maximize, negate it.
      key: an integer seed or a `jax.random.key`.
      options: the other arguments of `anneal`, such as `max_seconds`, 10 without a limit, and
        `target`. The default of `num_searches` on each device is 4 on a CPU, less above 750
        variables and 1 from 1501 on; on a GPU 1056, less above 1985 variables and 132 from 15,888
        on.

    Returns:
      A `Result`; `x` is [n] int32. Its `problem` and its `state` are of the variables that were
      not eliminated.

    Raises:
      ValueError, TypeError: as `qubo` and `anneal`.

    Example:
      >>> result = solve_qubo([[-1, 2, 0], [0, -1, 2], [0, 0, -1]], max_steps=100)
      >>> result.x.tolist(), result.fun
      ([1, 0, 1], -2)
    """
    problem = reduced(matrix if isinstance(matrix, QUBO) else qubo(matrix))
    if problem.host.is_optimal and options.get("target") is None:
        options["target"] = "optimum"
    each = (
        max(least, min(most, all_of_them // problem.n))
        for all_of_them, least, most in (_ON_CPU, _ON_GPU)
    )
    couplings = problem.couplings
    if isinstance(couplings, Sparse) and couplings.lists.starts[-1] <= _MOST_COUPLED * problem.n:
        options = {"crossover": component_partition()} | options
    return anneal(problem, Flip(), key, **completed(options, *each))


def solve_max_cut(
    weights: Any,
    key: Any = 0,
    *,
    edges: Any = None,
    num_vertices: int | None = None,
    target: float | None = None,
    callback: Callable[[Any], Any] | None = None,
    **options: Any,
) -> Result:
    """Returns two sides of a graph's vertices with much weight between them, as `solve_qubo` does.

    Args:
      weights: [n, n] real numbers, symmetric, dense or sparse, or a graph; or with `edges` their
        weights, as `max_cut` takes them; or a problem that it returns.
      key: an integer seed or a `jax.random.key`.
      edges: [m, 2] integers, as in `max_cut`.
      num_vertices: likewise.
      target: end once a cut weighs at least this.
      callback: called with a `Report` after each chunk of steps; True ends the run.
      options: the other arguments of `anneal`.

    Returns:
      A `Result` whose `fun` is the weight of the cut, and whose `x`, [n] int32, are the sides, 0
      and 1. Its `problem` and its `state` count with the opposite sign.

    Raises:
      ValueError, TypeError: as `max_cut` and `anneal`.

    Example:
      >>> square = [[0, 1], [1, 2], [2, 3], [3, 0], [0, 2]]
      >>> solve_max_cut(1, edges=square, max_steps=100).fun
      4
    """
    if isinstance(problem := weights, QUBO):
        refuse_options("a problem", edges=edges, num_vertices=num_vertices)
    else:
        problem = max_cut(weights, edges=edges, num_vertices=num_vertices)
    if callable(callback):
        callback = Opposite(callback)
    options |= {"callback": callback, "target": opposite_target(target)}
    return opposite(solve_qubo(problem, key, **options))
