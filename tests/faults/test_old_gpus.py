"""GPUs that are too old for kernels: XLA runs instead."""

import types

import jax
import numpy as np
import pytest
from probes import annealing, refuses

import jaxopt_search as js
from jaxopt_search import backends
from jaxopt_search.engine import stepping

PROBLEM = js.tsp_from_coords(np.random.default_rng(0).integers(0, 300, (12, 2)), metric="EUC_2D")
SEARCH = annealing()
REASON = "compute capability 7.0; a fused kernel needs 7.5"


def gpu(capability):
    return types.SimpleNamespace(platform="gpu", compute_capability=capability)


@pytest.mark.parametrize("capability", ["7.0", "5.2"])
def test_an_old_gpu_has_no_kernel(capability):
    """`auto` takes XLA and says why; the kernel is refused by name."""
    reason = REASON.replace("7.0", capability)
    assert stepping.choose("auto", gpu(capability), PROBLEM, SEARCH) == ("xla", reason)
    with refuses(ValueError, "implementation is 'cuda', expected 'auto' or 'xla'", reason):
        stepping.choose("cuda", gpu(capability), PROBLEM, SEARCH)
    for way in ("xla", "interpret"):
        assert stepping.choose(way, gpu(capability), PROBLEM, SEARCH) == (way, "")


def test_which_gpus_run_kernels():
    devices = gpu("7.0"), gpu("7.5"), gpu(None), "gpu", "cuda", "cpu", "tpu", jax.devices("cpu")[0]
    expected = [False, True, True, True, True, False, False, False]
    assert list(map(backends.runs_kernels, devices)) == expected


@pytest.fixture
def old_gpu(monkeypatch):
    """Has the devices of this machine taken for old GPUs."""
    choose = backends.choose

    def choose_for_old(implementation, device, *others):
        assert isinstance(device, jax.Device)  # with its compute capability
        return choose(implementation, gpu("7.0"), *others)

    monkeypatch.setattr(backends, "choose", choose_for_old)


def test_results_say_why(old_gpu):
    """The devices themselves are looked at, and `env` tells what ran and why."""
    options = {"max_steps": 5, "num_searches": 2}
    result = js.solve(PROBLEM, SEARCH, 0, **options)
    assert result.env["implementation"] == f"xla ({REASON})"
    state = js.run(0, PROBLEM, SEARCH, **options)
    assert int(state.step) == 5
    assert int(jax.jit(lambda: js.run(0, PROBLEM, SEARCH, **options).step.low)()) == 5
