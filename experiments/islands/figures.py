"""The figures of `__main__`, from its records."""

import math
from statistics import mean
from typing import Any

import numpy as np

import jaxopt_search as js
from experiments.islands import records as kept


def draw_figure_5(records: kept.Records, ax: Any) -> None:
    """Draws the times of one island, each and their mean, by instance."""
    kept.check_kind(records, *kept.KIND)
    names = kept.names_in(records)
    for place, name in enumerate(names):
        times = kept.times_of(records, name, islands=1, restarts=True)
        times = [time for time in times if math.isfinite(time)]
        ax.semilogy([place] * len(times), times, "*", color="C0", alpha=0.5)
        if times:
            ax.semilogy([place], [mean(times)], "s", color="black")
    ax.set_xticks(range(len(names)), names, rotation=45)
    ax.set(ylabel="seconds, one island")


def draw_figure_6(records: kept.Records, ax: Any) -> None:
    """Draws the share of runs of one island that are done by a time, and its fit."""
    kept.check_kind(records, *kept.KIND)
    for number, name in enumerate(kept.names_in(records)):
        times = sorted(kept.times_of(records, name, islands=1, restarts=True))
        done = [time for time in times if math.isfinite(time)]
        color = f"C{number % 10}"
        shares = js.run_times.shares_done(len(done), len(times))
        ax.plot(done, shares, ".", color=color, label=name)
        if (fitted := kept.fit_of(times)) is not None:
            along = np.geomspace(done[0] / 2, done[-1] * 2, 200)
            ax.plot(along, fitted.share_done(along), color=color)
    ax.set(xscale="log", xlabel="seconds, one island", ylabel="share done", ylim=(0, 1))
    ax.legend()


FIGURES = {5: draw_figure_5, 6: draw_figure_6}
