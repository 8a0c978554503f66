"""Where instances come from: strict readers, generators, and the best known costs.

`load("kroA100", data_dir=...)` finds a known instance by name; `load_tsplib` and `load_qaplib`
read any file. Everything here is numpy on the host. Nothing is downloaded unless
asked for.
"""

from jaxopt_search.datasets import generators, readers
from jaxopt_search.datasets.generators import *  # noqa: F403
from jaxopt_search.datasets.instances import GraphInstance, QAPInstance, TSPInstance
from jaxopt_search.datasets.readers import *  # noqa: F403
from jaxopt_search.datasets.registry import load, names

__all__ = ["GraphInstance", "QAPInstance", "TSPInstance", "load", "names"]
__all__ += generators.__all__
__all__ += readers.__all__
