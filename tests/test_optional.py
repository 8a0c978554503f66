"""What needs a package that is not installed says so in one line, with what installs it."""

import sys

import numpy as np
import pytest

import jaxopt_search as js
from jaxopt_search.checks import imported


def test_a_package_that_is_there_is_returned():
    assert imported("sys", "nothing") is sys


def test_what_is_missing_is_named(monkeypatch):
    with pytest.raises(ImportError, match="x needs y: pip install no_such_package"):
        imported("no_such_package.part", "x needs y")
    monkeypatch.setitem(sys.modules, "scipy.spatial", None)
    cities = np.random.default_rng(0).random((1025, 2))  # fewer need no SciPy
    problem = js.tsp_from_coords(cities, storage="coordinates")
    with pytest.raises(ImportError, match="candidate lists need SciPy: pip install scipy"):
        js.two_opt(problem)
