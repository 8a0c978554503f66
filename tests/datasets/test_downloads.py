"""Downloads of instances: checked, kept, refused."""

import gc
import hashlib
import http.server
import socket
import sys
import threading

import numpy as np
import pytest

from jaxopt_search.datasets import load, registry
from jaxopt_search.errors import DownloadError

BURMA = "TYPE: TSP\nDIMENSION: 14\nEDGE_WEIGHT_TYPE: GEO\nNODE_COORD_SECTION\n" + "".join(
    f"{i} {i}.0 {2 * i}.0\n" for i in range(1, 15)
)
ENTRY = registry.Entry(
    "burma14", "tsplib", 14, 3323, True, hashlib.sha256(BURMA.encode()).hexdigest(), "burma14.tsp"
)


@pytest.fixture(autouse=True)
def isolated(monkeypatch, tmp_path):
    """No test sees the user's cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home-cache"))


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
    return lambda url: load("burma14", download=True, cache_dir=cache, base_url=url)


def test_a_download_is_checked_and_kept(server, fetch, tmp_path, monkeypatch):
    """The file is fetched once, then found in the cache, also without `download`."""
    server.answers["/mirror/burma14.tsp"] = (200, {}, BURMA.encode())
    instance = fetch(f"{server.url}/mirror/")
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
        ((200, {}, b""), "another SHA-256 than recorded"),
        ((200, {}, BURMA[:90].encode()), "another SHA-256 than recorded"),
        ((200, {"Content-Length": "999", "Connection": "close"}, BURMA[:90].encode()), "burma14"),
        ((404, {}, b""), "failed .*404.*; get http.*/burma14.tsp by hand"),
        ((302, {"Location": "/burma14.tsp"}, b""), "failed"),  # around in circles
    ],
)
def test_bad_answers_leave_nothing(answer, message, server, fetch, tmp_path):
    """Whatever is not the recorded file is an error in one line, and no file stays behind."""
    server.answers["/burma14.tsp"] = answer
    with pytest.raises(DownloadError, match=message) as caught:
        fetch(server.url)
    assert "\n" not in str(caught.value)
    assert list((tmp_path / "cache").iterdir()) == []


def test_redirects_within_the_machine_are_followed(server, fetch):
    """Redirects as such are fine."""
    server.answers["/burma14.tsp"] = (302, {"Location": "/other"}, b"")
    server.answers["/other"] = (200, {}, BURMA.encode())
    assert fetch(server.url).n == 14
    assert server.asked == ["/burma14.tsp", "/other"]


@pytest.mark.parametrize(
    "url",
    [
        "http://example.invalid",
        "ftp://127.0.0.1",
        "file:///tmp",
        "x",
        "https://[::1",
        "https://a\r\nX: y",
    ],
)
def test_only_https_is_asked(url, fetch):
    """Addresses that are not https, and not on this machine, are refused unasked."""
    with pytest.raises(DownloadError, match="is refused.* expected an https address") as caught:
        fetch(url)
    assert "\n" not in str(caught.value)


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


def test_what_has_no_public_copy_is_not_downloaded(tmp_path):
    """kra32's public copy has other distances: known optimum, no download."""
    with pytest.raises(DownloadError, match="kra32 cannot be downloaded"):
        load("kra32", download=True, cache_dir=tmp_path)


def test_without_pooch_the_extra_is_named(fetch, monkeypatch):
    """The downloader is optional; asking for it without having it says what to install."""
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"pip install pooch"):
        fetch("http://127.0.0.1:9")
