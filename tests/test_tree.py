"""The tree of the package: each folder answers one question, and imports make no circle."""

import ast
import graphlib
import pathlib

ROOT = pathlib.Path(__file__).parent.parent / "jaxopt_search"
FILES = sorted(ROOT.rglob("*.py"))


def name_of(path):
    """Returns a module's name; of a package, its folder's."""
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in FILES}


def is_for_types_only(node):
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def imported(node):
    """Yields the names of the package's modules that code imports, wherever it stands."""
    if is_for_types_only(node):
        return
    if isinstance(node, ast.Import):
        yield from (one.name for one in node.names if one.name in MODULES)
    if isinstance(node, ast.ImportFrom):
        assert not node.level, "imports are absolute"
        for one in node.names:
            whole = f"{node.module}.{one.name}"
            yield from (name for name in (whole, node.module) if name in MODULES)
    for child in ast.iter_child_nodes(node):
        yield from imported(child)


def room_of(module):
    """Returns a folder right below the package, or a file that lies there."""
    return module.split(".")[1]


def arrows():
    """Returns the rooms that each room imports; the package's own list of names is none."""
    found = {}
    for module, path in MODULES.items():
        if module == ROOT.name:
            continue
        targets = found.setdefault(room_of(module), set())
        for name in imported(ast.parse(path.read_text(encoding="utf-8"))):
            if name != ROOT.name:
                targets.add(room_of(name))
        targets.discard(room_of(module))
    return found


ARROWS = arrows()


def test_rooms_import_one_another_without_a_circle():
    """Aside from imports under TYPE_CHECKING, which are not made when the program runs."""
    graphlib.TopologicalSorter(ARROWS).prepare()


def test_the_engine_needs_no_algorithm():
    """It runs whatever keeps the contracts of `types`."""
    algorithms = {"problems", "searches", "exchanges", "neighborhoods", "crossovers", "solvers"}
    assert not ARROWS["engine"] & algorithms


def test_backends_need_nothing_above_them():
    assert ARROWS["backends"] <= {"errors", "checks", "pytrees"}


def test_contracts_and_checks_need_nothing():
    assert ARROWS["types"] == {"backends"}
    assert not ARROWS["errors"] | ARROWS["checks"] | ARROWS["pytrees"]


def test_pmap_is_called_at_one_place():
    """So that a change of how searches are spread over devices is small."""
    found = [name for name, path in MODULES.items() if "jax.pmap(" in path.read_text()]
    assert found == ["jaxopt_search.engine.split"]


def uses(path, names):
    """Returns whether a module reads an attribute of one of these names."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    return any(
        node.attr in names and ast.unparse(node.value) not in ("sys", "platform") for node in found
    )


def test_two_modules_know_devices_and_one_knows_processes():
    """Others ask them; `backends`, which is below them, is told a device or a platform."""
    asked = {"platform", "device_kind", "local_devices", "memory_stats", "compute_capability"}
    above = {name: path for name, path in MODULES.items() if ".backends" not in name}
    found = {name for name, path in above.items() if uses(path, asked)}
    above_all = {f"jaxopt_search.engine.{name}" for name in ("devices", "memory")}
    assert found <= above_all | {"jaxopt_search.problems.queens.attacks.coarse_kernel"}
    found = [name for name, path in above.items() if uses(path, {"process_index", "process_count"})]
    assert found == ["jaxopt_search.engine.processes"]


def test_one_file_knows_the_launcher_of_kernels():
    """So that another one changes this file only."""
    found = [name for name, path in MODULES.items() if "gpu_triton" in path.read_text()]
    assert found == ["jaxopt_search.backends.cuda.launch"]


def test_settings_of_jax_are_changed_at_one_place():
    found = [name for name, path in MODULES.items() if "jax.config.update(" in path.read_text()]
    assert found == ["jaxopt_search.engine.compile"]
