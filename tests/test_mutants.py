"""The script that makes mutants tells what became of each."""

import pathlib

import mutants
import pytest

TESTS = """
import calc, pytest
@pytest.mark.skip
def test_skipped(): assert calc.add(2, 3) == 5
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
        ("a + b", "test_skipped", mutants.NO_RESULT, "1 skipped"),
        ("a + b", "test_endless", mutants.NO_RESULT, "no end in 3 s"),
        ("a + c", "test_sum", mutants.NO_RESULT, "does not apply: calc.py has 0 times 'a + c'"),
        ("a", "test_sum", mutants.NO_RESULT, "does not apply: calc.py has 3 times 'a'"),
    ],
)
def test_what_becomes_of_a_mutant(tmp_path, old, test, verdict, reason):
    """A failing test kills; no test, a skipped one, no end and a text that is not there do not."""
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
    assert len(capsys.readouterr().out.splitlines()) == len(mutants.load())
    with pytest.raises(SystemExit):
        mutants.main(["--only", "no such mutant"])
