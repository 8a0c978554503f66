"""What a search needs before it starts: other processes, cores, and the cache."""

import argparse
import contextlib
import os
import socket
import sys
import time
from collections.abc import Iterator

from jaxopt_search.checks import num_cores
from jaxopt_search.command.main import say

_BETWEEN_TRIES = 0.2  # seconds
_CPU_DEVICES = "--xla_force_host_platform_device_count"


@contextlib.contextmanager
def agreed(args: argparse.Namespace) -> Iterator[bool]:
    """Joins several processes, which all refuse a call that the block refuses in one of them.

    Yields whether this process is the one that shows and writes the result.
    """
    if args.coordinator is None:
        for name in ("processes", "process"):
            if (value := getattr(args, name)) is not None:
                raise ValueError(f"--{name} is {value} without --coordinator, expected both")
        yield True
        return
    use_cpu_cores()
    _join(args)
    import jax

    from jaxopt_search.engine.devices import Team

    team = Team(tuple(jax.devices()))
    with team.same_call():
        yield team.is_lead


def _join(args: argparse.Namespace) -> None:
    """Makes this process one of several that share their devices.

    Raises:
      ValueError: if it is not said which.
      OSError: if the first one does not answer, or its port is in use.
    """
    import jax

    places = {}
    if args.coordinator != "auto":
        host, _, port = args.coordinator.rpartition(":")
        host = host.strip("[]")
        if not host or not port.isdecimal():
            raise ValueError(f"--coordinator is {args.coordinator!r}, expected HOST:PORT or auto")
        places["coordinator_address"] = args.coordinator
        is_local = host in ("127.0.0.1", "localhost", "::1")
        if is_local:
            places["coordinator_bind_address"] = args.coordinator  # nobody else can connect
        if args.process:
            _wait_for(host, int(port), args.wait)
        elif args.process == 0:
            _check_port(host if is_local else "", int(port))
    # Standard output is left to Python: other writers, such as gloo, go to standard error.
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
        own = os.dup(1)
        os.dup2(2, 1)
        sys.stdout = os.fdopen(own, "w", encoding=sys.stdout.encoding)
    jax.distributed.initialize(
        **places,
        num_processes=args.processes,
        process_id=args.process,
        initialization_timeout=args.wait,
        heartbeat_timeout_seconds=args.wait,
        shutdown_timeout_seconds=args.wait,
    )


def _check_port(host: str, port: int) -> None:
    """Refuses a port that is in use, which JAX would share or end this process for."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((host, port))
        except OSError as error:
            raise OSError(f"--coordinator cannot listen at port {port}: {error}") from error


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


def use_cpu_cores() -> None:
    """Makes JAX's CPU platform show a device per core that this process may use.

    To be called before JAX starts: XLA reads the flag only then. A number that the user has set
    in XLA_FLAGS is kept. GPUs are not affected.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    if _CPU_DEVICES not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {_CPU_DEVICES}={num_cores()}".strip()


def use_machine(args: argparse.Namespace) -> None:
    """Takes all cores and, unless unwanted, the compilation cache; says so if there can be none.

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
