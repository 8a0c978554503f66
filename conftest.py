"""The settings of JAX for every test and doctest, made before JAX is imported; `--once`."""

import gc
import os
import pathlib
import signal
import sys
from importlib import metadata

import pytest

_FLAGS = ["--xla_force_host_platform_device_count=4"]

# Compiling would take three quarters of the suite's time. With "0" it is done as for users.
_is_fast = os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1") != "0"
if _is_fast and metadata.version("jaxlib").startswith("0.10."):  # later ones refuse the flag
    _FLAGS += ["--xla_cpu_use_fusion_emitters=false", "--xla_cpu_parallel_codegen_split_count=1"]

os.environ["XLA_FLAGS"] = " ".join([os.environ.get("XLA_FLAGS", ""), *_FLAGS])
os.environ["JAX_NUMPY_RANK_PROMOTION"] = "raise"
if _is_fast:
    os.environ["JAX_TRACEBACK_IN_LOCATIONS_LIMIT"] = "0"  # where operations come from, for XLA only

# A shell has what it starts in the background ignore Ctrl-C, and so would the tests' processes.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Tracing makes many objects that stay alive; looking for garbage among them takes time.
gc.set_threshold(50_000, 20, 20)


def pytest_addoption(parser):
    parser.addoption("--once", action="store_true", help="one case of each test that is not slow")
    parser.addoption("--write-golden", action="store_true", help="keep what runs find now")


def pytest_collection_modifyitems(config, items):
    """With `--once` keeps the first case of each test, and leaves out what is slow."""
    if not config.getoption("--once"):
        return
    first, others = {}, []
    for item in items:
        name = item.nodeid.partition("[")[0]
        is_kept = item.get_closest_marker("slow") is None and name not in first
        if is_kept:
            first[name] = item
        else:
            others.append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = first.values()


def _num_maps():
    """Returns how many memory maps the process has; Linux allows 65,530."""
    maps = pathlib.Path("/proc/self/maps")
    return len(maps.read_bytes().splitlines()) if maps.exists() else sys.maxsize


@pytest.fixture(scope="session", autouse=True)
def _isolated(tmp_path_factory):
    """No test and no example sees the user's instances, in a folder or in the cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("JAXOPT_SEARCH_DATA", raising=False)
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module", autouse=True)
def _without_leftovers(request):
    """Frees what modules compiled: thousands of programs exhaust the memory maps of a process.

    Modules share what they compile, apart from those that patch code, for which it would be wrong.
    """
    import jax

    source = request.node.path.read_text(encoding="utf-8")
    is_patched = "monkeypatch" in source or "mock" in source
    if is_patched:
        jax.clear_caches()
    yield
    if is_patched or _num_maps() > 20_000:
        jax.clear_caches()
