"""Finding instances by name: folders, attacks on names, and downloads from a local server."""

import csv
import gc
import hashlib
import http.server
import socket
import sys
import threading

import numpy as np
import pytest

from jaxopt_search.datasets import QAPInstance, TSPInstance, load, names, registry
from jaxopt_search.datasets.instances import digest
from jaxopt_search.errors import DownloadError, InstanceFormatError

BURMA = "TYPE: TSP\nDIMENSION: 14\nEDGE_WEIGHT_TYPE: GEO\nNODE_COORD_SECTION\n" + "".join(
    f"{i} {i}.0 {2 * i}.0\n" for i in range(1, 15)
)
NUG5 = "5 999\n" + "1 " * 50
ENTRY = registry.Entry(
    *("burma14", "tsplib", 14, 3323, True),
    *(hashlib.sha256(BURMA.encode()).hexdigest(), "burma14.tsp"),
    digest(
        TSPInstance(
            name="burma14",
            edge_weight_type="GEO",
            coordinates=np.outer(np.arange(1.0, 15.0), [1.0, 2.0]),
        )
    ),
)
ONES = np.ones((5, 5), np.int64)
NUG5_ENTRY = registry.Entry(
    *("nug5", "qaplib", 5, 50, True),
    *(hashlib.sha256(NUG5.encode()).hexdigest(), "nug5.dat"),
    digest(QAPInstance(name="nug5", flow=ONES, distance=ONES)),
)


@pytest.fixture(autouse=True)
def isolated(monkeypatch, tmp_path):
    """No test sees the user's cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home-cache"))


def test_registry_agrees_with_the_tables(data_dir):
    """Sizes and best known costs agree with the tables; proofs are claimed where they do."""
    entries = registry.entries()
    for table, value, proof in [
        ("tsplib/optimal.csv", "optimal_length", "proven"),
        ("qaplib/best_known.csv", "best_known", "proven_optimal"),
    ]:
        with open(data_dir / table, newline="") as file:
            for row in csv.DictReader(file):
                entry = entries[row["name"]]
                assert entry.collection == table[:6]
                assert entry.n == int(row.get("n") or row["dimension"])
                assert entry.best_known == int(row[value])
                assert entry.is_optimal == (row[proof] == "yes")


def test_checksums_are_those_of_the_files(data_dir):
    """The recorded SHA-256 fits the TSPLIB files, which the source has byte for byte."""
    paths = sorted((data_dir / "tsplib").glob("*.tsp"))
    assert paths
    for path in paths:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        assert registry.entries()[path.stem].sha256 == digest, path.name


def test_registry_is_well_formed():
    """Each row can be used: a size, a digest, and a checksum with a path or neither."""
    assert len(names()) == len(names("tsplib")) + len(names("qaplib")) == 273
    for entry in registry.entries().values():
        assert registry.find(entry.name) is entry
        assert entry.n >= 1 and entry.collection in registry.SOURCES
        assert bool(entry.sha256) == bool(entry.path) and len(entry.sha256) in (0, 64)
        assert len(entry.digest) == 32
    assert registry.entries()["kra32"].path == ""
    assert names("tsplib")[0] == "burma14" and names("tsplib")[-1] == "pla85900"
    with pytest.raises(ValueError, match="collection is 'vrplib', expected one of tsplib, qaplib"):
        names("vrplib")


@pytest.mark.parametrize(("folder", "variable"), [("", False), ("tsplib", True)])
def test_a_file_in_the_data_folder_is_found(folder, variable, tmp_path, monkeypatch):
    """The folder is an argument or an environment variable; the record comes with the data."""
    monkeypatch.setitem(registry.entries(), "burma14", ENTRY)
    (tmp_path / folder).mkdir(exist_ok=True)
    (tmp_path / folder / "burma14.tsp").write_text(BURMA)
    if variable:
        monkeypatch.setenv("JAXOPT_SEARCH_DATA", str(tmp_path))
    instance = load("burma14", data_dir=None if variable else tmp_path)
    assert (instance.name, instance.n, instance.best_known) == ("burma14", 14, 3323)
    assert instance.is_optimal


@pytest.mark.parametrize("file", ["nug5.dat", "qaplib/nug5.txt"])
def test_qaplib_files_are_found_and_the_registry_knows_better(file, tmp_path, monkeypatch):
    """The recorded best known cost replaces that in the file; the argument beats the variable."""
    monkeypatch.setitem(registry.entries(), "nug5", NUG5_ENTRY)
    (tmp_path / "qaplib").mkdir()
    (tmp_path / file).write_text(NUG5)
    monkeypatch.setenv("JAXOPT_SEARCH_DATA", str(tmp_path / "absent"))
    instance = load("nug5", data_dir=tmp_path)
    assert isinstance(instance, QAPInstance)
    assert (instance.best_known, instance.is_optimal) == (50, True)


@pytest.mark.parametrize("name", ["../../etc/passwd", 14])
def test_names_are_no_paths(name, tmp_path):
    """Only registered names are looked up; anything else ends before the disk is touched."""
    with pytest.raises(ValueError, match=r"^name is .*not in the registry.*load_tsplib") as caught:
        load(name, data_dir=tmp_path / "absent", download=True)
    assert "\n" not in str(caught.value) and "\0" not in str(caught.value)


def test_missing_files_are_told_how_to_get(tmp_path):
    """Without a file and without permission to download, the error says what to do."""
    for arguments in ({}, {"data_dir": tmp_path}, {"cache_dir": tmp_path}):
        with pytest.raises(FileNotFoundError) as caught:
            load("burma14", **arguments)
        assert "JAXOPT_SEARCH_DATA" in str(caught.value)
    with pytest.raises(FileNotFoundError, match="data_dir is .*expected an existing folder"):
        load("burma14", data_dir=tmp_path / "absent")


def test_other_numbers_under_a_known_name_are_refused(tmp_path, monkeypatch):
    """Of the right size, but one digit differs; the layout of the file does not matter."""
    path = tmp_path / "burma14.tsp"
    monkeypatch.setitem(registry.entries(), "burma14", ENTRY._replace(sha256="0" * 64))
    path.write_bytes(f"NAME: x\n{BURMA}".replace("7.0", "7").replace("\n", "\r\n").encode())
    assert load("burma14", data_dir=tmp_path).best_known == 3323
    for other in (BURMA.replace("14.0", "15.0"), BURMA.replace("GEO", "EUC_2D")):
        path.write_text(other)
        with pytest.raises(InstanceFormatError, match="numbers are not those of burma14") as caught:
            load("burma14", data_dir=tmp_path)
        assert "load_tsplib(path)" in str(caught.value) and "\n" not in str(caught.value)


@pytest.fixture
def server():
    """A web server on this machine: its `answers` map paths to (status, headers, body)."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.asked.append(self.path)
            status, headers, body = self.server.answers.get(self.path, (404, {}, b""))
            self.send_response(status)
            for key, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.answers, server.asked = {}, []
        server.url = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def fetch(tmp_path, monkeypatch):
    """Downloads burma14, recorded here with the checksum of a small stand-in."""
    pytest.importorskip("pooch")
    monkeypatch.setitem(registry.entries(), "burma14", ENTRY)
    cache = tmp_path / "cache"

    def fetch(url):
        monkeypatch.setitem(registry.SOURCES, "tsplib", url)
        return load("burma14", download=True, cache_dir=cache)

    return fetch


def test_a_download_is_checked_and_kept(server, fetch, tmp_path):
    """The file is fetched once, then found in the cache, also without `download`."""
    server.answers["/mirror/burma14.tsp"] = (200, {}, BURMA.encode())
    instance = fetch(f"{server.url}/mirror")
    assert (instance.name, instance.n, instance.best_known) == ("burma14", 14, 3323)
    again = load("burma14", cache_dir=tmp_path / "cache")
    np.testing.assert_array_equal(again.coordinates, instance.coordinates)
    fetch(server.url)
    assert server.asked == ["/mirror/burma14.tsp"]


def test_a_damaged_cache_is_not_used(server, fetch, tmp_path):
    """A cached file with another checksum counts as absent, and is replaced by a download."""
    path = tmp_path / "cache" / "burma14.tsp"
    path.parent.mkdir()
    path.write_text(BURMA.replace("14 14.0", "14 15.0"))
    with pytest.raises(FileNotFoundError):
        load("burma14", cache_dir=path.parent)
    server.answers["/burma14.tsp"] = (200, {}, BURMA.encode())
    fetch(server.url)
    assert path.read_text() == BURMA


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((200, {}, BURMA.replace("1.0", "1.5").encode()), "another SHA-256 than recorded"),
        ((200, {"Content-Length": "999", "Connection": "close"}, BURMA[:90].encode()), "burma14"),
        ((404, {}, b""), "failed .*404.*; get http.*/burma14.tsp by hand"),
    ],
)
def test_bad_answers_leave_nothing(answer, message, server, fetch, tmp_path):
    """Whatever is not the recorded file is an error in one line, and no file stays behind."""
    server.answers["/burma14.tsp"] = answer
    with pytest.raises(DownloadError, match=message) as caught:
        fetch(server.url)
    assert "\n" not in str(caught.value)
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of its socket
def test_no_network_names_the_way_by_hand(fetch):
    """If nobody answers, the error names the address and what to do with the file."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(DownloadError, match="failed.*by hand.*data_dir=") as caught:
            fetch(url)
    assert f"{url}/burma14.tsp" in str(caught.value) and "\n" not in str(caught.value)
    del caught
    gc.collect()  # the socket that it holds


def test_without_pooch_the_extra_is_named(fetch, monkeypatch):
    """The downloader is optional; asking for it without having it says what to install."""
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"pip install pooch"):
        fetch("http://127.0.0.1:9")
