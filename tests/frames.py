"""How far it is from `solve_tsp(xy)` to its first chunk and to the prices of moves.

    python tests/frames.py

prints how many modules and functions of the library are entered until the first chunk is made, and
the frames that stand between the call and where moves are priced when that is traced. Of functions,
comprehensions and lambdas do not count.
"""

import contextlib
import os
import pathlib
import sys
import threading
from typing import Any

FOLDER = str(pathlib.Path(__file__).resolve().parents[1] / "jaxopt_search") + os.sep


def measure() -> tuple[set[str], set[tuple[str, str]], list[str]]:
    """Returns the modules, the functions, and the frames from the call to the price."""
    import jax
    import numpy as np

    import jaxopt_search as js

    solve, xy = js.solve_tsp, np.random.default_rng(0).random((30, 2))
    modules, functions, frames = set[str](), set[tuple[str, str]](), list[str]()

    def note(frame: Any, event: str, argument: Any) -> None:
        name = _name_of(frame)
        if name == ("driver/options.py", "Timer.start_search"):
            sys.setprofile(None)
            threading.setprofile(None)
        elif name is not None and event == "call" and not name[1].endswith(">"):
            modules.add(name[0])
            functions.add(name)

    def look(frame: Any, event: str, argument: Any) -> None:
        name = _name_of(frame)
        if name is None or event != "call" or name[1] != "TwoOpt.best_of":
            return
        sys.setprofile(None)
        while frame is not None:
            if (name := _name_of(frame)) is not None and not name[1].endswith(">"):
                frames.append(" ".join(name))
            frame = frame.f_back
        raise _Found

    threading.setprofile(note)  # programs are traced in threads
    sys.setprofile(note)
    solve(xy, max_steps=1, devices=1)
    sys.setprofile(look)
    with jax.disable_jit(), contextlib.suppress(_Found):  # or other threads would trace
        solve(xy, max_steps=1, devices=1)
    sys.setprofile(None)
    return modules, functions, frames[::-1]


class _Found(BaseException):
    """Where moves are priced."""


def _name_of(frame: Any) -> tuple[str, str] | None:
    """Returns the module and the name of a function of the library; else None."""
    code = frame.f_code
    if not code.co_filename.startswith(FOLDER):
        return None
    return code.co_filename.removeprefix(FOLDER), code.co_qualname


if __name__ == "__main__":
    modules, functions, frames = measure()
    if "--all" in sys.argv:
        print(*(" ".join(one) for one in sorted(functions)), sep="\n")
    print(*frames, sep="\n")
    print(f"{len(modules)} modules, {len(functions)} functions, {len(frames)} frames")
