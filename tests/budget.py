"""Lines of code by folder, without docstrings, comments and blanks, and the budgets for them.

    python tests/budget.py

A full run of the tests prints the same. Nothing fails above a budget: it says where to look first.
"""

import ast
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUDGETS = {
    "jaxopt_search": {
        "problems": 2900,
        "engine": 1400,
        "backends": 1300,
        "solvers": 1200,
        "neighborhoods": 1150,
        "searches": 1100,
        "driver": 1100,
        "successors": 850,
        "datasets": 800,
        "testing": 750,
        "command": 480,
        "crossovers": 400,
        ".": 480,
        "results": 470,
        "exchanges": 120,
    },
    "tests": {
        "faults": 2000,
        "problems": 1600,
        "experiments": 1500,
        "searches": 1400,
        ".": 1500,
        "driver": 1300,
        "successors": 1150,
        "solvers": 1000,
        "backends": 900,
        "engine": 750,
        "datasets": 700,
        "command": 450,
        "padding": 400,
        "neighborhoods": 350,
        "testing": 340,
        "results": 400,
        "exchanges": 280,
        "crossovers": 280,
        "guide": 200,
    },
    "experiments": {
        "pspm": 900,
        "islands": 850,
        "multistart": 780,
        "queens": 750,
        "finite": 680,
        ".": 580,
        "fang": 500,
        "peers": 610,
        "first_call": 350,
        "tsp": 340,
        "benchmark": 160,
    },
}
"""Of each folder; a dot stands for the files that are in none."""


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
    """Returns the size of each tree, and which of its folders are above their budgets."""
    lines = []
    for tree, budgets in BUDGETS.items():
        sizes: dict[str, int] = {}
        files = sorted((ROOT / tree).rglob("*.py"))
        for path in files:
            folder, *rest = path.relative_to(ROOT / tree).parts
            folder = folder if rest else "."
            sizes[folder] = sizes.get(folder, 0) + lines_of_code(path)
        total, most = sum(sizes.values()), sum(budgets.values())
        lines.append(f"{tree}: {total:,} lines of code (budget {most:,}) in {len(files)} files")
        above = [
            f"{folder} {size:,} ({budgets.get(folder, 0):,})"
            for folder, size in sorted(sizes.items(), key=lambda item: -item[1])
            if size > budgets.get(folder, 0)
        ]
        lines += [f"  above their budgets: {', '.join(above)}"] if above else []
    return lines


if __name__ == "__main__":
    print("\n".join(report()))
