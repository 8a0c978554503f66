"""Graphs of the G-set (Helmberg and Rendl, 2000) and their best published cuts.

The cuts of graphs of up to 3000 vertices are of Benlic and Hao, "Breakout local search for the
max-cut problem" (2013), over 20 runs of each on one core of a Xeon E5440 at 2.83 GHz. That of G63
is of arXiv:2510.21105. Of the other larger ones these are goals whose source was not found, and
that of G60 is 14188 elsewhere. Breakout local search has 10294, 14176, 26997, 9541, 6998, 9926 and
14030 there.
"""

from typing import Any

import numpy as np

from jaxopt_search.datasets import GraphInstance, planar_union, random_graph, toroidal_grid

GRAPHS: dict[str, tuple[Any, ...]] = {
    "G1": (11624, random_graph, 800, 0.06, 8001),
    "G2": (11620, random_graph, 800, 0.06, 8002),
    "G3": (11622, random_graph, 800, 0.06, 8003),
    "G4": (11646, random_graph, 800, 0.06, 8004),
    "G5": (11631, random_graph, 800, 0.06, 8005),
    "G6": (2178, random_graph, 800, 0.06, 8001, (-1, 1)),
    "G7": (2006, random_graph, 800, 0.06, 8002, (-1, 1)),
    "G8": (2005, random_graph, 800, 0.06, 8003, (-1, 1)),
    "G9": (2054, random_graph, 800, 0.06, 8004, (-1, 1)),
    "G10": (2000, random_graph, 800, 0.06, 8005, (-1, 1)),
    "G11": (564, toroidal_grid, 100, 8, 8001),
    "G12": (556, toroidal_grid, 50, 16, 8002),
    "G13": (582, toroidal_grid, 25, 32, 8003),
    "G14": (3064, planar_union, 800, 0.99, (8001, 8002)),
    "G15": (3050, planar_union, 800, 0.99, (8003, 8004)),
    "G16": (3052, planar_union, 800, 0.99, (8005, 8006)),
    "G17": (3047, planar_union, 800, 0.99, (8007, 8008)),
    "G22": (13359, random_graph, 2000, 0.01, 20001),
    "G23": (13344, random_graph, 2000, 0.01, 2002),
    "G24": (13337, random_graph, 2000, 0.01, 20003),
    "G32": (1410, toroidal_grid, 100, 20, 20003),
    "G33": (1382, toroidal_grid, 80, 25, 20002),
    "G34": (1384, toroidal_grid, 50, 40, 20001),
    "G43": (6660, random_graph, 1000, 0.02, 10001),
    "G48": (6000, toroidal_grid, 50, 60, 0, (1,)),
    "G49": (6000, toroidal_grid, 30, 100, 0, (1,)),
    "G50": (5880, toroidal_grid, 25, 120, 0, (1,)),
    "G51": (3848, planar_union, 1000, 1, (10001, 10002)),
    "G52": (3851, planar_union, 1000, 1, (10003, 10004)),
    "G53": (3850, planar_union, 1000, 1, (10005, 10006)),
    "G54": (3852, planar_union, 1000, 1, (10007, 10008)),
    "G55": (10299, random_graph, 5000, 0.001, 50001),
    "G60": (14190, random_graph, 7000, 0.0007, 70001),
    "G63": (27047, planar_union, 7000, 0.99, (70001, 70002)),
    "G70": (9591, random_graph, 10000, 0.0002, 100001),
    "G72": (7008, toroidal_grid, 100, 100, 10001),
    "G77": (9940, toroidal_grid, 140, 100, 140001),
    "G81": (14060, toroidal_grid, 200, 100, 200001),
}
"""The weight of the best cut, what makes the graph, and its arguments."""

SMALL = (*(f"G{k}" for k in range(1, 14)), "G43")
LARGE = tuple(sorted(set(GRAPHS) - set(SMALL)))


def graph(name: str) -> GraphInstance:
    """Returns a graph by its name."""
    _, make, *args = GRAPHS[name]
    return make(*args)


def best(name: str) -> int:
    """Returns the weight of the best published cut."""
    return GRAPHS[name][0]


def cut(one: GraphInstance, sides: np.ndarray) -> int:
    """Returns the weight of the edges between the two sides, [n] each 0 or 1."""
    low, high = one.edges.T
    return int(one.weights[sides[low] != sides[high]].sum())
