"""The animation of the README: thousands of searches cool, exchange, and agree on a tour.

    python -m experiments.tours_picture
    python -m experiments.tours_picture --cities 50 --searches 256 --picture tours.gif

Searches anneal a tour by 2-opt; on a ring, each takes over from the one before it now and then, if
that is better. The more searches have an edge in their best tours, the darker it is. The black line
is the shortest tour.
"""

import argparse
import pathlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import jaxopt_search as js
from experiments import common, flag_types
from jaxopt_search.results import plotting

_STEPS, _FRAMES, _LEVELS = 20_000, 32, 100  # levels of temperature
_COLORS = 24  # of a frame
_HOT, _COLD = 3.0, 0.03  # temperatures, in mean edges of a short tour
_FEWEST, _CLOSEST = 0.04, 0.1  # of all searches that have an edge, and percent, to be told
_BLUE = 0.0, 0.45, 0.70


class Moment(NamedTuple):
    """Where the searches stand: steps made, the best tour of each search, and their lengths."""

    step: int
    tours: np.ndarray
    lengths: np.ndarray


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns the exit status."""
    flags = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    flags.add_argument("--cities", type=flag_types.positive, default=150)
    flags.add_argument("--searches", type=flag_types.positive, default=2048)
    flags.add_argument(
        "--picture", type=pathlib.Path, default=pathlib.Path("docs/images/tours.gif")
    )
    args = flags.parse_args(arguments)
    common.use_cpu_cores()
    points = np.random.default_rng(0).random((args.cities, 2))
    args.picture.parent.mkdir(parents=True, exist_ok=True)
    first, *others = frames(points, moments_of(points, args.searches))
    times = [120] * len(others) + [3000]  # milliseconds
    first.save(args.picture, save_all=True, append_images=others, duration=times, loop=0)
    print(args.picture)
    return 0


def moments_of(points: np.ndarray, num_searches: int) -> list[Moment]:
    """Returns where the searches stand at equal distances of an annealing."""
    problem, edge = js.tsp_from_coords(points), 0.7 / len(points) ** 0.5
    each, ratio = _STEPS // _LEVELS, (_COLD / _HOT) ** (1 / _LEVELS)
    cooled = js.geometric(_HOT * edge, alpha=ratio, steps_per_temperature=each)
    search = js.simulated_annealing(js.two_opt(problem), cooled, moves_per_search=4)
    moments = list[Moment]()

    def keep(report: js.Report) -> None:
        moments.append(Moment(report.step, *report.fetch()))

    limits = {"max_steps": _STEPS, "chunk_steps": _STEPS // _FRAMES, "devices": "all"}
    ring = js.ring(every=_STEPS // 20)
    own = problem, search, 0
    js.solve(*own, num_searches=num_searches, exchange=ring, callback=keep, **limits)
    return moments


def frames(points: np.ndarray, moments: list[Moment]) -> Iterator[Any]:
    """Yields pictures of edges, by how many searches have them, and of the lengths of all tours."""
    import PIL.Image  # matplotlib brings it
    from matplotlib import collections
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    left, right = plotting.detached_axes((7.2, 3.7), columns=2, dpi=100)
    canvas = FigureCanvasAgg(left.figure)
    best, number = min(one.lengths.min() for one in moments), len(moments[0].tours)
    bins = np.geomspace(_CLOSEST, 1000, 33)
    for moment in moments:
        ends = np.stack([moment.tours, np.roll(moment.tours, -1, axis=1)], axis=-1)
        edges, counts = np.unique(np.sort(ends.reshape(-1, 2)), axis=0, return_counts=True)
        colors = [(*_BLUE, count / number * (count > _FEWEST * number)) for count in counts]
        shortest = points[moment.tours[moment.lengths.argmin()]]
        left.clear()
        left.add_collection(collections.LineCollection(points[edges], colors=colors, linewidth=3))
        left.plot(*np.append(shortest, shortest[:1], axis=0).T, "k.-", linewidth=0.6, markersize=4)
        left.set(xticks=[], yticks=[], aspect="equal", xlabel=f"step {moment.step:,} of {_STEPS:,}")
        left.set_title(f"edges of the best tours of {number:,} searches", fontsize=10)
        above = 100 * (moment.lengths / best - 1)
        right.clear()
        right.hist(np.maximum(above, _CLOSEST), bins, color=_BLUE)
        right.set(xscale="log", ylim=(0, number), ylabel="searches")
        right.set(xlabel=f"above the shortest (%), {_CLOSEST} or less at the left")
        right.xaxis.set_major_formatter("{x:g}")
        right.set_title(f"shortest tour so far: {moment.lengths.min():.3f}", fontsize=10)
        canvas.draw()
        # Few colors, without noise between them: about half the bytes.
        image = PIL.Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
        yield image.quantize(_COLORS, dither=PIL.Image.Dither.NONE)


if __name__ == "__main__":
    sys.exit(main())
