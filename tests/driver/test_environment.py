"""What results and records say of the code by which they were made."""

import jax
import pytest

from jaxopt_search.driver import environment

PROJECT = '[project]\nname = "jaxopt_search"\nversion = "9.8.7"\n'
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def loose(git):
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "refs" / "heads" / "main").write_text(COMMIT + "\n")


def packed(git):
    git.mkdir()
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    other = COMMIT[::-1] + " refs/heads/not-main"
    (git / "packed-refs").write_text(
        f"# pack-refs with: peeled\n{other}\n{COMMIT} refs/heads/main\n"
    )


def detached(git):
    git.mkdir()
    (git / "HEAD").write_text(COMMIT + "\n")


def worktree(git):
    main = git.parent / "main.git"
    loose(main)
    own = main / "worktrees" / "one"
    own.mkdir(parents=True)
    (own / "HEAD").write_text("ref: refs/heads/main\n")
    (own / "commondir").write_text("../..\n")
    git.write_text(f"gitdir: {own}\n")


@pytest.mark.parametrize("layout", [loose, packed, detached, worktree])
def test_a_checkout_has_its_version_and_commit(layout, tmp_path):
    """However git stores the branch that is checked out."""
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    layout(tmp_path / ".git")
    assert environment.checkout_version(tmp_path) == "9.8.7+g0123456789ab"


def test_without_git_the_version_stands_alone(tmp_path):
    """As in a copied tree; a git folder that says nothing useful is none."""
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    assert environment.checkout_version(tmp_path) == "9.8.7"
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/gone\n")
    assert environment.checkout_version(tmp_path) == "9.8.7"


@pytest.mark.parametrize("text", [None, "", "[project", PROJECT.replace("jaxopt", "other")])
def test_a_folder_that_is_no_checkout(text, tmp_path):
    """Neither an absent, broken or foreign project file stops a run."""
    if text is not None:
        (tmp_path / "pyproject.toml").write_text(text)
    assert environment.checkout_version(tmp_path) == "not installed"


def test_ratios_can_name_their_host():
    """What a run was made by includes the processor, whatever the device."""
    made_by = environment.of(tuple(jax.devices("cpu")[:1]))
    assert made_by["cpu"] and made_by["devices"] == "1 x cpu"


def test_this_checkout_is_never_nameless():
    """Installed or not, these tests run from a checkout."""
    environment._version.cache_clear()
    assert environment._version()[0].isdigit()
