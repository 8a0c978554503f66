"""What `solve_nqueens` compiles and takes of memory, before it searches."""

import re

import jax
import pytest

import jaxopt_search as js
from jaxopt_search.engine import memory
from jaxopt_search.engine.split import DeviceSplit

WHERE = {"one": slice(1), "the last": slice(3, 4), "four": slice(4), "two": slice(2, 4)}


@pytest.mark.devices(4)
@pytest.mark.parametrize("where", WHERE)
def test_nothing_is_compiled_twice(where, compiled):
    """Steps and looks, once each; and nothing by a call with another seed."""
    devices = jax.devices()[WHERE[where]]
    options = {"num_searches": 24 + list(WHERE).index(where), "max_seconds": 60}
    js.solve_nqueens(9, 3, devices=devices, **options)
    names = [re.search("_advance|harvested|_fun", name) for name in compiled]
    found = sorted(name[0] for name in names if name)
    assert found == (["_advance", "harvested"] if len(devices) == 1 else ["_fun"] * 2)
    compiled.clear()
    js.solve_nqueens(9, 3, 1, devices=devices, **options)
    assert not [name for name in compiled if re.search("_advance|harvested|_fun", name)]


def needed(monkeypatch, module, name, position, call):
    """Returns what `name` of a module, which refuses a call, is asked about, the least and all."""
    seen = []
    with monkeypatch.context() as patch:
        patch.setattr(module, name, lambda *arguments: seen.append(arguments[position]))
        call()
    return min(seen), max(seen)


@pytest.mark.devices(4)
@pytest.mark.parametrize("count", [1, 4])
def test_searches_are_refused_by_all_that_they_take(count, monkeypatch):
    """Where the states would fit, but not what the programs need besides; before anything is."""

    def call():
        js.solve_nqueens(9, 3, num_searches=500, devices=count)

    least, most = needed(monkeypatch, memory, "check_searches", 0, call)
    assert most > 1.2 * least
    monkeypatch.setattr(memory, "free_bytes", lambda device: (least + most) / 2)
    monkeypatch.setattr(DeviceSplit, "split", lambda *_: pytest.fail("something was allocated"))
    with pytest.raises(MemoryError, match="num_searches is 500, .* GiB, and .* use fewer searches"):
        call()


def test_repairs_are_refused_by_all_that_they_take(monkeypatch):
    def call():
        js.solve_nqueens(10_000, devices=1)

    least, most = needed(monkeypatch, memory, "check_bytes", 0, call)
    assert most > 1.2 * least
    monkeypatch.setattr(memory, "free_bytes", lambda device: (least + most) / 2)
    with pytest.raises(MemoryError, match="n is 10000, .* GiB, and .* use fewer queens"):
        call()


def test_running_out_of_memory_names_the_estimate(monkeypatch):
    """In the search, on the device."""
    error = jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes.")

    def out_of_memory(*arguments, **options):
        raise error

    monkeypatch.setattr(DeviceSplit, "advance", out_of_memory)
    says = r"ran out of memory with n=9, estimated to need 0\.0 GiB; use fewer, or more devices"
    with pytest.raises(MemoryError, match=says):
        js.solve_nqueens(9, 3, devices=1)
