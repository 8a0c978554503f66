"""The tables of `script.py`, from its records."""

from typing import Any

from experiments import common

Records = list[dict[str, Any]]

_MIB = 2**20
_ALLOWANCE = 16 * _MIB
_HEADER = ("case", "searches", "ran", "most in", "estimate MiB", "measured MiB", "off by")


def off_by(record: dict[str, Any]) -> float:
    """Returns by what share of the measured bytes the estimate is off, beyond the allowance."""
    difference = record["estimate"] - record["measured"]
    beyond = max(abs(difference) - _ALLOWANCE, 0)
    return (beyond if difference > 0 else -beyond) / record["measured"]


def report(records: Records, *, markdown: bool) -> str:
    """Returns a table for each kind of device."""
    sections: dict[str, Records] = {}
    for record in records:
        sections.setdefault(record["env"]["devices"], []).append(record)
    return "\n\n".join(_section(*one, markdown) for one in sections.items())


def _section(devices: str, records: Records, markdown: bool) -> str:
    done = [record for record in records if not record["failed"]]
    near = sum(abs(off_by(record)) <= 0.2 for record in done)
    return "\n".join(
        [
            f"{devices}; within 20 %, beyond an allowance of {_ALLOWANCE // _MIB} MiB:"
            f" {near} of {len(records)}",
            "",
            common.table(_HEADER, list(map(_row, records)), markdown=markdown),
        ]
    )


def _row(record: dict[str, Any]) -> tuple[str, ...]:
    ran = "no memory" if record["failed"] else record["implementation"].partition(" ")[0]
    estimate, measured = (f"{record[name] / _MIB:,.0f}" for name in ("estimate", "measured"))
    return (
        record["instance"],
        f"{record['num_searches']:,}",
        ran,
        record["parts"]["when"],
        estimate,
        measured,
        "-" if record["failed"] else f"{off_by(record):+.0%}",
    )
