"""The README's code runs as it stands, with shorter limits."""

import pathlib
import re

import pytest

README = pathlib.Path(__file__).resolve().parents[1] / "README.md"
SHORTER = {
    "max_seconds=10": "max_steps=300",
    "max_steps=1_000_000, max_seconds=60": "max_steps=300",
    "max_steps=5000": "max_steps=50",
    "show_progress=True": "show_progress=False",
}


def blocks():
    """Returns the indented blocks that use the library."""
    text = README.read_text(encoding="utf-8")
    found = re.findall(r"(?:^ {4}.*\n|^\n(?= {4}))+", text, flags=re.MULTILINE)
    return [re.sub(r"^ {4}", "", block, flags=re.MULTILINE) for block in found if "js." in block]


@pytest.mark.slow
def test_the_code_runs():
    """Three blocks: three lines to a result, the driver, a problem of one's own."""
    found = blocks()
    assert len(found) == 3
    for block in found:
        for limit, shorter in SHORTER.items():
            block = block.replace(limit, shorter)
        assert "max_steps=1_000" not in block
        names = {}
        exec("import jaxopt_search as js\n" + block, names)
        assert names["result"].nit > 0


def test_every_limit_is_shortened():
    """The limits above are the README's, so that the test stays short and true."""
    text = "".join(blocks())
    assert all(limit in text for limit in SHORTER)
