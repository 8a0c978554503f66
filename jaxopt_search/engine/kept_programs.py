# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false
"""Compiled programs kept for later processes, which load them without tracing anything.

JAX's persistent cache saves the compiling, but finds a program by its code, for which it must be
traced and lowered first: on a CPU that is half of what is left of a first call. Here a program is
found by what it is made from: the library's files, the versions and settings of JAX, the machine,
and the types, shapes and static parts of the arguments. Arguments with a class from elsewhere,
whose code may change, are left to JAX.
"""
# size: a program is named, compiled, kept and loaded in one place

import contextlib
import dataclasses
import functools
import hashlib
import os
import pathlib
import pickle
import platform
import threading
import zlib
from collections.abc import Callable, Generator
from typing import Any, NamedTuple

import jax
from jax.core import Tracer
from jaxlib import version

from jaxopt_search.engine.tracing import default_device, is_traced
from jaxopt_search.files import whole
from jaxopt_search.pytrees import described

_PACKAGE = pathlib.Path(__file__).parents[1]
_KNOWN = (_PACKAGE.name, "builtins", "jax", "collections", "numpy")
_PATHS = ("jax_compilation_cache_dir", "jax_dump_ir_to")  # settings that change no program

_OPTIMIZATION = "xla_backend_optimization_level"

folder: pathlib.Path | None = None
"""Where programs are kept; None for nowhere. `driver.compilation_cache` sets it."""

_loaded: dict[str, Callable[..., Any]] = {}

interpreter = threading.RLock()
"""Held by threads at long work in Python, of which only one goes on at a time anyway.

So those that came first can soon leave it, to compile or to compute.
"""


class Kept:
    """A function of `jax.jit` whose programs are kept, if there is a folder for them.

    Static arguments are those given by name, and only those.

    Args:
      on_cpu: the same function, for CPUs.
      in_folder: whether programs may be kept there; those of `jax.pmap` may not.
    """

    def __init__(self, jitted: Any, on_cpu: Any = None, in_folder: bool = True):
        functools.update_wrapper(self, jitted)  # first: it brings attributes, if of a `Kept`
        self.jitted, self._on_cpu, self._in_folder = jitted, on_cpu, in_folder
        self._prepared: set[Any] = set()
        self._temporaries: dict[Any, int] = {}

    def __call__(self, *arguments: Any, **static: Any) -> Any:
        jitted = self._jitted_for(arguments)
        key = self._key(jitted, arguments, static)
        if folder is None or key is None:
            return jitted(*arguments, **static)
        return _found(folder, key, jitted, arguments, static)(*arguments)

    def _jitted_for(self, arguments: Any) -> Any:
        """Returns the function of `jax.jit` that is called, outside of others, where it runs."""
        if self._on_cpu is None or _is_told_how_to_compile():
            return self.jitted
        leaves = jax.tree.leaves(arguments)
        if is_traced(leaves):
            return self.jitted
        devices = _devices(leaves) or [default_device()]
        return self._on_cpu if devices[0].platform == "cpu" else self.jitted

    def to_compile(self, *arguments: Any, **static: Any) -> list[Callable[[], None]]:
        """Returns what makes the program of a call ready: nothing if that was asked for before.

        Args:
          arguments: arrays, or their shapes (`jax.ShapeDtypeStruct`).
        """
        call = _call(arguments, static)
        if call in self._prepared and not self._is_forgotten():
            return []
        self._prepared.add(call)
        return [functools.partial(self._prepare, arguments, static)]

    def _is_forgotten(self) -> bool:
        """Returns whether `jax.clear_caches` has left nothing, as far as JAX tells."""
        both = (self.jitted, self._on_cpu)
        return not _loaded and not any(getattr(fn, "_cache_size", lambda: 1)() for fn in both if fn)

    def _prepare(self, arguments: Any, static: dict[str, Any]) -> None:
        self.compiled(*arguments, **static)

    def compiled(self, *arguments: Any, **static: Any) -> Any:
        """Returns the program of a call, a `jax.stages.Compiled`.

        Args:
          arguments: arrays, or their shapes (`jax.ShapeDtypeStruct`).
        """
        jitted = self._jitted_for(arguments)
        key = self._key(jitted, arguments, static)
        if folder is None or key is None:
            # JAX remembers it for the call.
            return _lowered(jitted, arguments, static).compile()
        return _found(folder, key, jitted, arguments, static)

    def temporaries(self, *arguments: Any, **static: Any) -> int:
        """Returns the bytes that the program of a call needs besides arguments and results.

        It is compiled, and asked once: that takes some milliseconds.

        Args:
          arguments: arrays, or their shapes (`jax.ShapeDtypeStruct`).
        """
        call = _call(arguments, static)
        if call not in self._temporaries:
            found = self.compiled(*arguments, **static).memory_analysis()
            self._temporaries[call] = 0 if found is None else int(found.temp_size_in_bytes)
        return self._temporaries[call]

    def _key(self, jitted: Any, arguments: Any, static: dict[str, Any]) -> str | None:
        is_kept = folder is not None and self._in_folder
        return _key(jitted, arguments, static) if is_kept else None


def kept(
    fn: Callable[..., Any], *, static_argnames: Any = (), cpu_level: int | None = None
) -> Kept:
    """Returns a function compiled by `jax.jit`, whose programs are kept.

    Args:
      static_argnames: as in `jax.jit`.
      cpu_level: how much LLVM optimizes the function where it is called by itself on a CPU, 0 to 3;
        None for what XLA is told for all, 3 unless the user tells it otherwise. Results are the
        same.
    """
    jitted = jax.jit(fn, static_argnames=static_argnames)
    if cpu_level is None:
        return Kept(jitted)
    options = {_OPTIMIZATION: cpu_level}
    return Kept(jitted, jax.jit(fn, static_argnames=static_argnames, compiler_options=options))


def _is_told_how_to_compile() -> bool:
    """Returns whether the user has said how much is to be optimized, or nothing to be compiled."""
    settings = ("jax_disable_most_optimizations", "jax_disable_jit")
    return any(getattr(jax.config, name, False) for name in settings) or (
        _OPTIMIZATION in os.environ.get("XLA_FLAGS", "")
    )


class Program(NamedTuple):
    """One of the programs of a run: a call that is not made.

    Attributes:
      fn: what is called.
      arguments: arrays, or their shapes.
      static: arguments that are given by name.
    """

    fn: Kept
    arguments: tuple[Any, ...]
    static: dict[str, Any]

    def to_compile(self) -> list[Callable[[], None]]:
        """Returns what makes the program ready, as `Kept.to_compile`."""
        return self.fn.to_compile(*self.arguments, **self.static)

    def temporaries(self) -> int:
        """Returns the bytes that the program needs on each device besides arguments and results.

        It is compiled, unless that was done before.
        """
        return self.fn.temporaries(*self.arguments, **self.static)


def _call(arguments: Any, static: dict[str, Any]) -> tuple[Any, ...]:
    """Returns what tells the program of a call from others of its function."""
    leaves, structure = jax.tree.flatten(arguments)
    where = frozenset(_devices(leaves))
    return structure, tuple(map(_kind, leaves)), tuple(sorted(static.items())), where


def _kind(leaf: Any) -> tuple[Any, ...]:
    aval = leaf if isinstance(leaf, jax.ShapeDtypeStruct) else jax.typeof(leaf)
    return str(aval.dtype), aval.shape, bool(aval.weak_type)


def noted(what: str, structure: Any, kinds: Any, find: Callable[[], str]) -> str:
    """Returns what `find` returns: a line that depends on a structure of pytrees and its leaves.

    It is kept, like a program.

    Args:
      what: tells it from other lines.
      kinds: of the leaves.
    """
    name = None if folder is None else _name(what, structure, kinds)
    if folder is None or name is None:
        return find()
    path = folder / f"{name}.note"
    with contextlib.suppress(OSError, UnicodeDecodeError):
        kept = path.read_text(encoding="utf-8")
        if kept.endswith("\n"):
            return kept.removesuffix("\n")
    line = find()
    with contextlib.suppress(OSError), whole(path) as file:
        file.write(f"{line}\n".encode())
    return line


def _key(jitted: Any, arguments: Any, static: dict[str, Any]) -> str | None:
    """Returns a name for the program of a call; None if it may depend on more than that says."""
    leaves, structure = jax.tree.flatten(arguments)
    is_off = getattr(jax.config, "jax_disable_jit", False)
    if is_off or any(isinstance(leaf, Tracer) for leaf in leaves):
        return None
    devices = _devices(leaves)
    if len(devices) != 1:
        return None
    (device,) = devices
    where = device.id, device.platform, device.device_kind, jax.device_count()
    program = jitted.__module__, jitted.__qualname__, sorted(static.items()), where
    return _name(program, structure, list(map(_kind, leaves)))


def _name(what: Any, structure: Any, kinds: Any) -> str | None:
    """Returns a name for what follows from arguments of a structure.

    None if a class is unknown, or caches are turned off.
    """
    is_on = getattr(jax.config, "jax_enable_compilation_cache", True)
    if not is_on:
        return None
    try:
        parts = described(structure, _words_of)
    except _Unknown:
        return None
    of_programs = {name: value for name, value in settings().items() if name not in _PATHS}
    words = repr((what, parts, kinds, of_programs, _surroundings()))
    return hashlib.sha256(words.encode()).hexdigest()


def settings() -> dict[str, Any]:
    """Returns JAX's settings, by name, as they hold for this thread."""
    return {name: getattr(jax.config, name, None) for name in sorted(jax.config.values)}


def _devices(tree: Any) -> list[jax.Device]:
    """Returns the devices of arrays, and of shapes that are told where they lie."""
    known = (jax.Array, jax.ShapeDtypeStruct)
    placed = [leaf.sharding for leaf in jax.tree.leaves(tree) if isinstance(leaf, known)]
    return list(set().union(*(sharding.device_set for sharding in placed if sharding is not None)))


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


@functools.cache
def _surroundings() -> tuple[str, ...]:
    """Returns what programs depend on besides their arguments and JAX's settings."""
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


def _load(path: pathlib.Path, arguments: Any) -> Callable[..., Any] | None:
    """Returns the program in a file; None if there is none that this process can run."""
    from jax.experimental import serialize_executable

    try:
        program, result = pickle.loads(zlib.decompress(path.read_bytes()))
        structures = jax.tree.structure((arguments, {})), jax.tree.structure(result)
        return serialize_executable.deserialize_and_load(
            program, *structures, execution_devices=_devices(arguments)
        )
    except Exception:  # not there, torn, or of another kind: it is compiled again
        return None


def _found(
    where: pathlib.Path, key: str, jitted: Any, arguments: Any, static: dict[str, Any]
) -> Callable[..., Any]:
    """Returns the program of a call, which is loaded or compiled."""
    if key not in _loaded:
        found = _load(where / f"{key}.program", arguments)
        _loaded[key] = found or _compile(where, key, jitted, arguments, static)
    return _loaded[key]


def _lowered(jitted: Any, arguments: Any, static: dict[str, Any]) -> Any:
    """Returns what is left to compile."""
    with interpreter:
        return jitted.lower(*arguments, **static)


def _compile(
    where: pathlib.Path, key: str, jitted: Any, arguments: Any, static: dict[str, Any]
) -> Callable[..., Any]:
    """Returns the program of a call, which it keeps if that is possible."""
    from jax.experimental import serialize_executable

    lowered = _lowered(jitted, arguments, static)
    with _hits_noted() as hits:
        compiled = lowered.compile()
    if hits:  # a program from JAX's own cache cannot be written once more
        return compiled
    with contextlib.suppress(Exception):  # a full disk, or a device whose programs stay there
        program, _, result = serialize_executable.serialize(compiled)
        skeleton = result.unflatten(range(result.num_leaves))
        data = zlib.compress(pickle.dumps((program, skeleton)), level=1)
        with whole(where / f"{key}.program") as file:
            file.write(data)
    return compiled


@contextlib.contextmanager
def _hits_noted() -> Generator[list[str]]:
    """Yields a list that grows as this thread finds programs in JAX's cache."""
    hits, thread = list[str](), threading.get_ident()

    def note(event: str, **_: Any) -> None:
        if event == "/jax/compilation_cache/cache_hits" and threading.get_ident() == thread:
            hits.append(event)

    jax.monitoring.register_event_listener(note)
    try:
        yield hits
    finally:
        jax.monitoring.unregister_event_listener(note)
