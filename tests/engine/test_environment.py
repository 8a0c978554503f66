"""What results and records say of the code by which they were made."""

import jax

import jaxopt_search as js
from jaxopt_search.engine.fingerprints import environment


def test_ratios_can_name_their_host():
    """What a run was made by includes the processor, whatever the device."""
    made_by = environment(tuple(jax.devices("cpu")[:1]))
    assert made_by["cpu"] and made_by["devices"] == "1 x cpu"
    assert made_by["jaxopt_search"] == js.__version__
