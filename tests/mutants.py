"""Changes the code on purpose, one fault at a time, and tells which faults the tests notice.

    python tests/mutants.py
    python tests/mutants.py --only 'exchange*'

An entry of `mutants.toml` names a file, a piece of one of its lines that occurs nowhere else in it,
what replaces that piece, and the tests that have to fail. Faults are made in a copy of the
repository. Run it on demand or nightly: it takes minutes, and no other test depends on it.
"""

import argparse
import fnmatch
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]
_MADE = {"build", "dist", "results"}  # at the root; the library has a folder `results`


def left_out(folder: str, names: list[str]) -> set[str]:
    """Returns which names in a folder are not copied."""
    made = {"__pycache__"} | (_MADE if pathlib.Path(folder) == ROOT else set())
    return {name for name in names if name.startswith(".") or name in made}


def passes(tree: pathlib.Path, tests: list[str]) -> tuple[bool, str]:
    """Runs tests up to the first failure; returns whether all passed, and pytest's last line.

    Raises:
      ValueError: if there is no such test, or all are skipped.
    """
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    # Python would take a file of unchanged size and second from its cache.
    env = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(tree)}
    done = subprocess.run(command, cwd=tree, env=env, timeout=900, text=True, capture_output=True)
    last = done.stdout.strip().rpartition("\n")[2]
    if done.returncode not in (0, 1) or ("passed" not in last and "failed" not in last):
        raise ValueError(f"pytest ended with {done.returncode}: {last}")
    return done.returncode == 0, last


def verdict(tree: pathlib.Path, mutant: dict[str, str | list[str]]) -> str:
    """Makes a mutant in `tree`, runs its tests, and undoes it; returns what became of it."""
    path = tree / mutant["file"]
    original = path.read_text(encoding="utf-8")
    if (times := original.count(mutant["old"])) != 1:
        return f"NO RESULT  {mutant['file']} has {mutant['old']!r} {times} times, expected once"
    try:
        path.write_text(original.replace(mutant["old"], mutant["new"]), encoding="utf-8")
        has_survived, last = passes(tree, mutant["tests"])
        return f"{'SURVIVED' if has_survived else 'killed'}  {last}"
    except (ValueError, subprocess.TimeoutExpired) as error:
        return f"NO RESULT  {error}"
    finally:
        path.write_text(original, encoding="utf-8")


def main() -> int:
    """Returns 0 if all mutants were killed, else 1."""
    flags = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    flags.add_argument("--only", default="*", help="names; * stands for any text")
    only = flags.parse_args().only
    entries = tomllib.loads(pathlib.Path(__file__).with_suffix(".toml").read_text("utf-8"))
    mutants = [one for one in entries["mutant"] if fnmatch.fnmatch(one["name"], only)]
    num_killed = 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = pathlib.Path(folder) / "tree"
        shutil.copytree(ROOT, tree, ignore=left_out)
        _, last = passes(tree, sorted({test for one in mutants for test in one["tests"]}))
        print(f"without a fault: {last}", flush=True)
        for one in mutants:
            found = verdict(tree, one)
            num_killed += found.startswith("killed")
            print(f"{one['name']:<40}  {found}", flush=True)
    print(f"{num_killed} of {len(mutants)} killed")
    return int(num_killed < len(mutants))


if __name__ == "__main__":
    sys.exit(main())
