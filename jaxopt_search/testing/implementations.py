"""One law of all searches: every way to run them makes the same steps."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

import jaxopt_search
from jaxopt_search.backends.costs import cost_of
from jaxopt_search.testing import comparing


def check_implementations(
    search: Any,
    problem: Any,
    *,
    implementations: Sequence[str] | None = None,
    num_searches: int = 3,
    num_steps: int = 60,
    seed: int = 0,
) -> None:
    """Checks that a search makes the same steps in every implementation, bit for bit.

    Of float costs, which compilers round differently, only shapes and dtypes are compared.

    Args:
      search, problem: as in `run`.
      implementations: names of `backends.Implementation`, the first of which is right; None for
        `"xla"` and, where the search is portable, `"native"` on CPUs and `"interpret"`, the kernel
        without a GPU.
      num_searches, num_steps, seed: of each run.

    Raises:
      AssertionError: naming two implementations and what differs.

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.nqueens(6)
      >>> search = js.simulated_annealing(js.QueenSwap(), 1.0)
      >>> js.testing.check_implementations(search, problem, implementations=("xla", "native"))
    """
    names = _names(search, problem) if implementations is None else list(implementations)
    runs = [
        (
            name,
            jaxopt_search.run(
                seed,
                problem,
                search,
                num_searches=num_searches,
                max_steps=num_steps,
                implementation=name,  # type: ignore[arg-type]
            ),
        )
        for name in names
    ]
    cost = jax.eval_shape(lambda: cost_of(problem, problem.init(jax.random.key(0))))
    is_exact = bool(jnp.issubdtype(cost.dtype, jnp.integer))
    what = f"{type(search).__name__}: the states after {num_steps} steps"
    comparing.require_same_runs(runs, what, is_exact)


def _names(search: Any, problem: Any) -> list[str]:
    names = ["xla"]
    if not search.is_portable(problem):
        return names
    names += ["native"] * (jax.default_backend() == "cpu")
    obstacle = jaxopt_search.why_not_portable(problem, search)
    if obstacle:
        raise AssertionError(f"{type(search).__name__} says that it is portable, but {obstacle}")
    return [*names, "interpret"]
