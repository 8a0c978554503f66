"""Exchanges: the same run however it is cut into chunks and spread over devices."""

import dataclasses

import chex
import jax.numpy as jnp
import numpy as np
import pytest
from cases import matrix_tsp

import jaxopt_search as js

EVERY = 7
CHUNKS = (70, 13, EVERY, 1)
SEARCH = js.simulated_annealing(js.Relocate(), 300.0, moves_per_search=2)
PROBLEMS = {"ints": matrix_tsp(14), "floats": matrix_tsp(14, dtype=np.float64)}


@js.pytree
@dataclasses.dataclass(frozen=True, kw_only=True)
class Nearby(js.Crossover):
    """A child is near its parent, if it is shorter."""

    space = "permutation"

    def child(self, key, problem, own, given, share):
        near = problem.perturb(key, own)
        return jnp.where(problem.cost(near) < problem.cost(own), near, own)


EXCHANGE = js.recombine(every=EVERY, alike=None, crossover=Nearby())


def solve(kind, **options):
    """Returns the result, and step, acceptance and lowest cost after each chunk."""
    reports = []
    result = js.solve(
        PROBLEMS[kind],
        SEARCH,
        3,
        exchange=EXCHANGE,
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
    """Cut into chunks at exchanges or between them."""
    for chunk_steps in CHUNKS:
        found, reports = solve(kind, **{"chunk_steps": chunk_steps} | LIMITS[limit])
        assert len(reports) > found.nit / chunk_steps
        if chunk_steps == CHUNKS[0]:
            whole = found
        else:
            check_same_run(whole, found)
    assert whole.status.name == ("PATIENCE" if limit == "patience" else "TARGET")
    assert (np.asarray(whole.ancestors) != np.arange(5)).any()


def test_by_itself_as_within_the_program_of_the_steps():
    """`solve` makes an exchange that combines solutions by a program of its own, `run` does not."""
    limits = {"max_steps": 2 * EVERY, "num_searches": 5, "check_every": 12}
    apart = solve("ints", chunk_steps=2 * EVERY, **limits)[0].state
    within = js.run(3, PROBLEMS["ints"], SEARCH, exchange=EXCHANGE, **limits)
    chex.assert_trees_all_equal(apart._replace(status=None), within._replace(status=None))
    assert (np.asarray(within.ancestor) != np.arange(5)).any()


@pytest.mark.devices(2)
def test_on_two_devices():
    """Five searches, and one that only fills up."""
    options = {"chunk_steps": 13} | LIMITS["target"]
    (one, own), (two, reports) = (solve("ints", devices=n, **options) for n in (1, 2))
    check_same_run(one, two)
    assert reports == own
