"""Optional members: what a part may have besides what its protocol in `types` asks for.

One function for each, which tells the member's type and what holds where it is missing. Nothing
else in the library asks a problem, neighborhood, search, crossover or exchange for a member that
it may lack.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import jax

from jaxopt_search.types import Cost, Problem, Representation, Scan, Search, Solution, State

if TYPE_CHECKING:
    from jaxopt_search.problems.host import Original, Units

HOOKS = ("tally", "assign_delta", "swap_values_delta", "assigned")
"""The methods of `types.VectorProblem` with which moves are priced: all of them or none."""


def missing(part: object, needed: Sequence[str]) -> list[str]:
    """Returns those of the `needed` members that `part` lacks."""
    return [name for name in needed if not hasattr(part, name)]


# Of any part.


def space(part: object) -> str | None:
    """`space`: the solutions that a problem has or another part is for; None if it does not say.

    `"permutation"`: [n] int32 with each of 0 to n - 1 once. `"vector"`: [n] int32 with values
    below `domain_sizes`, see `types.VectorProblem`.
    """
    return cast("str | None", getattr(part, "space", None))


def moves(neighborhood: object) -> object | None:
    """`moves`: what a neighborhood without deltas of its own is made of; None for the others."""
    return cast("object | None", getattr(neighborhood, "moves", None))


def neighborhood(search: object) -> object | None:
    """`neighborhood`: that of a search which has one; else None."""
    return cast("object | None", getattr(search, "neighborhood", None))


def local_search(search: object) -> object | None:
    """`local_search`: the search that improves what a search makes; None for none."""
    return cast("object | None", getattr(search, "local_search", None))


# Of a problem.


def original(problem: object) -> Original | None:
    """`host`: the instance as it was given, for exact costs on the host; None for none."""
    return cast("Original | None", getattr(problem, "host", None))


def device_cost(problem: Problem) -> Callable[[Solution], Cost]:
    """`device_cost(solution)`: the cost as searches count it; `cost` if missing."""
    return cast("Callable[[Solution], Cost]", getattr(problem, "device_cost", problem.cost))


def units(problem: object) -> Units | None:
    """`units`: how `device_cost` stands for `cost`; None where they are the same.

    Without a `device_cost`, a member of this name is the user's own.
    """
    own = getattr(problem, "units", None) if hasattr(problem, "device_cost") else None
    return cast("Units | None", own)


def cost_in_full(problem: object, cost: Cost) -> Cost:
    """Returns the problem's own cost that one on the device, of any shape, stands for."""
    own = units(problem)
    return cost if own is None else own.in_full(cost)


def is_trivial(problem: object) -> bool:
    """`is_trivial`: whether all solutions have the same cost, so that none is searched for."""
    return bool(getattr(problem, "is_trivial", False))


def lighter(problem: object) -> str:
    """`lighter`: how to build the same problem in less memory; "" if there is no such way."""
    return cast("str", getattr(problem, "lighter", ""))


def num_entries(problem: object) -> jax.Array | None:
    """`num_entries`: [] int32, so many first entries of a permutation count; None for all.

    Those behind stay where they are: see `problems.padding`.
    """
    return cast("jax.Array | None", getattr(problem, "num_entries", None))


def free(problem: object) -> jax.Array | None:
    """`free`: [m] int32, the positions of a permutation that may change; None for all."""
    return cast("jax.Array | None", getattr(problem, "free", None))


def num_free(problem: object) -> jax.Array:
    """`num_free`: [] int32, so many first ones of `free` may change; with `num_entries`."""
    return cast("jax.Array", getattr(problem, "num_free", None))


def is_free(problem: object) -> jax.Array | None:
    """`is_free`: [n] int32, 1 at the positions of `free` and 0 at the others; None for all.

    A problem with one of the two has both.
    """
    return cast("jax.Array | None", getattr(problem, "is_free", None))


def perturbed(problem: object, key: jax.Array, solution: Solution) -> Solution:
    """`perturb(key, solution)`: a solution nearby, drawn at random; the same one if missing.

    Args:
      key: typed.
    """
    perturb = getattr(problem, "perturb", None)
    return solution if perturb is None else perturb(key, solution)


def row_costs(problem: object) -> Callable[..., jax.Array] | None:
    """`row_costs(block, table)`, portable: the costs, [R], of the solutions in rows of a table.

    The rows are those of a `rows.Block` of a table [P, n] int32. With it, `genetic` runs in a
    kernel.
    """
    return cast("Callable[..., jax.Array] | None", getattr(problem, "row_costs", None))


def scan(problem: object) -> Callable[..., Scan] | None:
    """`scan(solution, tally)`: all assignments of a vector priced in one pass: `types.Scan`."""
    return cast("Callable[..., Scan] | None", getattr(problem, "scan", None))


def has_hooks(problem: object) -> bool:
    """The four methods of `HOOKS`: whether the problem prices moves of vectors by itself.

    Raises:
      TypeError: if it has some of them, but not all.
    """
    lacks = missing(problem, HOOKS)
    has = [name for name in HOOKS if name not in lacks]
    if has and lacks:
        raise TypeError(
            f"problem is a {type(problem).__name__} with {has[0]} but no {lacks[0]}, expected all"
            f" of {', '.join(HOOKS)}, or none"
        )
    return not lacks


def domain_sizes(problem: object) -> jax.Array | None:
    """`domain_sizes`: [n] int32, see `types.VectorProblem`; None if the problem has none."""
    return cast("jax.Array | None", getattr(problem, "domain_sizes", None))


def max_domain(problem: object) -> int | None:
    """`max_domain`: the largest of the domain sizes, static; None if the problem has none."""
    return cast("int | None", getattr(problem, "max_domain", None))


def has_swap_delta(problem: object) -> bool:
    """`swap_delta`: whether the problem prices the swap of two positions."""
    return hasattr(problem, "swap_delta")


def has_distances(problem: object) -> bool:
    """`distance(first, second)`: whether the problem has distances between cities."""
    return callable(getattr(problem, "distance", None))


# Of a neighborhood.


def is_portable_for(neighborhood: object, problem: Problem) -> bool:
    """`is_portable`, or `is_portable(problem)`: whether `propose`, `delta`, `commit` are portable.

    False if missing.
    """
    return bool(_for(problem, getattr(neighborhood, "is_portable", False)))


def obstacle_for(neighborhood: object, problem: Problem) -> str:
    """`obstacle`, or `obstacle(problem)`: what keeps its moves out of kernels; "" for nothing."""
    return str(_for(problem, getattr(neighborhood, "obstacle", "")))


def known_cost(neighborhood: object, representation: Representation) -> Cost | None:
    """`known_cost(representation)`: the cost where it is at hand, in place of a sum of deltas.

    None where it is not.
    """
    known = getattr(neighborhood, "known_cost", None)
    return None if known is None else known(representation)


def warps_per_move(neighborhood: object, problem: Problem) -> int:
    """`num_warps(problem)`: those of a program in a kernel that serve to make a move; else 1."""
    num_warps = getattr(neighborhood, "num_warps", None)
    return 1 if num_warps is None else num_warps(problem)


def extent(part: Any, *arguments: Any) -> tuple[Any, Any]:
    """`extent(problem)`: so many first rows and columns of its table count; `shape` if missing.

    Integers, or [] int32 where a problem has room for more than its size: see `problems.padding`.
    Entries behind are never `first`, and numbers of entries are those of a table of this size.

    Args:
      part: a neighborhood, with the problem; or what one is made of (`moves`), with a solution too.
    """
    ask = getattr(part, "extent", None)
    return part.shape(*arguments) if ask is None else ask(*arguments)


def commit_and_first(neighborhood: object) -> Callable[..., Any] | None:
    """`commit_and_first(problem, representation, move, accept, rank, others)`.

    Returns the representation after `commit` and what `first` returns of it, where one pass over
    the table is faster than two: `types.Enumerable`. None if missing.
    """
    return cast("Callable[..., Any] | None", getattr(neighborhood, "commit_and_first", None))


# Of a search. None of them changes what a step does.


def started(search: Search, key: jax.Array, problem: Problem, solution: Solution) -> State:
    """`init_with(key, problem, solution)`, in place of `init` where a run starts.

    `key`, typed, is for what else is drawn then, such as the other individuals of an island. It is
    equal for equal keys of a run and equal indices of the search.
    """
    init_with = getattr(search, "init_with", None)
    if init_with is None:
        return search.init(problem, solution)
    return init_with(key, problem, solution)


def adopt_or_init(search: Search) -> Callable[..., State] | None:
    """`adopt_or_init(problem, state, solution, is_new)`: `init` if `is_new`, [] bool, else `adopt`.

    For less to compile than both. None if missing, or if there is an `init_with`.
    """
    share = getattr(search, "adopt_or_init", None)
    return None if hasattr(search, "init_with") else share


def check(search: Search, problem: Problem, max_steps: int | None) -> None:
    """`check(problem, max_steps)`: refuses settings that suit neither, on the host."""
    refuse = getattr(search, "check", None)
    if refuse is not None:
        refuse(problem, max_steps)


def obstacle(search: Search, problem: Problem) -> str:
    """`obstacle(problem)`: why the step cannot run in a kernel, in one line; "" if missing."""
    find = getattr(search, "obstacle", None)
    return "" if find is None else find(problem)


def is_portable(search: Search, problem: Problem) -> bool:
    """`is_portable(problem)`: whether `step` is portable; False if missing.

    On a CPU such searches run several times faster.
    """
    ask = getattr(search, "is_portable", None)
    return False if ask is None else ask(problem)


def draws(search: Search) -> tuple[int, int]:
    """`draws`: (slots, words per slot) of the stream that a step uses at most.

    So they can be drawn for many steps at a time on a CPU; (0, 0) if missing.
    """
    return cast("tuple[int, int]", getattr(search, "draws", (0, 0)))


def is_done(search: Search) -> Callable[[State], jax.Array] | None:
    """`is_done(state)`, [] bool: whether further steps would change nothing; None if missing.

    A run in which all searches are done ends.
    """
    return cast("Callable[[State], jax.Array] | None", getattr(search, "is_done", None))


def num_warps(search: Search, problem: Problem, num_searches: int) -> int:
    """`num_warps(problem, num_searches)`: of a program in a kernel, a power of two; else 1."""
    ask = getattr(search, "num_warps", None)
    return 1 if ask is None else ask(problem, num_searches)


def check_every(search: Search) -> int | None:
    """`check_every`: steps between stop tests where a run is not told; None for the default."""
    return cast("int | None", getattr(search, "check_every", None))


def has_islands(search: Search) -> bool:
    """`individuals(state)`, leaves [P, ...], and `with_individuals(state, individuals)`."""
    return hasattr(search, "individuals")


# Of an exchange.


def order(exchange: object) -> Callable[..., jax.Array] | None:
    """`order(stream, is_padding)`: where the individuals of all islands come from, in place of all.

    `is_padding`, [S * P] bool, tells those of no island; they are to stay behind the others. The
    result is a permutation, [S * P] int32. None if missing.
    """
    return cast("Callable[..., jax.Array] | None", getattr(exchange, "order", None))


def combine(exchange: object) -> Callable[..., Solution] | None:
    """`combine(words, problem, own, given)`: what searches continue from, with two words for each.

    It is made of what they would pass on themselves and of their donors' solutions, leaves
    [S, ...]. None if missing: they continue from their donors'.
    """
    return cast("Callable[..., Solution] | None", getattr(exchange, "combine", None))


def children(
    crossover: Any, keys: jax.Array, problem: Problem, own: Any, given: Any, share: jax.Array
) -> Any:
    """`children(keys, problem, own, given, share)`: a child for each of S searches at once.

    All but the problem and the share have a leading axis [S]. If missing: the same by `child`.
    """
    if (make := getattr(crossover, "children", None)) is not None:
        return make(keys, problem, own, given, share)
    make_one = jax.vmap(crossover.child, in_axes=(0, None, 0, 0, None))
    return make_one(keys, problem, own, given, share)


def restarts(exchange: object, costs: jax.Array, num_searches: jax.Array) -> jax.Array | None:
    """`starts_anew(costs, num_searches)`, of arguments as `donors` has them, [] bool.

    Whether all but the first search start again at random, and the first one continues from the
    best of all. None, or a missing member, for never.
    """
    ask = getattr(exchange, "starts_anew", None)
    return None if ask is None else ask(costs, num_searches)


def compiles_apart(exchange: object) -> bool:
    """`compiles_apart`: whether `solve` makes it by a program of its own; else False."""
    return bool(getattr(exchange, "compiles_apart", False))


def _for(problem: Problem, value: Any) -> Any:
    """Returns a value, or what a function gives for the problem."""
    return value(problem) if callable(value) else value
