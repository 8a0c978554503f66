"""The table and the plot of `script.py`, from its records."""

import json
import statistics
from typing import Any, NamedTuple

from experiments import common

CLAIM = 5e7
"""Moves/s on 100 cities that two CPU cores should reach, by relocation."""


def row(measured: list[dict[str, Any]]) -> list[str]:
    """Returns the line of a case in the table, from the records of its repetitions."""
    first, settings = measured[0], measured[0]["settings"]
    lanes = settings["searches"] * settings["moves"]
    speeds = [record["sses"] for record in measured]
    median = statistics.median(speeds)
    return [
        settings["neighborhood"],
        str(settings["cities"]),
        str(settings["searches"]),
        str(settings["moves"]),
        f"{settings['num_devices']} x {settings['device_kind']}",
        settings["implementation"],
        f"{1e6 * lanes / median:.3g}",
        f"{median:.3g}",
        f"{min(speeds):.3g} to {max(speeds):.3g}",
        f"{first['compile_seconds']:.1f}",
    ]


def report(measured: list[dict[str, Any]], *, markdown: bool) -> str:
    """Returns the table of what was measured and, if it shows that, whether the claim holds."""
    rows = [row(group) for group in by_settings(measured)]
    parts = [common.table(_HEADER, rows, markdown=markdown)]
    parts += [verdict(measured)] if verdict(measured) else []
    return "\n".join(parts)


_HEADER = (
    "moves by",
    "cities",
    "searches",
    "moves",
    "devices",
    "runs as",
    "us/step",
    "moves/s",
    "spread",
    "compile s",
)


def by_settings(measured: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Returns the records of each settings that occur."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for record in measured:
        groups.setdefault(json.dumps(record["settings"]), []).append(record)
    return list(groups.values())


def _speeds(group: list[dict[str, Any]]) -> list[float]:
    return [record["sses"] for record in group]


def verdict(measured: list[dict[str, Any]]) -> str:
    """Returns whether the claim about 100 cities on two CPU cores holds; "" if not measured."""
    claimed = {"cities": 100, "device_kind": "cpu", "neighborhood": "relocate"}
    speeds = [
        _speeds(group)
        for group in by_settings(measured)
        if claimed.items() <= group[0]["settings"].items()
    ]
    if not speeds:
        return ""
    best = max(map(statistics.median, speeds))
    return (
        f"claim: {CLAIM:.0e} moves/s on 100 cities with two CPU cores; the fastest line above has"
        f" {best:.2e}: {'holds' if best >= CLAIM else 'does not hold here'}"
    )


class Point(NamedTuple):
    """A size and the moves per second measured there."""

    size: int
    low: float
    median: float
    high: float


_SWEPT = {"searches": "searches", "moves": "moves per search", "cities": "cities"}


def curves(measured: list[dict[str, Any]], against: str) -> dict[str, list[Point]]:
    """Returns the lines of a panel, by their labels.

    A line holds what differs in one setting only; its label has those others that vary at all.
    Points go from the smallest size to the largest.

    Args:
      measured: the records.
      against: the setting on the horizontal axis.
    """
    groups = by_settings(measured)
    varied = [
        name
        for name in (groups[0][0]["settings"] if groups else ())
        if name != against and len({group[0]["settings"][name] for group in groups}) > 1
    ]
    lines: dict[str, list[Point]] = {}
    for group in sorted(groups, key=lambda group: group[0]["settings"][against]):
        settings, speeds = group[0]["settings"], _speeds(group)
        label = ", ".join(_in_words(name, settings[name]) for name in varied)
        point = Point(settings[against], min(speeds), statistics.median(speeds), max(speeds))
        lines.setdefault(label, []).append(point)
    return lines


def _in_words(name: str, value: Any) -> str:
    words = {**_SWEPT, "num_devices": "devices"}
    return f"{words[name]} {value}" if name in words else str(value)


def draw(measured: list[dict[str, Any]], ax: Any) -> None:
    """Draws moves per second against each size, on log axes; `ax` becomes the first of them."""
    grid = ax.figure.add_gridspec(1, len(_SWEPT))
    ax.set_subplotspec(grid[0])
    ax.set_ylabel("moves per second")
    others = [ax.figure.add_subplot(place, sharey=ax) for place in list(grid)[1:]]
    for panel, (name, words) in zip([ax, *others], _SWEPT.items(), strict=True):
        _draw_panel(panel, curves(measured, name))
        panel.set_xlabel(words)
        panel.label_outer()


def _draw_panel(panel: Any, lines: dict[str, list[Point]]) -> None:
    sizes = sorted({point.size for points in lines.values() for point in points})
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlim(sizes[0] / 1.2, 1.2 * sizes[-1])  # matplotlib finds none for a single size
    for label, points in lines.items():
        x, low, median, high = zip(*points, strict=True)
        (line,) = panel.plot(x, median, "o-", markersize=4, linewidth=1.5, label=label)
        panel.vlines(x, low, high, color=line.get_color(), linewidth=1, alpha=0.6)
    panel.set_xticks(sizes, map(str, sizes))
    panel.set_xticks([], minor=True)
    panel.grid(alpha=0.3)
    if any(lines):  # a label is empty where there is but one line
        panel.legend(frameon=False, fontsize="x-small", loc="lower center", bbox_to_anchor=(0.5, 1))
