"""Memory: what is estimated is what the compiler says that it takes."""

import numpy as np
import pytest
from successors import heuristics as parts
from ways import needs_cpu

import jaxopt_search as js
from jaxopt_search.backends import random
from jaxopt_search.engine import memory
from jaxopt_search.successors import generation

NUM_STATES, NUM_SUCCESSORS, NUM_VARIABLES, MOST = 256, 2, 2, 4000


def plain(**options):
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 2**32, (NUM_VARIABLES, MOST))
    return parts.table(weights, **options)


def aggregating():
    ratings = np.random.default_rng(0).normal(size=(NUM_VARIABLES, MOST))
    return parts.mapped(ratings, [MOST] * NUM_VARIABLES)


CASES = {
    "aggregates": (aggregating, (), "xla", "stored"),
    "one after the other": (plain, parts.ALONE, "native", "stored"),
}


@needs_cpu
@pytest.mark.parametrize("name", CASES)
def test_the_estimate_is_what_it_takes(name):
    """Results and what is needed next to them, to within a factor of 1.5."""
    make, problem, implementation, ratings = CASES[name]
    heuristic, states = make(), parts.states(NUM_STATES, NUM_VARIABLES)
    estimate = js.successors.memory_estimate(
        heuristic,
        problem,
        states,
        num_successors=NUM_SUCCESSORS,
        ratings=ratings,
        implementation=implementation,
    )
    setup = generation.Setup(NUM_SUCCESSORS, "fixed", ratings, implementation)
    shared = (heuristic,), problem, random.as_key(0)
    lowered = generation._keeping.lower(setup, shared, states, None, None)
    used = lowered.compile().memory_analysis()
    assert 1 / 1.5 < estimate / (used.output_size_in_bytes + used.temp_size_in_bytes) < 1.5


def test_stored_ratings_are_the_papers_entry_per_possibility():
    """Section 3.7: what they add grows with states, successors and possibilities, by the rating."""
    states = parts.states(NUM_STATES, NUM_VARIABLES)

    def added(heuristic, problem, number=1):
        stored, recomputed = (
            js.successors.memory_estimate(
                heuristic, problem, states, num_successors=number, ratings=ratings
            )
            for ratings in ("stored", "recomputed")
        )
        return stored - recomputed

    entries = NUM_STATES * 4096
    assert added(plain(), parts.ALONE) == 4 * entries
    assert added(plain(rating="pair"), parts.ALONE) == 8 * entries
    assert added(plain(), parts.ALONE, 3) == 3 * 4 * entries
    assert added(plain(kind=parts.Apart), parts.ALONE) == NUM_VARIABLES * 4 * entries
    assert added(aggregating(), ()) >= 8 * entries


def test_the_setting_follows_the_estimate(monkeypatch):
    """Ratings are stored if they take little of what is free, and recomputed if not."""
    heuristic, states, run_with = aggregating(), parts.states(NUM_STATES, NUM_VARIABLES), []
    monkeypatch.setattr(generation, "_keeping", lambda setup, *rest: run_with.append(setup))

    def generate(ratings, free):
        monkeypatch.setattr(memory, "free_bytes", lambda device: free)
        js.successors.generate(0, heuristic, (), states, ratings=ratings, implementation="xla")

    stored, recomputed = (
        js.successors.memory_estimate(heuristic, (), states, ratings=ratings)
        for ratings in ("stored", "recomputed")
    )
    generate("auto", 100 * stored)
    generate("auto", stored - 1)
    generate("recomputed", recomputed)
    assert [setup.ratings for setup in run_with] == ["stored", "recomputed", "recomputed"]
    sizes = rf"take {stored / 2**30:.1f} GiB, and .* GiB are free .* or ratings='recomputed'$"
    with pytest.raises(MemoryError, match=f"num_successors is 1 of {NUM_STATES} states.*{sizes}"):
        generate("stored", stored - 1)
    with pytest.raises(MemoryError, match="use fewer states or successors$"):
        generate("auto", recomputed - 1)
