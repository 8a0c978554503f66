"""Progress: what is written where, to files, pipes, terminals and notebooks."""

import contextlib
import gc
import io
import os
import sys
import types
import warnings

import pytest
from probes import countdown, line

import jaxopt_search as js
from jaxopt_search.driver import chunks
from jaxopt_search.driver.options import Timer


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def no_bar_left():
    """Deletes bars that broke: tqdm shows the next one below those that it knows."""
    gc.freeze()  # no bar is among all that other tests left, which takes a second to look through
    yield
    gc.collect()
    gc.unfreeze()


def snapshot(step, status=js.Status.RUNNING, gap=None):
    return js.Report(step, 1.25, 1234, None, gap, 0.5, status, lambda: (None, None))


@pytest.mark.parametrize(
    ("limits", "share"),
    [
        ({"max_steps": 40, "max_seconds": 5.0}, " 25%|"),
        ({"max_steps": 40}, " 50%|"),
        ({}, "step "),
    ],
    ids=str,
)
@pytest.mark.parametrize("status", [js.Status.TARGET, js.Status.INTERRUPTED])
def test_a_terminal_has_a_bar(limits, share, status):
    """Of the seconds, or else the steps; full at the end, unless the run was interrupted.

    Without a limit there is a line.
    """
    pytest.importorskip("tqdm")
    out = Terminal()
    show = chunks.Reporter(out, timer=Timer(**limits))
    show.note_compiling()
    show._bar.mininterval = 0.0  # all are shown, however soon after one another
    show(snapshot(0, gap=0.5)._replace(seconds=0.0))
    show(snapshot(20))
    show(snapshot(20, status, gap=0.015))
    shown = out.getvalue().split("\r")
    assert any("compiling (" in text for text in shown)
    assert all(text.startswith(share) for text in shown if "best 1234  accept" in text)
    full = "100%|" if limits and status == js.Status.TARGET else share
    assert shown[-1].startswith(full) and shown[-1].endswith("\n")
    assert "step 20  1.2 s  best 1234  gap 1.500%" in shown[-1]


def test_an_interrupted_run_shows_where_it_ended(capsys):
    """The observer before has ended it, so that nobody has shown this chunk."""

    def interrupt(report):
        if report.step == 20:
            raise KeyboardInterrupt

    run = {"num_searches": 2, "max_steps": 40, "chunk_steps": 10, "callback": interrupt}
    js.solve(line(), countdown(), 0, show_progress=True, **run)
    assert capsys.readouterr().err.splitlines()[-1].startswith("step 20 ")


def read_to_the_end(reader):
    """Returns what was written to a pseudo-terminal whose other end is closed; closes it."""
    parts = []
    with contextlib.suppress(OSError):  # Linux's way to say that there is no more
        while part := os.read(reader, 2**16):
            parts.append(part)
    os.close(reader)
    return b"".join(parts)


def test_a_run_on_a_pseudo_terminal(monkeypatch):
    """The bar of `solve`: from compiling to the last step, on one line."""
    pytest.importorskip("tqdm")
    pty = pytest.importorskip("pty")
    reader, writer = pty.openpty()
    run = {"num_searches": 2, "max_steps": 40, "chunk_steps": 10}
    with monkeypatch.context() as patch, os.fdopen(writer, "w") as terminal:
        patch.setattr(sys, "stderr", terminal)
        js.solve(line(), countdown(), 0, show_progress=True, **run)
    text = read_to_the_end(reader).decode()
    first, *_, last = text.removesuffix("\r\n").removeprefix("\r").split("\r")
    assert first.startswith("  0%|") and last.startswith("100%|")
    assert "compiling (" in text and "step 40" in last and text.count("\n") == 1


class FakeBar:
    """A bar that takes down what it is asked to show."""

    def __init__(self, total, bar_format, miniters):
        self.total, self.n, self.shown = total, 0, []

    def set_description_str(self, text, refresh):
        self.shown.append(text.split("  ")[0])

    def unpause(self):
        self.shown.append("unpaused")

    def update(self, change):
        self.n += change
        self.shown.append(self.n)

    def close(self):
        self.shown.append("closed")


def test_a_notebook_has_a_bar_of_tqdm(monkeypatch):
    """Inside a kernel tqdm shows the run and is closed at the end; without tqdm, plain lines."""
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", types.SimpleNamespace(tqdm=FakeBar))
    show = chunks.Reporter(timer=Timer(max_steps=40, max_seconds=5.0))
    show.note_compiling()
    show(snapshot(10))
    show(snapshot(20, js.Status.TARGET))
    first, *others = show._bar.shown
    assert first.startswith("compiling (")
    assert others == ["step 10", "unpaused", 1.25, "step 20", 5.0, "closed"]
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setattr(sys, "stderr", out := io.StringIO())
    chunks.Reporter()(snapshot(30))
    assert out.getvalue().startswith("step 30  ")


class Failing(Terminal):
    def write(self, text):
        raise UnicodeEncodeError("ascii", text, 0, 1, "no luck")


def broken_pipe():
    reader, writer = os.pipe()
    os.close(reader)
    return os.fdopen(writer, "w")


BAD_STREAMS = {"None": lambda: None, "pipe": broken_pipe, "failing": Failing}


@pytest.mark.parametrize("name", BAD_STREAMS)
def test_a_result_is_not_lost_to_its_progress(monkeypatch, name, no_bar_left):
    """Where nothing can be shown, a run continues without, after one warning at most."""
    stream = BAD_STREAMS[name]()
    run = {"num_searches": 2, "max_steps": 40, "chunk_steps": 10}
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stream)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            shown = js.solve(line(), countdown(), 0, show_progress=True, **run)
    with contextlib.suppress(OSError, AttributeError, ValueError):
        stream.close()
    assert shown.fun == -20
    told = [str(one.message).partition(":")[0] for one in caught]  # also what JAX warns of
    assert told.count("no progress is shown any more") == 1


def test_ctrl_c_while_something_is_shown(no_bar_left):
    """Ctrl-C there is one."""

    class Interrupted(Terminal):
        def write(self, text):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        chunks.Reporter(Interrupted())(snapshot(1))
