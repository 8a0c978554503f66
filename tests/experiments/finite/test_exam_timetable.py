"""The example of a problem of one's own by FANG."""

import pathlib
import runpy

import numpy as np


def test_no_exams_clash(capsys):
    """In under 40 lines it finds slots without a clash, and says so."""
    names = runpy.run_module("experiments.finite.exam_timetable")
    slots, clashes = np.asarray(names["slots"][0]), np.triu(names["clashes"], 1)
    assert clashes.sum() > 200  # 40 exams in 8 slots: it is not given away
    assert not (clashes & (slots[:, None] == slots)).any()
    assert capsys.readouterr().out.split() == ["0", "clashes:", *map(str, slots)]
    assert len(pathlib.Path(names["__file__"]).read_text().splitlines()) < 40
