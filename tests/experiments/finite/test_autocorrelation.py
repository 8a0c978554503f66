"""Low autocorrelation: energies against NumPy's, and a small run."""

import jax.numpy as jnp
import numpy as np
import pytest

from experiments import common
from experiments.finite import autocorrelation as script


@pytest.mark.parametrize("n", [2, 31, 32, 33, 65])
def test_energies_are_those_of_the_definition(n):
    """With bits in one word, in a whole one, and in several."""
    for bits in np.random.default_rng(n).integers(0, 2, (5, n), np.int32):
        signs = 1 - 2 * bits
        sidelobes = np.correlate(signs, signs, "full")[n:]
        assert script.low_autocorrelation(n).cost(jnp.asarray(bits)) == (sidelobes**2).sum()


def test_a_small_run_finds_the_least_energy(tmp_path, capsys):
    """Of 13 signs it is 6, which the script does not know; of 27 it ends there."""
    out = str(tmp_path / "runs.jsonl")
    flags = ["--signs", "13,27", "--seconds", "1", "--seeds", "2", "--devices", "1", "--out", out]
    assert script.main(flags) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[-2:]]
    assert rows[0][:6] == ["13", "-", "1", "6", "14.08", "-"]
    assert rows[1][:6] == ["27", "37", "1", "37", "9.85", "2/2"]
    assert [run["energy"] for run in common.read(out)] == [6, 6, 37, 37]
