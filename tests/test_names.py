"""Public names, and what `import jaxopt_search` costs."""

import importlib
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
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert found.stdout.split() == ["False", "True", "then", "True"]
