"""What a search needs before it starts: paths that can be written, cores, the cache, options."""

import argparse
import os
import sys
from typing import Any

from jaxopt_search.command import files, pictures
from jaxopt_search.command.endings import say

_CPU_DEVICES = "--xla_force_host_platform_device_count"


def check_paths(args: argparse.Namespace, *known: tuple[str, ...]) -> None:
    """Refuses `--out` and `--plot` before a search if they could not be written after it.

    Args:
      known: suffixes for `--out`.
    """
    if args.out is not None:
        suffixes = tuple(dict.fromkeys(suffix for some in known for suffix in some))
        files.check_suffix("--out", args.out, suffixes)
        files.check_place("--out", args.out)
    pictures.check(args.plot)


def options_of(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the options that all solvers share."""
    is_watched = sys.stderr is not None and sys.stderr.isatty()
    return {
        "key": args.seed,
        "max_seconds": args.seconds,
        "max_steps": args.steps,
        "num_searches": args.searches,
        "devices": args.devices,
        "show_progress": args.progress or (is_watched and not args.quiet),
    }


def files_of(args: argparse.Namespace) -> dict[str, Any]:
    """Returns what is said of checkpoints."""
    return {name: getattr(args, name) for name in ("checkpoint", "checkpoint_every", "resume")}


def use_cpu_cores(num: int | None = None) -> None:
    """Makes JAX's CPU platform show `num` devices, so that searches spread over the cores.

    To be called before JAX starts: XLA reads the flag only then. A number that the user has set
    in XLA_FLAGS is kept. GPUs are not affected.

    Args:
      num: devices; None for one per core that this process may use.
    """
    from jaxopt_search.problems.queens.attacks.host import num_cores

    flags = os.environ.get("XLA_FLAGS", "")
    if _CPU_DEVICES in flags:
        return
    os.environ["XLA_FLAGS"] = f"{flags} {_CPU_DEVICES}={num or num_cores()}".strip()


def use_machine(no_cache: bool) -> None:
    """Takes all cores and, unless unwanted, the compilation cache; says so if there can be none."""
    from jaxopt_search.driver.compilation_cache import enable_compilation_cache

    use_cpu_cores()
    if no_cache:
        return
    try:
        enable_compilation_cache()
    except (OSError, ValueError) as error:
        say(f"compiled programs are not kept: {error}")
