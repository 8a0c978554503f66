"""Progress: what is written where. Files and pipes are in faults/test_driver.py."""

import contextlib
import io
import os
import sys
import types
import warnings

import pytest
from probes import countdown, line

import jaxopt_search as js
from jaxopt_search.driver import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def snapshot(step, status=js.Status.RUNNING, gap=None):
    return js.Report(step, 1.25, 1234, None, gap, 0.5, status)


def test_a_terminal_has_one_line_rewritten():
    """Each report starts at the left edge; only the last one ends the line."""
    out = Terminal()
    show = progress.reporter(out)
    show(snapshot(10))
    show(snapshot(20, js.Status.MAX_STEPS, gap=0.015))
    _, first, last = out.getvalue().split("\r")
    assert first.rstrip(" ") == "step 10  1.2 s  best 1234  acceptance 0.500"
    assert last == f"{'step 20  1.2 s  best 1234  gap 1.500%  acceptance 0.500':<79}\n"


def test_a_notebook_has_a_bar_of_tqdm(monkeypatch):
    """Inside a kernel tqdm shows the line and is closed at the end; without tqdm, plain lines."""
    shown = []

    class Bar:
        def __init__(self, bar_format):
            assert bar_format == "{desc}"

        def set_description_str(self, text):
            shown.append(text)

        def close(self):
            shown.append("closed")

    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", types.SimpleNamespace(tqdm=Bar))
    show = progress.reporter()
    show(snapshot(10))
    show(snapshot(20, js.Status.TARGET))
    assert [text.split("  ")[0] for text in shown] == ["step 10", "step 20", "closed"]
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setattr(sys, "stderr", out := io.StringIO())
    progress.reporter()(snapshot(30))
    assert out.getvalue().startswith("step 30  ")


def closed():
    stream = io.StringIO()
    stream.close()
    return stream


def broken_pipe():
    reader, writer = os.pipe()
    os.close(reader)
    return os.fdopen(writer, "w")


class Failing(Terminal):
    def write(self, text):
        raise UnicodeEncodeError("ascii", text, 0, 1, "no luck")


BAD_STREAMS = {"None": lambda: None, "closed": closed, "pipe": broken_pipe, "failing": Failing}


@pytest.mark.parametrize("name", BAD_STREAMS)
def test_a_result_is_not_lost_to_its_progress(monkeypatch, name):
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


def test_warnings_that_are_errors():
    """Nor to the warning, in the suite's own settings."""
    show = progress.reporter(Failing())
    show(snapshot(1))
    show(snapshot(2))


def test_ctrl_c_while_something_is_shown():
    """Ctrl-C there is one."""

    class Interrupted(Terminal):
        def write(self, text):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        progress.reporter(Interrupted())(snapshot(1))


def test_a_bar_that_fails(monkeypatch):
    """A notebook's bar is a side show, too."""

    def bar(bar_format):
        raise RuntimeError("no widgets")

    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", types.SimpleNamespace(tqdm=bar))
    with pytest.warns(UserWarning, match="no widgets"):
        progress.reporter()(snapshot(1))
