"""Files that are no checkpoints, or not any more: refused in one line, whatever is in them."""

import io
import json
import zipfile

import chex
import jax
import numpy as np
import pytest
from cases import matrix_tsp

import jaxopt_search as js
from jaxopt_search.driver import checkpoints
from jaxopt_search.engine import starting

PROBLEM = matrix_tsp(14)
SEARCH = js.simulated_annealing(js.Relocate(), 300.0)


def solve(max_steps, **options):
    return js.solve(PROBLEM, SEARCH, 3, num_searches=5, max_steps=max_steps, **options)


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def written(path, found):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in found.items():
            archive.writestr(name, data)


def npy(array, allow_pickle=False):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=allow_pickle)
    return file.getvalue()


def with_header(found, num_searches=None, **changes):
    file = io.BytesIO(found["header.npy"])
    header = json.loads(np.load(file).tobytes()) | changes
    if num_searches is not None:
        header["notes"]["num_searches"] = num_searches
    return found | {"header.npy": npy(np.frombuffer(json.dumps(header).encode(), np.uint8))}


FORGERIES = {
    "a part is missing": lambda found: {k: v for k, v in found.items() if k != "best.npy"},
    "objects": lambda found: found | {"best.npy": npy(np.array([print]), allow_pickle=True)},
    "floats": lambda found: found | {"best.npy": npy(np.arange(14.0))},
    "too long": lambda found: found | {"best.npy": npy(np.arange(10**6, dtype=np.int32))},
    "a schema to come": lambda found: with_header(found, schema=2),
    "another format": lambda found: with_header(found, format="a result"),
    "searches without end": lambda found: with_header(found, num_searches=10**15),
    "searches below 0": lambda found: with_header(found, num_searches=-1),
    "no json": lambda found: found | {"header.npy": npy(np.zeros(9, np.uint8))},
    "four terabytes": lambda found: (
        found | {"best.npy": found["best.npy"].replace(b"(14,), }    ", b"(10000000,), }"[:13])}
    ),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_forged_files_are_refused(forgery, tmp_path):
    """In one line that names the file."""
    path = tmp_path / "run.npz"
    solve(5, checkpoint=path)
    forged = FORGERIES[forgery](members(path))
    assert forged != members(path)
    written(path, forged)
    with pytest.raises(js.CheckpointError, match=r"run\.npz") as caught:
        solve(9, resume=path)
    assert "\n" not in str(caught.value)


def test_damaged_files_are_refused(tmp_path):
    """Cut anywhere, or with a bit that flipped, unless that changes nothing that counts."""
    path, damaged = tmp_path / "run.npz", tmp_path / "damaged.npz"
    solve(5, checkpoint=path)
    good, generator = path.read_bytes(), np.random.default_rng()
    identity = checkpoints.identity_of(PROBLEM, SEARCH, None, 100)

    def shapes_of(notes):
        state = starting.shape(PROBLEM, SEARCH, notes["num_searches"])
        return state, jax.ShapeDtypeStruct((14,), np.int32)

    expected = checkpoints.read(path, identity, shapes_of)
    for size in generator.integers(0, len(good), 20):
        damaged.write_bytes(good[:size])
        with pytest.raises(js.CheckpointError, match="is no whole checkpoint"):
            checkpoints.read(damaged, identity, shapes_of)
    num_refused = 0
    for place in generator.integers(0, len(good), 300):
        data = bytearray(good)
        data[place] ^= 1 << generator.integers(8)
        damaged.write_bytes(data)
        try:
            found = checkpoints.read(damaged, identity, shapes_of)
        except js.CheckpointError:
            num_refused += 1
        else:
            chex.assert_trees_all_equal(expected, found)
    assert num_refused > 100
    damaged.write_bytes(b"no archive at all")
    with pytest.raises(js.CheckpointError, match="is no whole checkpoint"):
        solve(9, resume=damaged)
