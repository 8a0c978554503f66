"""The script that measures checkpoints."""

import json

from experiments import checkpoints


def test_a_line_with_what_checkpoints_take(tmp_path, capsys):
    """The bytes are those of the searches, tours of int32 among them; nothing is left behind."""
    flags = ["--searches", "40", "--cities", "50", "--times", "2", "--folder", str(tmp_path)]
    assert checkpoints.main(flags) == 0
    told = json.loads(capsys.readouterr().out)
    assert 40 * 50 * 4 * 2 < told["bytes"] < 100_000
    assert 0 < told["share"] < told["seconds"]
    assert not list(tmp_path.iterdir())
