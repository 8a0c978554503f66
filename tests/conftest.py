"""Four CPU devices, strict JAX, and the folder of benchmark instances where there is one."""

import os
import pathlib

os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
)

import jax
import pytest

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_debug_key_reuse", True)

DATA = pathlib.Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def data_dir() -> pathlib.Path:
    """The folder that holds `tsplib/` and `qaplib/`; the test is skipped where it is absent."""
    if not DATA.is_dir():
        pytest.skip("the benchmark instances are not on this machine")
    return DATA
