# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false
"""Names for compiled programs, by all that they depend on.

That is the library's files, the versions and settings of JAX, the machine, and the types, shapes
and static parts of the arguments.
"""

import dataclasses
import functools
import hashlib
import os
import pathlib
import platform
import threading
from typing import Any

import jax
from jax.core import Tracer
from jaxlib import version

from jaxopt_search.pytrees import described

_PACKAGE = pathlib.Path(__file__).parents[1]
_KNOWN = (_PACKAGE.name, "builtins", "jax", "collections", "numpy")
_PATHS = ("jax_compilation_cache_dir", "jax_dump_ir_to")  # settings that change no program


def of_call(jitted: Any, arguments: Any, static: dict[str, Any]) -> str | None:
    """Returns a name for the program of a call; None if it may depend on more than that says."""
    leaves, structure = jax.tree.flatten(arguments)
    is_off = getattr(jax.config, "jax_disable_jit", False)
    if is_off or any(isinstance(leaf, Tracer) for leaf in leaves):
        return None
    devices = devices_of(leaves)
    if len(devices) != 1:
        return None
    (device,) = devices
    where = device.id, device.platform, device.device_kind, jax.device_count()
    program = jitted.__module__, jitted.__qualname__, sorted(static.items()), where
    return of_parts(program, structure, tuple(map(kind_of, leaves)))


def of_parts(what: Any, structure: Any, kinds: tuple[Any, ...]) -> str | None:
    """Returns a name for what follows from arguments of a structure.

    None if a class is unknown, or caches are turned off.
    """
    is_on = getattr(jax.config, "jax_enable_compilation_cache", True)
    if not is_on:
        return None
    own = tuple((name, value) for name, value in settings().items() if name not in _PATHS)
    return _name(repr(what), structure, kinds, own, _surroundings())


@functools.lru_cache(maxsize=1024)  # a run asks for the names of its programs again and again
def _name(what: str, structure: Any, kinds: Any, *others: Any) -> str | None:
    try:
        parts = described(structure, _words_of)
    except _Unknown:
        return None
    return hashlib.sha256(repr((what, parts, kinds, *others)).encode()).hexdigest()


def settings() -> dict[str, Any]:
    """Returns JAX's settings, by name, as they hold for this thread."""
    return dict(sorted(jax.config.values.items()))  # attributes tell of some of them only


def devices_of(tree: Any) -> list[jax.Device]:
    """Returns the devices of arrays, and of shapes that are told where they lie, each once."""
    known = (jax.Array, jax.ShapeDtypeStruct)
    placed = [leaf.sharding for leaf in jax.tree.leaves(tree) if isinstance(leaf, known)]
    return list(set().union(*(sharding.device_set for sharding in placed if sharding is not None)))


def kind_of(leaf: Any) -> tuple[Any, ...]:
    """Returns the dtype and the shape of a leaf, and whether its type is weak."""
    aval = leaf if isinstance(leaf, jax.ShapeDtypeStruct) else jax.typeof(leaf)
    return aval.dtype, aval.shape, bool(aval.weak_type)


class _Unknown(Exception):
    """A static part of a pytree that words might not tell from another one."""


def _words_of(static: Any) -> Any:
    """Returns a static part in words.

    Raises:
      _Unknown: if they might not tell it from another one.
    """
    if static is None or isinstance(static, str | int | float | bool):
        return repr(static)
    if isinstance(static, type):
        if static.__module__.partition(".")[0] not in _KNOWN:
            raise _Unknown
        return f"{static.__module__}.{static.__qualname__}"
    if getattr(static, "all_are_equal", False):
        return _words_of(type(static))
    if dataclasses.is_dataclass(static):
        fields = [field.name for field in dataclasses.fields(static)]
        static = type(static), *((name, getattr(static, name)) for name in fields)
    if not isinstance(static, tuple | list):
        raise _Unknown
    return list(map(_words_of, static))


def _surroundings() -> tuple[str, ...]:
    """Returns what programs depend on besides their arguments and JAX's settings."""
    with _one_looks_around:
        return _found_surroundings()


_one_looks_around = threading.Lock()
"""So that threads that compile do not all read the library's files."""


@functools.cache
def _found_surroundings() -> tuple[str, ...]:
    code = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        code.update(path.read_bytes())
    versions = jax.__version__, version.__version__, platform.python_version()
    flags = os.environ.get("XLA_FLAGS", ""), os.environ.get("LIBTPU_INIT_ARGS", "")
    device = jax.local_devices()[0].client.platform_version
    return code.hexdigest(), *versions, *flags, device, platform.platform(), _instructions()


def _instructions() -> str:
    """Returns the instructions that the machine's processor knows, or what is known of it."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    found = (line for line in lines if line.startswith(("flags", "Features", "model name")))
    return "\n".join(sorted(set(found)))
