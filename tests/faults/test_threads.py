"""Calls in several threads at once share nothing that matters."""

import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import jax
import pytest
from probes import annealing, assert_same_results, small_tsp

import jaxopt_search as js
from jaxopt_search.backends import memory
from jaxopt_search.engine import compile as compiling

QAP = js.datasets.planted_qap(3, 3, seed=0)
RUN = {"max_steps": 100, "num_searches": 4}


def tabu(key, **options):
    search = js.tabu_search(js.SwapTable())
    exchange = js.recombine(every=20)
    return js.solve(js.qap_from_instance(QAP), search, key, exchange=exchange, **RUN | options)


CALLS = {
    "solve": lambda key: js.solve(small_tsp(9), annealing(), key, **RUN),
    "solve by XLA": lambda key: js.solve(
        small_tsp(9), annealing(), key, implementation="xla", **RUN
    ),
    "solve on two": lambda key: js.solve(
        small_tsp(9), annealing(), key, exchange=js.ring(every=5), devices=2, **RUN
    ),
    "solve on all": lambda key: tabu(key, devices="all", chunk_steps=20),
}


def at_once(*calls):
    """Returns what calls return that begin together, each in a thread of its own."""
    start = threading.Barrier(len(calls))

    def begun(call):
        start.wait(60)
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [one.result(300) for one in [pool.submit(begun, call) for call in calls]]


def check(*names):
    """Whether calls, with a key of its own each, give at once what they give alone."""
    calls = [lambda key=key, name=name: CALLS[name](key) for key, name in enumerate(names)]
    for together, call in zip(at_once(*calls), calls, strict=True):
        assert_same_results(together, call())


@pytest.mark.slow
def test_programs_that_two_threads_compile_at_once(tmp_path, monkeypatch):
    """Where nothing is compiled before, and both write the same files of programs."""
    monkeypatch.setattr(compiling, "program_folder", tmp_path)
    monkeypatch.setattr(compiling, "_loaded", {})
    jax.clear_caches()
    check("solve", "solve by XLA", "solve")
    assert list(tmp_path.glob("*.program"))
    assert not list(tmp_path.glob("*.part"))


def test_what_a_thread_traces_for_is_its_own():
    """Another one may be at a kernel."""
    with memory.one_search("interpret"):
        seen, also_seen = at_once(*2 * [lambda: (memory.is_alone(), memory.is_in_kernel())])
        assert memory.is_in_kernel()
    assert seen == also_seen == (False, False)


def test_a_checkpoint_of_a_thread(tmp_path):
    """It needs no signals, which belong to the main thread, and leaves them alone."""
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    paths = [tmp_path / f"{number}.npz" for number in range(2)]
    calls = [
        lambda path=path: js.solve(small_tsp(9), annealing(), 0, checkpoint=path, **RUN)
        for path in paths
    ]
    first, second = at_once(*calls)
    assert_same_results(first, second)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    assert all(path.exists() for path in paths)


@pytest.mark.slow
@pytest.mark.devices(4)
def test_twelve_threads_on_several_devices():
    """Runs whose devices wait for one another take turns: else JAX aborts the process.

    Each gives what it gives alone, bit for bit.
    """
    check(*6 * ("solve on two", "solve on all"))
