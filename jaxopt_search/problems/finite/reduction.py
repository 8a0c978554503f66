"""A QUBO of fewer variables with the same minimum: what few others decide is eliminated, exactly.

At its best, a variable adds min(0, a + b x + c y + ...) to the cost, where a is its linear term and
x, y and so on are the variables it is coupled with. This is a polynomial in them, which can take
its place if it is quadratic: always so for two of them, and for three in every cut. Trees lose all
variables but one, and sparse random graphs many. Dechter, "Bucket elimination: a unifying framework
for reasoning", 1999; Ferizovic, Hespe, Lamm, Mnich, Schulz and Strash, "Engineering kernelization
for maximum cut", 2020, whose rules for cuts reach further.
"""

import dataclasses
import itertools
from typing import Any, NamedTuple

import numpy as np

from jaxopt_search.problems import bounds
from jaxopt_search.problems.finite.qubo import QUBO, Sparse, Terms, of_terms
from jaxopt_search.problems.padding import list_room

_MOST_OTHERS = 3  # that an eliminated variable is coupled with
_FEWEST_OF_ALL = 1 / 16  # variables coupled with so few; else it is not tried


def reduced(problem: QUBO) -> QUBO:
    """Returns a QUBO of fewer variables whose best solutions stand for the problem's best.

    Runs of it take and return solutions of the problem. It has one of few round sizes
    (`list_room`), so that similar problems share compiled code, and is the problem itself where
    that leaves none to eliminate, or where the problem is dense or has been reduced. If one
    variable is left, the optimum is known.
    """
    if not isinstance(problem.couplings, Sparse) or problem.host.as_given is not None:
        return problem
    terms = Terms(np.asarray(problem.linear), *problem.couplings.terms())
    coupled = np.bincount(np.concatenate([terms.first, terms.second]), minlength=problem.n)
    if (coupled <= _MOST_OTHERS).sum() < _FEWEST_OF_ALL * problem.n:
        return problem
    found = _eliminate(terms, 1)
    if len(found.kept) < (room := min(list_room(len(found.kept)), problem.n)):
        found = _eliminate(terms, room)
    is_exact = terms.linear.dtype.kind == "i"
    if not found.gone or (is_exact and not bounds.qubo_bounds(*found.terms).fit):
        return problem
    given, own = _Eliminated.of(problem, found), problem.host
    offset = own.offset + found.constant
    host = dataclasses.replace(
        own,
        cost=given.cost,
        check=given.check,
        offset=offset,
        note=f"{len(found.gone)} of {problem.n} variables were eliminated",
        as_given=given,
    )
    if len(found.kept) == 1:
        best = (min(0, found.terms.linear.item()) + offset) * own.unit
        host = dataclasses.replace(host, best_known=best, is_optimal=is_exact)
    return of_terms(found.terms, problem.linear.dtype, False, host)


class _Found(NamedTuple):
    """What is left after an elimination.

    Attributes:
      terms: of the variables that are kept.
      constant: what their cost leaves out.
      kept: [m] their numbers, ascending.
      gone: the others in the order in which they went: number, linear term, couplings at the time.
    """

    terms: Terms
    constant: Any
    kept: np.ndarray
    gone: list[tuple[int, Any, dict[int, Any]]]


def _eliminate(terms: Terms, least: int) -> _Found:
    """Eliminates one variable after the other, until `least` are left or none can go."""
    linear, constant = terms.linear.tolist(), 0
    links: dict[int, dict[int, Any]] = {i: {} for i in range(len(linear))}

    def couple(i: int, j: int, value: Any) -> None:
        sum_of_them = links[i].get(j, 0) + value
        for one, other in ((i, j), (j, i)):
            links[one][other] = sum_of_them
            if sum_of_them == 0:
                del links[one][other]

    for i, j, value in zip(*(part.tolist() for part in terms[1:]), strict=True):
        couple(i, j, value)
    waiting = [i for i in links if len(links[i]) <= _MOST_OTHERS]
    gone = []
    while waiting and len(links) > least:
        i = waiting.pop()
        if i not in links or len(links[i]) > _MOST_OTHERS:  # it has changed since
            continue
        others = list(links[i])
        polynomial = _polynomial(linear[i], list(links[i].values()))
        if any(polynomial[7:]):  # of three variables together
            continue
        gone.append((i, linear[i], links.pop(i)))
        constant += polynomial[0]
        for bit, j in enumerate(others):
            del links[j][i]
            linear[j] += polynomial[1 << bit]
        for (bit, j), (other_bit, k) in itertools.combinations(enumerate(others), 2):
            if value := polynomial[1 << bit | 1 << other_bit]:
                couple(j, k, value)
        waiting += [j for j in others if len(links[j]) <= _MOST_OTHERS]
    kept = np.array(list(links))
    place = {i: at for at, i in enumerate(links)}
    pairs = [(place[i], place[j], links[i][j]) for i in links for j in links[i] if i < j]
    first, second, values = zip(*pairs, strict=True) if pairs else ((), (), ())
    dtype = np.int64 if terms.linear.dtype.kind == "i" else np.float64
    left = Terms(
        np.array(linear, dtype)[kept],
        np.array(first, np.int64),
        np.array(second, np.int64),
        np.array(values, dtype),
    )
    return _Found(left, constant, kept, gone)


def _polynomial(linear: Any, couplings: list[Any]) -> list[Any]:
    """Returns what a variable adds to the cost at its best, as a polynomial in the others.

    Returns:
      The coefficient of each product of others, by the bits of its number: [0] is the constant.
    """
    sums = [linear]
    for coupling in couplings:
        sums += [one + coupling for one in sums]
    found = [min(0, one) for one in sums]
    for bit in range(len(couplings)):  # from values to coefficients
        for number in range(len(found)):
            if number >> bit & 1:
                found[number] -= found[number ^ 1 << bit]
    return found


class _Round(NamedTuple):
    """Variables that can be set at once.

    Attributes:
      variables: [k] their numbers.
      linear: [k] their linear terms.
      others: [k, 3] the variables that they are coupled with; where there are fewer, 0 ...
      values: [k, 3] ... with a coupling of 0.
    """

    variables: np.ndarray
    linear: np.ndarray
    others: np.ndarray
    values: np.ndarray


class _Eliminated(NamedTuple):
    """Solutions of all variables from those of the kept ones, and back.

    Attributes:
      whole: the problem before.
      kept: [m] the variables that are kept.
      rounds: the others, in an order in which they can be set.
    """

    whole: QUBO
    kept: np.ndarray
    rounds: list[_Round]

    @classmethod
    def of(cls, problem: QUBO, found: _Found) -> "_Eliminated":
        round_of = dict.fromkeys(found.kept.tolist(), 0)
        rounds: dict[int, list[Any]] = {}
        for i, linear, couplings in reversed(found.gone):
            round_of[i] = 1 + max((round_of[j] for j in couplings), default=0)
            filled = [*couplings.items(), *[(0, 0)] * _MOST_OTHERS][:_MOST_OTHERS]
            others, values = zip(*filled, strict=True)
            rounds.setdefault(round_of[i], []).append((i, linear, others, values))
        ordered = [rounds[number] for number in sorted(rounds)]
        arrays = [_Round(*map(np.array, zip(*one, strict=True))) for one in ordered]
        return cls(problem, found.kept, arrays)

    def __call__(self, solutions: np.ndarray) -> np.ndarray:
        whole = np.zeros((*solutions.shape[:-1], self.whole.n), solutions.dtype)
        whole[..., self.kept] = solutions
        for variables, linear, others, values in self.rounds:
            whole[..., variables] = linear + (whole[..., others] * values).sum(axis=-1) < 0
        return whole

    def check(self, values: Any, name: str) -> np.ndarray:
        """Returns the kept variables, [m], of a solution of all."""
        return self.whole.host.check(values, name)[self.kept]

    def cost(self, solution: np.ndarray) -> int | float:
        """Returns the exact cost of all variables, of a solution of the kept ones."""
        return self.whole.host.cost(self(solution))
