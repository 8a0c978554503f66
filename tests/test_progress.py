"""Progress: what is written where. Files and pipes are in test_faults_driver.py."""

import io
import sys
import types

import jaxopt_search as js
from jaxopt_search import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def snapshot(step, status=js.Status.RUNNING, gap=None):
    return js.Snapshot(step, 1.25, 1234, None, gap, 0.5, status)


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
