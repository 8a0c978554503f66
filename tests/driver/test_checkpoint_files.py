"""Files that are no checkpoints, or not any more: refused in one line, whatever is in them."""

import dataclasses
import functools
import io
import json
import os
import stat
import zipfile
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import matrix_tsp

import jaxopt_search as js
from jaxopt_search.driver import checkpoints
from jaxopt_search.driver.run import SavedRun
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


def with_header(found, **changes):
    """Changes the header; None takes a value out."""
    header = json.loads(np.load(io.BytesIO(found["header.npy"])).tobytes()) | changes
    header = {name: value for name, value in header.items() if value is not None}
    return found | {"header.npy": npy(np.frombuffer(json.dumps(header).encode(), np.uint8))}


def with_notes(found, **changes):
    notes = json.loads(np.load(io.BytesIO(found["header.npy"])).tobytes())["notes"] | changes
    return with_header(found, notes={k: v for k, v in notes.items() if v is not None})


def with_huge_best(found):
    """The array says that it has more than the file."""
    huge = found["best.npy"].replace(b"(14,), }    ", b"(10000000,), }"[:13])
    return found | {"best.npy": huge}


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """What is in a file, by the names of its members."""
    path = tmp_path_factory.mktemp("good") / "run.npz"
    return solve(5, checkpoint=path), members(path)


FORGERIES = {
    "a part is missing": lambda found: {k: v for k, v in found.items() if k != "best.npy"},
    "objects": lambda found: found | {"best.npy": npy(np.array([print]), allow_pickle=True)},
    "too long": lambda found: found | {"best.npy": npy(np.arange(10**6, dtype=np.int32))},
    "a schema to come": lambda found: with_header(found, schema=2),
    "searches without end": lambda found: with_notes(found, num_searches=10**15),
    "a note is missing": lambda found: with_notes(found, seconds=None),
    "seconds that are no number": lambda found: with_notes(found, seconds=float("nan")),
    "a lower cost": lambda found: with_notes(found, fun=0),
    "no permutation": lambda found: with_notes(
        found | {"best.npy": npy(np.zeros(14, np.int32))}, fun=0
    ),
    "a history of nothing": lambda found: with_notes(found, history=[]),
    "no json": lambda found: found | {"header.npy": npy(np.zeros(9, np.uint8))},
    "four terabytes": with_huge_best,
}


OF_BEST = {
    "objects": FORGERIES["objects"],
    "a schema to come": FORGERIES["a schema to come"],
    "no json": FORGERIES["no json"],
    "no cost": lambda found: with_header(found, notes={}),
    "a text as cost": lambda found: with_header(found, notes={"fun": "5"}),
    "four terabytes": with_huge_best,
}


@pytest.mark.parametrize("forgery", OF_BEST)
def test_forged_files_have_no_best(forgery, good, tmp_path):
    """As nothing is known of its shape, the size of the file is the limit."""
    path, (first, found) = tmp_path / "run.npz", good
    written(path, found)
    x, fun = js.load_best(path)
    np.testing.assert_array_equal(x, first.x)
    assert (fun, x.dtype) == (first.fun, np.int32)
    written(path, OF_BEST[forgery](found))
    with pytest.raises(js.CheckpointError, match=r"run\.npz") as caught:
        js.load_best(path)
    assert "\n" not in str(caught.value)


def test_parts_that_claim_more_than_the_file_has(tmp_path):
    """Many names for the same bytes, or one for bytes that are not there, take no memory."""
    path = tmp_path / "run.npz"
    solve(5, checkpoint=path)
    data = path.read_bytes()
    size = len(members(path)["best.npy"]).to_bytes(4, "little")
    entry = data.rindex(b"best.npy") - 22  # the sizes in the archive's list of its parts
    assert data[entry : entry + 4] == size
    path.write_bytes(data[:entry] + (2**30).to_bytes(4, "little") + data[entry + 4 :])
    with pytest.raises(js.CheckpointError, match="its parts are larger than the file"):
        js.load_best(path)
    with pytest.raises(js.CheckpointError, match="its parts are larger than the file"):
        solve(9, resume=path)


def test_the_best_starts_another_run(tmp_path):
    """Of an instance that has changed, where the run itself cannot continue."""
    path, other = tmp_path / "run.npz", matrix_tsp(14, seed=5)
    solve(200, checkpoint=path)
    with pytest.raises(js.CheckpointError, match="is of instance"):
        js.solve(other, SEARCH, num_searches=5, max_steps=300, resume=path)
    tour, _ = js.load_best(path)
    result = js.solve(other, SEARCH, num_searches=1, max_steps=0, initial=tour)
    np.testing.assert_array_equal(result.x, tour)


def test_the_best_of_other_runs(tmp_path):
    """All placements of queens, and a tour of each instance."""
    path = tmp_path / "queens.npz"
    queens = js.solve_nqueens(8, 5, max_steps=1000, devices=1, checkpoint=path)
    x, fun = js.load_best(path)
    np.testing.assert_array_equal(x[:5], queens.solutions)
    assert fun == 0
    points = [np.random.default_rng(n).random((n, 2)) for n in (5, 6)]
    found = js.solve_tsp(points, max_steps=20, devices=1, checkpoint=tmp_path / "tours.npz")
    x, fun = js.load_best(tmp_path / "tours.npz")
    assert fun == found.fun.tolist()
    for one, other in zip(x, found.x, strict=True):
        np.testing.assert_array_equal(one, other)


def test_another_run_is_not_overwritten(tmp_path):
    """Two that resume one file: the one that comes second says so, once, and continues."""
    path = tmp_path / "run.npz"
    solve(5, checkpoint=path)

    def write_meanwhile(report):
        if report.step == 8:
            solve(6, checkpoint=path, resume=True)

    options = {"checkpoint_every": 0, "chunk_steps": 1, "callback": write_meanwhile}
    with pytest.warns(UserWarning, match="another run has written") as caught:
        result = solve(12, checkpoint=path, resume=True, **options)
    assert result.nit == 12 and len(caught) == 1
    assert solve(6, resume=path).nit == 6  # the file is the other's


def test_names_are_on_the_disk_before_a_write_returns(tmp_path, monkeypatch):
    """The file, and then its folder."""
    synced, fsync = [], os.fsync

    def noted(number):
        synced.append(stat.S_ISDIR(os.fstat(number).st_mode))
        fsync(number)

    monkeypatch.setattr(os, "fsync", noted)
    for _ in range(2):
        js.save_checkpoint(tmp_path / "run.npz", jnp.arange(3))
    assert synced == [False, True] * 2


def test_arrays_of_any_order_are_kept(tmp_path):
    """As columns after one another, too: the file is read again."""
    path, state = tmp_path / "rounds.npz", np.asfortranarray(np.arange(6).reshape(2, 3))
    js.save_checkpoint(path, state)
    np.testing.assert_array_equal(js.load_checkpoint(path, state), state)


STATE = {"round": 3, "x": (jnp.arange(4), np.float64(0.5), jnp.zeros((2, 0), jnp.bfloat16))}


def test_what_a_loop_of_ones_own_keeps(tmp_path):
    """Comes back with its dtypes; the file is replaced, and refused where something differs."""
    path = tmp_path / "rounds.npz"
    for number in (1, 2):
        js.save_checkpoint(path, STATE | {"round": number}, of=(PROBLEM, SEARCH))
    found = js.load_checkpoint(path, STATE, of=(PROBLEM, SEARCH))
    chex.assert_trees_all_equal(found, jax.tree.map(np.asarray, STATE | {"round": 2}))
    assert list(tmp_path.iterdir()) == [path]
    for like, of, text in (
        (STATE, (matrix_tsp(14, seed=5), SEARCH), "is of instance"),
        (STATE | {"round": 2.0}, (PROBLEM, SEARCH), "expected float64"),
        (STATE | {"x": jnp.arange(4)}, (PROBLEM, SEARCH), "holds no whole"),
    ):
        with pytest.raises(js.CheckpointError, match=text):
            js.load_checkpoint(path, like, of=of)
    with pytest.raises(js.CheckpointError, match="is of no run"):
        js.load_best(path)
    solve(5, checkpoint=tmp_path / "run.npz")
    with pytest.raises(js.CheckpointError, match="is of instance"):
        js.load_checkpoint(tmp_path / "run.npz", STATE)


@pytest.mark.parametrize(
    ("state", "text"),
    [
        ({"a": [jax.random.key(0)]}, r"state\['a'\]\[0\] is a key, expected numbers"),
        ((1, "text"), r"state\[1\] is a str, expected numbers"),
        (print, "state is a builtin_function_or_method, expected numbers"),
    ],
)
def test_only_numbers_are_kept(state, text, tmp_path):
    with pytest.raises(TypeError, match=text):
        js.save_checkpoint(tmp_path / "rounds.npz", state)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("forgery", FORGERIES)
def test_forged_files_are_refused(forgery, good, tmp_path):
    """In one line that names the file."""
    path, found = tmp_path / "run.npz", good[1]
    forged = FORGERIES[forgery](found)
    assert forged != found
    written(path, forged)
    with pytest.raises(js.CheckpointError, match=r"run\.npz|the notes of the") as caught:
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
        return SavedRun(state, SEARCH, None), jax.ShapeDtypeStruct((14,), np.int32)

    expected = checkpoints.read(path, identity, shapes_of)
    for size in generator.integers(0, len(good), 20):
        damaged.write_bytes(good[:size])
        with pytest.raises(js.CheckpointError, match="holds no whole"):
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
    with pytest.raises(js.CheckpointError, match="holds no whole"):
        solve(9, resume=damaged)


@js.pytree
@dataclasses.dataclass(frozen=True)
class Parts(js.Problem):
    """A problem whose solutions have parts."""

    make: Any = dataclasses.field(metadata={"static": True})

    def init(self, key):
        return self.make(jax.random.bernoulli(key, 0.5, (3,)).astype(np.int32))

    def cost(self, solution):
        return sum(leaf.sum(dtype=np.int32) for leaf in jax.tree.leaves(solution))


@dataclasses.dataclass(frozen=True)
class Opposite(js.Moves):
    """The one move: all parts change to the opposite."""

    num_words: int = 1

    def propose(self, problem, solution, words):
        return words[0]

    def apply(self, problem, solution, move):
        return jax.tree.map(lambda leaf: 1 - leaf, solution)


def in_dicts(bits):
    return {"it's": bits, "b": {"c": bits[:2]}}


def in_a_tuple(bits):
    return bits, (bits[:1],)


@pytest.mark.parametrize("make", [in_dicts, in_a_tuple])
def test_the_best_that_has_parts(make, tmp_path):
    """Its arrays come as a list, which starts another run."""
    path, problem = tmp_path / "run.npz", Parts(make)
    search = js.simulated_annealing(js.FullEvaluation(Opposite()), 1.0)
    first = js.solve(problem, search, 0, num_searches=2, max_steps=1, checkpoint=path)
    x, fun = js.load_best(path)
    assert (type(x), fun) == (list, first.fun)
    again = js.solve(problem, search, 1, num_searches=1, max_steps=0, initial=x)
    assert jax.tree.all(jax.tree.map(np.array_equal, again.x, first.x))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes")
def test_only_regular_files_are_opened(tmp_path):
    """A pipe, to which nobody writes, blocks nothing; NUL in a path names the argument."""
    path = tmp_path / "pipe.npz"
    os.mkfifo(path)
    resume = functools.partial(js.solve_tsp, [[0, 0], [2, 2], [0, 2], [2, 0]], max_steps=5)
    for load in (
        js.load_best,
        lambda path: js.load_checkpoint(path, 0),
        lambda path: resume(resume=path),
    ):
        with pytest.raises(ValueError, match="is not a regular file"):
            load(path)
        with pytest.raises(ValueError, match="(path|resume) is .*, expected a path without NUL"):
            load(str(path).replace("pipe", "pi\0pe"))
