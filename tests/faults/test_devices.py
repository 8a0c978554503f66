"""Any number of searches on any number of devices."""

import functools

import jax
import numpy as np
import pytest
from jax.sharding import AxisType
from probes import annealing, assert_same_results, countdown, line, refuses, small_tsp, walk

import jaxopt_search as js
from jaxopt_search import Status
from jaxopt_search.results import Hit

pytestmark = pytest.mark.devices(4)

PROBLEM = line(0)
SEARCH = walk()
EXCHANGES = {
    "ring": js.ring(every=1),
    "groups": js.broadcast_best(every=2, group_size=2),
}


@functools.cache
def solve(num_searches, devices, exchange="ring", **options):
    return js.solve(
        PROBLEM,
        SEARCH,
        7,
        num_searches=num_searches,
        devices=devices,
        exchange=EXCHANGES[exchange],
        check_every=5,
        **{"max_steps": 60} | options,
    )


@pytest.mark.parametrize(
    ("num_searches", "exchange", "devices"),
    [(6, "ring", 4), (5, "groups", 4)],
)
def test_number_of_devices_changes_nothing(num_searches, exchange, devices):
    """Padding, and exchange between more devices than searches, change no result."""
    assert_same_results(solve(num_searches, devices, exchange), solve(num_searches, None, exchange))


def tie(devices, **options):
    """Six searches: numbers 2 and 4 reach 5 after 10 steps, the others later."""
    starts = np.array([18, 19, 15, 17, 15, 16], np.int32)
    options = {"target": 5, "check_every": 4, "num_searches": 6, "initial": starts} | options
    return js.solve(line(), countdown(), 0, devices=devices, **options)


@pytest.mark.parametrize("devices", [1, 4])
def test_tie_of_first_finishers(devices):
    """Of searches that finish at one step, the lowest index wins on any devices."""
    result = tie(devices)
    assert (result.first_hit, result.status, result.nit) == (Hit(10, 2), Status.TARGET, 12)
    assert (result.x, result.fun) == (3, 3)


@pytest.mark.parametrize("check_every", [1, 7])
def test_finish_among_exchanges(check_every):
    """A search that finishes while others exchange ends the run in lock-step."""
    four, one = (
        tie(devices, check_every=check_every, exchange=js.ring(every=1)) for devices in (4, 1)
    )
    assert four.status == Status.TARGET
    assert four.nit == -(-four.first_hit.step // check_every) * check_every
    assert_same_results(four, one)


@pytest.mark.parametrize(
    "devices",
    ["gpu", "nonsense", 0, 5, []],
    ids=repr,
)
def test_missing_devices(devices):
    """Devices that are not there are refused, with the list of those that are."""
    present = ", ".join(str(device) for device in jax.devices())
    with refuses(ValueError, f"devices is {devices!r}", present):
        js.solve(PROBLEM, SEARCH, 0, max_steps=1, devices=devices)


def test_ways_to_name_devices():
    """The ways to name devices that are there."""
    find = js.engine.devices.find_devices
    devices = tuple(jax.devices())
    assert find("all") == find("cpu") == find(4) == find(devices) == devices
    assert find(None) == find(1) == devices[:1]
    assert find(np.int64(2)) == devices[:2]
    with jax.default_device(devices[2]):
        assert find(None) == devices[2:3]
    assert find(devices[3]) == devices[3:]


def test_problem_on_another_device():
    """A problem that was put on one device can be solved on another, and on all."""
    problem = jax.device_put(PROBLEM, jax.devices()[1])
    options = {"exchange": EXCHANGES["ring"], "check_every": 5, "max_steps": 60}
    for devices in ([jax.devices()[2]], 2):
        result = js.solve(problem, SEARCH, 7, num_searches=6, devices=devices, **options)
        assert_same_results(result, solve(6, None))


UNDER_A_MESH = {
    "solve": lambda: js.solve(
        small_tsp(9), annealing(), jax.random.key(1), num_searches=4, max_steps=50, devices=2
    ),
    "solve_nqueens by repair": lambda: js.solve_nqueens(10_000, 2, 0, max_steps=100, devices=1),
}


@pytest.mark.parametrize("name", UNDER_A_MESH)
def test_a_mesh_that_the_caller_has_set(name):
    """It changes no result, also where arrays, keys and the problem are made under it."""
    call, mesh = UNDER_A_MESH[name], jax.make_mesh((2,), ("x",), (AxisType.Explicit,))
    with jax.set_mesh(mesh):
        found = call()
        assert jax.sharding.get_abstract_mesh() == mesh.abstract_mesh
    expected = call()
    if isinstance(found, js.Result):
        assert_same_results(found, expected)
    else:
        np.testing.assert_array_equal(found.solutions, expected.solutions)


def test_settings_of_the_caller_are_left_by_all_threads(compiled):
    """So that no transfer of the driver is refused, and the run finds what threads compile."""
    problem = small_tsp(10)
    with jax.transfer_guard("disallow"):
        js.solve(problem, annealing(), 0, num_searches=3, max_steps=30)
    assert compiled.count("jit(advance_by)") == 1
