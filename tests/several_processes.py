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

_ALL = [
    alike.first_finisher,
    alike.first_finisher_in_parts,
    alike.queens,
    alike.queens_in_parts,
    alike.several_instances,
    alike.several_instances_in_parts,
    alike.successors,
    alike.rescued,
    alike.clocked,
    differ.stopped_by_one,
    differ.interrupted_in_one,
    differ.terminated_in_one,
    differ.terminated_late_in_one,
    differ.failed_in_one,
    differ.refused_in_one,
    differ.other_calls_in_one,
    differ.without_memory_in_one,
    differ.places_in_one,
    differ.some_devices,
    differ.own_devices,
    differ.lost,
]
CASES = {case.__name__: case for case in _ALL}


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
