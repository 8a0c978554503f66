"""What needs a package that is not installed says so in one line, with what installs it."""

import sys

import numpy as np
import pytest

import jaxopt_search as js
from jaxopt_search.results import plotting

# Fewer need no SciPy.
MANY = js.tsp_from_coords(np.random.default_rng(0).random((1025, 2)), storage="coordinates")


@pytest.mark.parametrize(
    ("module", "call", "text"),
    [
        (
            "scipy.spatial",
            lambda: js.two_opt(MANY),
            "candidate lists need SciPy: pip install scipy",
        ),
        (
            "scipy.stats",
            lambda: js.run_times.fit([1.0, 2.0]),
            "run times need SciPy: pip install scipy",
        ),
        (
            "matplotlib.figure",
            plotting.detached_axes,
            "plots need matplotlib: pip install matplotlib",
        ),
    ],
)
def test_what_is_missing_is_named(module, call, text, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=text):
        call()
