"""Makes the notebooks from scripts, and runs them; their outputs are kept.

    python -m experiments.notebooks
    python -m experiments.notebooks 1_quickstart 3_queens

`notebooks/NAME.py` is the source: a script with a mark before each cell, `# %%` before code and
`# %% [markdown]` before text, as Jupytext and most editors know them. It also runs as a script.
`notebooks/NAME.ipynb` is made from it, with what its cells print and draw here. Needs what the
extra `docs` installs.
"""

import argparse
import base64
import hashlib
import io
import json
import os
import pathlib
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "notebooks"
_MARK = re.compile(r"^# %%( \[markdown\])?\n", re.MULTILINE)
_MAGIC = re.compile(r"^(\s*)# (?=%[a-z])", re.MULTILINE)
_SMALL = "figure.dpi: 90\n"  # for matplotlib
_PICTURES, _COLORS = ("image/png", "image/gif"), 128
_SECONDS = 600  # that a cell may take

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


def notebook(script: pathlib.Path) -> dict[str, Any]:
    """Returns the notebook of a script, not run; what stands before the first mark is left out."""
    _, *parts = _MARK.split(script.read_text(encoding="utf-8"))
    pairs = zip(parts[::2], parts[1::2], strict=True)
    cells = [_text(body) if mark else _code(body) for mark, body in pairs]
    return {"cells": cells, "metadata": _METADATA, "nbformat": 4, "nbformat_minor": 5}


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


def run(made: dict[str, Any]) -> None:
    """Fills in what the cells of a notebook print and draw, with small pictures.

    Raises:
      nbclient.exceptions.CellExecutionError: if one fails.
    """
    import nbclient
    import nbformat

    whole = nbformat.reads(json.dumps(made), as_version=4)
    place = {"metadata": {"path": str(FOLDER)}}
    with tempfile.NamedTemporaryFile("w", suffix="matplotlibrc") as settings:
        settings.write(_SMALL)
        settings.flush()
        env = os.environ | {"MATPLOTLIBRC": settings.name}
        client = nbclient.NotebookClient(
            whole, timeout=_SECONDS, record_timing=False, resources=place
        )
        client.execute(env=env)
    for cell, ran in zip(made["cells"], whole.cells, strict=True):
        if cell["cell_type"] == "code":
            cell["execution_count"], cell["outputs"] = ran.execution_count, ran.outputs
            for output in ran.outputs:
                data = output.get("data", {})
                data.update({kind: _smaller(data[kind]) for kind in data if kind in _PICTURES})


def _smaller(picture: str) -> str:
    """Returns a picture or an animation, base64 as in a notebook, with fewer colors."""
    from PIL import Image, ImageSequence

    packed, frames, times = io.BytesIO(), [], []
    with Image.open(io.BytesIO(base64.b64decode(picture))) as image:
        for frame in ImageSequence.Iterator(image):
            # Sixteen levels of each color, with which white stays white.
            plain = frame.convert("RGB").point(lambda level: (level + 8) // 17 * 17)
            shared = {"palette": frames[0], "dither": Image.Dither.NONE} if frames else {}
            frames.append(plain.quantize(_COLORS, **shared))
            times.append(frame.info.get("duration", 0))
        more = {"save_all": True, "append_images": frames[1:], "duration": times, "loop": 0}
        frames[0].save(packed, image.format, optimize=True, **more if len(frames) > 1 else {})
    return base64.b64encode(packed.getvalue()).decode()


def main(arguments: Sequence[str] | None = None) -> int:
    """Makes and runs notebooks, and returns the exit status."""
    flags = argparse.ArgumentParser(
        prog="experiments.notebooks", description="Makes notebooks/*.ipynb from notebooks/*.py."
    )
    names = [script.stem for script in sources()]
    flags.add_argument("names", nargs="*", choices=[*names, []], help="default: all")
    args = flags.parse_args(arguments)
    for script in sources():
        if args.names and script.stem not in args.names:
            continue
        path, made = script.with_suffix(".ipynb"), notebook(script)
        began = time.perf_counter()
        run(made)
        text = json.dumps(made, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
        path.write_text(text, encoding="utf-8")
        print(
            f"{path.name}: {time.perf_counter() - began:.0f} s, {len(text) // 1000} kB", flush=True
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
