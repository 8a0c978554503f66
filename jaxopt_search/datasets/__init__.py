"""Where instances come from: strict readers, generators, and the best known costs.

`load("kroA100", data_dir=...)` finds a known instance by name; `load_tsplib`, `load_atsp` and
`load_qaplib` read any file. Everything here is numpy on the host. Nothing is downloaded unless
asked for.
"""

from jaxopt_search.datasets.generators import (
    clustered_tsp,
    grid_tsp,
    mycielski_graph,
    planted_qap,
    planted_tsp,
    queen_graph,
    random_graph,
    toroidal_grid,
    uniform_qap,
    uniform_tsp,
)
from jaxopt_search.datasets.instances import GraphInstance, QAPInstance, TSPInstance
from jaxopt_search.datasets.readers import (
    load_atsp,
    load_graph,
    load_labels,
    load_qaplib,
    load_qaplib_solution,
    load_tour,
    load_tsplib,
    orient,
)
from jaxopt_search.datasets.registry import load, names

__all__ = [
    "GraphInstance",
    "QAPInstance",
    "TSPInstance",
    "clustered_tsp",
    "grid_tsp",
    "load",
    "load_atsp",
    "load_graph",
    "load_labels",
    "load_qaplib",
    "load_qaplib_solution",
    "load_tour",
    "load_tsplib",
    "mycielski_graph",
    "names",
    "orient",
    "planted_qap",
    "planted_tsp",
    "queen_graph",
    "random_graph",
    "toroidal_grid",
    "uniform_qap",
    "uniform_tsp",
]
