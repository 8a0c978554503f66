"""Keeping compiled programs for later processes: the only code that changes JAX's settings."""

import os
import pathlib

import jax

from jaxopt_search import files
from jaxopt_search.engine import kept_programs


def enable_compilation_cache(folder: str | os.PathLike | None = None) -> pathlib.Path:
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
    before: str | None = getattr(jax.config, "jax_compilation_cache_dir", None)
    used = str(files.private_folder(folder_to_use(folder)))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    if used != before:
        from jax.experimental.compilation_cache import compilation_cache

        jax.config.update("jax_compilation_cache_dir", used)
        compilation_cache.reset_cache()  # JAX stays with the folder it has compiled with
    kept_programs.folder = pathlib.Path(used)
    return kept_programs.folder


def folder_to_use(folder: str | os.PathLike | None = None) -> pathlib.Path:
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
