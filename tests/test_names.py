"""Public names, old names that still work, and what `import jaxopt_search` costs."""

import importlib
import os
import pickle
import statistics
import subprocess
import sys
import warnings

import pytest

import jaxopt_search as js
from jaxopt_search import _moved

STAYING = {
    "crossover": "crossovers.permutations",
    "evaluation": "problems.queens.attacks",
    "memory": "portable.memory",
    "placements": "problems.queens.symmetry",
    "random": "portable.random",
    "run_times": "analysis.run_times",
    "schedules": "searches.schedules",
}
HEAVY = ("chex", "matplotlib", "optax", "pooch", "scipy", "tqdm", "jax.experimental.pallas")


def at(path):
    return importlib.import_module(f"jaxopt_search.{path}")


def test_dir_shows_public_names_only():
    """Each is there, and the folders stay within reach."""
    assert dir(js) == sorted(js.__all__) == sorted(set(js.__all__))
    assert all(hasattr(js, name) for name in js.__all__)
    assert not any(name.startswith("_") for name in dir(js))
    assert js.engine.loop.run is js.run
    assert js.results.Result is js.Result


@pytest.mark.parametrize("name", STAYING)
def test_modules_that_stay_public_warn_of_nothing(name):
    """As attributes: pytest makes an error of any warning."""
    assert getattr(js, name) is at(STAYING[name])


@pytest.mark.parametrize("old", _moved.MODULES)
def test_old_modules_are_the_new_ones(old):
    """Also those within old modules: no code is loaded a second time."""
    new = at(_moved.MODULES[old])
    full = f"jaxopt_search.{old}"
    sys.modules.pop(full, None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert importlib.import_module(full) is new
    assert str(caught[-1].message) == f"{full} is now {new.__name__}"
    assert all(warning.category is DeprecationWarning for warning in caught)
    assert sys.modules.pop(full) is new
    assert new.__spec__.name == new.__name__  # as if nothing had happened


def test_old_modules_hide_nothing():
    """Importing a module makes it an attribute of its parent, in place of what had that name."""
    for old, new in _moved.MODULES.items():
        parent, _, last = old.rpartition(".")
        if parent not in _moved.MODULES:
            assert vars(at(parent) if parent else js).get(last, at(new)) is at(new), old


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, names in _moved.NAMES.items() for name in names]
)
def test_old_names_warn(module, name):
    """With what they are called now, and the line that uses them."""
    old = at(module) if module else js
    place, _, new = _moved.NAMES[module][name].rpartition(".")
    expected = getattr(at(place) if place else js, new)
    with pytest.warns(DeprecationWarning, match=f"{name} is now jaxopt_search.") as caught:
        assert getattr(old, name) is expected
    assert {warning.filename for warning in caught} == {__file__}


def test_unknown_names_are_no_attributes():
    for module in (js, js.driver, js.memory):
        with pytest.raises(AttributeError, match=r"has no attribute 'nothing'"):
            _ = module.nothing
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("jaxopt_search.nothing")


def test_what_was_pickled_before_is_read():
    """A pickle names a class by its old module."""
    new = pickle.dumps(js.Result, protocol=0)
    of_run = pickle.dumps(js.engine.loop.RunState, protocol=0)
    old = of_run.replace(b"jaxopt_search.engine.state", b"jaxopt_search.loop")
    assert old != of_run
    sys.modules.pop("jaxopt_search.loop", None)
    with pytest.warns(DeprecationWarning):
        assert pickle.loads(old) is js.RunState
    assert pickle.loads(new) is js.Result


def in_a_process(code, **environment):
    found = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
        env=os.environ | environment,
    )
    return found.stdout.split()


def test_importing_loads_nothing_that_few_need():
    """SciPy, Pallas and chex each take longer than this package; `js.testing` brings chex.

    And no setting of JAX's is another than before.
    """
    code = (
        "import sys, jax; before = set(sys.modules), dict(jax.config.values);"
        "import jaxopt_search as js; print(dict(jax.config.values) == before[1],"
        f"*(name for name in {HEAVY} if name in set(sys.modules) - before[0]), 'then');"
        "js.testing; print('chex' in sys.modules)"
    )
    assert in_a_process(code) == ["True", "then", "True"]


@pytest.mark.slow
def test_importing_takes_little_longer_than_jax(tmp_path):
    """Of the processor's time, which a busy machine stretches less than the clock's.

    0.08 s of 0.6 s, with bytecode, which Python makes on the first import.
    """
    code = (
        "import time; start = time.process_time(); import jax; then = time.process_time();"
        "import jaxopt_search; print(then - start, time.process_time() - then)"
    )
    bytecode = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(tmp_path)}
    _, *times = [tuple(map(float, in_a_process(code, **bytecode))) for _ in range(4)]
    shares = [ours / theirs for theirs, ours in times]
    assert statistics.median(shares) < 0.5, times
