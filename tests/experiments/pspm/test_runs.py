"""Runs of PSPM: as the paper has them, exact, and independent of one another."""

import jax
import numpy as np
import pytest

import jaxopt_search as js
from experiments.pspm import __main__ as pspm
from experiments.pspm import compiled as compiled_tsp
from experiments.pspm import runs as pspm_runs
from experiments.pspm.runs import SCHEMES, Batch, Cooling, Limit
from jaxopt_search.engine import starting
from jaxopt_search.engine.devices import find_devices

TINY = Cooling(start=100.0, end=1.0, alpha=0.5, sweeps=2, exchange_every=2)
INSTANCE = js.datasets.grid_tsp(3, 4, spacing=100)


def job(seeds=(0, 1), scheme=SCHEMES["pssm"], kind="quality", limit=None, devices=1):
    found = find_devices(devices)
    limit = limit or Limit(max_steps=TINY.steps(12))
    return Batch(INSTANCE, scheme, TINY, kind, limit, seeds, found)


@pytest.mark.parametrize(
    ("name", "searches", "moves", "every"),
    [("sspm", 1, 12, None), ("pssm", 12, 1, 1000 * 12), ("pspm", 98, 12, 1000 * 12)],
)
def test_each_scheme_has_the_settings_of_the_papers_table_1(
    data_dir, monkeypatch, name, searches, moves, every
):
    """From the command's defaults: searches, moves, temperatures, sweeps, exchanges, light storing.

    On 12 cities: 120 steps at each temperature, and 100 temperatures from exchange to exchange.
    """
    plans = []
    monkeypatch.setattr(pspm, "execute", lambda plan, runs: plans.append(plan) or [])
    assert pspm.main(["--instances", "all"]) == 0
    (the_plan,) = plans
    ((_, scheme, cooling),) = [one for one in pspm.stages(the_plan) if one[1].name == name]
    own = job(scheme=scheme)._replace(cooling=cooling)
    search, rule = pspm_runs.annealing(own), pspm_runs.exchange(own)
    assert own.num_searches == 2 * searches
    assert search.evaluations_per_step(None) == moves
    assert (search.choose, search.keep_best) == ("best", "light")
    assert isinstance(search.neighborhood, js.Relocate)
    temperatures = [float(search.control(jax.numpy.int32(step))) for step in (0, 119, 120, 240)]
    np.testing.assert_allclose(temperatures, [1e4, 1e4, 9900, 9801], rtol=1e-6)
    steps = cooling.steps(12)
    assert steps == 1146 * 120
    last, after = (float(search.control(jax.numpy.int32(at))) for at in (steps - 1, steps))
    assert last > 0.1 > after > 0.098
    if every is None:
        assert rule is None
    else:
        assert (int(rule.every), rule.group_size) == (every, searches)


def test_the_best_spreads_in_its_run_at_each_exchange():
    """By the function that makes the runs: not a step before, and in every run of the batch."""
    one = job(scheme=SCHEMES["pssm"])
    problem, advance = pspm_runs._prepared(one)
    search = pspm_runs.annealing(one)
    every = TINY.exchange_every * TINY.sweeps * 12
    before = advance(pspm_runs.start(one, problem), every - 1)
    after = advance(before, 1)

    def costs(state):
        return np.asarray(jax.vmap(search.current_cost)(state.searches)).reshape(2, 12)

    assert all(len(set(run)) > 1 for run in costs(before))
    best = np.asarray(search.best_cost(after.searches)).reshape(2, 12).min(axis=1)
    np.testing.assert_array_equal(costs(after), np.tile(best[:, None], 12))


def test_runs_of_a_batch_do_not_affect_one_another():
    """If one group starts at the optimum, the other groups' searches do not change at all.

    With one broadcast among all searches, the optimum would spread.
    """
    batch, changed = job(seeds=(0, 1, 2)), 1
    problem, advance = pspm_runs._prepared(batch)
    search, size = pspm_runs.annealing(batch), batch.scheme.searches
    starts = np.stack([np.random.default_rng(i).permutation(12) for i in range(3 * size)])
    better = starts.copy()
    better[changed * size : (changed + 1) * size] = [0, 1, 2, 3, 7, 11, 10, 6, 5, 9, 8, 4]

    def advance_all(state, num_steps):
        everyone = js.broadcast_best(every=TINY.exchange_every * TINY.sweeps * 12)
        return js.advance(problem, search, state, num_steps, exchange=everyone)

    def others(tours, advance):
        tours = jax.numpy.array(tours)
        state = starting.init(5, problem, search, num_searches=3 * size, solutions=tours)
        searches = advance(state, TINY.steps(12)).searches
        is_other = np.arange(3 * size) // size != changed
        return jax.tree.map(lambda leaf: np.asarray(leaf)[is_other], searches)

    kept, same = (others(tours, advance) for tours in (starts, better))
    jax.tree.map(np.testing.assert_array_equal, kept, same)
    assert (search.best_cost(others(better, advance_all)) == 1200).all()


def test_a_core_makes_complete_runs(monkeypatch):
    """As plain Python: a record for each seed, with the same fields as on a device."""
    anneal = compiled_tsp.build(lambda fn: fn)
    monkeypatch.setattr(pspm_runs, "_compiled", lambda: (anneal, 0.0))
    scheme = SCHEMES["core sspm"]
    on_core, on_device = (pspm_runs.make(job(scheme=s)) for s in (scheme, SCHEMES["sspm"]))
    assert [record["seed"] for record in on_core] == [0, 1]
    for record in on_core:
        assert record["steps"] == TINY.steps(12)
        assert record["moves"] == TINY.steps(12) * scheme.moves
        assert record["sses"] == pytest.approx(record["moves"] / record["seconds"])
        assert 1200 <= record["cost"] < 4000 and record["env"]["cpu"]
        assert record["settings"]["device_kind"] == "core"
        assert set(record) == set(on_device[0])
