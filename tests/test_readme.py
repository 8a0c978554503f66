"""The code of the README and the first pages runs, with shorter limits; links lead somewhere."""

import re

import pages
import pytest

ROOT = pages.ROOT
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
# Of each page, how many blocks of code it has, and the limits that are shortened.
CODE = {
    "README.md": (3, {"max_steps=4000": "max_steps=300", "max_steps=2000": "max_steps=200"}),
    "docs/index.md": (1, {"max_steps=4000": "max_steps=300"}),
    "docs/first_steps.md": (
        4,
        {
            "max_steps=4000": "max_steps=300",
            "max_steps=5000\n": "max_steps=310\n",
            "max_steps=5000)": "max_steps=50)",
        },
    ),
    "docs/your_data.md": (5, {}),
    "docs/assigning.md": (3, {}),
    "docs/concepts.md": (
        1,
        {
            "max_steps=1_000_000, max_seconds=60": "max_steps=300",
            "show_progress=True": "show_progress=False",
        },
    ),
}


def blocks(page):
    """Returns the blocks of a page that use the library."""
    return [block for block in pages.blocks(page) if "js." in block]


@pytest.mark.slow
@pytest.mark.parametrize("page", CODE)
def test_the_code_runs(page, tmp_path, monkeypatch):
    """The blocks of a page, one after the other; files are written to the folder one is in."""
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("matplotlib").use("agg")
    number, limits = CODE[page]
    found = blocks(page)
    assert len(found) == number
    names = {}
    for block in found:
        for limit, shorter in limits.items():
            block = block.replace(limit, shorter)
        assert "max_seconds" not in block and "max_steps=1_000" not in block
        exec("import jaxopt_search as js\n" + block, names)
        assert names["result"].nit > 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    """To a file of the repository, and to a heading where they name one."""
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if target.startswith(("http:", "https:")):
            continue
        name, _, heading = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        assert path.exists(), target
        if heading:
            headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            assert heading in map(anchor, headings), target


def anchor(heading):
    """Returns the name that links have for a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
