"""How solvers keep pace with the clock, on a machine that is simulated."""

import json

import jax.numpy as jnp
import pytest

import jaxopt_search as js
from jaxopt_search.checks import MAX_INT32
from jaxopt_search.driver.chunks import steps_for
from jaxopt_search.solvers.annealed import _Steering
from jaxopt_search.solvers.cooling import (
    Clock,
    Pace,
    Recipe,
    StepCount,
    cooling,
    pacer_of,
    search_and_exchange,
)

RECOMBINED = Recipe(1.0, 0.1, 4, 4, cooled=0.3)
RESAMPLED = Recipe(1.0, 0.1, 4, 4, num_exchanges=50)
CHUNK = 0.1


def simulate(recipe, max_seconds, seconds_per_step, seconds_per_exchange, start=0.0):
    """Returns for each chunk its end, its seconds, those of its exchanges, and the pace after it.

    Chunks are as long as would have taken `CHUNK` seconds at the speed of the one before.
    """
    clock, step, now, since, chunks = Clock(recipe, max_seconds), 0, start, 0, []
    clock.note(0, now)
    num_steps = 100
    while now < max_seconds:
        first = max(clock.pace.every - since, 1)
        if num_steps < first:
            num_exchanges, since = 0, since + num_steps
        else:
            num_exchanges, since = divmod(num_steps - first, clock.pace.every)
            num_exchanges += 1
        exchanging = num_exchanges * seconds_per_exchange
        took = num_steps * seconds_per_step + exchanging
        step, now = step + num_steps, now + took
        clock.note(step, now)
        chunks.append((now, took, exchanging, clock.pace))
        num_steps = steps_for(CHUNK, num_steps, took)
    return chunks


@pytest.mark.parametrize("recombining", [0.5, 0.75, 0.9])
@pytest.mark.parametrize("seconds_per_exchange", [1e-4, 1e-3, 0.02, 0.3])
@pytest.mark.parametrize("seconds_per_step", [1e-6, 1e-5])
def test_a_cooling_ends_in_time_and_recombinations_take_their_share_of_the_rest(
    seconds_per_step, seconds_per_exchange, recombining
):
    """Whatever they cost, and no chunk gets much longer than it should."""
    max_seconds, recipe = 20, RECOMBINED._replace(recombining=recombining)
    chunks = simulate(recipe, max_seconds, seconds_per_step, seconds_per_exchange)
    cooled = [end for end, _, _, pace in chunks if pace.done == 1]
    assert 0.28 * max_seconds < cooled[0] < 0.33 * max_seconds
    assert all(pace.every == MAX_INT32 for end, _, _, pace in chunks if end < cooled[0])
    late = [chunk for chunk in chunks if chunk[0] > 0.5 * max_seconds]
    share = sum(chunk[2] for chunk in late) / sum(chunk[1] for chunk in late)
    assert abs(share - recombining) < 0.02
    periods = [pace.every for _, _, _, pace in late]
    assert max(periods) < 1.02 * min(periods)  # whether a chunk has one or none
    assert max(chunk[1] for chunk in chunks) < 4 * CHUNK + 2 * seconds_per_exchange


def test_a_clock_that_sees_no_cooling():
    """A run that begins cold makes a chunk of steps only: what others take longer shows by it."""
    clock = Clock(RECOMBINED, 20, 1.0)
    clock.note(0, 0.0)
    for step in range(50, 400, 50):
        clock.note(step, 0.01 * step)
    assert clock.pace.done == 1 and clock.pace.every < 50


@pytest.mark.parametrize("seconds_per_exchange", [1e-4, 1e-3, 0.02, 0.3])
def test_children_take_more_the_fewer_generations_are_left(seconds_per_exchange):
    """Ten over their number, each of which takes twice as long as its steps; at most half."""
    chunks = simulate(RECOMBINED, 20, 1e-5, seconds_per_exchange)
    shares = [(pace.share, 20 - end, 2 * pace.every * 1e-5) for end, _, _, pace in chunks]
    assert all(share == 0.5 for share, left, _ in shares if left > 0.71 * 20)
    for share, left, generation in shares[len(shares) // 2 :]:
        expected = min(0.5, 10 * generation / max(left, 1e-9))
        assert 0.5 * expected < share < 2 * expected
    assert shares[-1][0] == 0.5
    assert (shares[len(shares) // 2][0] < 0.1) == (seconds_per_exchange < 0.1)


@pytest.mark.parametrize("coldest", [1.0, 64.0])
def test_a_cooling_continues_at_the_pace_from_a_step_on(coldest):
    """From what is done by then down to the coldest; it never warms."""
    schedule = cooling(8.0, coldest, Pace(step=100, done=1 / 3, per_step=0.01, every=1))
    found = [float(schedule(jnp.int32(step))) for step in (100, 133, 166)]
    halved = [4.0, 2.0, 1.0] if coldest == 1 else [8.0, 8.0, 8.0]
    assert found == pytest.approx(halved, rel=0.03)


def test_children_take_what_the_pace_says():
    """And as steps lie between exchanges; resampling knows no children."""
    pace, swaps = Pace(30, 1.0, 0.0, 70, 0.125), js.Swap()
    exchange = search_and_exchange(RECOMBINED, swaps, object(), (2.0, 1.0), pace)[1]
    assert (int(exchange.every), float(exchange.share)) == (70, 0.125)
    resampled = search_and_exchange(RESAMPLED, swaps, None, (2.0, 1.0), pace)[1]
    assert int(resampled.every) == 70 and not hasattr(resampled, "share")


def test_a_cooling_with_resampling_takes_all_the_time():
    """With this many exchanges over it, as far as the speed is even."""
    chunks = simulate(RESAMPLED, 10, 1e-5, 1e-3)
    assert 0.9 < chunks[-2][3].done <= 1
    total = 0.98 * 10 / 1e-5
    in_between = [pace.every for end, _, _, pace in chunks if 1 < end < 9]
    assert all(0.5 * total / 50 < every < 1.1 * total / 50 for every in in_between)


@pytest.mark.parametrize("start", [6.0, 9.0])
def test_a_cooling_starts_when_all_is_compiled(start):
    """It takes its share of the time that is left then."""
    chunks = simulate(RECOMBINED, 10, 1e-6, 1e-3, start)
    cooled = next(end for end, _, _, pace in chunks if pace.done == 1)
    assert 0.25 < (cooled - start) / (10 - start) < 0.45


def test_a_run_of_steps_recombines_from_a_step_on():
    """Every n steps, after the share in which it cools; resampling continues as it began."""
    count = StepCount(RECOMBINED, 70, 1000)
    assert (count.pace.per_step, count.pace.every) == (1 / 300, MAX_INT32)
    assert [count.steps_left(step) for step in (0, 299, 300)] == [300, 1, None]
    assert not count.note(299, 1.0) and count.pace.every == MAX_INT32
    assert count.note(300, 1.0) and count.pace.every == 70
    assert count.pace.share == 0.5
    assert not count.note(310, 1.0)
    long = StepCount(RECOMBINED, 70, 100_000)
    assert long.note(30_000, 1.0) and long.pace.share == pytest.approx(0.01)
    resampled = StepCount(RESAMPLED, 70, 1000)
    assert resampled.pace.every == 20
    assert not resampled.note(1000, 1.0)


COLDER = RECOMBINED._replace(colder=0.5)
SHORT = {"seconds": (None, 0.5), "steps": (10_000, None)}  # of 100 cities
LONG = {"seconds": (None, 1.0), "steps": (20_000, None)}


@pytest.mark.parametrize("by", SHORT)
def test_a_short_run_begins_colder(by):
    """At `colder` in place of the hottest; the rest of the cooling takes all of its time."""
    temperatures = 40.0, 4.0
    assert COLDER.begun(temperatures, 100, *LONG[by]) == 0
    assert RECOMBINED.begun(temperatures, 100, *SHORT[by]) == 0
    assert COLDER.begun((3.0, 3.0), 100, *SHORT[by]) == 0  # nothing to cool
    begun = COLDER.begun(temperatures, 100, *SHORT[by])
    pacer = pacer_of(COLDER, 100, *SHORT[by], begun)
    pacer.note(0, 0.0)
    assert float(cooling(*temperatures, pacer.pace).start) == pytest.approx(20.0, rel=1e-5)
    if by == "seconds":
        while pacer.pace.done < 1:
            step, seconds = pacer.last
            pacer.note(step + 50, seconds + 0.0025)
        assert 0.25 < pacer.last[1] / 0.5 < 0.35


def test_a_short_run_by_steps_cools_by_its_end():
    """From `colder` on."""
    begun = COLDER.begun((40.0, 4.0), 100, 10_000, None)
    pace = StepCount(COLDER, 100, 10_000, begun).pace
    assert 0 < begun == pace.done
    assert pace.done + 3000 * pace.per_step == pytest.approx(1)


def test_a_clock_goes_on_where_it_was():
    """Its notes are JSON, and the rest of a run is what it would have been."""
    unbroken = Clock(RECOMBINED, 20)
    for step in range(0, 400, 50):
        unbroken.note(step, 0.01 * step)
    recalled = Clock(RECOMBINED, 20)
    recalled.recall(json.loads(json.dumps(unbroken.notes())))
    assert recalled.notes() == unbroken.notes()
    assert recalled.pace == unbroken.pace and recalled.pace.done > 0.5
    for step in range(350, 2000, 50):
        changes = [clock.note(step, 0.01 * step) for clock in (unbroken, recalled)]
        assert changes[0] == changes[1] and recalled.pace == unbroken.pace
    assert recalled.pace.done == 1 and recalled.pace.every < MAX_INT32


def test_a_pace_that_knows_too_little_is_refused():
    """As checkpoints of older versions do."""
    steering = _Steering(lambda pace: (None, None), Clock(RECOMBINED, 20), None)
    notes = steering.notes()
    del notes["pace"]["since"]
    with pytest.raises(js.CheckpointError, match="notes of the checkpoint are damaged .*'since'"):
        steering.recall(notes)
