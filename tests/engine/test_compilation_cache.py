"""The compilation cache: its folder, its settings, and that no program is compiled twice."""

import collections
import contextlib
import functools
import pathlib
import subprocess
import sys

import jax
import numpy as np
import pytest
from jax.experimental.compilation_cache import compilation_cache

import jaxopt_search as js
from jaxopt_search.engine import compile as compiling

IS_ON, FOLDER, SECONDS, BYTES = (
    "jax_enable_compilation_cache",
    "jax_compilation_cache_dir",
    "jax_persistent_cache_min_compile_time_secs",
    "jax_persistent_cache_min_entry_size_bytes",
)


@pytest.fixture(autouse=True)
def _settings():
    """JAX's settings are as before after each test, and without a cache in it."""
    folder, compiling.program_folder = compiling.program_folder, None
    before = {name: getattr(jax.config, name) for name in (IS_ON, FOLDER, SECONDS, BYTES)}
    jax.config.update(FOLDER, None)
    yield
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()
    compiling.program_folder = folder
    compiling._loaded.clear()


@pytest.fixture
def counts():
    """How often which event of the cache came up."""
    found = collections.Counter()

    def count(event, **_):
        if event.startswith("/jax/compilation_cache/"):
            found[event.rpartition("/")[2]] += 1

    jax.monitoring.register_event_listener(count)
    yield found
    with contextlib.suppress(AttributeError):  # until JAX 0.8 it stays
        jax.monitoring.unregister_event_listener(count)


def settings():
    return [getattr(jax.config, name) for name in (FOLDER, SECONDS, BYTES)]


def compile_anew(number):
    """Compiles a program that differs by `number`."""
    jax.jit(lambda x: x * number + 1)(np.float32(2))


def files(folder, ending="-cache"):
    return sorted(path.name for path in folder.glob(f"*{ending}"))


def keep_anew(number):
    """Returns what a program gives that is kept, if any is; it differs by `number`."""
    compiling._loaded.clear()  # as in a new process
    jax.clear_caches()
    program = compiling.jit(lambda x: x * number + 1)
    return float(program(jax.device_put(np.float32(2))))


def test_small_programs_are_kept(tmp_path, monkeypatch):
    """In a private folder, or the given one; twice the same call changes nothing more."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    default = tmp_path / "jaxopt_search" / "programs"
    assert js.enable_compilation_cache() == default and default.stat().st_mode & 0o777 == 0o700
    for _ in range(2):
        assert js.enable_compilation_cache(tmp_path / "new") == tmp_path / "new"
        assert settings() == [str(tmp_path / "new"), 0, -1]
        compile_anew(3)
        assert len(files(tmp_path / "new")) == 1


def test_the_users_folder_stays(tmp_path):
    """What JAX is set to already, by the user or by an earlier call, if it is private."""
    jax.config.update(FOLDER, str(tmp_path))
    assert js.enable_compilation_cache() == tmp_path
    assert settings() == [str(tmp_path), 0, -1]
    tmp_path.chmod(0o777)
    with pytest.raises(PermissionError, match=r"is writable by others \(mode 0777\)"):
        js.enable_compilation_cache()
    other = js.enable_compilation_cache(str(tmp_path.parent / "other"))
    assert other == js.enable_compilation_cache() == tmp_path.parent / "other"


def test_programs_go_to_the_latest_folder(tmp_path):
    """Although JAX stays with the folder that it has compiled with, if only told of another."""
    compile_anew(4)
    first = js.enable_compilation_cache(tmp_path / "first")
    compile_anew(5)
    second = js.enable_compilation_cache(tmp_path / "second")
    compile_anew(6)
    assert [len(files(folder)) for folder in (first, second)] == [1, 1]


def test_a_cache_turned_off_stays_off(tmp_path):
    """By the setting with which a person turns it off, for a measurement say."""
    jax.config.update(IS_ON, False)
    js.enable_compilation_cache(tmp_path)
    compile_anew(7)
    assert keep_anew(7) == 15
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("folder", "error", "message"),
    [
        (5, TypeError, "folder is 5, expected a path or None"),
        ("", ValueError, "folder is '', expected a folder on this machine"),
        ("gs://bucket", ValueError, "folder is 'gs://bucket', expected a folder on this machine"),
    ],
)
def test_wrong_folders(folder, error, message):
    """A folder that is refused changes no setting."""
    before = settings()
    with pytest.raises(error, match=message):
        js.enable_compilation_cache(folder)
    assert settings() == before


SECOND_PROCESS = """
import collections, sys
import jax, numpy as np, jaxopt_search as js

found, traced = collections.Counter(), collections.Counter()
jax.monitoring.register_event_listener(lambda event, **_: found.update([event.split("/")[-1]]))
jax.monitoring.register_event_duration_secs_listener(
    lambda event, _, fun_name="", **__: traced.update([fun_name] * event.endswith("trace_duration"))
)
js.enable_compilation_cache(sys.argv[1])
xy = np.random.default_rng(2).random((60, 2))
result = js.solve_tsp(xy, key=2, max_steps=150, num_searches=4, devices=1)
print(found["compile_requests_use_cache"], found["cache_hits"], found["cache_misses"])
print(sum(traced[name] for name in ("advance_by", "packed", "offered", "adopted")), result.fun)
"""


def test_no_program_is_compiled_twice(tmp_path, counts):
    """A second process finds every program of a solver, with another seed and other cities.

    The main ones it does not even trace; they need nothing of JAX's cache.
    """
    js.enable_compilation_cache(tmp_path)
    compiling._loaded.clear()
    jax.clear_caches()
    solve = functools.partial(js.solve_tsp, max_steps=150, num_searches=4, devices=1)
    solve(np.random.default_rng(1).random((60, 2)), key=1)
    kept, whole = files(tmp_path), files(tmp_path, ".program")
    assert counts["cache_misses"] == len(kept) >= len(whole) >= 3
    code = [sys.executable, "-c", SECOND_PROCESS, str(tmp_path)]
    found = subprocess.run(code, capture_output=True, text=True, check=True, timeout=300).stdout
    requests, hits, misses, num_traced, length = map(float, found.split())
    assert (requests, misses) == (hits, 0)
    assert num_traced == 0 or jax.__version_info__ < (0, 8)  # which tells of shapes, too
    assert requests < len(whole)
    assert (files(tmp_path), files(tmp_path, ".program")) == (kept, whole)
    assert length == solve(np.random.default_rng(2).random((60, 2)), key=2).fun


def test_what_comes_from_the_cache_is_not_kept_whole(tmp_path, counts):
    """XLA cannot write such a program once more: it would be one that does not run."""
    js.enable_compilation_cache(tmp_path)
    assert keep_anew(8) == 17
    assert counts["cache_hits"] == 0
    for path in tmp_path.glob("*.program"):
        path.unlink()
        assert keep_anew(8) == 17
    assert counts["cache_hits"] == 1
    assert not files(tmp_path, ".program")
    for path in filter(pathlib.Path.is_file, tmp_path.iterdir()):  # XLA on a GPU has folders, too
        path.unlink()
    assert [keep_anew(8), keep_anew(8)] == [17, 17]  # now from the file
    assert len(files(tmp_path, ".program")) == counts["cache_hits"] == 1


def test_nor_what_jax_has_loaded_before(tmp_path, counts):
    """For shapes, say: JAX gives it again from memory, and tells of no hit."""
    js.enable_compilation_cache(tmp_path)
    assert keep_anew(9) == 19
    for path in tmp_path.glob("*.program"):
        path.unlink()
    compiling._loaded.clear()
    jax.clear_caches()
    fn, array = compiling.jit(lambda x: x * 9 + 1), jax.device_put(np.float32(2))
    shape = jax.ShapeDtypeStruct((), np.float32)
    programs = [compiling.Program(fn, (one,), {}) for one in (shape, array)]
    programs[0].temporaries()
    assert counts["cache_hits"] == 1
    assert programs[1]() == 19
    assert counts["cache_hits"] == 1 and not files(tmp_path, ".program")
