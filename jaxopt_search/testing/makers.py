"""The laws of what makes solutions of others: exchanges, crossovers and local heuristics."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search import successors
from jaxopt_search.backends import random
from jaxopt_search.testing import comparing
from jaxopt_search.testing.comparing import Laws
from jaxopt_search.types import null_delta

_PADDING = 3


def check_exchange(
    exchange: Any, problem: Any = None, *, num_searches: int = 7, seed: int = 0
) -> None:
    """Checks the laws of `types.Exchange`.

    - `every` is a positive integer, and `passes_on` is `"best"` or `"current"`.
    - Donors are searches that there are, or -1, whatever the costs: different, equal, infinite.
    - They do not depend on padding, and so not on the number of devices.
    - `starts_anew` is one bool; `order` is a permutation that leaves padding behind.
    - With a problem: what `combine` makes is a solution.

    Args:
      exchange: as in `run`.
      problem: for `combine`; None if it has none.
      num_searches: how many exchange.
      seed: of costs and words.

    Raises:
      AssertionError: with the law, the costs and the donors.

    Example:
      >>> import jaxopt_search as js
      >>> js.testing.check_exchange(js.ring(every=10))
    """
    name = type(exchange).__name__
    if not (jnp.shape(exchange.every) == () and int(exchange.every) >= 1):
        raise AssertionError(f"{name}.every is {exchange.every}, expected an integer from 1 up")
    if exchange.order is not None:
        number = num_searches + _PADDING
        is_padding = np.arange(number) >= num_searches
        stream = comparing.stream_at(random.as_key(seed), jnp.int32(1))
        found = np.asarray(jax.jit(functools.partial(exchange.order, stream))(is_padding))
        if not np.array_equal(np.sort(found), np.arange(number)):
            raise AssertionError(f"{name}.order: {found} is no permutation")
        if (found[:num_searches] >= num_searches).any():
            raise AssertionError(
                f"{name}.order: {found} brings padding, {num_searches} and on, to a search"
            )
        return
    if exchange.passes_on not in ("best", "current"):
        raise AssertionError(
            f"{name}.passes_on is {exchange.passes_on!r}, expected 'best' or 'current'"
        )
    rng = np.random.default_rng(seed)
    for costs in (
        rng.permutation(num_searches).astype(np.int32),
        np.zeros(num_searches, np.int32),
        rng.integers(0, 3, num_searches, np.int32),
        np.where(rng.random(num_searches) < 0.5, np.inf, 1).astype(np.float32),
    ):
        _check_donors(name, exchange, costs, seed)
    combine = exchange.combine
    if combine is not None and problem is not None:

        def alone(words: Any, problem: Any, own: Any, given: Any) -> Any:
            batch = jax.tree.map(lambda leaf: leaf[None], (words, own, given))
            return comparing.part_of(combine(batch[0], problem, *batch[1:]), 0)

        _check_children(name, jax.jit(combine), jax.jit(alone), problem, seed)


def check_crossover(crossover: Any, problem: Any, *, seed: int = 0) -> None:
    """Checks the laws of `types.Crossover`: children are solutions, and the same at any place.

    Also those that `children` makes of all parents at once, if the crossover has it.

    Args:
      crossover: as `recombine` takes it.
      problem: the instance.
      seed: of parents and keys.

    Raises:
      AssertionError: with the parents and the child.

    Example:
      >>> import jaxopt_search as js
      >>> js.testing.check_crossover(js.recombine(every=100).crossover, js.nqueens(6))
    """

    def made_by(make: Any) -> Any:
        return jax.jit(lambda share, words, *parts: make(random.typed_key(words), *parts, share))

    both = made_by(crossover.children), made_by(crossover.child)
    for share in map(jnp.float32, (0.0, 0.5, 1.0)):
        children, child = (functools.partial(make, share) for make in both)
        _check_children(type(crossover).__name__, children, child, problem, seed)


def _check_donors(name: str, exchange: Any, costs: np.ndarray, seed: int) -> None:
    num, room = len(costs), np.full(_PADDING, null_delta(costs.dtype), costs.dtype)

    @jax.jit
    def ask(exchange: Any, costs: jax.Array) -> tuple[jax.Array, Any]:
        stream = comparing.stream_at(random.as_key(seed), jnp.int32(exchange.every))
        number = jnp.int32(num)
        return exchange.donors(stream, costs, number), exchange.starts_anew(costs, number)

    (donors, restarts), (padded, padded_restarts) = (
        jax.device_get(ask(exchange, given)) for given in (costs, np.concatenate([costs, room]))
    )
    if donors.shape != (num,) or donors.dtype != np.int32:
        raise AssertionError(f"{name}.donors: {donors.dtype}{list(donors.shape)}, not int32[{num}]")
    for search in range(num):
        own, with_padding = donors[search], padded[search]
        if not -1 <= own < num or own != with_padding:
            raise AssertionError(
                f"{name}.donors: search {search} of {num} continues from {own}, with padding from"
                f" {with_padding}, costs {costs}"
            )
    if restarts is not None and (np.shape(restarts) != () or restarts != padded_restarts):
        raise AssertionError(
            f"{name}.starts_anew: {restarts}, with padding {padded_restarts}, expected one bool"
        )


def _check_children(name: str, make_all: Any, make_one: Any, problem: Any, seed: int) -> None:
    parents = comparing.starts_of(problem, 32, seed)
    known = comparing.look_at(problem, parents)
    own, given = (comparing.part_of(parents, half) for half in (slice(16), slice(16, None)))
    words = tuple(np.random.default_rng(seed).integers(0, 2**32, (2, 16), np.uint32))

    children = jax.device_get(make_all(words, problem, own, given))
    Laws(name, known, ("pair",), {"own": own, "given": given}).in_space(children, "child: it")
    one = comparing.part_of((words, own, given), 0)
    alone = jax.device_get(make_one(one[0], problem, *one[1:]))
    law = "child: by itself it is another one than among others"
    Laws(name, known, ()).same(alone, comparing.part_of(children, 0), law)


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
    options = {"active": active, "num_successors": 3}
    parts = seed, heuristic, problem, states
    runs = [
        (name, successors.generate(*parts, implementation=name, **options).states)  # type: ignore[arg-type]
        for name in implementations or ()
    ]
    if runs:
        dtypes = [leaf.dtype for leaf in jax.tree.leaves(states)]
        is_exact = not any(jnp.issubdtype(dtype, jnp.floating) for dtype in dtypes)
        what = f"{type(heuristic).__name__}: the successors"
        comparing.require_same_runs(runs, what, is_exact)
