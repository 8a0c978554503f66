"""The settings of JAX for every test and doctest; they must be there before JAX is imported."""

import gc
import os
from importlib import metadata

import pytest

_FLAGS = ["--xla_force_host_platform_device_count=4"]

# Compiling would take three quarters of the suite's time. Set to "0" it is done as for users.
_is_fast = os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1") != "0"
if _is_fast and metadata.version("jaxlib").startswith("0.10."):  # later ones refuse the flag
    _FLAGS.append("--xla_cpu_use_fusion_emitters=false")

os.environ["XLA_FLAGS"] = " ".join([os.environ.get("XLA_FLAGS", ""), *_FLAGS])
os.environ["JAX_NUMPY_RANK_PROMOTION"] = "raise"
os.environ["JAX_DEBUG_KEY_REUSE"] = "1"

# Tracing makes many objects that live on; looking for garbage among them takes time.
gc.set_threshold(50_000, 20, 20)


@pytest.fixture(scope="module", autouse=True)
def _without_leftovers():
    """Frees what a module compiled: thousands of programs take all memory maps there may be."""
    yield
    import jax

    jax.clear_caches()
