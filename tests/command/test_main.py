"""The commands as a shell sees them: what they print and write, and how they end."""

import csv
import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import jaxopt_search as js
from jaxopt_search.command import solve
from jaxopt_search.command.main import main

ROOT = pathlib.Path(__file__).resolve().parents[2]
COORDINATES = "x,y\n0,0\n2,2\n0,2\n2,0\n1,3\n"
READ = "read        5 cities with coordinates\n"
DISTANCES = "0,1,4,1\n1,0,1,4\n4,1,0,1\n1,4,1,0\n"
SHORT = ("--steps", "20", "--devices", "1", "--no-cache", "--searches", "4")
TSP = "TYPE: TSP\nDIMENSION: 5\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n"
TSP += "1 0 0\n2 20 20\n3 0 20\n4 20 0\n5 10 30\nEOF\n"
QAP = "3\n0 5 2  5 0 3  2 3 0\n0 8 15  8 0 13  15 13 0\n"


def called(*arguments):
    """Returns the exit status, also of a refusal by the parser."""
    try:
        return main([str(one) for one in arguments])
    except SystemExit as error:
        return error.code


def started(*arguments, **options):
    """Starts the command in a process of its own."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-m", "jaxopt_search", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": env}
    return subprocess.Popen(command, **pipes | options)


def refusal(capsys, out=""):
    """Returns the one line on standard error; nothing else is on standard output."""
    shown, err = capsys.readouterr()
    assert shown == out and err.startswith("jaxopt-search: ")
    assert err.endswith("\n") and err.count("\n") == 1
    return err


@pytest.fixture
def file(tmp_path):
    """Writes a file and returns its path."""

    def write(name, content):
        (tmp_path / name).write_text(content)
        return tmp_path / name

    return write


@pytest.mark.parametrize(
    "content",
    [
        'town,x,y\n"Bonn, West",0,0\nKöln,9,9\nÜdem,9,0\nZwolle,0,9\n',
        ";Bonn, West;Köln;Üdem;Zwolle\nBonn, West;0;4;3;3\n"
        "Köln;4;0;3;3\nÜdem;3;3;0;4\nZwolle;3;3;4;0\n",
    ],
    ids=["coordinates", "distances"],
)
def test_tours_in_names(content, file, tmp_path, capsys):
    """The first column of a table names the cities of what is printed and written."""
    out, names = tmp_path / "tour.csv", ["Bonn, West", "Köln", "Üdem", "Zwolle"]
    assert called("solve", file("towns.csv", content), "--json", "--out", out, *SHORT) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["names"] == [names[city] for city in told["solution"]]
    rows = list(csv.DictReader(out.read_text(encoding="utf-8").splitlines()))
    assert [row["name"] for row in rows] == told["names"]
    assert [int(row["city"]) for row in rows] == told["solution"]


def test_a_run_that_is_continued(file, tmp_path, capsys):
    """From the checkpoint, if it is there; else it starts, and overwrites nothing."""
    cities = file("c.csv", "0,0\n9,0\n9,9\n0,9\n4,4\n")
    flags = ("solve", cities, "--checkpoint", tmp_path / "run.npz", "--json", *SHORT[2:])
    for _ in range(2):
        assert called(*flags, "--steps", 30, "--resume") == 0
        assert json.loads(capsys.readouterr().out)["steps"] == 30
    assert called(*flags, "--steps", 30) in (1, 2)
    assert "run.npz is there already; resume it or remove it" in refusal(capsys)
    flags = ("queens", 8, "--checkpoint", tmp_path / "queens.npz", "--json", *SHORT[2:])
    for count in (3, 5):
        assert called(*flags, "--count", count, "--resume") == 0
        assert json.loads(capsys.readouterr().out)["found"] == count


def test_a_tour_of_a_tsplib_instance(file, tmp_path, capsys):
    """The library's reader gets back the tour whose length is told."""
    out = tmp_path / "t.tour"
    assert called("solve", file("x.tsp", TSP), *SHORT, "--out", out) == 0
    instance = js.datasets.load_tsplib(tmp_path / "x.tsp")
    cost = instance.tour_length(js.datasets.load_tour(out))
    shown, progress = capsys.readouterr()
    assert shown.splitlines()[0] == "read        5 cities with coordinates (EUC_2D)"
    assert shown.splitlines()[1].split() == ["cost", str(cost)]
    assert "max_steps were made" in shown and "native" in shown and "1 x cpu" in shown
    assert progress == ""


def test_an_assignment_of_a_qaplib_instance(file, tmp_path, capsys):
    """The solution file holds the cost and what has it, the way round that is read."""
    path, out = file("x.dat", QAP), tmp_path / "x.sln"
    assert called("solve", path, *SHORT, "--json", "--out", out) == 0
    n, value, assignment = js.datasets.load_qaplib_solution(out)
    told = json.loads(capsys.readouterr().out)
    assert (n, value, assignment.tolist()) == (3, told["cost"], told["solution"])
    assert value == js.datasets.load_qaplib(path).cost(assignment) == 218


def test_json_stands_alone(file, tmp_path, capsys):
    """One object with what was asked for, although progress is shown and files are written."""
    path, plot = file("x.csv", COORDINATES), tmp_path / "x.png"
    arguments = ("--json", "--progress", "--seed", 7, "--plot", plot)
    assert called("solve", path, *SHORT, *arguments) == 0
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert out.count("\n") == 1 and "compiling" in err and "\r" not in err
    assert told["cost"] == pytest.approx(4 + 2 * math.sqrt(2) + 2)
    assert sorted(told["solution"]) == [0, 1, 2, 3, 4]
    assert (told["file"], told["seed"], told["gap"]) == (str(path), 7, None)
    assert told["read"] == READ.partition(" ")[2].strip()
    assert (told["status"], told["success"], told["steps"]) == ("max_steps", True, 20)
    assert {"message", "evaluations", "compile_seconds", "elapsed", "env"} < set(told)
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_a_target_that_is_missed_is_no_success(file, tmp_path, capsys):
    """The status tells, and the tour is written all the same; one that is met ends the run."""
    path, out = file("x.csv", COORDINATES), tmp_path / "x.txt"
    assert called("solve", path, *SHORT, "--target", 5, "--quiet", "--out", out) == 1
    assert capsys.readouterr() == ("", "")
    assert sorted(np.loadtxt(out, int)) == [0, 1, 2, 3, 4]
    assert called("solve", path, *SHORT, "--target", 9, "--json") == 0
    assert json.loads(capsys.readouterr().out)["status"] == "target"


def test_placements_of_queens(tmp_path, capsys):
    """As many different ones as asked for are in the array, and one is drawn."""
    arguments = ("--count", 3, "--no-cache", "--devices", 1, "--steps", 5000)
    out, plot = tmp_path / "q.npy", tmp_path / "q.svg"
    assert called("queens", 6, *arguments, "--out", out, "--plot", plot, "--json") == 0
    told, placements = json.loads(capsys.readouterr().out), np.load(out)
    assert (told["found"], told["success"]) == (3, True)
    assert told["solutions"] == placements.tolist() and len({*map(tuple, placements)}) == 3
    assert all(int(js.attacking_pairs(one)) == 0 for one in placements)
    assert b"<svg" in plot.read_bytes()
    assert called("queens", 6, *arguments[2:], "--count", 5, "--out", tmp_path / "q.csv") == 1
    assert "4 different valid ones of 6 queens" in capsys.readouterr().out
    assert len(np.loadtxt(tmp_path / "q.csv", int, delimiter=",")) == 4
    assert called("queens", 3, *arguments, "--plot", plot) == 1
    assert "solutions has none" in capsys.readouterr().err


BAD_ARGUMENTS = {
    "solve": "arguments are required: FILE",
    "solve missing.csv": "missing.csv: no such file or directory",
    "solve x.csv --columns x,y --kind qap": "--columns is x,y, expected none with --kind qap",
    "solve x.csv --seconds -1 --no-cache": "max_seconds is -1, expected a number >= 0",
    "solve x.csv --seed x": "argument --seed: invalid int value: 'x'",
    "solve x.csv --out x.exe": "--out x.exe: the suffix '.exe', expected one of .txt",
    "solve x.csv --out nowhere/x.txt": "cannot be written: no such file or directory",
    "solve HALVES.csv --kind qap --out x.sln": ".sln holds integer costs",
    "queens 8 --count 0 --no-cache": "num_solutions is 0, expected an integer from 1",
}


@pytest.mark.parametrize("line", BAD_ARGUMENTS)
def test_bad_arguments_are_one_line(line, file, tmp_path, monkeypatch, capsys):
    """Before any search, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    file("x.csv", COORDINATES)
    file("HALVES.csv", "0,.5\n.5,0\n0,1\n1,0\n")
    before = sorted(tmp_path.iterdir())
    assert called(*line.split()) == 2
    late = ("max_", "num_")  # what the solvers refuse, once the file has been read
    out = READ if line.startswith("solve") and BAD_ARGUMENTS[line].startswith(late) else ""
    assert BAD_ARGUMENTS[line] in refusal(capsys, out)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("error", [MemoryError(), OSError("no\ndisk")])
def test_what_fails_in_a_run_is_one_line(error, file, monkeypatch, capsys):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(js, "solve_tsp", fail)
    status = called("solve", file("x.csv", COORDINATES), *SHORT)
    assert status == (2 if isinstance(error, OSError) else 1)
    text = " ".join(str(error).split()) or "MemoryError"
    assert refusal(capsys, READ) == f"jaxopt-search: {text}\n"


def test_a_picture_needs_matplotlib(file, tmp_path, monkeypatch, capsys):
    """It is said before the search."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setattr(js, "solve_tsp", None)
    assert called("solve", file("x.csv", COORDINATES), "--plot", tmp_path / "x.png") == 2
    assert "pip install matplotlib" in refusal(capsys)


def test_a_full_disk_loses_no_result(file, tmp_path, monkeypatch, capsys):
    """What cannot be written after the search is still shown."""

    def fail(*_):
        raise OSError(28, "No space left on device", "x.txt")

    monkeypatch.setattr(solve, "write_solution", fail)
    out = tmp_path / "x.txt"
    assert called("solve", file("x.csv", COORDINATES), *SHORT, "--json", "--out", out) == 1
    shown, err = capsys.readouterr()
    assert json.loads(shown)["success"]
    assert err == f"jaxopt-search: {out} was not written: x.txt: no space left on device\n"


def test_doctor_tells_what_runs(capsys, monkeypatch, tmp_path, no_kept_programs):
    """Also where the cache is and what is in it; a folder that anyone can write to is a fault."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert called("doctor") == 0
    told = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines())
    told = {name: text.strip() for name, text in told.items()}
    assert told["steps, QAP"] == "native; the fused kernel needs an NVIDIA GPU"
    assert told["cache"] == f"{tmp_path}/jaxopt_search/programs, which is not there yet"
    folder = tmp_path / "jaxopt_search" / "programs"
    folder.mkdir(parents=True, mode=0o700)
    (folder / "x").write_bytes(bytes(1_500_000))
    assert called("doctor") == 0
    assert f"{folder}, 1 files, 1.5 MB" in capsys.readouterr().out
    folder.chmod(0o777)
    assert called("doctor") == 1
    assert "is writable by others" in capsys.readouterr().err


def test_doctor_says_what_to_install_for_a_gpu_that_jax_does_not_see(capsys, monkeypatch, tmp_path):
    """As after an upgrade of JAX alone, which leaves an older plugin behind."""
    from jaxopt_search.command import doctor

    def version(name):
        if name != "jax-cuda12-plugin":
            raise doctor.metadata.PackageNotFoundError
        return "0.0.1"

    monkeypatch.setattr(doctor, "_NVIDIA", tmp_path)
    monkeypatch.setattr(doctor.metadata, "version", version)
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    assert not js.doctor()
    assert 'jax-cuda12-plugin 0.0.1: pip install "jax[cuda12]==0.0.1"' in capsys.readouterr().out


def test_nothing_that_takes_time_is_imported_before_the_arguments_are_read():
    """For `--version` and `--help` JAX is not needed; Ctrl-C while it is imported is one line."""
    code = (
        "import signal, sys, types\n"
        "def find_spec(name, *_):\n"
        "    if name != 'numpy': return\n"  # which JAX needs
        "    try: signal.raise_signal(signal.SIGINT)\n"
        "    except KeyboardInterrupt: raise ImportError('as NumPy says')\n"
        "sys.meta_path.insert(0, types.SimpleNamespace(find_spec=find_spec))\n"
        "from jaxopt_search.command.main import main\n"
        "for flags in (['--version'], ['solve', '--help']):\n"
        "    try: main(flags)\n"
        "    except SystemExit: pass\n"
        "sys.exit(main(['queens', '8']))"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert done.returncode == 130
    assert done.stdout.startswith(f"jaxopt-search {js.__version__}\nusage: jaxopt-search solve")
    assert done.stderr == "jaxopt-search: interrupted before there was anything to keep\n"


def test_output_that_nobody_takes(monkeypatch):
    """A reader that has left is no matter for a line; a full disk is; neither for a traceback."""
    with started("doctor") as process, open("/dev/full", "w") as full:
        process.stdout.close()
        monkeypatch.setenv("PYTHONUNBUFFERED", "1")
        with started("doctor", stdout=full) as other:
            assert other.wait(300) == 1
            message = "jaxopt-search: standard output: no space left on device\n"
            assert other.stderr.read() == message
        assert process.wait(300) == 1
        assert process.stderr.read() == ""


def test_labels_are_written_and_continued(tmp_path, capsys):
    """A file that is cut off in a line becomes what it was, or is refused; or grows."""
    path, short = tmp_path / "labels.txt", ("--cities", 7, "--steps", 200, "--no-cache")
    command = ("labels", *short, "--devices", 1, "--out", path)
    assert called(*command, "--number", 5, "--at-once", 2) == 0
    assert capsys.readouterr().out == f"wrote       5 tours of 7 cities to {path}\n"
    points, tours = js.datasets.load_labels(path)
    assert [tour[0] for tour in tours] == [0] * 5
    expected = np.random.default_rng([0, 3]).random((7, 2))
    np.testing.assert_array_equal(points[3], expected)
    whole = path.read_text()
    path.write_text(whole[: len(whole) // 2])
    assert called(*command, "--number", 5) == 2
    assert "file exists" in refusal(capsys)
    again = (*command, "--number", 5, "--resume", "--quiet", "--at-once")
    for other, reason in (
        ((2, "--seed", 1), "line 1 is not of these instances"),
        ((2, "--steps", 1), "another tour"),
        ((2, "--number", 1), "more than 1 lines"),
    ):
        assert called(*again, *other) == 2
        assert reason in refusal(capsys)
    for size in (len(whole) // 2, len(whole) // 3, 0):
        path.write_text(whole[:size])
        assert called(*again, 2) == 0
        assert path.read_text() == whole
    path.write_text("".join(f"{line}\n\n" for line in whole.splitlines()))
    assert len(js.datasets.load_labels(path)[1]) == 5
    assert called(*again, 2, "--number", 7) == 0
    longer = path.read_text().replace("\n\n", "\n")
    path.unlink()
    assert called(*command, "--number", 7, "--at-once", 2, "--quiet") == 0
    assert path.read_text() == longer


def test_labels_of_instances_in_a_file(tmp_path, capsys):
    """In an archive, with their own coordinates; what was interrupted is in its lines."""
    points, path, out = corners(5), tmp_path / "points.npy", tmp_path / "labels.npz"
    np.save(path, points)
    command = "labels", "--points", path, "--steps", 200, "--no-cache", "--devices", 1, "--quiet"
    assert called(*command, "--out", out, "--at-once", 2) == 0
    found, tours = js.datasets.load_labels(out)
    np.testing.assert_array_equal(found, points)
    rounds = [points[i][tour] for i, tour in enumerate(tours)]
    assert [abs(np.diff(one, axis=0, append=one[:1])).sum() for one in rounds] == [4, 8, 12, 16, 20]
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".txt"] == []
    assert called(*command, "--out", out) == 2 and "expected a new file" in refusal(capsys)
    lines = tmp_path / "lines.txt"
    assert called(*command, "--number", 2, "--out", lines) == 0
    assert called(*command[:2], lines, *command[3:], "--out", tmp_path / "2.npz") == 0
    np.testing.assert_array_equal(np.load(tmp_path / "2.npz")["points"], points[:2])
    for bad, reason in ((points[0], "(4, 2)"), (points[:0], "(0, 4, 2)")):
        np.save(path, bad)
        assert called(*command, "--out", tmp_path / "3.txt") == 2
        assert reason in refusal(capsys)


def corners(number):
    """Squares of sides 1, 2, ..., whose corners are not in order, [number, 4, 2]."""
    square = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    return square * np.arange(1, number + 1)[:, None, None]


def test_ctrl_c_keeps_the_best_so_far(file, tmp_path):
    """The status is that of shells, and what was found is written and shown.

    The instance comes from standard input.
    """
    out = tmp_path / "x.npy"
    arguments = ("--seconds", 100, "--progress", "--devices", 1, "--no-cache", "--json")
    table = os.open(file("x.csv", DISTANCES), os.O_RDONLY)
    with started("solve", "-", *arguments, "--out", out, stdin=table) as process:
        os.close(table)
        for line in process.stderr:
            if line.startswith("step"):  # the search has begun; the next line is seconds away
                time.sleep(0.3)
                process.send_signal(signal.SIGINT)
                break
        shown, _ = process.communicate(timeout=300)
    assert process.returncode == 130
    assert json.loads(shown)["status"] == "interrupted"
    assert sorted(np.load(out)) == [0, 1, 2, 3]
