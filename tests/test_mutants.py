"""The list of mutants fits the code, and the script that makes them tells what became of each."""

import ast
import functools
import pathlib

import mutants
import pytest

LIST = mutants.load()


@functools.cache
def functions_of(file):
    tree = ast.parse((mutants.ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_names_differ():
    names = [mutant.name for mutant in LIST]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("mutant", LIST, ids=[mutant.name for mutant in LIST])
def test_a_mutant_fits_the_code(mutant):
    """Its old text occurs exactly once, what comes of it is Python, and its tests exist."""
    content = (mutants.ROOT / mutant.file).read_text(encoding="utf-8")
    after = mutants.changed(mutant, content)
    assert ast.dump(ast.parse(after)) != ast.dump(ast.parse(content))
    assert mutant.tests
    for test in mutant.tests:
        file, _, name = test.partition("::")
        assert not name or name.partition("[")[0] in functions_of(file)


TESTS = """
import calc
def test_sum(): assert calc.add(2, 3) == 5
def test_blind(): assert calc.add(0, 0) == 0
def test_endless():
    while calc.add(1, 1) != 2: pass
"""


@pytest.mark.parametrize(
    ("old", "test", "verdict", "reason"),
    [
        ("a + b", "test_sum", mutants.KILLED, "test_sum"),
        ("a + b", "test_blind", mutants.SURVIVED, "1 passed"),
        ("a + b", "test_absent", mutants.NO_RESULT, "no match"),
        ("a + b", "test_endless", mutants.NO_RESULT, "no end in 3 s"),
        ("a + c", "test_sum", mutants.NO_RESULT, "does not apply: calc.py has 0 times 'a + c'"),
        ("a", "test_sum", mutants.NO_RESULT, "does not apply: calc.py has 3 times 'a'"),
    ],
)
def test_what_becomes_of_a_mutant(tmp_path, old, test, verdict, reason):
    """A failing test kills; what ran no test, came to no end or did not apply is no kill."""
    source = "def add(a, b):\n    return a + b\n"
    source_file = tmp_path / "calc.py"
    source_file.write_text(source)
    (tmp_path / "test_calc.py").write_text(TESTS)
    mutant = mutants.Mutant("x", "calc.py", old, "a - b", (f"test_calc.py::{test}",))
    result = mutants.outcome(tmp_path, mutant, timeout=3 if test == "test_endless" else 300)
    assert (result.verdict, reason in result.reason) == (verdict, True), result
    assert source_file.read_text() == source


def test_the_copy_is_a_tree_of_its_own():
    """Without the history and without environments; gone afterwards."""
    with mutants.copy_of(mutants.ROOT) as tree:
        here = mutants.ROOT / "tests" / "mutants.toml"
        assert (tree / "tests" / "mutants.toml").read_bytes() == here.read_bytes()
        assert not [path for path in tree.iterdir() if path.name.startswith(".")]
    assert not pathlib.Path(tree).exists()


def test_the_command(capsys):
    """The list has a line per mutant; a name that there is not is told."""
    assert mutants.main(["--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(LIST)
    with pytest.raises(SystemExit):
        mutants.main(["--only", "no such mutant"])
