"""The laws of local heuristics."""

from typing import Any

import jax
import jax.numpy as jnp

from jaxopt_search import successors
from jaxopt_search.testing import comparing


def check_heuristic(
    heuristic: Any,
    problem: Any,
    states: Any,
    *,
    active: Any = None,
    implementations: tuple[str, ...] | None = ("xla", "native", "interpret"),
    seed: int = 0,
) -> None:
    """Checks the laws of a `successors.LocalHeuristic`, in some states.

    `successors.check` looks for weights, ratings, numbers of possibilities and writes that must not
    be, and for variables that are declared independent and are not. Then successors are made in
    several ways, which must be the same.

    Args:
      heuristic, problem, states, active: as in `successors.generate`; small examples.
      implementations: the ways to compare, `"native"` on CPUs only; None for none.
      seed: of the successors.

    Raises:
      AssertionError: with the state, the variable and the possibility; or with what differs.
      TypeError: if it is no heuristic.

    Example:
      >>> import jax, jax.numpy as jnp, jaxopt_search as js
      >>> problem = js.graph_coloring([[0, 1], [1, 2]], 2)
      >>> colors = jnp.zeros((1, 3), jnp.int32)
      >>> states = js.types.Tallied(colors, jax.vmap(problem.tally)(colors))
      >>> heuristic = js.successors.ByDelta(num_variables=3, max_possibilities=2)
      >>> js.testing.check_heuristic(heuristic, problem, states, implementations=None)
    """
    try:
        successors.check(heuristic, problem, states, active)
    except ValueError as error:
        raise AssertionError(str(error)) from error
    runs = [
        (
            name,
            successors.generate(
                seed,
                heuristic,
                problem,
                states,
                active=active,
                num_successors=3,
                implementation=name,  # type: ignore[arg-type]
            ).states,
        )
        for name in implementations or ()
    ]
    if runs:
        is_exact = all(
            not jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in jax.tree.leaves(states)
        )
        kind = type(heuristic).__name__
        comparing.require_same_runs(runs, f"{kind}: the successors", is_exact)
