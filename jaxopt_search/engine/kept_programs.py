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

import collections
import contextlib
import functools
import os
import pathlib
import pickle
import threading
import zlib
from collections.abc import Callable, Generator, Mapping
from typing import Any, NamedTuple, TypeAlias, TypeVar

import jax

from jaxopt_search.engine import fingerprints
from jaxopt_search.engine.tracing import default_device, is_traced
from jaxopt_search.files import whole

Pause: TypeAlias = Callable[[], object]
"""What is called between lowering and compiling a program."""
Job: TypeAlias = Callable[[Pause], object]
"""What makes a program ready, with a pause if it has to be compiled."""
T = TypeVar("T")

_OPTIONS = {"cpu": "xla_backend_optimization_level", "gpu": "xla_gpu_autotune_level"}
_LEVEL_ON_CPU = 2  # 3, which is XLA's, takes longer to compile and makes nothing faster
_MOST_CALLS = 16  # of one function by arguments of other kinds, whose programs stay in memory
_LEVEL_ON_GPU = 0  # above it, XLA times variants of its kernels, which it compiles for that

folder: pathlib.Path | None = None
"""Where programs are kept; None for nowhere. `driver.compilation_cache` sets it."""

_loaded: dict[str, Callable[..., Any]] = {}
_noted: dict[str, Any] = {}
_asked: dict[str, set[Any]] = collections.defaultdict(set)

interpreter = threading.RLock()
"""Held by threads at long work in Python, of which only one goes on at a time anyway.

So those that came first can soon leave it, to compile or to compute.
"""


class _Turns:
    """Has calls of several threads run one after the other; those of one thread need not wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: tuple[int, Any] = 0, None

    def call(self, program: Callable[..., Any], *arguments: Any) -> Any:
        """Returns what a program returns, which others wait for."""
        own = threading.get_ident()
        with self._lock:
            thread, result = self._last
            if thread != own:
                with contextlib.suppress(Exception):  # what has failed is over
                    jax.block_until_ready(result)
            made = program(*arguments)
            least = min(jax.tree.leaves(made), key=lambda leaf: leaf.size)  # the others are freed
            self._last = own, least
        return made


_turns = _Turns()


class Kept:
    """A compiled function whose programs are kept, if there is a folder for them.

    Static arguments are those given by name, and only those.

    Args:
      jitted: the function as `jax.jit` or `jax.pmap` returns it.
      on_platforms: the same function for platforms on which it is compiled otherwise, by name.
      in_folder: whether programs may be kept there; those of `jax.pmap` may not.
      in_turn: whether programs of several threads take turns, as those of several devices must: two
        whose parts wait for one another hold threads, or streams, for which the other one waits.
    """

    def __init__(
        self,
        jitted: Any,
        on_platforms: Mapping[str, Any] | None = None,
        in_folder: bool = True,
        in_turn: bool = False,
    ):
        functools.update_wrapper(self, jitted)  # first: it brings attributes, if of a `Kept`
        self.jitted, self._in_folder, self._in_turn = jitted, in_folder, in_turn
        self._on_platforms = on_platforms or {}
        self._prepared: set[Any] = set()
        self._awaited: dict[Any, threading.Thread] = {}
        self._temporaries: dict[Any, int] = {}

    def __call__(self, *arguments: Any, **static: Any) -> Any:
        return self.ready(*arguments, **static)(*arguments)

    def ready(self, *arguments: Any, **static: Any) -> Callable[..., Any]:
        """Returns what to call with arguments of these types and shapes, at less cost each time."""
        jitted = self._jitted_for(arguments)
        key = self._key(jitted, arguments, static)
        if self._in_turn:
            return functools.partial(_turns.call, jitted)
        if folder is None or key is None:
            return functools.partial(jitted, **static) if static else jitted
        return _found(folder, key, jitted, arguments, static)

    def _jitted_for(self, arguments: Any) -> Any:
        """Returns the function of `jax.jit` that is called, outside of others, where it runs."""
        leaves = jax.tree.leaves(arguments)
        if not self._on_platforms or is_traced(leaves):
            return self.jitted
        devices = fingerprints.devices_of(leaves) or [default_device()]
        platform = devices[0].platform
        if _is_told_how_to_compile(platform):
            return self.jitted
        return self._on_platforms.get(platform, self.jitted)

    def to_compile(self, *arguments: Any, **static: Any) -> list[Job]:
        """Returns what makes the program of a call ready: nothing if that was asked for before.

        Args:
          arguments: arrays, or their shapes (`jax.ShapeDtypeStruct`).
        """
        call = _call(arguments, static)
        if self._is_forgotten():
            self._prepared.clear()
        if len(self._prepared) >= _MOST_CALLS and call not in self._prepared:
            self._forget()
        if call in self._prepared:
            return []
        self._prepared.add(call)
        return [functools.partial(self._made_ready, call, arguments, static)]

    def _forget(self) -> None:
        """Frees all programs: a new function as a static part in each call would add one more."""
        self._prepared.clear()
        self._temporaries.clear()
        for fn in (self.jitted, *self._on_platforms.values()):
            getattr(fn, "clear_cache", bool)()  # of `jax.pmap`, JAX keeps all

    def _made_ready(self, call: Any, arguments: Any, static: dict[str, Any], pause: Pause) -> None:
        self._temporaries[call] = _temporaries(self._compiled(arguments, static, pause))

    def await_from(self, thread: threading.Thread, *arguments: Any, **static: Any) -> None:
        """Takes note that a thread makes the program of a call ready."""
        self._awaited[_call(arguments, static)] = thread

    def is_awaited(self, *arguments: Any, **static: Any) -> bool:
        """Returns whether a thread is still at the program of a call."""
        self._awaited = {call: by for call, by in self._awaited.items() if by.is_alive()}
        return bool(self._awaited) and _call(arguments, static) in self._awaited

    def _is_forgotten(self) -> bool:
        """Returns whether `jax.clear_caches` has left nothing, as far as JAX tells."""
        every = (self.jitted, *self._on_platforms.values())
        return not _loaded and not any(getattr(fn, "_cache_size", lambda: 1)() for fn in every)

    def compiled(self, *arguments: Any, **static: Any) -> Any:
        """Returns the program of a call, a `jax.stages.Compiled`.

        Args:
          arguments: arrays, or their shapes (`jax.ShapeDtypeStruct`).
        """
        return self._compiled(arguments, static, bool)

    def _compiled(self, arguments: Any, static: dict[str, Any], once_lowered: Pause) -> Any:
        jitted = self._jitted_for(arguments)
        key = self._key(jitted, arguments, static)
        if folder is None or key is None:
            # JAX remembers it for the call.
            return _lowered(jitted, arguments, static, once_lowered).compile()
        return _found(folder, key, jitted, arguments, static, once_lowered)

    def temporaries(self, *arguments: Any, **static: Any) -> int:
        """Returns the bytes that the program of a call needs besides arguments and results.

        It is compiled, unless that was done before.

        Args:
          arguments: arrays, or their shapes (`jax.ShapeDtypeStruct`).
        """
        call = _call(arguments, static)
        if call not in self._temporaries:
            self._temporaries[call] = _temporaries(self.compiled(*arguments, **static))
        return self._temporaries[call]

    def _key(self, jitted: Any, arguments: Any, static: dict[str, Any]) -> str | None:
        is_kept = folder is not None and self._in_folder
        return fingerprints.of_call(jitted, arguments, static) if is_kept else None


def kept(
    fn: Callable[..., Any], *, static_argnames: Any = (), cpu_level: int = _LEVEL_ON_CPU
) -> Kept:
    """Returns a function compiled by `jax.jit`, whose programs are kept.

    Called by itself on a GPU, it is compiled without timing variants, unless the user tells XLA to.

    Args:
      static_argnames: as in `jax.jit`.
      cpu_level: how much LLVM optimizes the function where it is called by itself on a CPU, 0 to 3,
        unless the user tells XLA how much. Results are the same.
    """
    jit = functools.partial(jax.jit, fn, static_argnames=static_argnames)
    levels = {"cpu": cpu_level, "gpu": _LEVEL_ON_GPU}
    options = {platform: {_OPTIONS[platform]: level} for platform, level in levels.items()}
    return Kept(jit(), {platform: jit(compiler_options=own) for platform, own in options.items()})


def _is_told_how_to_compile(platform: str) -> bool:
    """Returns whether the user has said how to compile for a platform, or not to compile."""
    option = _OPTIONS.get(platform)
    is_flag = option is not None and option in os.environ.get("XLA_FLAGS", "")
    config: Any = jax.config  # no attribute of it tells whether it is to optimize
    is_told_by_jax = config.jax_disable_jit or config.read("jax_disable_most_optimizations")
    return is_flag or is_told_by_jax


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

    def to_compile(self) -> list[Job]:
        """Returns what makes the program ready, as `Kept.to_compile`."""
        return self.fn.to_compile(*self.arguments, **self.static)

    def await_from(self, thread: threading.Thread) -> None:
        """Takes note that a thread makes the program ready."""
        self.fn.await_from(thread, *self.arguments, **self.static)

    def is_awaited(self) -> bool:
        """Returns whether a thread is still at it."""
        return self.fn.is_awaited(*self.arguments, **self.static)

    def ready(self) -> Callable[..., Any]:
        """Returns what to call with such arguments, less the static ones."""
        return self.fn.ready(*self.arguments, **self.static)

    def temporaries(self) -> int:
        """Returns the bytes that the program needs on each device besides arguments and results.

        It is compiled, unless that was done before.
        """
        return self.fn.temporaries(*self.arguments, **self.static)


def _call(arguments: Any, static: dict[str, Any]) -> tuple[Any, ...]:
    """Returns what tells the program of a call from others of its function."""
    leaves, structure = jax.tree.flatten(arguments)
    where = frozenset(fingerprints.devices_of(leaves))
    kinds = tuple(map(fingerprints.kind_of, leaves))
    return structure, kinds, tuple(sorted(static.items())), where


def _temporaries(program: Any) -> int:
    """Returns the bytes that a program needs besides arguments and results: it takes a while."""
    found = program.memory_analysis()
    return 0 if found is None else int(found.temp_size_in_bytes)


def noted(what: str, structure: Any, kinds: tuple[Any, ...], find: Callable[[], T]) -> T:
    """Returns what `find` returns, which depends on a structure of pytrees and its leaves.

    It is kept, like a program.

    Args:
      what: tells it from other notes.
      kinds: of the leaves.
    """
    name = None if folder is None else fingerprints.of_parts(what, structure, kinds)
    if folder is None or name is None:
        return find()
    if name not in _noted:
        path = folder / f"{name}.note"
        try:
            _noted[name] = pickle.loads(path.read_bytes())
        except Exception:  # not there, or torn
            _noted[name] = found = find()
            with contextlib.suppress(Exception):  # a full disk, or what cannot be pickled
                data = pickle.dumps(found)
                with whole(path) as file:
                    file.write(data)
    return _noted[name]


def noted_shapes(what: str, jitted: Any, *arguments: Any) -> Any:
    """Returns the shapes of what a function of `jax.jit` returns, kept for arguments alike.

    Args:
      what: as in `noted`.
      arguments: arrays, or their shapes.
    """
    leaves, structure = jax.tree.flatten(arguments)
    kinds = tuple(map(fingerprints.kind_of, leaves))
    asked = _asked[what]
    if len(asked) >= _MOST_CALLS and structure not in asked:
        asked.clear()
        jitted.clear_cache()
    asked.add(structure)
    return noted(what, structure, kinds, functools.partial(jitted.eval_shape, *arguments))


def _load(path: pathlib.Path, arguments: Any) -> Callable[..., Any] | None:
    """Returns the program in a file; None if there is none that this process can run."""
    from jax.experimental import serialize_executable

    try:
        program, result = pickle.loads(zlib.decompress(path.read_bytes()))
        structures = jax.tree.structure((arguments, {})), jax.tree.structure(result)
        return serialize_executable.deserialize_and_load(
            program, *structures, execution_devices=fingerprints.devices_of(arguments)
        )
    except Exception:  # not there, torn, or of another kind: it is compiled again
        return None


def _found(
    where: pathlib.Path,
    key: str,
    jitted: Any,
    arguments: Any,
    static: dict[str, Any],
    once_lowered: Pause = bool,
) -> Callable[..., Any]:
    """Returns the program of a call, which is loaded or compiled."""
    if key not in _loaded:
        path = where / f"{key}.program"
        found = _load(path, arguments)
        _loaded[key] = found or _compile(path, _lowered(jitted, arguments, static, once_lowered))
    return _loaded[key]


def _lowered(jitted: Any, arguments: Any, static: dict[str, Any], once_lowered: Pause) -> Any:
    """Returns what is left to compile, after the pause."""
    with interpreter:
        lowered = jitted.lower(*arguments, **static)
    once_lowered()
    return lowered


def _compile(path: pathlib.Path, lowered: Any) -> Callable[..., Any]:
    """Returns the program of a call, which it keeps if that is possible."""
    from jax.experimental import serialize_executable

    with _hits_noted() as hits:
        compiled = lowered.compile()
    if hits:  # a program from JAX's own cache cannot be written once more
        return compiled
    with contextlib.suppress(Exception):  # a full disk, or a device whose programs stay there
        program, _, result = serialize_executable.serialize(compiled)
        skeleton = result.unflatten(range(result.num_leaves))
        data = zlib.compress(pickle.dumps((program, skeleton)), level=1)
        with whole(path) as file:
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
