"""Which searches are portable, what is said of the others, and what runs without a kernel."""

import dataclasses
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import matrix_tsp
from ways import needs_cpu

import jaxopt_search as js
from experiments import own
from jaxopt_search import backends
from jaxopt_search.engine import stepping

HELD = np.arange(4)


def annealing(neighborhood, **options):
    options = {"moves_per_search": 6} | options
    return js.simulated_annealing(neighborhood, js.geometric(300.0, 0.9, 50), **options)


def test_auto():
    """What is portable has a kernel, and is one function on a CPU; the rest runs side by side."""
    problem = matrix_tsp(9)
    assert stepping.choose("auto", "cuda", problem, annealing(js.two_opt(problem))) == ("cuda", "")
    assert stepping.choose("auto", "cpu", problem, annealing(js.two_opt(problem))) == ("native", "")
    assert stepping.choose("auto", "cpu", problem, annealing(js.Swap())) == ("xla", "")


def test_costs_that_a_kernel_cannot_compute_are_named():
    """`auto` falls back to XLA and says why; `cuda` refuses."""
    sorted_cost = own.Order(jnp.arange(6), 6, lambda data, order: jnp.sort(order * data)[3])
    search = annealing(js.Swap())
    reason = stepping.why_not_portable(sorted_cost, search)
    assert re.search(r"<lambda> \(test_portability.py:\d+\) uses sort, ", reason)
    assert stepping.choose("auto", "cuda", sorted_cost, search) == ("xla", reason)
    with pytest.raises(js.NotPortable, match="uses sort"):
        stepping.choose("cuda", "cuda", sorted_cost, search)
    for cost, reason in (
        (lambda data, order: order.at[data].apply(jnp.negative)[0], "a function at indices"),
        (lambda data, order: jax.lax.bitcast_convert_type(order, jnp.int8)[0, 0], "has the bits"),
        (lambda data, order: jax.lax.reduce(order, 0, lambda a, b: a - b, (0,)), "uses reduce, "),
        (lambda data, order: jax.jit(lambda row: row @ HELD)(order[:4]), "of shape (4,)"),
    ):
        why = js.why_not_portable(own.Order(jnp.arange(6), 6, cost), search)
        assert reason in why
        assert "<lambda> (test_portability.py:" in why
    large = own.Order(jnp.arange(9000), 9000, lambda data, order: jnp.cumsum(order * data)[-1])
    assert "more than 32768 bytes of arrays" in stepping.why_not_portable(large, search)


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class SortingInVain(js.Relocate):
    """A neighborhood of the same moves that does what a kernel cannot."""

    def propose(self, problem, representation, words):
        move = super().propose(problem, representation, words)
        return move._replace(city=move.city + 0 * jnp.sort(move.city)) if words[0].ndim else move


@pytest.fixture
def kernels_wanted(monkeypatch):
    """Has the devices of this machine taken for GPUs, for which it cannot compile kernels."""

    def choose_for_gpu(implementation, device, *others):
        return choose(implementation, "cuda", *others)

    choose = backends.choose
    monkeypatch.setattr(backends, "choose", choose_for_gpu)


def test_a_run_tries_its_own_kernel(kernels_wanted):
    """What cannot be emitted is run by XLA, which `env` tells."""
    problem, options = matrix_tsp(9), {"max_steps": 5, "num_searches": 2, "devices": 1}
    result = js.solve(problem, annealing(SortingInVain()), 0, **options)
    reason = r"SortingInVain.propose \(test_portability.py:\d+\) uses sort, .*"
    assert re.fullmatch(rf"xla \({reason}\)", result.env["implementation"])
    assert result.nit == 5
    with pytest.raises(js.NotPortable, match=reason):
        js.solve(problem, annealing(SortingInVain()), 0, implementation="cuda", **options)


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Replacing(js.Relocate):
    """A neighborhood that forgets to continue with what `store` returned."""

    def commit(self, problem, representation, move, accept):
        tour = super().commit(problem, representation, move, accept)
        return tour._replace(successor=tour.predecessor)


def test_a_buffer_must_come_back():
    """A state whose buffers were exchanged is refused: a kernel writes in place."""
    search = annealing(Replacing())
    with pytest.raises(
        js.NotPortable, match="replaces a buffer, expected the one that `store` returns"
    ):
        stepping.choose("cuda", "cuda", matrix_tsp(9), search)


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Setting(js.Relocate):
    """A neighborhood that writes as one does to arrays, twice."""

    def commit(self, problem, representation, move, accept):
        successor = representation.successor.at[move.city].set(move.after)
        return representation._replace(successor=successor.at[move.after].set(move.city))


def test_writes_go_through_store():
    """The mistake that is made most is named; what Python says of it is of a part of a kernel."""
    reason = js.why_not_portable(matrix_tsp(9), annealing(Setting()))
    assert re.fullmatch(
        r"Setting.commit \(.*\) writes by .at\[...\].set, expected memory.store", reason
    )


@needs_cpu
@pytest.mark.parametrize(
    ("implementation", "text"),
    [("gpu", "implementation is 'gpu', expected one of auto"), ("cuda", "on 'cpu' devices")],
)
def test_implementations_are_checked(implementation, text):
    """An unknown one, or a kernel where there is no GPU, is refused in one line."""
    problem = matrix_tsp(9)
    with pytest.raises(ValueError, match=text):
        js.solve(problem, annealing(js.Relocate()), 0, max_steps=1, implementation=implementation)
