"""What a measured process does: it makes one case, and prints what that took.

Run as a module with the name of a case; the last line of standard output is the answer.
"""

import json
import pathlib
import sys
import time
from typing import Any

import jax

import jaxopt_search as js
from experiments.memory.cases import CASES, EVERY, Parts
from jaxopt_search.driver import environment
from jaxopt_search.engine import memory

_OWN = pathlib.Path("/proc/self")
_CHUNK, _NUM_CHUNKS = 2 * EVERY, 3


def measured(name: str, num_searches: int | None = None) -> dict[str, Any]:
    """Returns what a case takes, estimated and measured, in bytes."""
    build, sizes = CASES[name]
    device = jax.local_devices()[0]
    is_cpu = device.platform == "cpu"
    num_searches = num_searches or sizes[0 if is_cpu else 1]
    parts = build()
    if is_cpu:
        estimate = _estimate(parts, num_searches)
        before = _restart_peak()
    else:
        estimate, before = None, 0
    began = time.perf_counter()
    failed = ""
    try:
        result = _run(parts, num_searches)
        implementation = result.env["implementation"]
    except MemoryError as error:
        failed, implementation = str(error), ""
    seconds = time.perf_counter() - began
    peak = _status("VmHWM") if is_cpu else (device.memory_stats() or {})["peak_bytes_in_use"]
    began = time.perf_counter()
    estimate = estimate or _estimate(parts, num_searches)
    return {
        "num_searches": num_searches,
        "measured": peak - before,
        "estimate": estimate.total,
        "parts": estimate._asdict(),
        "instance_before": memory.num_bytes(parts),
        "seconds": seconds,
        "estimate_seconds": time.perf_counter() - began,
        "implementation": implementation,
        "failed": failed,
        "free": memory.free_bytes(device),
        "env": environment.of((device,)),
    }


def _estimate(parts: Parts, num_searches: int) -> memory.MemoryEstimate:
    problem, search, exchange = parts
    return js.memory_estimate(problem, search, num_searches, exchange=exchange)


def _run(parts: Parts, num_searches: int) -> js.Result:
    problem, search, exchange = parts
    return js.solve(
        problem,
        search,
        0,
        num_searches=num_searches,
        exchange=exchange,
        max_steps=_CHUNK * _NUM_CHUNKS,
        chunk_steps=_CHUNK,
    )


def _restart_peak() -> int:
    """Lets the peak of the resident memory start again, and returns what is resident now."""
    (_OWN / "clear_refs").write_text("5")
    return _status("VmRSS")


def _status(name: str) -> int:
    for line in (_OWN / "status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise ValueError(f"the kernel does not tell {name}")


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None)))
