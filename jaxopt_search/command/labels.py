"""`jaxopt-search labels`: many instances with good tours in a file, to learn from."""

import argparse
import contextlib
import os
import pathlib
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO

import jax
import numpy as np

import jaxopt_search as js
from jaxopt_search.checks import MAX_STEPS, check_count
from jaxopt_search.command import starts
from jaxopt_search.command.main import INTERRUPTED, SUCCESS, say, tell
from jaxopt_search.datasets.readers import label_line, label_of, load_labels
from jaxopt_search.engine.devices import find_devices, is_cpu
from jaxopt_search.files import whole

_STEPS = 2000  # for each city
_ON_GPU, _ON_CPU = 8192, 256  # instances at once


def run(args: argparse.Namespace) -> int:
    """Writes the file, some instances at a time; returns the exit status.

    Raises:
      ValueError, OSError: for bad input, before the search.
    """
    points_of, cities, number = _instances(args)
    path = args.out
    if path is None:
        raise ValueError("--out is missing, expected the path of a file")
    if is_archive := path.suffix == ".npz":
        if path.exists():
            raise FileExistsError(f"--out {path} exists, expected a new file")
        path = path.with_name(path.name + ".txt")  # until all are there
    starts.use_machine(args)
    at_once = _ON_CPU if is_cpu(find_devices(args.devices)[0]) else _ON_GPU
    if args.at_once is not None:
        at_once = check_count("--at-once", args.at_once)
    num_searches = 1 if args.num_searches is None else check_count("--searches", args.num_searches)
    options = {"num_searches": num_searches, "devices": args.devices, "start": 0}
    steps = _STEPS * cities if args.max_steps is None else args.max_steps
    options["max_steps"] = check_count("--steps", steps, 0, MAX_STEPS)
    is_watched = not args.quiet and (args.progress or sys.stderr.isatty())

    at_once = min(at_once, number)
    with _opened(path, args.resume, points_of, number, at_once) as (file, held, tours):
        first, began = held - len(tours), time.monotonic()
        done = first
        with ThreadPoolExecutor(1) as writer:
            written = writer.submit(lambda: None)
            while done < number:
                # The last ones are as many, the last again and again: all share one program.
                points = points_of(np.minimum(np.arange(done, done + at_once), number - 1))
                key = jax.random.fold_in(jax.random.key(args.key), done)
                result = js.solve_tsp(points, key, **options)
                written.result()  # what went wrong in writing
                if result.status.name == "INTERRUPTED":
                    say(f"interrupted; {path} holds {held:,} of {number:,}: see --resume")
                    return INTERRUPTED
                for line, (there, tour) in enumerate(zip(tours, result.x, strict=False), done + 1):
                    if not np.array_equal(there, tour):
                        raise ValueError(
                            f"--out {path}: line {line} has another tour, expected the file of a"
                            " run with the same --seed, --steps, --searches and --at-once"
                        )
                wanted = slice(len(tours), number - done)
                written = writer.submit(_write, file, points[wanted], result.x[wanted])
                done = held = min(done + at_once, number)
                tours = []
                if is_watched:
                    rate = (done - first) / (time.monotonic() - began)
                    left = (number - done) / rate
                    say(f"{done:,} of {number:,}, {rate:,.0f} a second, {left:,.0f} s left")
            written.result()
    if is_archive:
        points, tours = map(np.stack, load_labels(path))
        with whole(args.out) as archive:
            np.savez(archive, points=points, tours=tours)
        path.unlink()
    if not args.quiet:
        tell(f"wrote       {done:,} tours of {cities} cities to {args.out}")
    return SUCCESS


@contextlib.contextmanager
def _opened(
    path: pathlib.Path,
    is_resumed: bool,
    points_of: Callable[[np.ndarray], np.ndarray],
    number: int,
    at_once: int,
) -> Iterator[tuple[BinaryIO, int, list[np.ndarray]]]:
    """Opens a file behind the lines that it holds.

    Yields it, how many they are, and the tours of those that were made with the last one. These are
    to be made again: so tours of other settings are noticed.

    Raises:
      ValueError: if they are of other instances, or too many.
      FileExistsError: if there is a file, without `--resume`.
    """
    if not is_resumed or not path.exists():
        with open(path, "xb") as file:
            yield file, 0, []
        return
    with open(path, "r+b") as file:
        done, at, end, tours = 0, 0, 0, list[np.ndarray]()
        for line in file:
            at += len(line)
            if not line.endswith(b"\n") or line.isspace():  # the last one may be cut off, or blank
                continue
            if done == number:
                raise ValueError(f"--out {path} holds more than {number:,} lines, see --number")
            text, where = line.decode("ascii", "replace"), f"{path}, line {done + 1}"
            points, tour = label_of(text, where)
            if not np.array_equal(points, points_of(np.array([done]))[0]):
                raise ValueError(f"--out {path}: line {done + 1} is not of these instances")
            if done % at_once == 0:
                tours = []
            tours.append(tour)
            done, end = done + 1, at
        file.truncate(end)
        file.seek(end)
        yield file, done, tours


def _instances(args: argparse.Namespace) -> tuple[Callable[[np.ndarray], np.ndarray], int, int]:
    """Returns `points_of`, how many cities an instance has, and how many instances there are.

    `points_of(which)` returns the coordinates of some of them, [len(which), cities, 2]: those of a
    file, or uniform in the unit square.
    """
    seed = check_count("--seed", args.key, 0)
    if args.points is None:
        cities = check_count("--cities", 100 if args.cities is None else args.cities, 2)

        def drawn(which: np.ndarray) -> np.ndarray:
            each = (np.random.default_rng([seed, i]) for i in which)
            return np.stack([generator.random((cities, 2)) for generator in each])

        number = 1000 if args.number is None else args.number
        return drawn, cities, check_count("--number", number)
    if args.cities is not None:
        raise ValueError("--cities is given with --points, whose instances have their own")
    if args.points.suffix == ".npy":
        given = np.load(args.points)
    else:
        listed, _ = load_labels(args.points)
        if len({len(points) for points in listed}) > 1:
            raise ValueError(f"--points {args.points}: expected instances of one size")
        given = np.array(listed)
    if given.ndim != 3 or not len(given) or given.shape[2] != 2:
        found = f"an array of shape {given.shape}"
        raise ValueError(f"--points {args.points} holds {found}, expected (number, cities, 2)")
    number = len(given) if args.number is None else args.number
    number = check_count("--number", number, 1, len(given))
    return given.__getitem__, given.shape[1], number


def _write(file: BinaryIO, points: np.ndarray, tours: np.ndarray) -> None:
    file.write("".join(f"{line}\n" for line in map(label_line, points, tours)).encode())
    file.flush()
    os.fsync(file.fileno())
