"""Scripts that reproduce the tables and figures of the papers, and measure.

Each folder has what belongs to one paper or kind of problem: the script and its runs, its tables,
the paper's figures (`paper.py`), the same search compiled for one core (`compiled*.py`), and the
records from which the documents are made (`results/`). What all of them share lies here.
"""

import importlib.abc
import importlib.util
import pathlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

NAMES = {
    "bandwidth": "benchmark/bandwidth.py",
    "coloring": "finite/coloring.py",
    "exam_timetable": "finite/exam_timetable.py",
    "graph_bisection": "finite/graph_bisection.py",
    "maxcut": "finite/maxcut.py",
    "nqueens": "queens/__main__.py",
    "nqueens_islands": "islands/queens.py",
    "qap_islands": "islands/__main__.py",
    "qap_islands_speed": "islands/speed.py",
    "qap_multistart": "multistart/__main__.py",
    "tsp_many": "tsp/many.py",
    "tsp_one_way": "tsp/one_way.py",
    "tsp_quality": "tsp/quality.py",
}
"""Scripts by the names that documents and records know, as `python -m experiments.coloring`."""


class _ByName(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, name = fullname.rpartition(".")
        if package != __name__ or name not in NAMES:
            return None
        file = pathlib.Path(__file__).parent / NAMES[name]
        return importlib.util.spec_from_file_location(fullname, file)


sys.meta_path.append(_ByName())
