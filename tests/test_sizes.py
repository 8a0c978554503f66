"""Functions, files and parameter lists are short, or say why not: `# size: <reason>`.

The comment stands directly above a function (above its decorators), where it also counts for
functions inside, or in the first lines of a file after its docstring. One that is not needed fails,
too.
"""

import ast
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDERS = ("jaxopt_search", "experiments", "tests")
PATHS = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))

MAX_FILE_LINES = 350
MAX_CODE_LINES = 40
MAX_PARAMETERS = 8
MARK = "# size: "

# What users call in one line, with everything that can be set.
ONE_LINERS = {"solve", "solve_tsp", "solve_qap", "solve_nqueens", "run", "advance"}
ONE_LINERS |= {"tsp", "tsp_from_coords", "tsp_from_instance", "qap", "qap_from_instance", "nqueens"}

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def code_lines(source, node):
    """Returns the lines of code of a function, its decorators and inner functions included.

    Neither docstrings nor comments nor blank lines count.
    """
    lines = source.splitlines()
    start = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    docstrings = set()
    for inner in ast.walk(node):
        if isinstance(inner, (*FUNCTIONS, ast.ClassDef)) and ast.get_docstring(inner) is not None:
            docstrings |= set(range(inner.body[0].lineno, inner.body[0].end_lineno + 1))
    return sum(
        bool(line.strip()) and not line.lstrip().startswith("#") and number not in docstrings
        for number, line in enumerate(lines[start - 1 : node.end_lineno], start)
    )


def num_parameters(node):
    """Returns how many parameters a function has; `self` and `cls` do not count."""
    given = node.args
    names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def reason_above(source, node):
    """Returns whether one of the comments directly above a function is an exception."""
    lines = source.splitlines()
    number = min([node.lineno, *(one.lineno for one in node.decorator_list)]) - 2
    while number >= 0 and lines[number].lstrip().startswith("#"):
        if lines[number].lstrip().startswith(MARK):
            return True
        number -= 1
    return False


def reason_of_file(source, tree):
    """Returns whether a file says right after its docstring, or at its top, why it is long."""
    has_docstring = ast.get_docstring(tree) is not None
    lines = source.splitlines()[tree.body[0].end_lineno if has_docstring else 0 :]
    found = False
    for line in lines:
        found |= line.startswith(MARK)
        if line.strip() and not line.startswith("#"):
            break
        if found and not line.strip():
            return True
    return found and not line.startswith(("def ", "async def ", "@"))


def faults(name, source):
    """Returns what is too large in a file, or excused without need: lines of text."""
    tree, found = ast.parse(source), []
    length, is_excused = len(source.splitlines()), reason_of_file(source, ast.parse(source))
    if length > MAX_FILE_LINES and not is_excused:
        found.append(f"{name} has {length} lines, expected at most {MAX_FILE_LINES}")
    if length <= MAX_FILE_LINES and is_excused:
        found.append(f"{name} has only {length} lines and needs no reason")
    functions = [node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]
    excused = [node for node in functions if reason_above(source, node)]
    inner = {one for node in excused for one in ast.walk(node) if one is not node}
    for node in functions:
        if node in inner:  # the reason of the outer one counts for all of it
            continue
        where, problems = f"{name}:{node.lineno} {node.name}", []
        if (lines := code_lines(source, node)) > MAX_CODE_LINES:
            problems.append(f"{where} has {lines} lines of code, expected at most {MAX_CODE_LINES}")
        number = num_parameters(node)
        if number > MAX_PARAMETERS and node.name not in ONE_LINERS:
            problems.append(f"{where} has {number} parameters, expected at most {MAX_PARAMETERS}")
        if node not in excused:
            found += problems
        elif not problems:
            found.append(f"{where} is short and needs no reason")
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_all_is_short_or_says_why_not(folder):
    paths = [path for path in PATHS if path.is_relative_to(ROOT / folder)]
    assert paths
    found = [
        fault
        for path in paths
        for fault in faults(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(["too large, or excused without need:", *found])


LONG = "\n".join(["def long():", *("    x = 1" for _ in range(MAX_CODE_LINES))])
LONG_FILE = "\n".join("x = 1" for _ in range(MAX_FILE_LINES + 1))


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (LONG, "f.py:1 long has 41 lines of code"),
        (LONG + "\n    return x\n", "has 42 lines"),
        (LONG_FILE, f"f.py has {MAX_FILE_LINES + 1} lines"),
        ("def f(a, b, c, d, /, e, f, *, g, h, i):\n    pass\n", "f.py:1 f has 9 parameters"),
        ("# size: none\n@decorated\ndef f():\n    pass\n", "f.py:3 f is short and needs no reason"),
        ('"""Text."""\n\n# size: none\n\nx = 1\n', "f.py has only 5 lines and needs no reason"),
    ],
)
def test_what_is_too_large_is_found(source, text):
    assert [fault for fault in faults("f.py", source) if text in fault]


@pytest.mark.parametrize(
    "source",
    [
        LONG.replace("    x = 1", "    # a comment\n\n    x = 1", 1).removesuffix("    x = 1"),
        LONG.replace("def long():", 'def long():\n    """Two\n    lines."""', 1)[
            : -len("\n    x = 1")
        ],
        f"# size: a table\n{LONG}",
        f"# size: a table\n@decorated\n{LONG}",
        f"# size: a loop\ndef outer():\n    {LONG.replace(chr(10), chr(10) + '    ')}\n",
        f'"""Text."""\n\n# size: one idea\n{LONG_FILE}',
        "class A:\n    def f(self, a, b, c, d, e, f, g, h):\n        pass\n",
        "def solve(a, b, c, d, e, f, g, h, i):\n    pass\n",
    ],
)
def test_what_is_short_or_excused_passes(source):
    assert faults("f.py", source) == []
