"""The folder of benchmark instances where there is one. The root conftest sets up JAX."""

import pathlib

import pytest

DATA = pathlib.Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def data_dir() -> pathlib.Path:
    """The folder that holds `tsplib/` and `qaplib/`; the test is skipped where it is absent."""
    if not DATA.is_dir():
        pytest.skip("the benchmark instances are not on this machine")
    return DATA
