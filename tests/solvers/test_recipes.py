"""How solvers keep pace with the clock, on a machine that is simulated."""

import itertools
import json
import time

import jax.numpy as jnp
import pytest

from jaxopt_search.checks import MAX_INT32
from jaxopt_search.driver.chunks import drive
from jaxopt_search.driver.options import RunOptions, Timer
from jaxopt_search.solvers.anneal import (
    Clock,
    Pace,
    Recipe,
    StepCount,
    cooling,
    pacer_of,
)

RECOMBINED = Recipe(1.0, 0.1, 4, 4, cooled=0.3)
RESAMPLED = Recipe(1.0, 0.1, 4, 4)


class Machine:
    """A run on a machine that is simulated: a `chunks.Chunked`.

    Attributes:
      chunks: of each its end, its seconds, those of its exchanges, and the pace after it.
      longest: seconds of the longest step, with an exchange.
    """

    def __init__(self, recipe, max_seconds, costs, slower, start, fixed):
        self.now, self.timer = 0.0, Timer(None, max_seconds)
        self.options, self.what = RunOptions(timer=self.timer), "a machine"
        self.pacer = pacer_of(recipe, 100, self.timer)
        self.costs, self.slower, self.fixed = costs, slower, fixed
        self.step, self.since, self.longest, self.chunks = 0, 0, 0.0, []
        self.timer.before, self.observers = start, ()

    def begin(self):
        """Nothing has to be made ready."""

    def advance(self, num_steps):
        num_exchanges, first = 0, max(self.pacer.pace.every - self.since, 1)
        self.since += num_steps
        if num_steps >= first:
            num_exchanges, self.since = divmod(num_steps - first, self.pacer.pace.every)
            num_exchanges += 1
        slower = self.slower(len(self.chunks))
        step, exchange = (slower * each for each in self.costs(self.pacer.pace.done))
        took = self.fixed + num_steps * step + num_exchanges * exchange
        self.step += num_steps
        self.now += took
        if num_steps:
            self.chunks.append([self.timer.seconds, took, num_exchanges * exchange])
            self.longest = max(self.longest, step + (exchange if num_exchanges else 0))

    def look(self):
        self.pacer.note(self.step, self.timer.seconds)
        if self.chunks:
            self.chunks[-1].append(self.pacer.pace)

    def status(self, limit):
        return limit

    def result(self, status):
        return status

    def next_steps(self, made, seconds):
        wanted = self.timer.next_steps(self.step, made, seconds, every=self.pacer.pace.every)
        return min(wanted, self.pacer.steps_left(self.step) or wanted)


@pytest.fixture
def simulate(monkeypatch):
    """Returns what runs a recipe on a `Machine`, and returns that."""

    def run(recipe, max_seconds, costs, slower=lambda chunk: 1, start=0.0, fixed=0.0):
        costs = costs if callable(costs) else lambda done, both=costs: both
        machine = Machine(recipe, max_seconds, costs, slower, start, fixed)
        monkeypatch.setattr(time, "perf_counter", lambda: machine.now)
        machine.timer._called = 0.0
        drive(machine)
        return machine

    return run


LIMITS = (0.3, 3, 20, 100)
SLOWNESS = {
    "even": lambda chunk: 1,
    "slow": lambda chunk: 8,
    "slower and slower": lambda chunk: 1 + chunk / 10,
    "busy now and then": lambda chunk: 1 + 2 * (chunk % 3 == 0),
}


@pytest.mark.parametrize("recipe", [RECOMBINED, RESAMPLED])
@pytest.mark.parametrize("slowness", SLOWNESS)
@pytest.mark.parametrize("cheaper", [1, 50])  # steps are, once few moves are accepted
def test_no_run_takes_much_longer_than_its_limit(simulate, recipe, slowness, cheaper):
    """Half a second or 5 %, and a step, whatever steps and exchanges cost."""
    for max_seconds, step, exchange in itertools.product(
        LIMITS, (1e-6, 1e-5, 1e-3), (1, 10, 100, 1000, 10_000)
    ):
        if recipe is RESAMPLED and exchange > 1000:
            continue  # it would take all the time

        def costs(done, step=step, exchange=exchange):
            return step * cheaper**-done, step * exchange

        machine = simulate(recipe, max_seconds, costs, SLOWNESS[slowness])
        most = max(0.5, 0.05 * max_seconds) + machine.longest
        assert 0 <= machine.now - max_seconds < most, (max_seconds, step, exchange)


def test_a_cooling_keeps_to_the_clock_where_chunks_take_time_of_their_own(simulate):
    """Its first chunks, of few steps, are much slower for each than the later ones."""
    for end, _, _, pace in simulate(RESAMPLED, 3, (1e-6, 0.0), fixed=0.08).chunks[1:]:
        assert pace.done == pytest.approx(end / (0.98 * 3), abs=0.05) or end > 2.9


@pytest.mark.parametrize("recombining", [0.5, 0.9])
@pytest.mark.parametrize(
    ("seconds_per_step", "seconds_per_exchange"), [(1e-6, 1e-4), (1e-6, 0.3), (1e-5, 0.02)]
)
def test_a_cooling_ends_in_time_and_recombinations_take_their_share_of_the_rest(
    simulate, seconds_per_step, seconds_per_exchange, recombining
):
    """Whatever they cost."""
    max_seconds, recipe = 20, RECOMBINED._replace(recombining=recombining)
    chunks = simulate(recipe, max_seconds, (seconds_per_step, seconds_per_exchange)).chunks
    cooled = [end for end, _, _, pace in chunks if pace.done == 1]
    assert 0.28 * max_seconds < cooled[0] < 0.33 * max_seconds
    assert all(pace.every == MAX_INT32 for end, _, _, pace in chunks if end < cooled[0])
    late = [chunk for chunk in chunks if chunk[0] > 0.5 * max_seconds]
    share = sum(chunk[2] for chunk in late) / sum(chunk[1] for chunk in late)
    assert abs(share - recombining) < 0.03
    periods = [pace.every for _, _, _, pace in late]
    assert max(periods) <= 1.02 * min(periods) + 1  # whether a chunk has one or none


def test_a_clock_that_sees_no_cooling():
    """A run that begins cold makes a chunk of steps only: what others take longer shows by it."""
    clock = Clock(RECOMBINED._replace(cooled=0.0), 100, 20)
    clock.note(0, 0.0)
    for step in range(50, 400, 50):
        clock.note(step, 0.01 * step)
    assert clock.pace.done == 1 and clock.pace.every < 50


def test_what_merges_is_reheated_after_each_exchange():
    """From one exchange to the next, also where schedules count no further steps."""
    recipe = RECOMBINED._replace(cooled=0.4, reheated=0.5, moves_per_search=8)
    clock = Clock(recipe, 10, 10**4)
    for second in range(0, 6000, 100):
        clock.note(10**5 * second, second)
    pace, every = clock.pace, 16 * 10
    assert (pace.done, pace.every) == (0.5, every)
    schedule = cooling(16.0, 1.0, pace, reheats=True)
    found = [float(schedule(jnp.int32(pace.step + step))) for step in (0, 80, 159, 160, 240)]
    assert found == pytest.approx([4.0, 2.0, 1.0, 4.0, 2.0], rel=0.02)
    for step in (2**31 + 7, 2**31 + 200, 2**31 + 10**6):
        clock.note(step, 6000.0 + step / 10**7)
        passed = (step - pace.step) % every / every
        assert clock.pace.done == pytest.approx(0.5 + 0.5 * passed) and clock.pace.every == every
        assert clock.pace.step == MAX_INT32 and clock.steps_left(step) < every / 4


@pytest.mark.parametrize("coldest", [1.0, 64.0])
def test_a_cooling_continues_at_the_pace_from_a_step_on(coldest):
    """From what is done by then down to the coldest; it never warms."""
    schedule = cooling(8.0, coldest, Pace(step=100, done=1 / 3, per_step=0.01, every=1))
    found = [float(schedule(jnp.int32(step))) for step in (100, 133, 166)]
    halved = [4.0, 2.0, 1.0] if coldest == 1 else [8.0, 8.0, 8.0]
    assert found == pytest.approx(halved, rel=0.03)


def test_a_cooling_with_resampling_takes_all_the_time(simulate):
    """At a period that no speed changes."""
    chunks = simulate(RESAMPLED, 10, (1e-5, 1e-3)).chunks
    assert 0.9 < chunks[-2][3].done <= 1
    assert {pace.every for _, _, _, pace in chunks} == {RESAMPLED.resample_every}


def test_a_clock_is_recalled():
    """From its notes, as a checkpoint has them, at the pace that it had."""
    clock, recalled = Clock(RESAMPLED, 100, 100), Clock(RESAMPLED, 100, 100)
    for second in range(90):
        if second == 61:
            recalled.recall(json.loads(json.dumps(clock.notes())))
        for each in (clock, recalled)[: 1 + (second > 60)]:
            each.note(10_000 * second, second)
    assert recalled.pace == clock.pace


@pytest.mark.parametrize("start", [6.0, 9.0])
def test_a_cooling_starts_when_all_is_compiled(simulate, start):
    """It takes its share of the time that is left then."""
    chunks = simulate(RECOMBINED, 10, (1e-6, 1e-3), start=start).chunks
    cooled = next(end for end, _, _, pace in chunks if pace.done == 1)
    assert 0.25 < (cooled - start) / (10 - start) < 0.45


def test_a_run_of_steps_recombines_from_a_step_on():
    """Every n steps, after the share in which it cools; resampling continues as it began."""
    count = StepCount(RECOMBINED, 70, 1000)
    assert (count.pace.per_step, count.pace.every) == (1 / 300, MAX_INT32)
    assert [count.steps_left(step) for step in (0, 299, 300)] == [300, 1, None]
    first = count.pace
    count.note(299, 1.0)
    assert count.pace == first
    count.note(300, 1.0)
    assert count.pace == Pace(300, 1.0, 0.0, 70, share=0.5)
    cooled = count.pace
    count.note(310, 1.0)
    assert count.pace == cooled
    iterated = StepCount(RECOMBINED._replace(is_iterated=True), 70, 1000)
    iterated.note(300, 1.0)
    assert iterated.pace.every == 700
    long = StepCount(RECOMBINED, 70, 100_000)
    long.note(30_000, 1.0)
    assert long.pace.share == pytest.approx(0.01)
    resampled = StepCount(RESAMPLED, 70, 1000)
    first = resampled.pace
    resampled.note(1000, 1.0)
    assert resampled.pace == first and first.every == RESAMPLED.resample_every


def test_what_is_found_soon_does_not_wait_for_a_long_limit(simulate):
    """The first round is as long under any limit; each begins hot, by a restart, and ends cold."""
    recipe = RECOMBINED._replace(first_round=50)  # steps for each of 100 cities
    ends = {}
    for max_seconds in (1, 20, 100):
        chunks = simulate(recipe, max_seconds, (1e-5, 1e-4), start=0.0).chunks
        restarts = [end for end, _, _, pace in chunks if pace.alike == 0]
        assert all(pace.done == pace.every - 1 == 0 for *_, pace in chunks if pace.alike == 0)
        ends[max_seconds] = restarts
        for begin, end in itertools.pairwise([0.0, *restarts, max_seconds]):
            inside = [chunk for chunk in chunks if begin < chunk[0] < end]
            cooled = next(at for at, *_, pace in inside if pace.done == 1)
            assert 0.2 < (cooled - begin) / (end - begin) < 0.6
            assert sum(num_seconds for _, _, num_seconds, _ in inside) > 0
        assert max_seconds - restarts[-1] >= max_seconds / 2 - 0.2
    assert ends[1] == pytest.approx(ends[100][: len(ends[1])], rel=0.2)
    assert ends[20] == pytest.approx(ends[100][: len(ends[20])], rel=0.2)
    assert ends[1][0] == pytest.approx(100 * 50 * 1e-5, rel=0.3)


def test_rounds_without_recombination_begin_hot_and_end_cold(simulate):
    """Searches continue from where they are, at the same period of exchanges."""
    recipe = RESAMPLED._replace(first_round=50)
    chunks = simulate(recipe, 20, (1e-5, 1e-4), start=0.0).chunks
    begins = [end for end, _, _, pace in chunks[1:] if pace.done == 0]
    assert len(begins) > 3 and begins[-1] <= 20 / 2
    for begin, end in itertools.pairwise([0.0, *begins, 20]):
        *_, last = (pace.done for at, *_, pace in chunks if begin < at < end)
        assert last > 0.85
    assert {(pace.every, pace.alike == 0) for *_, pace in chunks} == {
        (recipe.resample_every, False)
    }


def test_rounds_of_a_run_of_steps():
    """They end after 50 steps for each of 10 cities, four times that, and at the limit."""
    count = StepCount(RECOMBINED._replace(first_round=50), 10, 7000)
    assert count.pace == Pace(0, 0.0, 1 / 150, MAX_INT32)
    begins = []
    for step in range(1, 7001):
        count.note(step, 0.0)
        if count.pace.alike == 0:
            begins.append(step)
            assert count.pace == Pace(step, 0.0, count.pace.per_step, 1, alike=0.0)
            assert count.steps_left(step) == 1
    assert begins == [500, 2000]
    again = StepCount(RECOMBINED._replace(first_round=50), 10, 7000)
    again.note(6000, 0.0)  # as a run that is resumed begins
    assert again.pace == count.pace and count.pace.done == 1
    assert StepCount(RECOMBINED._replace(first_round=50), 10, 0).steps_left(0) is None
    resampled = StepCount(RESAMPLED._replace(first_round=50), 10, 7000)
    resampled.note(2000, 0.0)
    assert resampled.pace == Pace(2000, 0.0, 1 / 5000, RESAMPLED.resample_every)
