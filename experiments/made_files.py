"""Files that a script makes from others: written, or only compared."""

import pathlib
from collections.abc import Iterable


def keep_current(
    files: Iterable[tuple[pathlib.Path, str]], is_check: bool, differs: str, written: str
) -> int:
    """Writes files that are not as they should be, and says which; returns the exit status.

    Args:
      files: paths, and the texts that should be there.
      is_check: whether nothing is written; then the status is 1 if a file differs.
      differs, written: what is said of a file.
    """
    stale = False
    for path, text in files:
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale = True
        print(f"{path.name}: {differs if is_check else written}")
        if not is_check:
            path.write_text(text, encoding="utf-8")
    return int(is_check and stale)
