"""What a search needs before it starts: paths that can be written, cores, the cache, options."""

import argparse
import contextlib
import os
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

from jaxopt_search.command import files
from jaxopt_search.command.endings import say
from jaxopt_search.engine import processes
from jaxopt_search.results import plotting

_BETWEEN_TRIES = 0.2  # seconds
_CPU_DEVICES = "--xla_force_host_platform_device_count"


def check_paths(args: argparse.Namespace, *known: tuple[str, ...]) -> None:
    """Refuses `--out` and `--plot` before a search if they could not be written after it.

    Of several processes, the lead alone looks at the places, since it alone writes there.

    Args:
      known: suffixes for `--out`.
    """
    if args.out is not None:
        suffixes = tuple(dict.fromkeys(suffix for some in known for suffix in some))
        files.check_suffix("--out", args.out, suffixes)
    if is_lead(args):
        if args.out is not None:
            files.check_place("--out", args.out)
        if args.plot is not None:
            files.check_suffix("--plot", args.plot, files.PICTURES)
            files.check_place("--plot", args.plot)
            plotting.detached_axes()  # or it says what to install


@contextlib.contextmanager
def agreed(args: argparse.Namespace) -> Iterator[None]:
    """Has what the block refuses in one of several processes be refused in all; joins them."""
    if not _is_shared(args):
        for name in ("processes", "process"):
            if (value := getattr(args, name, None)) is not None:
                raise ValueError(f"--{name} is {value} without --coordinator, expected both")
        yield
        return
    use_cpu_cores()
    _join(args)
    import jax

    from jaxopt_search.engine.processes import Team

    with Team(tuple(jax.devices())).same_call():
        yield


def is_lead(args: argparse.Namespace) -> bool:
    """Returns whether this process is the one that tells and writes what was found."""
    if not _is_shared(args):
        return True

    return processes.is_first()


def _is_shared(args: argparse.Namespace) -> bool:
    return getattr(args, "coordinator", None) is not None


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
        "checkpoint": args.checkpoint,
        "checkpoint_every": args.checkpoint_every,
        "resume": args.resume,
    }


def _join(args: argparse.Namespace) -> None:
    """Makes this process one of several that share their devices.

    Raises:
      ValueError: if it is not said which.
      OSError: if the first one does not answer.
    """
    import jax

    places = {} if args.coordinator == "auto" else {"coordinator_address": args.coordinator}
    if places:
        host, port = _host_and_port(args.coordinator)
        if host in ("127.0.0.1", "localhost", "::1"):
            places["coordinator_bind_address"] = args.coordinator  # nobody else can connect
        if args.process:
            _wait_for(host, port, args.wait)
        elif args.process == 0:
            _check_port(places.get("coordinator_bind_address") and host, port)
    _keep_output_apart()
    jax.distributed.initialize(
        **places,
        num_processes=args.processes,
        process_id=args.process,
        initialization_timeout=args.wait,
        heartbeat_timeout_seconds=args.wait,
        shutdown_timeout_seconds=args.wait,
    )


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise ValueError(f"--coordinator is {address!r}, expected HOST:PORT or auto")
    return host.strip("[]"), int(port)


def _check_port(host: str | None, port: int) -> None:
    """Refuses a port that is in use, which JAX would share or end this process for."""
    family = socket.AF_INET6 if host and ":" in host else socket.AF_INET
    with socket.socket(family) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((host or "", port))
        except OSError as error:
            raise OSError(f"--coordinator cannot listen at port {port}: {error}") from error


def _keep_output_apart() -> None:
    """Leaves standard output to Python: what else writes there, as gloo does, is no answer."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
        own = os.dup(1)
        os.dup2(2, 1)
        sys.stdout = os.fdopen(own, "w", encoding=sys.stdout.encoding)


def _wait_for(host: str, port: int, seconds: float) -> None:
    """Waits for a server; JAX itself would end this process with a trace of its stack."""
    end = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection((host, port), timeout=max(end - time.monotonic(), 0.1)).close()
            return
        except OSError as error:
            if time.monotonic() > end:
                raise TimeoutError(
                    f"no coordinator answers at {host}:{port} within {seconds} seconds: {error}"
                ) from error
        time.sleep(_BETWEEN_TRIES)


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


def use_machine(args: argparse.Namespace) -> None:
    """Takes all cores and, unless unwanted, the compilation cache.

    Says so if there can be no cache.

    Raises:
      ValueError: if there are no such devices.
    """
    from jaxopt_search.engine.compile import enable_compilation_cache
    from jaxopt_search.engine.devices import find_devices

    use_cpu_cores()
    if not args.no_cache:
        try:
            enable_compilation_cache()
        except (OSError, ValueError) as error:
            say(f"compiled programs are not kept: {error}")
    find_devices(args.devices)
