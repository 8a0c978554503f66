"""Regional search: what `solve_tsp` makes of it on a large instance, and what it is not for."""

import numpy as np
from probes import refuses
from ways import ON_GPU

import jaxopt_search as js
from jaxopt_search.solvers import regional, tsp

N = 3000
POINTS = np.random.default_rng(5).integers(0, 9000, (N, 2))


def test_a_large_instance_is_searched_in_regions(tmp_path, monkeypatch):
    """It improves, begins where it is told to, and resumes bit for bit on two devices."""
    monkeypatch.setattr(regional, "_LOOKS", 3)
    for most in ("_MOST_ON_CPU", "_MOST_ON_GPU"):
        monkeypatch.setattr(tsp, most, N - 1)
    options = {"metric": "EUC_2D", "key": 3, "start": 7, "target": None, "max_steps": 2}
    one, two = {"devices": 1}, {"devices": 1 if ON_GPU else 2}
    whole = js.solve_tsp(POINTS, **options, **one)
    assert type(whole.search).__name__ == "RegionalSearch"
    assert sorted(whole.x.tolist()) == list(range(N)) and whole.x[0] == 7
    assert isinstance(whole.fun, int)
    assert whole.fun == js.tsp_from_coords(POINTS, metric="EUC_2D").host.cost(whole.x)
    assert whole.fun < 0.8 * whole.history[0].best
    options["checkpoint"] = tmp_path / "run.npz"
    js.solve_tsp(POINTS, callback=lambda report: report.step == 1, **options, **one)
    resumed = js.solve_tsp(POINTS, resume=True, **options, **two)
    np.testing.assert_array_equal(resumed.x, whole.x)


def test_what_regions_are_not_for():
    few, options = np.arange(14).reshape(7, 2), {"storage": "coordinates"}
    with refuses(
        ValueError, "problem has a matrix, expected distances that follow from coordinates"
    ):
        js.regional_search(js.tsp_from_coords(POINTS[:20], storage="matrix"))
    with refuses(ValueError, "problem has 7 cities, expected at least 8"):
        js.regional_search(js.tsp_from_coords(few, **options))
    problem = js.tsp_from_coords(POINTS[:20], **options)
    with refuses(ValueError, "num_regions is 3, expected an integer from 1 to 2"):
        js.regional_search(problem, num_regions=3)
    with refuses(ValueError, "problem is padded"):
        js.solve(problem.padded(), js.regional_search(problem), num_searches=1, max_steps=1)


def test_cities_at_the_same_place():
    """Regions in which all distances are 0 do no harm: of two places, there and back is best."""
    places = np.repeat(POINTS[:2], 40, axis=0)
    problem = js.tsp_from_coords(places, metric="EUC_2D", storage="coordinates")
    search = js.regional_search(problem, 0.2, looks=10, num_regions=4)
    result = js.solve(problem, search, 0, num_searches=1, max_steps=20)
    assert result.fun == problem.host.cost(np.arange(80))
