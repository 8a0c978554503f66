"""Python's search for cycles of garbage rests while programs are traced, and goes on afterwards."""

import contextlib
import dataclasses
import gc
import os
import threading

import jax
import jax.numpy as jnp
import pytest
from cases import LinearOrdering, linear_ordering

import jaxopt_search as js
from jaxopt_search.driver import ahead
from jaxopt_search.engine.kept_programs import kept
from jaxopt_search.guards import garbage


@pytest.fixture(autouse=True)
def collecting():
    """Garbage is collected before each test, and no test leaves it otherwise."""
    ahead.wait_for_later()
    assert gc.isenabled()
    yield
    assert gc.isenabled()


@contextlib.contextmanager
def turned_off():
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def test_nothing_is_collected_within():
    """Nor between the ends of two blocks, one in the other."""
    with garbage.put_off():
        with garbage.put_off():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_goes_on_after_an_error():
    """An error within the block passes."""
    with pytest.raises(KeyError), garbage.put_off():
        raise KeyError("a")
    assert gc.isenabled()


def test_what_the_user_turned_off_stays_off():
    """At the end of a block, too."""
    with turned_off():
        with garbage.put_off():
            assert not gc.isenabled()
        assert not gc.isenabled()


@pytest.mark.parametrize("is_first_over_first", [True, False])
def test_threads_wait_for_each_other(is_first_over_first):
    """The last block that ends lets it go on, whichever that is."""
    one, other = garbage.put_off(), garbage.put_off()
    one.__enter__()
    other.__enter__()
    last = other if is_first_over_first else one
    (one if is_first_over_first else other).__exit__(None, None, None)
    assert not gc.isenabled()
    last.__exit__(None, None, None)
    assert gc.isenabled()


def test_many_threads():
    """None of them meets garbage collected in its block."""
    seen = []

    def work():
        for _ in range(200):
            with garbage.put_off():
                seen.append(gc.isenabled())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 1600
    assert not any(seen)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*os.fork")
def test_a_forked_process_collects():
    """The threads that put it off are not there."""
    with garbage.put_off():
        if (child := os.fork()) == 0:
            os._exit(0 if gc.isenabled() else 1)
        _, status = os.waitpid(child, 0)
        assert not gc.isenabled()
    assert os.waitstatus_to_exitcode(status) == 0


def test_programs_are_traced_without_it():
    """Those that are made ahead, in whatever thread."""
    seen = []

    @kept
    def program(x):
        seen.append(gc.isenabled())
        return x + 1

    (job,) = program.to_compile(jnp.zeros(3))
    job(bool)
    assert seen == [False]


@js.pytree
@dataclasses.dataclass(frozen=True)
class Noted(LinearOrdering):
    """A problem that notes whether garbage is collected while it is traced."""

    def cost(self, solution):
        if isinstance(solution, jax.core.Tracer):
            traced.append(gc.isenabled())
        return super().cost(solution)


traced = []


def test_solve_checks_its_arguments_without_it():
    """For that it traces the problem; it is collected again when the search begins."""
    problem, searching = Noted(linear_ordering(6).weight, 6), []
    search = js.simulated_annealing(js.FullEvaluation(js.Swap()), 5.0)
    note = lambda _: searching.append(gc.isenabled())  # noqa: E731
    traced.clear()
    js.solve(problem, search, num_searches=3, max_steps=3, callback=note)
    assert not traced[0]
    assert searching
    assert all(searching)
