# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false
"""Digests that tell runs and programs apart: of values, names, and all else that counts.

Two runs are the same if their parts are alike and have equal values; a compiled program also
depends on the library's files, the versions and settings of JAX, and the machine.
"""

import copyreg
import functools
import hashlib
import os
import pathlib
import platform
import sys
import types
from collections.abc import Iterable
from typing import Any

import jax
import numpy as np
from jax.core import Tracer
from jaxlib import version

import jaxopt_search
from jaxopt_search.engine.devices import describe, devices_of, platform_of
from jaxopt_search.pytrees import IgnoredByJit

_DIGITS = 16
_PACKAGE = pathlib.Path(__file__).parents[1]
_TRUSTED = (_PACKAGE.name, "jax", "jaxlib", "numpy", "builtins")
_PATHS = ("jax_compilation_cache_dir", "jax_dump_ir_to")  # settings that change no program
_PLAIN = type(None), type(...), type(NotImplemented), bool, int, float, complex, str, bytes


def fingerprint(*trees: Any) -> str:
    """Returns a few hexadecimal digits that pytrees share which are alike and have equal values.

    Classes count by their names, and so do functions of this library, JAX, NumPy and Python; all
    other functions by their code, defaults and captured values, whatever file and line they are in.
    What code refers to besides, such as a global variable, does not count. Other objects count by
    what `pickle` would keep of them. The host's part of a problem does not count: its numbers are
    the device's.

    Args:
      trees: problems, searches, exchanges, numbers, None; on any device.

    Raises:
      TypeError: if a static part cannot be told from others; it names the part.
    """
    leaves, structure = jax.tree.flatten(jax.device_get(trees))
    leaves = [np.asarray(one) if isinstance(one, int | float | complex) else one for one in leaves]
    words = _Words()
    try:
        described = [*map(words.of, leaves), words.of_structure(structure)]
    except _Unknown as error:
        raise TypeError(
            f"nothing tells {error} from another one, as checkpoints and several processes need;"
            " expected numbers, text, functions and objects that pickle could keep"
        ) from None
    return hashlib.sha256(repr(described).encode()).hexdigest()[:_DIGITS]


class _Unknown(Exception):
    """A static part that words might not tell from another one."""


class _Words:
    """Describes static parts of pytrees.

    Args:
      takes_any_code: whether functions and classes may be from elsewhere; else they are unknown.
    """

    def __init__(self, takes_any_code: bool = True) -> None:
        self._takes_any_code = takes_any_code
        self._open = list[Any]()  # the parts being described, from the outside in

    def of_structure(self, structure: Any) -> Any:
        """Returns a `PyTreeDef` in words.

        Raises:
          _Unknown: if it has a part that words might not tell from another one.
        """
        if (node := structure.node_data()) is None:
            return "leaf"
        return *map(self.of, node), list(map(self.of_structure, structure.children()))

    def of(self, part: Any) -> Any:
        """Returns a static part, or a leaf, in words."""
        if type(part) in _PLAIN:
            return type(part).__name__, part
        if part is type(None):  # which is nowhere by its name
            return part.__name__
        places = [place for place, one in enumerate(self._open) if one is part]
        if places:  # an object that holds itself
            return f"{len(self._open) - places[0]} up"
        self._open.append(part)
        found = self._described(part)
        self._open.pop()
        return found

    def _all(self, parts: Iterable[Any]) -> list[Any]:
        return list(map(self.of, parts))

    def _described(self, part: Any) -> Any:
        kind: Any = type(part)
        if place := _place(part) or (issubclass(kind, IgnoredByJit) and _place(kind)):
            return place
        if words := _words_of_array(part):
            return words
        if kind in (tuple, list):
            return kind.__name__, self._all(part)
        if kind in (set, frozenset):
            return kind.__name__, sorted(map(repr, self._all(part)))
        if kind in (dict, types.MappingProxyType):
            return kind.__name__, sorted(map(repr, map(self._all, part.items())))
        if kind is types.CodeType:
            return part.co_code.hex(), part.co_names, part.co_varnames, self._all(part.co_consts)
        if isinstance(part, types.FunctionType) and self._takes_any_code:
            cells = [self._of_cell(cell) for cell in part.__closure__ or ()]
            return self._all((part.__code__, part.__defaults__, part.__kwdefaults__)), cells
        if isinstance(part, type) and self._takes_any_code:
            return "class", part.__qualname__
        if isinstance(part, type | types.FunctionType | types.ModuleType):
            raise self._unknown(part)
        if hasattr(part, "__wrapped__") and _place(kind):  # such as functions of `jit`
            return self.of(kind), self.of(part.__wrapped__)
        return self._of_object(kind, part)

    def _of_cell(self, cell: types.CellType) -> Any:
        try:
            return self.of(cell.cell_contents)
        except ValueError:  # a variable that has no value
            return "empty"

    def _of_object(self, kind: type, part: Any) -> Any:
        reduce = copyreg.dispatch_table.get(kind)
        try:
            reduced: Any = part.__reduce_ex__(4) if reduce is None else reduce(part)
        except Exception:
            raise self._unknown(part) from None
        if isinstance(reduced, str):  # a name, by which it was not found
            raise self._unknown(part)
        state, items, pairs, *_ = *reduced[2:5], None, None, None
        return self._all((*reduced[:2], state, list(items or ()), list(pairs or ())))

    def _unknown(self, part: Any) -> _Unknown:
        """Returns an error that names a part and the functions and classes that hold it."""
        named = (type, types.FunctionType, types.ModuleType)
        names = [part.__name__ if isinstance(part, named) else f"a {type(part).__name__}"]
        names += [one.__name__ for one in self._open[-2::-1] if isinstance(one, named)]
        return _Unknown(" in ".join(names))


def _words_of_array(part: Any) -> tuple[Any, ...] | None:
    """Returns an array or a number of NumPy's in words; None for all else."""
    kind: Any = type(part)
    is_array = kind is np.ndarray or issubclass(kind, np.generic | jax.Array)
    if not is_array or isinstance(part, Tracer) or getattr(part.dtype, "hasobject", False):
        return None
    dtype = str(part.dtype)
    array = np.ascontiguousarray(jax.random.key_data(part) if dtype.startswith("key<") else part)
    return dtype, array.shape, hashlib.sha256(array.tobytes()).hexdigest()


def _place(part: Any) -> str | None:
    """Returns where code of this library's, JAX's or Python's is, if it is found there by its name.

    None for all else.
    """
    is_module = isinstance(part, types.ModuleType)
    name: Any = part.__name__ if is_module else getattr(part, "__module__", None)
    path = "" if is_module else getattr(part, "__qualname__", getattr(part, "__name__", None))
    module = sys.modules.get(name) if isinstance(name, str) else None
    if module is None or not isinstance(path, str):
        return None
    top = name.partition(".")[0]
    if top not in _TRUSTED and top not in sys.stdlib_module_names:
        return None
    found = module
    for step in path.split(".") if path else ():
        found = getattr(found, step, None)
    return f"{name}:{path}" if found is part else None


def of_call(jitted: Any, arguments: Any, static: dict[str, Any]) -> str | None:
    """Returns a name for the program of a call; None if it may depend on more than that says."""
    is_off = getattr(jax.config, "jax_disable_jit", False)
    if is_off or any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(arguments)):
        return None
    if len(devices := devices_of(arguments)) != 1:
        return None
    (one,) = devices
    where = one.id, one.platform, one.device_kind, one.client.platform_version, jax.device_count()
    program = jitted.__module__, jitted.__qualname__, sorted(static.items()), where
    return of_parts(program, arguments)


def of_parts(what: Any, tree: Any) -> str | None:
    """Returns a name for a result that depends on the structure and the kinds of arguments.

    None if a class is unknown, or caches are turned off.
    """
    if not getattr(jax.config, "jax_enable_compilation_cache", True):
        return None
    own = tuple((name, value) for name, value in settings().items() if name not in _PATHS)
    return _name(repr(what), *kinds_of(tree), own, _surroundings())


@functools.lru_cache(maxsize=1024)  # a run asks for the names of its programs again and again
def _name(what: str, structure: Any, kinds: Any, *others: Any) -> str | None:
    try:
        parts = _Words(takes_any_code=False).of_structure(structure)
    except _Unknown:
        return None
    return hashlib.sha256(repr((what, parts, kinds, *others)).encode()).hexdigest()


def settings() -> dict[str, Any]:
    """Returns JAX's settings, by name, as they hold for this thread."""
    return dict(sorted(jax.config.values.items()))  # attributes tell of some of them only


def kinds_of(tree: Any) -> tuple[Any, tuple[Any, ...]]:
    """Returns the structure; and of its leaves the dtypes, the shapes, and which are weak."""
    leaves, structure = jax.tree.flatten(tree)
    avals = (one if isinstance(one, jax.ShapeDtypeStruct) else jax.typeof(one) for one in leaves)
    return structure, tuple((one.dtype, one.shape, bool(one.weak_type)) for one in avals)


@functools.cache
def _surroundings() -> tuple[str, ...]:
    """Returns all that programs depend on besides arguments, devices and JAX's settings."""
    code = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        code.update(path.read_bytes())
    # The instructions that the machine's processor knows.
    known = {one for one in _cpu_info() if one.startswith(("flags", "Features", "model name"))}
    versions = jax.__version__, version.__version__, platform.python_version()
    flags = os.environ.get("XLA_FLAGS", ""), os.environ.get("LIBTPU_INIT_ARGS", "")
    return code.hexdigest(), *versions, *flags, platform.platform(), *sorted(known)


def environment(devices: tuple[jax.Device, ...] = ()) -> dict[str, str]:
    """Returns the versions, the processor and the devices on which a result depends.

    Args:
      devices: none, before one is started.
    """
    model = (
        line.partition(":")[2].strip() for line in _cpu_info() if line.startswith("model name")
    )
    found = {
        "jaxopt_search": jaxopt_search.__version__,
        "jax": jax.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "cpu": next(model, "") or platform.processor() or platform.machine(),
    }
    if devices:
        found |= {"platform": platform_of(devices[0]), "devices": describe(devices)}
    return found


@functools.cache
def _cpu_info() -> list[str]:
    """Returns the lines in which Linux tells of its processors; none elsewhere."""
    try:
        return pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return []
