# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false
"""Compiling: side by side in threads, and kept in files for later processes.

JAX's persistent cache saves the compiling, but finds a program by its code, for which it must be
traced and lowered first: on a CPU that is half of what is left of a first call. Here a program is
found by what it is made from: the library's files, the versions and settings of JAX, the machine,
and the types, shapes and static parts of the arguments. Arguments with a class from elsewhere,
whose code may change, are left to JAX.
"""

import concurrent.futures
import contextlib
import contextvars
import dataclasses
import functools
import os
import pathlib
import pickle
import threading
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import jax

from jaxopt_search import files
from jaxopt_search.checks import num_cores
from jaxopt_search.engine import devices, fingerprints
from jaxopt_search.files import whole

T = TypeVar("T")

_OPTIONS = {"cpu": "xla_backend_optimization_level", "gpu": "xla_gpu_autotune_level"}
_LEVEL_ON_CPU = 2  # 3, which is XLA's, takes longer to compile and makes nothing faster
_LEVEL_ON_GPU = 0  # above it, XLA times variants of its kernels, which it compiles for that
_MOST_CALLS = 16  # of one function by arguments of other kinds, whose programs stay in memory

program_folder: pathlib.Path | None = None
"""Where programs are kept; None for nowhere. `enable_compilation_cache` sets it."""

_loaded = dict[str, Any]()  # from there, or made since, by the names of files

# Held by threads at long work in Python, of which only one goes on at a time anyway: so those that
# came first can soon leave it, to compile or to compute.
_tracing = threading.RLock()
_turn = threading.Lock()


class Jitted:
    """A function of `jax.jit` or `jax.pmap` whose programs are compiled ahead, and kept in files.

    Static arguments are those given by name, and only those.

    Args:
      jitted: the function as `jax.jit` or `jax.pmap` returns it.
      on_platforms: the same function for platforms on which it is compiled otherwise, by name.
      in_folder: whether programs may be kept there; programs of `jax.pmap` may not.
      in_turn: whether programs of several threads take turns, as on several devices they must: two
        whose parts wait for one another hold threads, or streams, for which the other one waits.
    """

    def __init__(
        self,
        jitted: Any,
        on_platforms: Mapping[str, Any] | None = None,
        in_folder: bool = True,
        in_turn: bool = False,
    ):
        functools.update_wrapper(self, jitted)  # first: it may bring attributes
        self.jitted, self.in_folder, self.in_turn = jitted, in_folder, in_turn
        self.on_platforms = on_platforms or {}
        self.temporaries: dict[Any, int] = {}  # of programs that are compiled, by call

    def __call__(self, *arguments: Any, **static: Any) -> Any:
        return Program(self, arguments, static)()

    def make_room(self) -> None:
        """Frees programs where there are many: a new static function in each call adds one more."""
        if len(self.temporaries) >= _MOST_CALLS:
            self.temporaries.clear()
            _loaded.clear()
            for fn in (self.jitted, *self.on_platforms.values()):
                if hasattr(fn, "clear_cache"):  # of `jax.pmap`, JAX keeps all
                    fn.clear_cache()


def jit(
    fn: Callable[..., Any], *, static_argnames: Any = (), cpu_level: int = _LEVEL_ON_CPU
) -> Jitted:
    """Returns a function compiled by `jax.jit`, whose programs are kept.

    Called by itself on a GPU, it is compiled without timing variants, unless the user tells XLA to.

    Args:
      static_argnames: as in `jax.jit`.
      cpu_level: how much LLVM optimizes the function where it is called by itself on a CPU, 0 to 3,
        unless the user tells XLA how much. Results are the same.
    """
    make = functools.partial(jax.jit, fn, static_argnames=static_argnames)
    levels = {"cpu": cpu_level, "gpu": _LEVEL_ON_GPU}
    options = {platform: {_OPTIONS[platform]: level} for platform, level in levels.items()}
    return Jitted(make(), {name: make(compiler_options=own) for name, own in options.items()})


def _is_told_how_to_compile(platform: str) -> bool:
    """Returns whether the user has said how to compile for a platform, or not to compile."""
    option = _OPTIONS.get(platform)
    is_flag = option is not None and option in os.environ.get("XLA_FLAGS", "")
    config: Any = jax.config  # no attribute of it tells whether it is to optimize
    is_told_by_jax = config.jax_disable_jit or config.read("jax_disable_most_optimizations")
    return is_flag or is_told_by_jax


@dataclasses.dataclass(frozen=True)
class Program:
    """One of the programs of a run: a call that is not made until it is called.

    Attributes:
      fn: what is called.
      arguments: arrays, or their shapes (`jax.ShapeDtypeStruct`).
      static: arguments that are given by name.
    """

    fn: Jitted
    arguments: tuple[Any, ...]
    static: dict[str, Any]

    def __call__(self) -> Any:
        """Makes the call, of arrays."""
        if self.fn.in_turn:
            with _turn:
                return jax.block_until_ready(self.jitted(*self.arguments))
        if (name := self.name) is not None:
            return (_loaded.get(name) or compile(self))(*self.arguments)
        return self.jitted(*self.arguments, **self.static)

    def temporaries(self) -> int:
        """Returns the bytes that the program needs on each device besides arguments and results.

        It is compiled, unless that was done before.
        """
        if self.call not in self.fn.temporaries:
            found = compile(self).memory_analysis()  # which takes a while
            self.fn.temporaries[self.call] = 0 if found is None else int(found.temp_size_in_bytes)
        return self.fn.temporaries[self.call]

    @functools.cached_property
    def jitted(self) -> Any:
        """The function of `jax.jit` or `jax.pmap` to call, as it is compiled where it runs."""
        if not self.fn.on_platforms or devices.is_traced(self.arguments):
            return self.fn.jitted
        (device, *_) = devices.devices_of(self.arguments) or [devices.default_device()]
        platform = devices.platform_of(device)
        if _is_told_how_to_compile(platform):
            return self.fn.jitted
        return self.fn.on_platforms.get(platform, self.fn.jitted)

    @functools.cached_property
    def name(self) -> str | None:
        """The name of its file; None where it is not kept in one."""
        if program_folder is None or not self.fn.in_folder:
            return None
        name = fingerprints.of_call(self.jitted, self.arguments, self.static)
        return None if name is None else f"{name}.program"

    @functools.cached_property
    def call(self) -> tuple[Any, ...]:
        """What tells it from other programs of its function."""
        where = frozenset(devices.devices_of(self.arguments))
        static = tuple(sorted(self.static.items()))
        return *fingerprints.kinds_of(self.arguments), static, where


class _Hits(threading.local):
    """How many programs this thread has found in JAX's own cache."""

    number = 0


_hits = _Hits()
# Executables from there, by identity, which XLA cannot write once more. They are held, so that no
# other one has the same identity.
_read_by_jax = dict[int, Any]()


@functools.cache
def _count_hits() -> None:
    """Has JAX tell of them, from the first call on: until JAX 0.8 it forgets no listener."""

    def note(event: str, **_: Any) -> None:
        _hits.number += event == "/jax/compilation_cache/cache_hits"

    jax.monitoring.register_event_listener(note)


def compile(program: Program) -> Any:
    """Returns a program, a `jax.stages.Compiled`: loaded if it is kept, else compiled and kept."""
    name = program.name
    if program_folder is not None:
        _count_hits()

    def made() -> Any:
        with _tracing:
            lowered = program.jitted.lower(*program.arguments, **program.static)
        before = _hits.number
        compiled = lowered.compile()
        if _hits.number > before:
            executable = compiled.runtime_executable()
            _read_by_jax[id(executable)] = executable
        return compiled

    if name is None:
        return made()  # JAX remembers it for the call, and for others of the same code
    from jax.experimental import serialize_executable

    def read(data: bytes) -> Any:
        found, result = pickle.loads(zlib.decompress(data))
        structures = jax.tree.structure((program.arguments, {})), jax.tree.structure(result)
        return serialize_executable.deserialize_and_load(
            found, *structures, execution_devices=devices.devices_of(program.arguments)
        )

    def written(compiled: Any) -> bytes:
        if id(compiled.runtime_executable()) in _read_by_jax:
            raise ValueError("a program from JAX's own cache cannot be written once more")
        found, _, result = serialize_executable.serialize(compiled)
        skeleton = result.unflatten(range(result.num_leaves))
        return zlib.compress(pickle.dumps((found, skeleton)), level=1)

    return _kept(name, made, read, written)


def noted(what: str, tree: Any, find: Callable[[], T]) -> T:
    """Returns the result of `find`, which depends on a pytree: on all but the values of its leaves.

    It is kept, like a program.

    Args:
      what: tells it from other notes.
    """
    name = None if program_folder is None else fingerprints.of_parts(what, tree)
    return find() if name is None else _kept(f"{name}.note", find, pickle.loads, pickle.dumps)


def _kept(
    name: str, make: Callable[[], T], read: Callable[[bytes], T], written: Callable[[T], bytes]
) -> T:
    """Returns the object of a name: from memory or its file, or else made, and kept in both."""
    found = _loaded.get(name)
    if found is None:
        assert program_folder is not None
        path = program_folder / name
        with contextlib.suppress(Exception):  # not there, torn, or for another machine
            found = read(path.read_bytes())
        if found is None:
            found = make()
            with contextlib.suppress(Exception):  # a full disk, or an object that cannot be written
                data = written(found)
                with whole(path) as file:
                    file.write(data)
        _loaded[name] = found
    return found


def compile_all(programs: Iterable[Program]) -> None:
    """Compiles programs side by side, the first of which takes longest, on more than one core.

    What goes wrong in a thread is not told: whoever needs the program compiles it then, and meets
    the same error, or none.
    """
    missing = [one for one in programs if one.call not in one.fn.temporaries]
    own, pending = fingerprints.settings(), list[concurrent.futures.Future[Any]]()

    def compile_there(program: Program) -> None:
        with devices.settings_left():
            if fingerprints.settings() == own:  # else some are for the caller's thread only
                program.temporaries()

    for one in missing:
        one.fn.make_room()
    if missing and num_cores() > 1:
        # Its threads are not joined: a `join` that Ctrl-C ends would have Python take a thread for
        # ended, and not wait for it at exit.
        pool = concurrent.futures.ThreadPoolExecutor(len(missing), "compiles")
        for one in missing:
            pending.append(pool.submit(contextvars.copy_context().run, compile_there, one))
        pool.shutdown(wait=False)
    concurrent.futures.wait(pending)


def enable_compilation_cache(folder: str | os.PathLike[str] | None = None) -> pathlib.Path:
    """Keeps what JAX compiles from now on in a private folder, for later processes.

    Turns on JAX's persistent compilation cache, and for small programs too, of which a search has
    many: a second process that makes the same call loads them instead of compiling. This changes
    JAX's settings for the whole process: `jax_compilation_cache_dir`, and
    `jax_persistent_cache_min_compile_time_secs` and `jax_persistent_cache_min_entry_size_bytes`,
    so that nothing is too small. Nothing else in this library changes any. The call can be
    repeated, and can come after programs were compiled, which are not kept then. A cache that is
    turned off by `jax_enable_compilation_cache` stays off.

    Whoever can write to the folder can run code in your processes. So a new folder has mode 0700,
    and an existing one is refused if it or a file in it belongs to another user or is writable by
    the group or others, if it is a symbolic link of another user, or if it lies below a folder
    that anyone can write to (one with the sticky bit, such as /tmp, is fine). Those who own the
    folders above it, and their groups, are trusted. On Windows none of this is checked.

    JAX loads a program only if its code, the versions of JAX and XLA, the flags, the kind and
    number of devices, a CPU's instruction set and the folder's path are the same. So machines of
    different kinds can share a home folder, and a folder that was moved is of no use. With some
    Intel CPUs, XLA is reported to refuse every program it loads and to compile it again, with a
    line on standard error (https://github.com/jax-ml/jax/issues/38445).

    The main programs of the solvers are also kept whole (files `*.program`, with what is to know
    before in `*.note`), for a single device and parts of this library only: a later process loads
    them without tracing anything. A change of the library's files, of JAX's settings, or of the
    machine makes new ones.

    Nothing is ever deleted: remove the folder to free the space (on a CPU about 0.7 MB for each
    solver and class of sizes), or set `jax_compilation_cache_max_size`, which is for JAX's own.

    Args:
      folder: created if need be. None for the folder that JAX is set to already, by
        JAX_COMPILATION_CACHE_DIR for example, which is checked in the same way; where it is set
        to none, for `jaxopt_search/programs` in XDG_CACHE_HOME or `~/.cache`.

    Returns:
      The folder in use, absolute and without symbolic links.

    Raises:
      PermissionError: others can write to the folder, or you cannot.
      OSError: it is not a folder, or cannot be created; there is no home folder.
      TypeError: `folder` is not a path.
      ValueError: it is empty or not on this machine, as `gs://...`.

    Example:
      >>> import tempfile
      >>> import jax
      >>> import jaxopt_search as js
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     used = js.enable_compilation_cache(folder)
      ...     used.samefile(folder), jax.config.jax_compilation_cache_dir == str(used)
      (True, True)
      >>> jax.config.update("jax_compilation_cache_dir", None)
    """
    global program_folder
    before: str | None = getattr(jax.config, "jax_compilation_cache_dir", None)
    used = str(files.private_folder(folder_to_use(folder)))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    if used != before:
        from jax.experimental.compilation_cache import compilation_cache

        jax.config.update("jax_compilation_cache_dir", used)
        compilation_cache.reset_cache()  # JAX stays with the folder it has compiled with
    program_folder = pathlib.Path(used)
    return program_folder


def folder_to_use(folder: str | os.PathLike[str] | None = None) -> pathlib.Path:
    """Returns the folder that `enable_compilation_cache` would use; nothing is created.

    Raises:
      ValueError, TypeError, FileNotFoundError: as there.
    """
    named = getattr(jax.config, "jax_compilation_cache_dir", None) or None
    named = named if folder is None else folder
    if named is None:
        return files.cache_folder() / "programs"
    what = "jax_compilation_cache_dir" if folder is None else "folder"
    if not isinstance(named, str | os.PathLike):
        raise TypeError(f"{what} is {named!r}, expected a path or None")
    if not os.fspath(named) or "://" in str(named):
        raise ValueError(f"{what} is {str(named)!r}, expected a folder on this machine")
    return pathlib.Path(named)
