"""The way from a call to its first chunk does not grow."""

import pathlib
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).with_name("frames.py")


@pytest.mark.slow
def test_it_is_not_far_from_a_call_to_a_priced_move():
    """Modules and functions of the library that are entered, and frames: see `frames`."""
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=True)
    numbers = [int(part.split()[0]) for part in done.stdout.splitlines()[-1].split(", ")]
    modules, functions, frames = numbers
    assert (modules <= 57, functions <= 458, 10 < frames <= 23) == (True, True, True), numbers
