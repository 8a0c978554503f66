"""Checkpoints where nothing can be written, and files that claim more than they hold."""

import os

from probes import line, walk

import jaxopt_search as js


def solve(max_steps, **options):
    return js.solve(line(), walk(), 3, num_searches=5, max_steps=max_steps, **options)


def test_what_killed_processes_have_left_is_removed(tmp_path):
    """Once it is old: another process may be writing. Files of other names stay."""
    path, names = tmp_path / "run.npz", ["run.npz.01234567.part", "run.npz.89abcdef.part"]
    names += ["run.npz.mine.part", "other_run.npz.01234567.part", "run2npz.01234567.part"]
    for name in names:
        (tmp_path / name).touch()
        if name != names[1]:
            os.utime(tmp_path / name, (0, 0))
    solve(5, checkpoint=path)
    assert sorted(one.name for one in tmp_path.iterdir()) == sorted([path.name, *names[1:]])
