"""Makes the notebooks from scripts.

    python -m experiments.notebooks
    python -m experiments.notebooks --check

`notebooks/NAME.py` is the source: a script with a mark before each cell, `# %%` before code and
`# %% [markdown]` before text, as Jupytext and most editors know them. It also runs as a script.
`notebooks/NAME.ipynb` is made from it, without outputs.
"""

import argparse
import hashlib
import json
import pathlib
import re
import sys
from collections.abc import Sequence
from typing import Any

from experiments.made_files import keep_current

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "notebooks"
_MARK = re.compile(r"^# %%( \[markdown\])?\n", re.MULTILINE)
_MAGIC = re.compile(r"^(\s*)# (?=%[a-z])", re.MULTILINE)

_METADATA = {
    "accelerator": "GPU",  # for Colab, which then offers one
    "colab": {"gpuType": "T4"},
    "jupytext": {"formats": "ipynb,py:percent"},
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def sources() -> list[pathlib.Path]:
    """Returns the scripts, in the order in which they are read."""
    return sorted(FOLDER.glob("*.py"))


def notebook(script: str) -> str:
    """Returns the notebook of a script, as the text of an `.ipynb` file.

    Args:
      script: the text of a script. What stands before the first mark is left out.
    """
    _, *parts = _MARK.split(script)
    pairs = zip(parts[::2], parts[1::2], strict=True)
    cells = [_text(body) if mark else _code(body) for mark, body in pairs]
    whole = {"cells": cells, "metadata": _METADATA, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def _text(body: str) -> dict[str, Any]:
    return _cell("markdown", re.sub(r"^# ?", "", body, flags=re.MULTILINE))


def _code(body: str) -> dict[str, Any]:
    source = _MAGIC.sub(r"\1", body)  # a magic of Jupyter's is a comment in the script
    return _cell("code", source) | {"execution_count": None, "outputs": []}


def _cell(kind: str, source: str) -> dict[str, Any]:
    source = source.strip("\n")
    number = hashlib.sha256(f"{kind} {source}".encode()).hexdigest()[:12]
    lines = source.splitlines(keepends=True)
    return {"cell_type": kind, "id": number, "metadata": {}, "source": lines}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status: 1 if `--check` finds a notebook that differs."""
    flags = argparse.ArgumentParser(
        prog="experiments.notebooks", description="Makes notebooks/*.ipynb from notebooks/*.py."
    )
    flags.add_argument("--check", action="store_true", help="only tell which ones differ")
    args = flags.parse_args(arguments)
    made = (
        (script.with_suffix(".ipynb"), notebook(script.read_text(encoding="utf-8")))
        for script in sources()
    )
    return keep_current(made, args.check, "differs from its script", "written")


if __name__ == "__main__":
    sys.exit(main())
