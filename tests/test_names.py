"""Public names, and what `import jaxopt_search` costs."""

import importlib
import os
import statistics
import subprocess
import sys

import pytest

import jaxopt_search as js

HEAVY = ("chex", "matplotlib", "optax", "pooch", "scipy", "tqdm")


def test_dir_shows_public_names_only():
    """Each is there, and the folders stay within reach."""
    assert dir(js) == sorted(js.__all__) == sorted(set(js.__all__))
    assert all(hasattr(js, name) for name in js.__all__)
    assert not any(name.startswith("_") for name in dir(js))
    assert js.engine.loop.run is js.run
    assert js.results.Result is js.Result


def test_unknown_names_are_no_attributes():
    for module in (js, js.driver, js.memory):
        with pytest.raises(AttributeError, match=r"has no attribute 'nothing'"):
            _ = module.nothing
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("jaxopt_search.nothing")


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
    """SciPy and chex each take longer than this package; `js.testing` brings chex.

    And no setting of JAX's is another than before. JAX itself comes with the first name.
    """
    code = (
        "import sys, jaxopt_search as js; print('jax' in sys.modules);"
        "import jax; before = set(sys.modules), dict(jax.config.values);"
        "js.solve_tsp; print(dict(jax.config.values) == before[1],"
        f"*(name for name in {HEAVY} if name in set(sys.modules) - before[0]), 'then');"
        "js.testing; print('chex' in sys.modules)"
    )
    assert in_a_process(code) == ["False", "True", "then", "True"]


@pytest.mark.slow
def test_importing_takes_little_longer_than_jax(tmp_path):
    """Of the processor's time, which a busy machine stretches less than the clock's.

    0.08 s of 0.6 s, with bytecode, which Python makes on the first import.
    """
    code = (
        "import time; start = time.process_time(); import jax; then = time.process_time();"
        "from jaxopt_search import solve_tsp; print(then - start, time.process_time() - then)"
    )
    bytecode = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(tmp_path)}
    _, *times = [tuple(map(float, in_a_process(code, **bytecode))) for _ in range(3)]
    shares = [ours / theirs for theirs, ours in times]
    assert statistics.median(shares) < 0.5, times
