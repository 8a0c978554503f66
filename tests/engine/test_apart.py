"""Exchanges as programs of their own: the same run as with them in the program of the steps."""

import dataclasses
import functools
import re
import threading

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import matrix_tsp

import jaxopt_search as js
from jaxopt_search.backends import threefry
from jaxopt_search.driver import ahead
from jaxopt_search.engine import apart, exchanging, starting
from jaxopt_search.engine.device_split import DeviceSplit
from jaxopt_search.engine.kept_programs import Program
from jaxopt_search.engine.state import make_rules

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


@js.pytree
@dataclasses.dataclass(frozen=True, kw_only=True)
class NearbyInTwo(Nearby):
    """The same children, of which one program makes what is near, and another one compares."""

    def begin(self, keys, problem, own, given, share):
        return jax.vmap(problem.perturb)(keys, own), own

    def unfinished(self, own):
        return own, own

    def finish(self, problem, unfinished):
        near, own = unfinished
        near_cost, own_cost = (jax.vmap(problem.cost)(tours) for tours in (near, own))
        return jnp.where((near_cost < own_cost)[:, None], near, own)


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
    "steps": {},
    "target": {"target": 2990},
    "exchange": {"target": 1975.5, "max_steps": 84},
    "patience": {"patience": 24},
}
"""The target is met at step 20, and the test that finds out comes after the exchange of step 21.

The last exchange, of step 70, makes the best tour, which meets the lower target.
"""


@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("limit", LIMITS)
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
    reasons = {"steps": "MAX_STEPS", "patience": "PATIENCE"}
    assert whole.status.name == reasons.get(limit, "TARGET")
    assert (np.asarray(whole.ancestors) != np.arange(5)).any()


GENETIC = js.genetic(crossover="pmx", population_size=4)
IN_TWO = NearbyInTwo(compiles_apart=True)
OFFERS = {
    "a donor's": (SEARCH, js.broadcast_best(every=EVERY)),
    "children": (SEARCH, INSIDE),
    "children or new starts": (SEARCH, js.recombine(every=EVERY)),
    "parts of children": (SEARCH, js.recombine(every=EVERY, alike=None, crossover=IN_TWO)),
    "children of two parts or new starts": (SEARCH, js.recombine(every=EVERY, crossover=IN_TWO)),
    "individuals": (GENETIC, js.shuffle(every=EVERY)),
}


@pytest.mark.parametrize("name", OFFERS)
def test_the_shape_of_an_offer_is_known_before(name):
    """So that what adopts it is compiled beside what makes it."""
    search, exchange = OFFERS[name]
    problem = PROBLEMS["ints"]
    state = starting.shape(problem, search, 5)
    found = exchanging.offer_shape(exchange, problem, search, state.searches)
    expected = jax.eval_shape(
        functools.partial(apart.offered.jitted, axis_name=None), exchange, problem, search, state
    )
    assert found == expected


def test_the_shape_of_an_offer_is_remembered():
    """For other arrays of the same shapes: a second call does not trace what finds it."""
    asked = []

    @js.pytree
    @dataclasses.dataclass(frozen=True)
    class Noted:
        every: jax.Array
        passes_on = "best"

        def donors(self, stream, costs, num_searches):
            return jnp.zeros(costs.shape, jnp.int32)

        def starts_anew(self, costs, num_searches):
            asked.append(costs.shape)

    for seed in (0, 1):
        problem = matrix_tsp(14, seed=seed)
        searches = starting.shape(problem, SEARCH, 5).searches
        exchanging.offer_shape(Noted(jnp.int32(seed)), problem, SEARCH, searches)
    assert asked == [(5,)]


@pytest.mark.parametrize(
    ("is_due", "status"), [(True, "RUNNING"), (False, "RUNNING"), (True, "TARGET")]
)
def test_what_is_not_due_changes_nothing(is_due, status):
    """Nor does an exchange after the end of a run."""
    problem, exchange = PROBLEMS["ints"], js.broadcast_best(every=EVERY)
    state = js.init(1, problem, SEARCH, num_searches=5)
    state = state._replace(status=jnp.int32(js.Status[status]))
    offer = apart.offered(exchange, problem, SEARCH, state, axis_name=None)
    own = exchange, problem, SEARCH, state, offer
    after = apart.adopted(*own, np.bool_(is_due), axis_name=None)
    if is_due and status == "RUNNING":
        assert len(set(np.asarray(after.ancestor).tolist())) == 1
    else:
        chex.assert_trees_all_equal(after, state)


@pytest.mark.devices(2)
@pytest.mark.parametrize("limit", ["steps", "target"])
def test_on_two_devices(limit):
    """Five searches, and one that only fills up."""
    for chunk_steps in CHUNKS[:2]:
        options = {"chunk_steps": chunk_steps} | LIMITS[limit]
        (one, own), (two, reports) = (solve("ints", APART, devices=n, **options) for n in (1, 2))
        check_same_run(one, two)
        assert reports == own


@pytest.mark.parametrize("alike", [None, 0.5])
@pytest.mark.parametrize("num_devices", [1, pytest.param(2, marks=pytest.mark.devices(2))])
def test_children_of_two_parts(num_devices, alike):
    """One program begins with them, and the one that adopts them ends; or both are one."""
    whole, in_two, inside = (
        js.recombine(every=EVERY, alike=alike, crossover=crossover)
        for crossover in (
            INSIDE.crossover,
            IN_TWO,
            dataclasses.replace(IN_TWO, compiles_apart=False),
        )
    )
    (expected, _), *others = (
        solve("ints", each, devices=num_devices, chunk_steps=13) for each in (whole, in_two, inside)
    )
    for found, _ in others:
        check_same_run(expected, found)


@pytest.mark.parametrize("alike", [None, 0.5])
def test_which_program_ends_with_children(alike):
    """The one that adopts them, unless searches may start in their place."""
    ended = []

    class Noted(NearbyInTwo):
        def finish(self, problem, unfinished):
            ended.append(True)
            return super().finish(problem, unfinished)

    jax.tree_util.register_static(Noted)
    rule = js.recombine(every=EVERY, alike=alike, crossover=Noted(compiles_apart=True))
    own = rule, PROBLEMS["ints"], SEARCH, js.init(1, PROBLEMS["ints"], SEARCH, num_searches=5)
    offer = jax.eval_shape(functools.partial(apart.offered.jitted, axis_name=None), *own)
    assert bool(ended) == (alike is not None)
    del ended[:]
    adopt = functools.partial(apart.adopted.jitted, axis_name=None)
    jax.eval_shape(adopt, *own, offer, jnp.bool_(True))
    assert bool(ended) == (alike is None)


def test_as_without_a_host():
    """`js.run` makes all exchanges in one program, whatever they say."""
    limits = LIMITS["target"] | {"patience": 1000}
    found, _ = solve("ints", APART, **limits)
    options = {"num_searches": 5, "max_steps": 70, "check_every": 12, "exchange": APART}
    expected = js.run(3, PROBLEMS["ints"], SEARCH, **options, **limits)
    assert int(expected.step) == 24
    chex.assert_trees_all_equal(*(state._replace(info=None) for state in (expected, found.state)))


def test_sums_are_those_of_the_whole_chunk():
    """Of 30 steps with four exchanges, as of each step by itself."""
    options = {"max_steps": 60, "history_size": 100}
    whole, _ = solve("ints", APART, chunk_steps=30, **options)
    each, _ = solve("ints", APART, chunk_steps=1, **options)
    accepted = [line.acceptance for line in each.history if line.step]
    for line in whole.history[1:]:
        assert line.step in (30, 60)
        part = accepted[line.step - 30 : line.step]
        assert line.acceptance == pytest.approx(np.mean(part), rel=1e-6)
        assert 0 < line.acceptance != part[-1]
    np.testing.assert_array_less(each.state.info.accepted, 2)
    assert (np.asarray(whole.state.info.accepted) > 1).all()


def test_a_program_with_both_takes_over(monkeypatch):
    """Once a thread has compiled it, in the middle of a run, which stays the same; as on a GPU."""
    in_parts, gate = [], threading.Event()

    class Gated(Program):
        def to_compile(self):
            (job,) = super().to_compile()
            return [lambda once_traced: gate.wait(60) and job(once_traced)]

    def gated(*arguments):
        found, later = programs(*arguments)
        return found, Gated(*later)

    def noted(*arguments):
        in_parts.append(True)
        return made_in_parts(*arguments)

    def wait(report):
        if report.step == 30:
            gate.set()
            ahead.wait_for_later()
            in_parts.append(False)

    made_in_parts, programs = DeviceSplit._in_parts, DeviceSplit.programs
    monkeypatch.setattr(DeviceSplit, "_in_parts", noted)
    monkeypatch.setattr(DeviceSplit, "programs", gated)
    monkeypatch.setattr(apart, "is_apart_at_first", lambda exchange, _: exchange is not None)
    jax.clear_caches()
    options = {"num_searches": 6, "max_steps": 70, "check_every": 12, "devices": 1}
    options |= {"exchange": INSIDE, "chunk_steps": 10}
    found = js.solve(PROBLEMS["ints"], SEARCH, 3, callback=wait, **options)
    assert in_parts == [True] * 4 + [False]  # the first chunk makes no step
    monkeypatch.undo()
    check_same_run(js.solve(PROBLEMS["ints"], SEARCH, 3, **options), found)


def test_both_are_in_one_program_where_no_thread_compiles_it(monkeypatch):
    """As on a machine with one core."""
    monkeypatch.setattr(DeviceSplit, "_in_parts", None)
    monkeypatch.setattr(apart, "is_apart_at_first", lambda exchange, _: exchange is not None)
    monkeypatch.setattr(ahead, "_num_cores", lambda: 1)
    options = {"num_searches": 7, "max_steps": 20, "devices": 1}
    assert js.solve(PROBLEMS["ints"], SEARCH, 3, exchange=INSIDE, **options).nit == 20


def test_an_exchange_is_called_before_it_is_due_only_to_compile_it(monkeypatch):
    """By a chunk without steps; a run of `solve` has compiled it ahead."""
    calls = []

    class Noted(Program):
        def ready(self):
            return lambda *arguments: calls.append(True) or super(Noted, self).ready()(*arguments)

    offered = DeviceSplit._offered
    monkeypatch.setattr(DeviceSplit, "_offered", lambda *own: Noted(*offered(*own)))
    problem, split = PROBLEMS["ints"], DeviceSplit((jax.devices()[0],))
    state = js.init(0, problem, SEARCH, num_searches=9)
    rules = make_rules(SEARCH, state.best_cost.dtype, exchange=APART)
    jax.clear_caches()
    for num_calls in (1, 1, 2):
        state = split.advance(problem, SEARCH, state, 0 if num_calls < 2 else EVERY, rules)
        assert len(calls) == num_calls
    calls.clear()
    js.solve(problem, SEARCH, exchange=APART, num_searches=10, max_steps=70, devices=1)
    assert len(calls) == 10


@pytest.mark.parametrize(("name", "num_costs"), [("pmx", 1), ("edge_assembly", 2)])
def test_what_an_exchange_computes_once(name, num_costs, monkeypatch):
    """Words and costs, of children and where searches continue, go through barriers.

    XLA moves no generator across them, and no tours for each of the terms of their costs.
    """
    draws, draw = [], threefry._threefry2x32

    def noted(*arguments, **options):
        draws.append(arguments)
        return draw(*arguments, **options)

    monkeypatch.setattr(threefry, "_threefry2x32", noted)
    problem = matrix_tsp(9)
    crossover = js.edge_assembly(problem) if name == "edge_assembly" else None
    rule = js.recombine(every=EVERY, **({} if crossover is None else {"crossover": crossover}))
    state = js.init(0, problem, SEARCH, num_searches=4)
    draws.clear()
    exchanged = functools.partial(apart.exchanged, rule, problem, SEARCH, axis_name=None)
    code = str(jax.make_jaxpr(exchanged)(state))
    assert len(re.findall(r":u32\[.*= optimization_barrier", code)) == len(draws) > 3
    assert code.count("= optimization_barrier") == len(draws) + num_costs
