"""Exchanges as programs of their own: the same run as with them in the program of the steps."""

import dataclasses

import chex
import jax.numpy as jnp
import numpy as np
import pytest
from cases import matrix_tsp

import jaxopt_search as js
from jaxopt_search.engine.exchange import exchange_apart

EVERY = 7
CHUNKS = (70, 13, EVERY, 1)
SEARCH = js.simulated_annealing(js.Relocate(), 300.0, moves_per_search=2)
PROBLEMS = {"ints": matrix_tsp(14), "floats": matrix_tsp(14, dtype=np.float64)}


@js.pytree
@dataclasses.dataclass(frozen=True, kw_only=True)
class Nearby(js.Crossover):
    """A child is near its parent, if it is shorter."""

    compiles_apart: bool = dataclasses.field(metadata={"static": True})

    space = "permutation"

    def child(self, key, problem, own, given, share):
        near = problem.perturb(key, own)
        return jnp.where(problem.cost(near) < problem.cost(own), near, own)


def exchange(is_apart):
    return js.recombine(every=EVERY, alike=None, crossover=Nearby(compiles_apart=is_apart))


INSIDE, APART = exchange(False), exchange(True)


def solve(kind, exchange, **options):
    """Returns the result, and step, acceptance and lowest cost after each chunk."""
    reports = []
    result = js.solve(
        PROBLEMS[kind],
        SEARCH,
        3,
        exchange=exchange,
        callback=lambda report: reports.append((report.step, report.acceptance, report.fun)),
        **{"num_searches": 5, "max_steps": 70, "check_every": 12, "devices": 1} | options,
    )
    return result, reports


def check_same_run(expected, found):
    """Checks whole states, but for sums since the last chunk."""
    chex.assert_trees_all_equal(*(end.state._replace(info=None) for end in (expected, found)))
    np.testing.assert_array_equal(expected.solutions, found.solutions)
    assert (expected.status, expected.nit) == (found.status, found.nit)
    assert expected.first_hit == found.first_hit


LIMITS = {
    "target": {"target": 2990},
    "exchange": {"target": 1975.5, "max_steps": 84},
    "patience": {"patience": 24},
}
"""The target is met at step 20, and the test that finds out comes after the exchange of step 21.

The last exchange, of step 70, makes the best tour, which meets the lower target.
"""


@pytest.mark.parametrize(
    ("kind", "limit"), [("floats", "target"), ("ints", "exchange"), ("ints", "patience")]
)
def test_the_course_is_the_same(kind, limit):
    """Cut into chunks at exchanges or between them; with the same reports after each chunk."""
    for chunk_steps in CHUNKS:
        options = {"chunk_steps": chunk_steps} | LIMITS[limit]
        (expected, own), (found, reports) = (solve(kind, way, **options) for way in (INSIDE, APART))
        check_same_run(expected, found)
        assert reports == own and len(own) > expected.nit / chunk_steps
        if chunk_steps == CHUNKS[0]:
            whole = found
        else:
            check_same_run(whole, found)
    assert whole.status.name == ("PATIENCE" if limit == "patience" else "TARGET")
    assert (np.asarray(whole.ancestors) != np.arange(5)).any()


@pytest.mark.parametrize("status", ["RUNNING", "TARGET"])
def test_after_the_end_nothing_is_exchanged(status):
    problem, rule = PROBLEMS["ints"], js.broadcast_best(every=EVERY)
    state = js.init(1, problem, SEARCH, num_searches=5)
    state = state._replace(status=jnp.int32(js.Status[status]))
    after = exchange_apart(rule, problem, SEARCH, state, axis_name=None)
    if status == "RUNNING":
        assert len(set(np.asarray(after.ancestor).tolist())) == 1
    else:
        chex.assert_trees_all_equal(after, state)


@pytest.mark.devices(2)
def test_on_two_devices():
    """Five searches, and one that only fills up."""
    options = {"chunk_steps": 13} | LIMITS["target"]
    (one, own), (two, reports) = (solve("ints", APART, devices=n, **options) for n in (1, 2))
    check_same_run(one, two)
    assert reports == own
