"""Parts that break one law each, and what a check must say of them."""

import dataclasses

import jax
import jax.numpy as jnp

import jaxopt_search as js
from jaxopt_search.backends import memory
from jaxopt_search.backends.random import below
from jaxopt_search.types import null_delta


class Static:
    """Registers every subclass as a pytree without leaves."""

    def __init_subclass__(cls):
        jax.tree_util.register_static(dataclasses.dataclass(frozen=True)(cls))


def changed(part, members):
    """Returns a part with other members, as an instance of a class `Broken`."""
    kind = type(part)
    fields = {field.name: getattr(part, field.name) for field in dataclasses.fields(kind)}
    made = js.pytree(type("Broken", (kind,), members))
    return made(**fields)


# Of neighborhoods: swaps of a QAP that are priced by hand, and what goes wrong with them.


class WrongDelta(js.DeltaSwap, Static):
    def delta(self, problem, representation, move):
        change = super().delta(problem, representation, move)
        is_null = change == null_delta(change.dtype)
        return jnp.where(is_null | (change % 7 != 3), change, change + 1)


class DeltaOfAnotherType(js.DeltaSwap, Static):
    def delta(self, problem, representation, move):
        return super().delta(problem, representation, move).astype(jnp.float32)


class NullIsFree(js.DeltaSwap, Static):
    """Proposes moves that change nothing, and prices them 0."""

    def propose(self, problem, representation, words):
        move = super().propose(problem, representation, words)
        same = below(words[0], 4) == 0
        return move._replace(second=jnp.where(same, move.first, move.second))

    def delta(self, problem, representation, move):
        change = super().delta(problem, representation, move)
        return jnp.where(move.first == move.second, jnp.zeros_like(change), change)


class IgnoresAccept(js.DeltaSwap, Static):
    def commit(self, problem, representation, move, accept):
        return super().commit(problem, representation, move, jnp.bool_(True))


class LeavesTheSpace(js.DeltaSwap, Static):
    """Writes one of the two entries."""

    def commit(self, problem, representation, move, accept):
        after = super().commit(problem, representation, move, accept)
        first = jax.tree.leaves(representation)[0]
        return jax.tree.map(
            lambda leaf: memory.store(leaf, move.first, memory.load(first, move.first), accept),
            after,
        )

    def delta(self, problem, representation, move):
        def cost(representation):
            return problem.cost(self.solution(problem, representation))

        def one(move):
            return cost(self.commit(problem, representation, move, jnp.bool_(True))) - cost(
                representation
            )

        return jax.vmap(one)(move) if move.first.ndim else one(move)


class WrongKnownCost(js.DeltaSwap, Static):
    def known_cost(self, representation):
        return jnp.int32(17)


class StaleTally(js.Flip, Static):
    """Makes the flip, but leaves what prices the next one as it was."""

    def commit(self, problem, representation, move, accept):
        after = super().commit(problem, representation, move, accept)
        return after._replace(tally=representation.tally)


class ReversedLanes(js.DeltaSwap, Static):
    """Many moves at once differ from the moves that the same words give one by one."""

    def propose(self, problem, representation, words):
        move = super().propose(problem, representation, words)
        return jax.tree.map(lambda leaf: leaf[::-1] if leaf.ndim else leaf, move)


class OtherSnapshot(js.DeltaSwap, Static):
    def solution(self, problem, snapshot):
        solution = super().solution(problem, snapshot)
        return jnp.roll(solution, 1)


# Of tables.


class CountsTwice(js.Flip, Static):
    def num_moves(self, problem):
        return 2 * problem.n


class FindsTheWorst(js.Flip, Static):
    def first(self, problem, representation, rank, others):
        def reverse(entry, delta, *others):
            keys = rank(entry, delta, *others)
            return (-keys[0], *keys[1:])

        found, move = super().first(problem, representation, reverse, others)
        return found._replace(keys=(-found.keys[0], *found.keys[1:])), move


class UndoesElsewhere(js.Flip, Static):
    def undone(self, problem, representation, move):
        return ((jnp.int32(problem.n), jnp.int32(0)),)


NEIGHBORHOODS = {
    WrongDelta: r"WrongDelta\.delta is not .*: walk \d+, step \d+, move .*, found .*, expected",
    DeltaOfAnotherType: r"delta is float32, but costs are int32",
    NullIsFree: r"accepted move changes nothing; price such a move with types\.null_delta",
    IgnoresAccept: r"IgnoresAccept\.commit: a rejected move changes something: walk 0, step 0",
    LeavesTheSpace: r"LeavesTheSpace\.commit: .* is outside of its space",
    WrongKnownCost: r"known_cost is not the cost: walk 0, step 0, .* found 17, expected",
    StaleTally: r"StaleTally\.delta is not .*, step 1,",
    ReversedLanes: r"300 moves at once differ from one by one: lane \d+, gives .*, by itself",
    OtherSnapshot: r"OtherSnapshot\.solution: .* make another one: start 0",
    CountsTwice: r"num_moves is 8, but the table of a solution leads to 4 others",
    FindsTheWorst: r"FindsTheWorst\.first",
    UndoesElsewhere: r"undone is outside of the table of .*, row 4, column 0",
}


# Of problems on vectors: the cut of a graph, with one hook that is wrong.


def cut():
    return js.max_cut(1, edges=[[0, 1], [1, 2], [2, 3], [3, 0], [0, 2]])


def broken_problem(problem, hook, change):
    """Returns a problem with a member that returns what a function makes of what it returned."""
    kind = type(problem)

    def wrong(self, *arguments):
        return change(getattr(kind, hook)(self, *arguments))

    return changed(problem, {hook: wrong})


def varied(part, **members):
    """Returns a part with other members: functions whose first argument is the part as it was."""
    kind = type(part)

    def member(fn):
        def of(self, *arguments):
            fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(kind)}
            return fn(kind(**fields), *arguments)

        return of

    return changed(part, {name: member(fn) for name, fn in members.items()})


def step_with(change):
    """Returns a `step` whose state and info are changed by a function."""
    return lambda search, *arguments: change(*search.step(*arguments))


SEARCHES = {
    "best rises": (
        {
            "best_cost": lambda search, state: state.cost,
            "best": lambda search, problem, state: search.current(problem, state),
        },
        r"the best cost rises: .*, from -?\d+, to -?\d+",
    ),
    "best is a lie": (
        {"best_cost": lambda search, state: search.best_cost(state) - 1},
        r"Broken\.best_cost is not .* after 0 steps, found \d+, expected \d+",
    ),
    "current is a lie": (
        {"current_cost": lambda search, state: search.current_cost(state) + 1},
        r"Broken\.current_cost is not .*: search 0, place 0, after 0 steps",
    ),
    "forgets the best": (
        {"adopt": lambda search, problem, state, solution: search.init(problem, solution)},
        r"Broken\.adopt loses the best cost: search \d, given \d+, found \d+, expected \d+",
    ),
    "adopts nothing": (
        {"adopt": lambda search, problem, state, solution: state},
        r"Broken\.adopt: ",
    ),
    "refreshes wrongly": (
        {"refresh": lambda search, problem, state: state._replace(cost=state.cost + 1)},
        r"current_cost is not .* after refresh, found",
    ),
    "is never done": (
        {"is_done": lambda search, state: jnp.bool_(True)},
        r"is_done holds before a step that changes something: search \d, step \d",
    ),
    "accepts in secret": (
        {"step": step_with(lambda state, info: (state, info._replace(accepted=jnp.int32(0))))},
        r"accepted is 0, but the current solution changes",
    ),
    "changes types": (
        {"step": step_with(lambda state, info: (state._replace(cost=state.cost + 0.5), info))},
        r"Broken\.step: the state changes",
    ),
    "evaluates none": ({"evaluations_per_step": lambda search, problem: 1.5}, r"is 1\.5, expected"),
}


class OtherAlone(js.DeltaSwap, Static):
    """Draws other moves where a search runs by itself."""

    def propose(self, problem, representation, words):
        words = words[::-1] if memory.is_alone() else words
        return super().propose(problem, representation, words)


class NotInAKernel(js.DeltaSwap, Static):
    def propose(self, problem, representation, words):
        move = super().propose(problem, representation, words)
        return move._replace(first=jnp.sort(move.first)) if move.first.ndim else move


HOOKS = {
    "assign_delta": (lambda delta: delta + 1, r"Assign\.delta"),
    "swap_values_delta": (lambda delta: delta - 1, r"SwapValues\.delta"),
    "assigned": (
        lambda tally: jax.tree.map(lambda leaf: leaf + 1, tally),
        r"Assign\.(commit|delta)",
    ),
    "row_costs": (
        lambda costs: costs + 1,
        r"row_costs are not .*: start 0, found -?\d+, expected -?\d+",
    ),
    "cost": (
        lambda cost: cost + 1,
        r"Broken\.cost is not what device_cost stands for: start \d+, found",
    ),
    "device_cost": (
        lambda cost: cost + 1,
        r"Broken\.cost is not the host's: start \d+, found",
    ),
    "init": (
        lambda vector: vector * 2,
        r"Broken\.init: it is outside of its space: start \d+, solution",
    ),
}
