"""The known instances: best known costs, and their files in a folder, a cache or, if asked, online.

`registry.csv` has one row per instance. Its values for TSPLIB are from the library's own table of
optima; the values for QAPLIB are from the library's page of 2024-05-09 and later papers. Optima of
the small instances that the page leaves out (esc8, nug5-8, tai5a-9a and the like) were found by
complete enumeration up to n = 11. What to know about single rows:

- linhp318: 41345 is the length without the fixed edge 1-214 (3869); the closed tour has 45214. Its
  file is refused, as it has a fixed edge.
- dsj1000 is CEIL_2D; 18659688, often quoted, is its optimum as EUC_2D.
- kra32: the public copy has different distances, so there is nothing to download.
- tai13a, tai14a, tai16a, tai18a, tai19a: reached by search, not proved.
- esc8f: the 18 in the header of the public copy is wrong; the optimum is 6.
"""

import csv
import dataclasses
import difflib
import functools
import hashlib
import importlib.resources
import os
import pathlib
from typing import NamedTuple

from jaxopt_search.checks import check_option, imported
from jaxopt_search.datasets.instances import QAPInstance, TSPInstance, digest
from jaxopt_search.datasets.readers import load_qaplib, load_tsplib
from jaxopt_search.errors import DownloadError, InstanceFormatError
from jaxopt_search.files import cache_folder

DATA_VARIABLE = "JAXOPT_SEARCH_DATA"
SOURCES = {
    "tsplib": "https://raw.githubusercontent.com/mastqe/tsplib/"
    "775541365dc3f7f3cd6faa8d0e206036d2c45e0e",
    "qaplib": "https://raw.githubusercontent.com/0816keisuke/qaplib/"
    "9045465b65c25230d3235f81aced5cb090a03c62",
}
"""Where the files of a collection are, at a fixed revision."""

_SUFFIXES = {"tsplib": (".tsp",), "qaplib": (".dat", ".txt")}
_TIMEOUT = 30  # seconds without an answer


class Entry(NamedTuple):
    """One row of the registry.

    Attributes:
      name: name of the instance.
      collection: "tsplib" or "qaplib".
      n: number of cities or facilities.
      best_known: best known cost.
      is_optimal: whether `best_known` is proved optimal.
      sha256: checksum of the file at the source, empty if there is no file to download.
      path: path of the file at the source, empty if there is no file to download.
      digest: `instances.digest` of what the file holds.
    """

    name: str
    collection: str
    n: int
    best_known: int
    is_optimal: bool
    sha256: str
    path: str
    digest: str


@functools.cache
def entries() -> dict[str, Entry]:
    """Returns all rows by name. The table is read on the first call."""
    table = importlib.resources.files("jaxopt_search.datasets").joinpath("registry.csv")
    _, *rows = csv.reader(table.read_text(encoding="ascii").splitlines())
    return {
        name: Entry(name, collection, int(n), int(best_known), is_optimal == "yes", *of_file)
        for name, collection, n, best_known, is_optimal, *of_file in rows
    }


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
    check_option("collection", collection, (*SOURCES, None))
    rows = [row for row in entries().values() if collection in (None, row.collection)]
    return [row.name for row in sorted(rows, key=lambda row: (row.n, row.name))]


def find(name: str) -> Entry:
    """Returns the row of an instance.

    Raises:
      ValueError: there is no such name; the message suggests close ones.
    """
    own = "(own files: load_tsplib(path), load_qaplib(path))"
    if name not in entries():
        lower = {known.lower(): known for known in entries()}
        close = [lower[x] for x in difflib.get_close_matches(str(name).lower(), lower, n=3)]
        hint = f"did you mean {', '.join(close)}?" if close else "expected one of names()"
        raise ValueError(f"name is {name!r:.60}, which is not in the registry; {hint} {own}")
    return entries()[name]


def load(
    name: str,
    *,
    data_dir: str | os.PathLike | None = None,
    download: bool = False,
    cache_dir: str | os.PathLike | None = None,
) -> TSPInstance | QAPInstance:
    """Returns a known instance, with its best known cost.

    The file is looked for as `NAME.tsp`, `NAME.dat` or `NAME.txt` in the data folder and its
    subfolders `tsplib` and `qaplib`, then in the cache of earlier downloads. Nothing is downloaded
    unless `download` is true. linhp318 has a fixed edge and is refused; without it, it is lin318.

    A file whose numbers differ from the recorded ones is refused, whatever its name.

    Args:
      name: one of `names()`.
      data_dir: the data folder; by default the environment variable JAXOPT_SEARCH_DATA.
      download: whether a file found nowhere may be downloaded, by pooch; it must have the recorded
        SHA-256.
      cache_dir: where downloads are kept; by default `jaxopt_search` in XDG_CACHE_HOME or
        `~/.cache`.

    Raises:
      TypeError: a folder is not a string or path.
      ValueError: the name is not known.
      FileNotFoundError: the file is not there, and `download` is false.
      DownloadError: the download failed, or the file is not the recorded one.
      InstanceFormatError: the file breaks its format, or holds another instance than recorded.

    Example:
      >>> import tempfile
      >>> empty = tempfile.mkdtemp()
      >>> load("kroA100", data_dir=empty, cache_dir=empty)
      Traceback (most recent call last):
        ...
      FileNotFoundError: no file for 'kroA100' found; pass data_dir=, ... or pass download=True
    """
    entry = find(name)
    cache = cache_folder() if cache_dir is None else pathlib.Path(cache_dir)
    path, cached = _find_file(entry, data_dir), cache / (name + _SUFFIXES[entry.collection][-1])
    if path is None and cached.is_file():
        found = hashlib.sha256(cached.read_bytes()).hexdigest()
        path = cached if found == entry.sha256 else None
    if path is None and download:
        path = _download(entry, cached)
    if path is None:
        raise FileNotFoundError(
            f"no file for {name!r} found; pass data_dir=, set {DATA_VARIABLE}, "
            "or pass download=True"
        )
    instance = load_tsplib(path) if entry.collection == "tsplib" else load_qaplib(path)
    recorded = with_record(instance, entry.name)
    if recorded is None:
        raise InstanceFormatError(
            f"{path}:1: the numbers are not those of {entry.name}, expected the recorded instance;"
            f" load_{entry.collection}(path) reads any file"
        )
    return recorded


def with_record(instance: TSPInstance | QAPInstance, name: str) -> TSPInstance | QAPInstance | None:
    """Returns an instance with the best known cost of this name; None if its numbers are others."""
    entry = entries().get(name)
    if entry is None or entry.digest != digest(instance):
        return None
    known = {"best_known": entry.best_known, "is_optimal": entry.is_optimal}
    return dataclasses.replace(instance, name=name, **known)


def _find_file(entry: Entry, data_dir: str | os.PathLike | None) -> pathlib.Path | None:
    """Returns the file in the data folder; None if it is not there, or no folder was named."""
    what = DATA_VARIABLE if data_dir is None else "data_dir"
    named = os.environ.get(DATA_VARIABLE) if data_dir is None else data_dir
    if not named:
        return None
    folder = pathlib.Path(named)
    if not folder.is_dir():
        raise FileNotFoundError(f"{what} is {str(folder)!r}, expected an existing folder")
    for subfolder in (folder, folder / entry.collection):
        for suffix in _SUFFIXES[entry.collection]:
            path = subfolder / f"{entry.name}{suffix}"
            if path.is_file():
                return path
    return None


def _download(entry: Entry, target: pathlib.Path) -> pathlib.Path:
    """Downloads to a path and returns it. A file that is not the recorded one is not left there."""
    if not entry.path:
        raise DownloadError(
            f"{entry.name} cannot be downloaded (no public copy has the right numbers); "
            "put it in a folder and pass data_dir="
        )
    pooch = imported("pooch", "download=True needs pooch")
    url = f"{SOURCES[entry.collection]}/{entry.path}"
    try:
        pooch.retrieve(
            url,
            known_hash=f"sha256:{entry.sha256}",
            fname=target.name,
            path=target.parent,
            downloader=pooch.HTTPDownloader(timeout=_TIMEOUT),
        )
    except OSError as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        by_hand = f"get {url} by hand, put it in a folder as {target.name} and pass data_dir="
        raise DownloadError(f"download of {entry.name} failed ({reason}); {by_hand}") from error
    except ValueError as error:  # pooch compares checksums and deletes the file
        raise DownloadError(
            f"{url} has another SHA-256 than recorded and was deleted, expected {entry.sha256}"
        ) from error
    return target
