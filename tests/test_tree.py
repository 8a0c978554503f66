"""The tree of the package: each folder answers one question, and imports make no circle."""

import ast
import graphlib
import pathlib

ROOT = pathlib.Path(__file__).parent.parent / "jaxopt_search"


def name_of(path):
    """Returns a module's name; of a package, its folder's."""
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(ROOT.rglob("*.py"))}


def imported(node):
    """Yields the names of the package's modules that code imports, wherever it stands."""
    if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
        return
    if isinstance(node, ast.Import):
        yield from (one.name for one in node.names if one.name in MODULES)
    if isinstance(node, ast.ImportFrom):
        for one in node.names:
            whole = f"{node.module}.{one.name}"
            yield from (name for name in (whole, node.module) if name in MODULES)
    for child in ast.iter_child_nodes(node):
        yield from imported(child)


def test_imports_make_no_circle_and_lead_downwards():
    """Of folders, and of files right below the package; but for those under TYPE_CHECKING."""
    arrows = {}
    for module, path in MODULES.items():
        if module != ROOT.name:
            room = module.split(".")[1]
            names = set(imported(ast.parse(path.read_text(encoding="utf-8")))) - {ROOT.name}
            arrows.setdefault(room, set()).update(name.split(".")[1] for name in names)
            arrows[room].discard(room)
    graphlib.TopologicalSorter(arrows).prepare()
    algorithms = {"problems", "searches", "exchanges", "neighborhoods", "crossovers", "solvers"}
    assert not arrows["engine"] & algorithms
    assert arrows["backends"] <= {"errors", "checks", "pytrees"}
    assert arrows["types"] == {"backends"}
    assert not arrows["errors"] | arrows["checks"] | arrows["pytrees"]


def test_some_calls_of_jax_are_made_at_one_place():
    """So that a change of how searches are spread, launched or set up is small."""
    places = {"jax.pmap(": "split", "gpu_triton": "launch", "jax.config.update(": "compile"}
    for call, place in places.items():
        found = [name for name, path in MODULES.items() if call in path.read_text("utf-8")]
        assert [name.rpartition(".")[2] for name in found] == [place]
