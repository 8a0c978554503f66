"""Figure 4, from records."""

from typing import Any

from experiments.pspm.measures import Records, over_instances, speed
from experiments.pspm.paper import TABLE_4


def draw(records: Records, ax: Any) -> Any:
    """Draws Figure 4, speed against moves per search, ours and the paper's; returns the axes.

    The paper divides its GPU's speeds by 50 to fit both lines; a logarithmic axis does that here.
    """
    colors = {"sspm": "tab:orange", "pspm": "tab:blue"}
    for scheme, color in colors.items():
        mean = over_instances(speed, scheme)
        ours = {
            moves: mean([r for r in records if r["settings"]["scheme"]["moves"] == moves])
            for moves in TABLE_4
        }
        points = [(moves, speed) for moves, speed in ours.items() if speed is not None]
        paper = [(moves, getattr(row, scheme)[0]) for moves, row in TABLE_4.items()]
        if points:
            ax.plot(*zip(*points, strict=True), "o-", color=color, label=f"{scheme.upper()}, ours")
        where = "Tesla C2050" if scheme == "pspm" else "12 Xeon cores"
        label = f"{scheme.upper()}, paper ({where})"
        ax.plot(*zip(*paper, strict=True), "o:", color=color, mfc="white", label=label)
    ax.set_yscale("log")
    ax.set_xticks(list(TABLE_4))
    ax.set_xlabel("moves per search")
    ax.set_ylabel("SSES ($10^6$ moves/s)")
    ax.grid(alpha=0.3)
    ax.legend(frameon=False, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return ax
