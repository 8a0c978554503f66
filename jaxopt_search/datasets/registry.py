"""The known instances: sizes, best known costs, and where to get the files.

`registry.csv` has one row per instance. Its values for TSPLIB are from the library's own table of
optima; the values for QAPLIB are from the library's page of 2024-05-09 and later papers. Optima of
the small instances that the page leaves out (esc8, nug5-8, tai5a-9a and the like) were found by
complete enumeration up to n = 11. What to know about single rows:

- linhp318: 41345 is the length without the fixed edge 1-214 (3869); the closed tour has 45214.
- dsj1000 is CEIL_2D; 18659688, often quoted, is its optimum as EUC_2D.
- kra32: the public copy has different distances, so there is nothing to download.
- tai13a, tai14a, tai16a, tai18a, tai19a: reached by search, not proved.
- esc8f: the 18 in the header of the public copy is wrong; the optimum is 6.
"""

import csv
import difflib
import functools
import importlib.resources
import re
from typing import NamedTuple

SOURCES = {
    "tsplib": "https://raw.githubusercontent.com/mastqe/tsplib/"
    "775541365dc3f7f3cd6faa8d0e206036d2c45e0e",
    "qaplib": "https://raw.githubusercontent.com/0816keisuke/qaplib/"
    "9045465b65c25230d3235f81aced5cb090a03c62",
}
"""Where the files of a collection are, at a fixed revision."""

_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_LONGEST = 40


class Entry(NamedTuple):
    """One row of the registry.

    Attributes:
      name: name of the instance.
      collection: "tsplib" or "qaplib".
      n: number of cities or facilities.
      best_known: best known cost, None if there is none on record.
      is_optimal: whether `best_known` is proved optimal.
      sha256: checksum of the file at the source, empty if there is no file to download.
      path: path of the file at the source, empty if there is no file to download.
      digest: `instances.digest` of what the file holds, empty if none is on record.
    """

    name: str
    collection: str
    n: int
    best_known: int | None
    is_optimal: bool
    sha256: str
    path: str
    digest: str = ""


@functools.cache
def entries() -> dict[str, Entry]:
    """Returns all rows by name. The table is read on the first call."""
    table = importlib.resources.files("jaxopt_search.datasets").joinpath("registry.csv")
    rows = csv.DictReader(table.read_text(encoding="ascii").splitlines())
    return {row["name"]: _entry(row) for row in rows}


def names(collection: str | None = None) -> list[str]:
    """Returns the names of the known instances, sorted by size.

    Args:
      collection: "tsplib", "qaplib", or None for both.

    Raises:
      ValueError: there is no such collection.

    Example:
      >>> names("qaplib")[:2]
      ['nug5', 'tai5a']
    """
    if collection is not None and collection not in SOURCES:
        expected = ", ".join(SOURCES)
        raise ValueError(f"collection is {collection!r}, expected one of {expected}, or None")
    rows = [row for row in entries().values() if collection in (None, row.collection)]
    return [row.name for row in sorted(rows, key=lambda row: (row.n, row.name))]


def find(name: str) -> Entry:
    """Returns the row of an instance.

    Raises:
      ValueError: there is no such name; the message suggests close ones.
    """
    own = "(own files: load_tsplib(path), load_qaplib(path))"
    if isinstance(name, str) and len(name) > _LONGEST:
        raise ValueError(f"name is {name[:_LONGEST]!r}..., expected one of names() {own}")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"name is {name!r}, expected letters, digits and _.- only {own}")
    if name not in entries():
        lower = {known.lower(): known for known in entries()}
        close = [lower[x] for x in difflib.get_close_matches(name.lower(), lower, n=3)]
        hint = f"did you mean {', '.join(close)}?" if close else "expected one of names()"
        raise ValueError(f"name is {name!r}, which is not in the registry; {hint} {own}")
    return entries()[name]


def _entry(row: dict[str, str]) -> Entry:
    return Entry(
        name=row["name"],
        collection=row["collection"],
        n=int(row["n"]),
        best_known=int(row["best_known"]) if row["best_known"] else None,
        is_optimal=row["is_optimal"] == "yes",
        sha256=row["sha256"],
        path=row["path"],
        digest=row["digest"],
    )
