"""Which searches are portable, what is said of the others, and what runs without a kernel."""

import dataclasses
import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import linear_ordering, matrix_tsp
from ways import needs_cpu

import jaxopt_search as js
from jaxopt_search import backends
from jaxopt_search.backends import backend, choice, memory
from jaxopt_search.engine import stepping


def annealing(neighborhood, **options):
    options = {"moves_per_search": 6} | options
    return js.simulated_annealing(neighborhood, js.geometric(300.0, 0.9, 50), **options)


@pytest.mark.parametrize(("metric", "storage"), [("ATT", "coordinates"), ("EUCLID", "matrix")])
def test_auto_takes_the_kernel_on_cuda(metric, storage):
    """Our own searches have a kernel, whatever the distances."""
    coords = np.random.default_rng(0).integers(0, 300, (30, 2))
    problem = js.tsp_from_coords(coords, metric=metric, storage=storage)
    search = annealing(js.two_opt(problem))
    assert _choose("auto", "cuda", problem, search) == ("triton", "")


def _choose(implementation, platform, problem, search):
    return stepping.choose(implementation, platform, problem, search)


def test_auto_on_a_cpu():
    """What is portable is compiled as one function; the rest runs side by side."""
    problem = matrix_tsp(9)
    assert _choose("auto", "cpu", problem, annealing(js.two_opt(problem))) == ("native", "")
    assert _choose("auto", "cpu", problem, annealing(js.Relocate())) == ("native", "")
    assert _choose("auto", "cpu", problem, annealing(js.Swap())) == ("xla", "")


def test_full_evaluation_says_what_a_kernel_would_take():
    """`auto` falls back to XLA and says why; `triton` refuses."""
    problem = linear_ordering(6)
    search = annealing(js.Swap())
    reason = "Swap has no delta of its own and is priced in full"
    assert js.why_not_portable(problem, search) == reason
    assert _choose("auto", "cuda", problem, search) == ("xla", reason)
    with pytest.raises(js.NotPortable, match=reason):
        _choose("triton", "cuda", problem, search)


@jax.tree_util.register_static
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
        _choose("triton", "cuda", problem, annealing(Sorting()))
    message = str(caught.value)
    assert re.fullmatch(
        r"propose \(test_portability.py:\d+\) uses sort, which a fused kernel cannot", message
    )


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
    """What cannot be lowered is run by XLA, which `env` tells."""
    problem, options = matrix_tsp(9), {"max_steps": 5, "num_searches": 2, "devices": 1}
    result = js.solve(problem, annealing(SortingInVain()), 0, **options)
    assert re.fullmatch(r"xla \(propose .* uses sort, .*\)", result.env["implementation"])
    assert result.nit == 5
    with pytest.raises(js.NotPortable):
        js.solve(problem, annealing(SortingInVain()), 0, implementation="triton", **options)


@needs_cpu
def test_other_errors_stay(kernels_wanted):
    """Here, of a kernel that is portable, but not to a CPU."""
    problem = matrix_tsp(9)
    with pytest.raises(ValueError, match="interpret"):
        js.solve(problem, annealing(js.two_opt(problem)), 0, max_steps=5, devices=1)


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Weak(js.Relocate):
    """A neighborhood that chooses between Python numbers, which Pallas-Triton gets wrong."""

    def commit(self, problem, representation, move, accept):
        tour = super().commit(problem, representation, move, accept)
        return memory.fori_loop(jnp.where(accept, 1, 0), lambda i, tour: tour, tour)


@pytest.mark.skipif(
    jax.__version_info__ >= (0, 12), reason="this JAX chooses between Python numbers correctly"
)
def test_code_that_only_a_gpu_would_refuse():
    """JAX lowers it, and XLA on a GPU fails: the kernel is checked before."""
    limit = jax.config.jax_traceback_in_locations_limit
    jax.config.update("jax_traceback_in_locations_limit", 100)  # the default, which users have
    try:
        reason = js.why_not_portable(matrix_tsp(9), annealing(Weak()))
    finally:
        jax.config.update("jax_traceback_in_locations_limit", limit)
    assert re.fullmatch(
        r"no fused kernel can be made of Weak.commit \(test_portability.py:\d+\): "
        r"'scf.for' op .*type",
        reason,
    )


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Replacing(js.Relocate):
    """A neighborhood that forgets to continue with what `store` returned."""

    def commit(self, problem, representation, move, accept):
        tour = super().commit(problem, representation, move, accept)
        return tour._replace(successor=tour.predecessor)


def test_a_buffer_must_come_back():
    """A state whose refs were exchanged is refused: a kernel writes in place."""
    search = annealing(Replacing())
    with pytest.raises(js.NotPortable, match="was replaced, expected the buffer itself"):
        _choose("triton", "cuda", matrix_tsp(9), search)


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Setting(js.Relocate):
    """A neighborhood that writes as one does to arrays, twice."""

    def commit(self, problem, representation, move, accept):
        successor = representation.successor.at[move.city].set(move.after)
        return representation._replace(successor=successor.at[move.after].set(move.city))


def test_writes_go_through_store():
    """The mistake that is made most is named; what Pallas says of it is about None."""
    reason = js.why_not_portable(matrix_tsp(9), annealing(Setting()))
    assert re.fullmatch(
        r"Setting.commit \(.*\) writes by .at\[...\].set, expected memory.store", reason
    )


@needs_cpu
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
    backend.named.cache_clear()
    monkeypatch.setitem(sys.modules, "jax.experimental.pallas.triton", None)
    with pytest.warns(UserWarning, match="no fused kernels, XLA runs instead") as caught:
        for _ in range(2):
            assert choice.choose("auto", "cuda", False, False, lambda: "").implementation == "xla"
    assert len(caught) == 1
    choice.has_triton.cache_clear()


def test_what_is_no_problem_or_search_is_refused():
    """In one line, before anything is lowered."""
    problem, search = js.tsp([[0, 1], [1, 0]]), js.simulated_annealing(js.Relocate(), 1.0)
    with pytest.raises(TypeError, match="problem is a int, expected"):
        js.why_not_portable(5, search)
    with pytest.raises(TypeError, match="search is a int, expected"):
        js.why_not_portable(problem, 6)
