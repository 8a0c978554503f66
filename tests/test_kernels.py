"""Kernels: the same searches as XLA, bit for bit, and lowering for CUDA without a GPU."""

import dataclasses
import re
import sys

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import NEIGHBORHOOD_CASES, linear_ordering, matrix_tsp

import jaxopt_search as js
from jaxopt_search import kernels, memory, random, stepping
from jaxopt_search.kernels import choice, portability
from jaxopt_search.types import null_delta

PORTABLE = [
    case for case in NEIGHBORHOOD_CASES if not isinstance(case.neighborhood, js.FullEvaluation)
]


def run(problem, search, implementation, *, max_steps=1000, **options):
    options = {"num_searches": 3, "max_steps": max_steps} | options
    return js.run(5, problem, search, implementation=implementation, **options)


def annealing(neighborhood, **options):
    options = {"moves_per_search": 6} | options
    return js.simulated_annealing(neighborhood, js.geometric(300.0, 0.9, 50), **options)


@pytest.mark.parametrize("case", PORTABLE, ids=str)
def test_every_implementation_makes_the_same_searches(case):
    """1000 steps interpreted, one search after the other, and abreast: the same bits."""
    search = annealing(case.neighborhood)
    expected = run(case.problem, search, "xla")
    for implementation in ("sequential", "interpret"):
        found = run(case.problem, search, implementation)
        if case.is_exact:
            chex.assert_trees_all_equal(expected, found)
        else:
            np.testing.assert_array_equal(expected.step.low, found.step.low)
    assert int(expected.info.accepted.sum()) > 0


@pytest.mark.parametrize("moves_per_search", [1, 2, 12])
@pytest.mark.parametrize("keep_best", ["light", "standard"])
@pytest.mark.parametrize("exchange", ["none", "broadcast", "resample"])
def test_everything_around_the_kernel(moves_per_search, keep_best, exchange):
    """Exchanges, a target, hits and both ways to keep the best, between and inside kernels."""
    problem = matrix_tsp(12)
    rule = {
        "none": None,
        "broadcast": js.broadcast_best(every=70),
        "resample": js.resample(js.geometric(300.0, 0.9, 50), every=100),
    }[exchange]
    search = annealing(js.two_opt(problem), moves_per_search=moves_per_search, keep_best=keep_best)
    states = [
        run(problem, search, name, max_steps=400, exchange=rule, target=2200, num_searches=5)
        for name in ("xla", "interpret")
    ]
    chex.assert_trees_all_equal(*states)
    assert js.first_hit(states[0])[1] >= 0


def test_many_steps_take_several_launches(monkeypatch):
    """The table of temperatures is as long as a launch; a run is not."""
    monkeypatch.setattr(kernels, "MAX_STEPS", 64)
    problem = matrix_tsp(8)
    search = annealing(js.Relocate(), keep_best="standard", moves_per_search=5)
    expected = run(problem, search, "xla", max_steps=203)
    found = run(problem, search, "interpret", max_steps=203)
    chex.assert_trees_all_equal(expected, found)


def test_kernels_run_on_several_devices():
    """`pmap` over kernels gives what one device gives."""
    problem = matrix_tsp(9)
    search = annealing(js.two_opt(problem))
    options = {"num_searches": 6, "max_steps": 150, "exchange": js.broadcast_best(every=40)}
    results = [
        js.solve(problem, search, 1, devices=devices, implementation=implementation, **options)
        for devices, implementation in ((1, "xla"), (3, "interpret"))
    ]
    chex.assert_trees_all_equal(*(result.state._replace(info=None) for result in results))
    assert results[1].env["implementation"] == "interpret"


def test_a_vmap_over_keys_runs_kernels():
    """Whole runs are batched with the kernel inside."""
    problem = matrix_tsp(9)
    search = annealing(js.two_opt(problem))

    def go(implementation):
        return jax.vmap(
            lambda key: js.run(
                key, problem, search, num_searches=2, max_steps=60, implementation=implementation
            )
        )(jax.vmap(jax.random.key)(jnp.arange(3)))

    chex.assert_trees_all_equal(go("xla").searches, go("interpret").searches)


LOWERED = {
    "relocate": lambda problem: annealing(js.Relocate()),
    "two_opt": lambda problem: annealing(js.two_opt(problem), moves_per_search=8),
    "standard": lambda problem: annealing(js.two_opt(problem), keep_best="standard"),
    "wide": lambda problem: annealing(js.Relocate(), moves_per_search=256),
}


@pytest.mark.parametrize("name", LOWERED)
@pytest.mark.parametrize("target", [None, 5])
def test_kernels_lower_for_cuda(name, target):
    """The whole run, exchange and stop test included, lowers for an NVIDIA GPU without one."""
    problem = matrix_tsp(20)
    search = LOWERED[name](problem)

    def go(key, problem, search):
        state = js.init(key, problem, search, num_searches=4)
        return stepping.run(
            stepping.Setup(problem, search, state.step, target),
            random.search_key(state.key, state.index.astype(jnp.uint32), state.step.high),
            stepping.Course(state.searches, state.hit, state.info),
            jnp.int32(100),
            "triton",
        )

    text = portability.lower_for_cuda(go, jax.random.key(0), problem, search)
    assert "__gpu$xla.gpu.triton" in text or "triton" in text


@pytest.mark.parametrize("storage", ["coordinates", "matrix"])
@pytest.mark.parametrize("metric", ["EUC_2D", "CEIL_2D", "ATT", "EUCLID"])
def test_auto_takes_the_kernel_on_cuda(metric, storage):
    """Our own searches have a kernel, whatever the distances."""
    coords = np.random.default_rng(0).integers(0, 300, (30, 2))
    problem = js.tsp_from_coords(coords, metric=metric, storage=storage)
    search = annealing(js.two_opt(problem))
    assert _choose("auto", "cuda", problem, search) == ("triton", "")


def _choose(implementation, platform, problem, search):
    searches = js.init(0, problem, search, num_searches=2).searches
    return stepping.choose(implementation, platform, problem, search, searches)


def test_auto_on_a_cpu():
    """Moves that are long to make want real branches; others are run abreast."""
    problem = matrix_tsp(9)
    assert _choose("auto", "cpu", problem, annealing(js.two_opt(problem))) == ("sequential", "")
    assert _choose("auto", "cpu", problem, annealing(js.Relocate())) == ("xla", "")


def test_what_cannot_run_in_a_kernel_is_named():
    """`auto` falls back to XLA and says why; `triton` refuses with function and operation."""
    problem = linear_ordering(6)
    search = annealing(js.Swap())
    found = _choose("auto", "cuda", problem, search)
    assert found.implementation == "xla"
    assert found.reason.startswith("Swap.apply (swap.py:")
    with pytest.raises(js.NotPortable, match="Swap.apply .* does not lower to a fused kernel"):
        _choose("triton", "cuda", problem, search)


@dataclasses.dataclass(frozen=True)
class Sorting(js.Relocate):
    """A neighborhood that does what a kernel cannot."""

    def propose(self, problem, representation, words):
        move = super().propose(problem, representation, words)
        return move._replace(city=jnp.sort(move.city)) if words[0].ndim else move


def test_the_function_and_the_operation_are_named():
    """The error points at the user's own function, not at JAX's or ours."""
    problem = matrix_tsp(9)
    with pytest.raises(js.NotPortable) as caught:
        _choose("triton", "cuda", problem, annealing(jax.tree_util.register_static(Sorting)()))
    message = str(caught.value)
    assert re.fullmatch(
        r"propose \(test_kernels.py:\d+\) uses sort, which a fused kernel cannot", message
    )


@dataclasses.dataclass(frozen=True)
class Replacing(js.Relocate):
    """A neighborhood that forgets to go on with what `store` returned."""

    def commit(self, problem, representation, move, accept):
        tour = super().commit(problem, representation, move, accept)
        return tour._replace(successor=tour.predecessor)


def test_a_buffer_must_come_back():
    """A state whose refs were exchanged is refused: a kernel writes in place."""
    search = annealing(jax.tree_util.register_static(Replacing)())
    with pytest.raises(js.NotPortable, match="was replaced, expected the buffer itself"):
        _choose("triton", "cuda", matrix_tsp(9), search)


@pytest.mark.parametrize(
    ("implementation", "text"),
    [("cuda", "implementation is 'cuda', expected one of auto"), ("triton", "on 'cpu' devices")],
)
def test_implementations_are_checked(implementation, text):
    """An unknown one, or a kernel where there is no GPU, is refused in one line."""
    problem = matrix_tsp(9)
    with pytest.raises(ValueError, match=text):
        js.solve(problem, annealing(js.Relocate()), 0, max_steps=1, implementation=implementation)


def test_without_pallas_xla_runs_with_one_warning(monkeypatch):
    """A JAX without the Triton backend is no error."""
    choice.has_triton.cache_clear()
    monkeypatch.setitem(sys.modules, "jax.experimental.pallas.triton", None)
    with pytest.warns(UserWarning, match="no fused kernels, XLA runs instead") as caught:
        for _ in range(2):
            assert choice.choose("auto", "cuda", False, lambda: "").implementation == "xla"
    assert len(caught) == 1
    choice.has_triton.cache_clear()


def test_lanes_and_null_deltas():
    """Lanes come as asked for under XLA, and in powers of two in a kernel."""
    assert memory.lanes(12).shape == (12,)
    with memory.one_search("gpu"):
        assert memory.lanes(12).shape == (16,)
        assert memory.lanes(1).shape == (1,)
    assert null_delta(jnp.int32) == 2**31 - 1
