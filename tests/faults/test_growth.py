"""A run of thousands of short chunks takes no more memory than one of hundreds."""

import growth
import pytest


@pytest.mark.slow
@pytest.mark.devices(2)
@pytest.mark.parametrize("name", list(growth.kinds(None)))
def test_short_chunks_leave_nothing_behind(name, tmp_path):
    """Neither arrays nor objects, nor memory of the process beyond what comes and goes."""
    call = growth.kinds(tmp_path)[name]
    most = 300 if name == "queens" else 10 * growth.EVERY  # of these, calls
    result, looks = growth.looks(lambda: call(max_steps=most))
    assert len(looks) >= 5
    early, late = looks[len(looks) // 4], looks[-1]
    num_chunks = late.chunks - early.chunks
    assert late.arrays - early.arrays < 10 + 0.02 * num_chunks
    assert late.objects - early.objects < 40 + 0.1 * num_chunks
    assert late.mib - early.mib < 16
    if hasattr(result, "history"):
        assert len(result.history) <= growth.HISTORY
