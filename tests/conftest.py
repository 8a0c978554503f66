"""The folder of benchmark instances where there is one. The root conftest sets up JAX."""

import contextlib
import pathlib

import budget
import jax
import pytest
from jax.experimental.compilation_cache import compilation_cache

DATA = pathlib.Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def data_dir() -> pathlib.Path:
    """The folder that holds `tsplib/` and `qaplib/`; the test is skipped where it is absent."""
    if not DATA.is_dir():
        pytest.skip("the benchmark instances are not on this machine")
    return DATA


@pytest.fixture(scope="session", autouse=True)
def kept_programs(tmp_path_factory):
    """Compiles equal programs of this process once, also where JAX's caches are cleared."""
    jax.config.update("jax_compilation_cache_dir", str(tmp_path_factory.mktemp("programs")))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


@pytest.fixture
def no_kept_programs():
    """Compiles as a process does that keeps no programs."""
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", None)
    compilation_cache.reset_cache()
    yield
    jax.config.update("jax_compilation_cache_dir", before)
    compilation_cache.reset_cache()


@pytest.fixture
def compiled():
    """The names of the functions that were compiled."""
    found = []

    def note(event, _, fun_name="", **__):
        if event.endswith("backend_compile_duration"):
            found.append(fun_name)

    jax.monitoring.register_event_duration_secs_listener(note)
    yield found
    with contextlib.suppress(AttributeError):  # until JAX 0.8 it stays
        jax.monitoring.unregister_event_duration_listener(note)


def pytest_runtest_setup(item):
    """Skips what needs more GPUs than there are; a CPU always stands for four devices."""
    needed = max((mark.args[0] for mark in item.iter_markers("devices")), default=1)
    if jax.default_backend() != "cpu" and jax.device_count() < needed:
        pytest.skip(f"there are fewer than {needed} devices")


def pytest_terminal_summary(terminalreporter, config):
    """After a full run, tells the sizes of the three trees, and which tests took long."""
    if config.args_source is not config.ArgsSource.TESTPATHS or config.option.collectonly:
        return
    terminalreporter.section("size")
    terminalreporter.write_line("\n".join(budget.report()))
    done = (*terminalreporter.stats.get("passed", ()), *terminalreporter.stats.get("failed", ()))
    long = sorted((one.duration, one.nodeid) for one in done if one.duration > 15)
    for seconds, name in reversed(long):
        terminalreporter.write_line(f"{seconds:.0f} s (budget 15): {name}")
