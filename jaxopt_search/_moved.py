"""Names and modules that have moved. The old ones warn, and go with the release after this one.

`MODULES` has the modules that users could import before, `NAMES` what they could take from a module
or package that is still there. Old modules are the new ones under a second name, found by a finder
of this package's own. Nothing is imported before it is asked for.
"""

import functools
import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_PACKAGE = __package__ or "jaxopt_search"

MODULES = {
    "bit_sets": "portable.bit_sets",
    "crossover": "crossovers.permutations",
    "eax": "crossovers.edge_assembly",
    "evaluation": "problems.queens.attacks",
    "evaluation.device": "problems.queens.attacks.device",
    "evaluation.host": "problems.queens.attacks.host",
    "evaluation.schemes": "problems.queens.attacks.schemes",
    "evaluation.totals": "portable.counts",
    "exchange": "exchanges.rules",
    "loop": "engine.loop",
    "memory": "portable.memory",
    "metrics": "datasets.distances",
    "placements": "problems.queens.symmetry",
    "analysis.plotting": "results.plotting",
    "plotting": "results.plotting",
    "problems.candidates": "problems.tsp.candidates",
    "problems.curves": "problems.tsp.curves",
    "problems.finite.couplings": "problems.finite.qubo.couplings",
    "problems.finite.qubo_input": "problems.finite.qubo.build",
    "problems.qap_input": "problems.qap.build",
    "problems.tsp_input": "problems.tsp.build",
    "random": "portable.random",
    "readout": "engine.outcome",
    "rows": "portable.rows",
    "run_times": "analysis.run_times",
    "schedules": "searches.schedules",
    "searches.trajectory": "searches.base",
    "solve_queens": "solvers.queens",
    "stepping": "engine.stepping",
    "steps": "portable.counts",
    "tables": "portable.tables",
}
"""Old modules and where they are now, within this package."""

NAMES = {
    "": {"Snapshot": "Report"},
    "driver": {"Snapshot": "Report", "Steer": "Steer", "solve": "solve"},
    "portable.memory": {"Place": "portable.memory.Backend"},
    "problems.finite.generalized_assignment": {
        "GeneralizedAssignment": "GeneralizedAssignment",
        "generalized_assignment": "generalized_assignment",
    },
    "problems.finite.graph_coloring": {
        "GraphColoring": "GraphColoring",
        "graph_coloring": "graph_coloring",
    },
    "problems.finite.qubo": {"QUBO": "QUBO"},
    "problems.qap": {"QAP": "QAP"},
    "problems.tsp": {"TSP": "TSP"},
    "solvers": {"solve_qap": "solve_qap", "solve_tsp": "solve_tsp"},
    "types": {
        name: f"results.{name}" for name in ("Hit", "Record", "Result", "StackedResult", "Status")
    },
}
"""Old names of modules that are still there, and what they are now, within this package."""


def install() -> None:
    """Makes old names and modules work, but for the names of the package itself.

    The modules of `NAMES` must have been imported.
    """
    for module in filter(None, NAMES):
        found = functools.partial(old_name, module)
        sys.modules[_full(module)].__dict__["__getattr__"] = found
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())  # others would load `evaluation.host` a second time


def old_name(module: str, name: str, stacklevel: int = 3) -> Any:
    """Returns what a name of a module was, with a warning; raises `AttributeError` for others.

    Args:
      module: without this package's name; "" for the package.
      stacklevel: whom the warning names; 3 for the caller.
    """
    path = f"{module}.{name}" if module else name
    if path in MODULES:
        _warn(path, MODULES[path], stacklevel)
        return importlib.import_module(_full(MODULES[path]))
    if name not in NAMES[module]:
        raise AttributeError(f"module {_full(module)!r} has no attribute {name!r}")
    new = NAMES[module][name]
    _warn(path, new, stacklevel)
    place, _, attribute = new.rpartition(".")
    return getattr(importlib.import_module(_full(place)), attribute)


def _full(path: str) -> str:
    return f"{_PACKAGE}.{path}" if path else _PACKAGE


def _warn(old: str, new: str, stacklevel: int) -> None:
    warnings.warn(f"{_full(old)} is now {_full(new)}", DeprecationWarning, stacklevel)


class _Finder(MetaPathFinder, Loader):
    """Finds old modules: the new ones themselves, under both names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, name = fullname.partition(".")
        is_old = package == _PACKAGE and name in MODULES
        return ModuleSpec(fullname, self) if is_old else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        old = spec.name.partition(".")[2]
        _warn(old, MODULES[old], stacklevel=3)  # Python leaves its own frames out
        module = importlib.import_module(_full(MODULES[old]))
        spec.loader_state = module.__spec__  # which Python replaces by `spec`
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Runs nothing: the module has been imported; it gets back what tells its new name."""
        spec = module.__spec__
        module.__spec__ = None if spec is None else spec.loader_state
