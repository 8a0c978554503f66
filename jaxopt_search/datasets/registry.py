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
import re
import urllib.parse
import warnings
from typing import Any, NamedTuple

from jaxopt_search.checks import imported
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

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,40}")
_SUFFIXES = {"tsplib": (".tsp",), "qaplib": (".dat", ".txt")}
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_TIMEOUT = 30  # seconds without an answer
_MOST_BYTES = 64 * 2**20  # of a file in the cache; the largest known file has less than 3 MiB


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
    found: dict[str, Entry] = {}
    for row in rows:
        values: dict[str, Any] = dict(row)
        values["n"], values["is_optimal"] = int(row["n"]), row["is_optimal"] == "yes"
        values["best_known"] = int(row["best_known"]) if row["best_known"] else None
        found[row["name"]] = Entry(**values)
    return found


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
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        expected = "letters, digits and _.- only, at most 40"
        raise ValueError(f"name is {name!r:.60}, expected {expected} {own}")
    if name not in entries():
        lower = {known.lower(): known for known in entries()}
        close = [lower[x] for x in difflib.get_close_matches(name.lower(), lower, n=3)]
        hint = f"did you mean {', '.join(close)}?" if close else "expected one of names()"
        raise ValueError(f"name is {name!r}, which is not in the registry; {hint} {own}")
    return entries()[name]


def load(
    name: str,
    *,
    data_dir: str | os.PathLike | None = None,
    download: bool = False,
    cache_dir: str | os.PathLike | None = None,
    base_url: str | None = None,
) -> TSPInstance | QAPInstance:
    """Returns a known instance, with its best known cost.

    The file is looked for as `NAME.tsp`, `NAME.dat` or `NAME.txt` in the data folder and its
    subfolders `tsplib` and `qaplib`, then in the cache of earlier downloads. Nothing is downloaded
    unless `download` is true. linhp318 has a fixed edge and is refused; without it, it is lin318.

    A file whose numbers differ from the recorded ones is refused, whatever its name. For a few
    instances only the checksum of a file is on record; any other file of these comes without a
    best known cost, and with a warning.

    Args:
      name: one of `names()`.
      data_dir: the data folder; by default the environment variable JAXOPT_SEARCH_DATA.
      download: whether a file found nowhere may be downloaded, by pooch; it is asked for
        over https, and must have the recorded SHA-256.
      cache_dir: where downloads are kept; by default `jaxopt_search` in XDG_CACHE_HOME or
        `~/.cache`.
      base_url: a mirror of the collection; https, or http on this machine.

    Raises:
      TypeError: a folder or an address is not a string or path.
      ValueError: the name is not known, or a file lies outside its folder (a symbolic link).
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
    for what, value in (("data_dir", data_dir), ("cache_dir", cache_dir)):
        if not isinstance(value, str | os.PathLike | None):
            raise TypeError(f"{what} is {value!r}, expected a path or None")
    if not isinstance(base_url, str | None):
        raise TypeError(f"base_url is {base_url!r}, expected an address or None")
    entry = find(name)
    cache = cache_folder() if cache_dir is None else pathlib.Path(cache_dir)
    path = _find_file(entry, data_dir) or _find_cached(entry, cache)
    if path is None and download:
        path = _download(entry, cache, base_url)
    if path is None:
        raise FileNotFoundError(
            f"no file for {name!r} found; pass data_dir=, set {DATA_VARIABLE}, "
            "or pass download=True"
        )
    return _read(entry, path)


def _read(entry: Entry, path: pathlib.Path) -> TSPInstance | QAPInstance:
    instance = load_tsplib(path) if entry.collection == "tsplib" else load_qaplib(path)
    if instance.n != entry.n:
        raise InstanceFormatError(
            f"{path}:1: the instance has size {instance.n}, expected {entry.n} for {entry.name}"
        )
    if entry.digest and digest(instance) != entry.digest:
        own = f"load_{entry.collection}"
        raise InstanceFormatError(
            f"{path}:1: the numbers are not those of {entry.name}, expected the recorded instance;"
            f" {own}(path) reads any file"
        )
    if not entry.digest and not _is_recorded(path, entry.sha256):
        warnings.warn(
            f"{path} is not the recorded file of {entry.name}; it comes without a best known cost",
            stacklevel=3,
        )
        return dataclasses.replace(instance, name=entry.name, best_known=None)
    found = dataclasses.replace(instance, name=entry.name)
    if entry.best_known is None:
        return found
    return dataclasses.replace(found, best_known=entry.best_known, is_optimal=entry.is_optimal)


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
                _refuse_outside(path, folder)
                return path
    return None


def _find_cached(entry: Entry, cache: pathlib.Path) -> pathlib.Path | None:
    """Returns the file of an earlier download if it is still the recorded one."""
    path = _cached_path(entry, cache)
    if path.is_file() and entry.sha256:
        _refuse_outside(path, cache)
        if path.stat().st_size <= _MOST_BYTES and _is_recorded(path, entry.sha256):
            return path
    return None


def _refuse_outside(path: pathlib.Path, folder: pathlib.Path) -> None:
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ValueError(f"{path} is a link out of {folder}, expected a file in that folder")


def _cached_path(entry: Entry, cache: pathlib.Path) -> pathlib.Path:
    return cache / f"{entry.name}{_SUFFIXES[entry.collection][-1]}"


def _is_recorded(path: pathlib.Path, sha256: str) -> bool:
    """Returns whether it is the file with this checksum, perhaps with other line ends."""
    content = path.read_bytes()
    found = (hashlib.sha256(each) for each in (content, content.replace(b"\r\n", b"\n")))
    return sha256 in [each.hexdigest() for each in found]


def _download(entry: Entry, cache: pathlib.Path, base_url: str | None) -> pathlib.Path:
    """Downloads into the cache and returns the path. A file that is not the recorded one is
    never left under its name."""
    if not entry.path:
        raise DownloadError(
            f"{entry.name} cannot be downloaded (no public copy has the right numbers); "
            "put it in a folder and pass data_dir="
        )
    pooch = imported("pooch", "download=True needs pooch")
    url = f"{(base_url or SOURCES[entry.collection]).rstrip('/')}/{entry.path}"
    _check_url(url)
    target = _cached_path(entry, cache)
    by_hand = f"get {url} by hand, put it in a folder as {target.name} and pass data_dir="
    try:
        cache.mkdir(parents=True, exist_ok=True)
        if target.is_symlink() or target.exists():
            target.unlink()  # not the recorded file, or it would have been found
        pooch.retrieve(
            url,
            known_hash=f"sha256:{entry.sha256}",
            fname=target.name,
            path=cache,
            downloader=pooch.HTTPDownloader(timeout=_TIMEOUT),
        )
    except OSError as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DownloadError(f"download of {entry.name} failed ({reason}); {by_hand}") from error
    except ValueError as error:  # pooch compares checksums and deletes the file
        raise DownloadError(
            f"{url} has another SHA-256 than recorded and was deleted, expected {entry.sha256}"
        ) from error
    return target


def _check_url(url: str) -> None:
    if not url.isprintable():
        raise DownloadError(f"{url!r} is refused, expected an https address")
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError as error:
        raise DownloadError(f"{url} is refused ({error}), expected an https address") from error
    is_local = parts.scheme == "http" and parts.hostname in _LOOPBACK
    if parts.scheme != "https" and not is_local:
        raise DownloadError(f"{url} is refused, expected an https address")
