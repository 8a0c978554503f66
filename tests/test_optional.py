"""What needs a package that is not installed says so in one line, with what installs it."""

import re
import sys

import numpy as np
import pytest

import jaxopt_search as js
from jaxopt_search.optional import imported


def test_a_package_that_is_there_is_returned():
    assert imported("sys", "nothing", "extra") is sys


def test_what_is_missing_is_named(monkeypatch):
    with pytest.raises(ImportError, match=re.escape('x needs y: pip install "jaxopt_search[e]"')):
        imported("jaxopt_search.no_such_module", "x needs y", "e")
    monkeypatch.setitem(sys.modules, "scipy.spatial", None)
    cities = np.random.default_rng(0).random((1025, 2))  # fewer need no SciPy
    problem = js.tsp_from_coords(cities, storage="coordinates")
    message = 'candidate lists need SciPy: pip install "jaxopt_search[analysis]"'
    with pytest.raises(ImportError, match=re.escape(message)):
        js.two_opt(problem)
