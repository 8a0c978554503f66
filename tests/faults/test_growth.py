"""A run of thousands of short chunks takes no more memory than one of hundreds."""

import growth
import pytest


@pytest.mark.slow
@pytest.mark.devices(2)
@pytest.mark.parametrize("name", ["checkpoint and callback", "exchange", "several instances"])
def test_short_chunks_leave_nothing_behind(name, tmp_path):
    """Neither arrays nor objects, nor memory of the process beyond what comes and goes."""
    call = growth.kinds(tmp_path)[name]
    most, every = (100 if name == "queens" else 300), 30  # of queens, calls
    result, looks = growth.looks(lambda: call(max_steps=most), every)
    assert len(looks) >= 5
    early, late = looks[len(looks) // 4], looks[-1]
    num_chunks = late.chunks - early.chunks
    assert late.arrays - early.arrays < 10 + 0.02 * num_chunks
    assert late.objects - early.objects < 40 + 0.1 * num_chunks
    assert late.mib - early.mib < 8
    if hasattr(result, "history"):
        assert len(result.history) <= growth.HISTORY
