"""Compiling: side by side in threads, and kept in files that serve nothing else."""

import collections
import contextlib
import dataclasses
import functools
import gc
import threading

import jax
import numpy as np
import pytest
from cases import LinearOrdering, linear_ordering, matrix_tsp
from ways import needs_cpu, wide_types

import jaxopt_search as js
from jaxopt_search.engine import compile as compiling
from jaxopt_search.engine import fingerprints
from jaxopt_search.engine.devices import settings_left


@pytest.fixture
def traced():
    """How often which function was traced."""
    found = collections.Counter()

    def count(event, _, fun_name="", **__):
        if event.endswith("trace_duration"):
            found[fun_name] += 1

    jax.monitoring.register_event_duration_secs_listener(count)
    yield found
    with contextlib.suppress(AttributeError):  # until JAX 0.8 it stays
        jax.monitoring.unregister_event_duration_listener(count)


@pytest.fixture
def folder(tmp_path, monkeypatch, no_kept_programs):
    monkeypatch.setattr(compiling, "program_folder", tmp_path)
    monkeypatch.setattr(compiling, "_loaded", {})
    return tmp_path


def files(folder):
    return sorted(path.name for path in folder.glob("*.program"))


def forget():
    """Stands for a new process."""
    compiling._loaded.clear()
    jax.clear_caches()


@contextlib.contextmanager
def told(**settings):
    """JAX with other settings."""
    before = {name: jax.config.read(name) for name in settings}
    for name, value in settings.items():
        jax.config.update(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            jax.config.update(name, value)


def solve(problem, seed=0, moves=None, steps=50):
    search = js.simulated_annealing(moves or js.Relocate(), 5.0, moves_per_search=2)
    return js.solve(problem, search, seed, num_searches=2, max_steps=steps)


def test_a_program_is_found_again_without_tracing(folder, traced):
    """Of another instance and seed, with the same result as without a file."""
    solve(matrix_tsp(9))
    names = files(folder)
    assert traced["advance_by"] == traced["packed"] == traced["_start_one"] == 1
    assert len(names) == 3
    forget()
    traced.clear()
    found = solve(matrix_tsp(9, seed=1), seed=1)
    assert traced["advance_by"] == traced["packed"] == traced["_start_one"] == 0
    assert files(folder) == names
    compiling.program_folder = None
    expected = solve(matrix_tsp(9, seed=1), seed=1)
    assert (found.fun, found.solutions.tolist()) == (expected.fun, expected.solutions.tolist())


def test_whatever_changes_a_program_changes_its_name(folder, monkeypatch):
    problem, static = np.float32(1), {}
    jitted = jax.jit(lambda *_: 0)

    def key(*arguments):
        return fingerprints.of_call(jitted, (jax.numpy.zeros(3), *arguments), static)

    cases = [
        key(problem),
        key(np.int32(1)),
        key(1.0),  # weakly typed
        key(np.zeros(1, np.float32)),
        key(None),
        key(matrix_tsp(5)),
        key(matrix_tsp(6)),
        key(matrix_tsp(5, symmetric=False)),
        key(matrix_tsp(5).padded()),
        key(js.ring(every=3)),
        key(js.shuffle(every=3)),
        key(js.hill_climbing(js.SwapTable())),
        key(js.hill_climbing(js.SwapValues())),
        key(js.simulated_annealing(js.InsertSegment(2), 1.0)),
        key(js.simulated_annealing(js.InsertSegment(3), 1.0)),
    ]
    with jax.default_matmul_precision("float32"):
        cases.append(key(problem))
    with told(jax_disable_most_optimizations=not jax.config.read("jax_disable_most_optimizations")):
        cases.append(key(problem))
    static = {"implementation": "xla"}
    cases.append(key(problem))
    monkeypatch.setattr(fingerprints, "_surroundings", lambda: "another version")
    cases.append(key(problem))
    assert None not in cases
    assert len(set(cases)) == len(cases)


def test_only_what_is_where_it_says_is_trusted():
    """Not what says that it is Python's own, as classes of `exec(code, {})` do."""
    own = {}
    code = "class Own: pass\nclass float: pass\ndef len(x): pass"
    exec(code, own)
    own["Own"].__qualname__ = "dict"
    fake = type("Relocate", (js.Relocate,), {"__module__": js.Relocate.__module__})
    parts = *(own[name] for name in ("Own", "float", "len")), fake, fake(), lambda x: x
    parts = *parts, LinearOrdering  # nobody watches the code of classes from elsewhere
    for part in parts:
        assert name_of(part) is None
    assert name_of(js.Relocate) is not None


def name_of(part):
    """Returns the name of a program with a static part."""
    whole = jax.tree_util.Partial(functools.partial(print, part))
    return fingerprints.of_parts("", whole)


def test_a_bad_file_is_replaced(folder):
    expected = solve(matrix_tsp(8))
    for number, path in enumerate(folder.iterdir()):
        path.write_bytes(b"torn" if number else b"")
    forget()
    assert solve(matrix_tsp(8)).fun == expected.fun
    assert not {b"torn", b""} & {path.read_bytes() for path in folder.iterdir()}


def test_inside_jit_nothing_is_kept(folder):
    search = js.simulated_annealing(js.Relocate(), 5.0)

    @jax.jit
    def cost(problem):
        return js.run(0, problem, search, num_searches=2, max_steps=5).best_cost

    assert cost(matrix_tsp(7)) > 0
    assert not files(folder)


def level_of(program, *arguments):
    """Returns the options with which a call by itself is compiled here; None for the usual ones."""
    jitted = compiling.Program(program, arguments, {}).jitted
    return None if jitted is program.jitted else jitted


@pytest.fixture
def as_for_users(monkeypatch):
    """Compiles as for users, whom nobody tells how; the suite is told to optimize little."""
    monkeypatch.setattr(compiling, "_is_told_how_to_compile", lambda platform: False)


def test_a_level_of_optimization_holds_outside_of_other_programs(as_for_users):
    """A program inside another one, or in `vmap`, has none of its own, which JAX would refuse."""
    program = compiling.jit(lambda x: x + 1, cpu_level=0)
    one = np.float32(1)
    assert level_of(program, one) is not None
    inside = jax.jit(lambda x: (program(x), program(one), level_of(program, one) is None))
    assert inside(one) == (2, 2, True)
    assert jax.vmap(program)(np.zeros(3, np.float32)).tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="compiler_options"):
        jax.jit(program.on_platforms["cpu"])(one)


@needs_cpu
def test_who_says_how_to_compile_is_heard(monkeypatch):
    """Be it by a setting of JAX or a flag of XLA."""
    program, one = compiling.jit(lambda x: x + 1, cpu_level=0), np.float32(1)
    with told(jax_disable_most_optimizations=False):
        monkeypatch.setenv("XLA_FLAGS", "")
        assert level_of(program, one) is not None
        monkeypatch.setenv("XLA_FLAGS", "--xla_gpu_autotune_level=4")  # of another platform
        assert level_of(program, one) is not None
        assert compiling._is_told_how_to_compile("gpu")
        monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=1")
        assert level_of(program, one) is None
        assert not compiling._is_told_how_to_compile("gpu")
        monkeypatch.setenv("XLA_FLAGS", "")
        with jax.disable_jit():
            assert level_of(program, one) is None
        with told(jax_disable_most_optimizations=True):
            assert level_of(program, one) is None


def test_programs_of_new_functions_do_not_pile_up(monkeypatch):
    """As a schedule, say, that is made anew for each run."""
    monkeypatch.setattr(compiling, "_MOST_CALLS", 2)
    program = compiling.jit(lambda fn, x: fn(x))
    alive, one = list[int](), np.float32(1)
    for number in range(9):
        fn = jax.tree_util.Partial(lambda x, number=number: x + number)
        with settings_left():  # as drivers do
            compiling.compile_all([compiling.Program(program, (fn, one), {})])
        assert program(fn, one) == number + 1
        del fn
        gc.collect()
        alive.append(len(jax.devices()[0].client.live_executables()))
    assert max(alive) <= alive[0] + 4


def in_thread():
    return threading.current_thread().name.startswith("compiles")


@pytest.fixture
def compiled():
    """Whether each program was compiled in a thread."""
    if compiling.num_cores() < 2:
        pytest.skip("nothing is compiled ahead")
    found = []

    def note(event, _, **__):
        if event.endswith("backend_compile_duration"):
            found.append(in_thread())

    jax.monitoring.register_event_duration_secs_listener(note)
    yield found
    with contextlib.suppress(AttributeError):  # until JAX 0.8 it stays
        jax.monitoring.unregister_event_duration_listener(note)


def solve_in_full(problem, num_searches, **options):
    search = js.simulated_annealing(js.FullEvaluation(js.Swap()), 5.0)
    options = {"devices": 1, "max_steps": 20} | options
    return js.solve(problem, search, 1, num_searches=num_searches, **options)


@js.pytree
@dataclasses.dataclass(frozen=True)
class NotInThreads(LinearOrdering):
    """A problem that cannot be traced in threads."""

    def cost(self, solution):
        if in_thread():
            raise ValueError("in a thread")
        return super().cost(solution)


@pytest.mark.devices(4)
def test_several_devices_compile_in_threads(compiled):
    """The programs of `pmap`, too."""
    solve_in_full(linear_ordering(6), 9, devices=4)
    assert compiled.count(True) == 3


def test_what_fails_in_a_thread_is_compiled_by_the_call(compiled):
    """With the same result."""
    problem = linear_ordering(6)
    expected = solve_in_full(problem, 3)
    assert True in compiled
    found = solve_in_full(NotInThreads(problem.weight, problem.n), 3)
    assert (found.fun, found.x.tolist()) == (expected.fun, expected.x.tolist())


def test_settings_of_the_callers_thread_hold(compiled):
    """The call compiles its programs itself then, and the next call without them its own."""
    problem = matrix_tsp(7)
    with wide_types(True):
        result = solve(problem)
    assert compiled and True not in compiled
    compiled.clear()
    np.testing.assert_array_equal(solve(problem).solutions, result.solutions)
    assert compiled
