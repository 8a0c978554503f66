"""Processes that make calls together; `test_several_processes` starts them.

    python several_processes.py PORT NUM_PROCESSES PROCESS NUM_DEVICES FOLDER CASE...

prints a line of JSON for each case.
"""

import json
import pathlib
import sys
import time

import jax
import processes_alike as alike
import processes_differ as differ

CASES = vars(alike) | vars(differ)


def main():
    port, num, process, num_devices, folder, *names = sys.argv[1:]
    jax.distributed.initialize(
        f"127.0.0.1:{port}",
        int(num),
        int(process),
        coordinator_bind_address=f"127.0.0.1:{port}",
        initialization_timeout=300,
        heartbeat_timeout_seconds=60,
        shutdown_timeout_seconds=30,
    )
    assert len(jax.local_devices()) == int(num_devices)
    for name in names:
        began = time.perf_counter()
        found = CASES[name](pathlib.Path(folder))
        took = time.perf_counter() - began
        print(json.dumps([name, found]), flush=True)
        print(f"process {process}: {name} took {took:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
