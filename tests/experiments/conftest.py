"""What the tests of scripts share: they choose devices themselves, and need no numba."""

import pytest

from experiments import common, one_core


@pytest.fixture(autouse=True)
def _own_devices(monkeypatch):
    """Scripts make devices of all cores, once JAX has not started yet."""
    monkeypatch.setattr(common, "use_cpu_cores", lambda: None)


@pytest.fixture
def in_python(monkeypatch):
    """Lets a core run what numba would compile, whether it is installed or not."""
    monkeypatch.setattr(one_core, "has_numba", lambda: True)
    monkeypatch.setattr(one_core, "compiled", lambda build, *args: build(lambda fn: fn, *args))
