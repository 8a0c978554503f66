"""The settings of JAX for every test and doctest; they must be there before JAX is imported."""

import os

import pytest

os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
)
# Most of the time of the suite goes into compiling small programs: "0" takes half as long again.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
os.environ["JAX_NUMPY_RANK_PROMOTION"] = "raise"
os.environ["JAX_DEBUG_KEY_REUSE"] = "1"


@pytest.fixture(scope="module", autouse=True)
def _without_leftovers():
    """Frees what a module compiled: thousands of programs take all memory maps there may be."""
    yield
    import jax

    jax.clear_caches()
