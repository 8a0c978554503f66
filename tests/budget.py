"""Lines of code by folder, without docstrings, comments and blanks, and the budgets for them.

    python tests/budget.py

A full run of the tests prints the same. Nothing fails above a budget: it says where to look first.
"""

import ast
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUDGETS = {"jaxopt_search": 14_500, "tests": 16_500, "experiments": 6_500}


def lines_of_code(path: pathlib.Path) -> int:
    """Returns how many lines of a file hold code."""
    source = path.read_text(encoding="utf-8")
    lines = [line.strip() for line in source.split("\n")]
    texts = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            texts |= set(range(node.lineno - 1, node.end_lineno))
    return sum(
        bool(line) and not line.startswith("#") and number not in texts
        for number, line in enumerate(lines)
    )


def report() -> list[str]:
    """Returns a line for each of the three trees: its size, its budget, and its largest folders."""
    lines = []
    for tree, budget in BUDGETS.items():
        sizes: dict[str, int] = {}
        files = sorted((ROOT / tree).rglob("*.py"))
        for path in files:
            first, *rest = path.relative_to(ROOT / tree).parts
            folder = first if rest else "."
            sizes[folder] = sizes.get(folder, 0) + lines_of_code(path)
        total = sum(sizes.values())
        largest = sorted(sizes.items(), key=lambda item: -item[1])
        lines.append(f"{tree}: {total:,} lines of code (budget {budget:,}), {len(files)} files")
        lines.append("  " + ", ".join(f"{folder} {size:,}" for folder, size in largest[:12]))
    return lines


if __name__ == "__main__":
    print("\n".join(report()))
