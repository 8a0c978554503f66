"""Packages that only some functions need: imported when one of them is called."""

import importlib
from typing import Any


def imported(module: str, what: str) -> Any:
    """Returns a module.

    Args:
      module: its name, such as `"scipy.stats"`; what is installed has the name of the first part.
      what: what needs it, for the message: `"plots need matplotlib"`.

    Raises:
      ImportError: in one line, if it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{what}: pip install {module.partition('.')[0]}") from error
