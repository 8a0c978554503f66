"""What is drawn is the tour and the history, on the axes given."""

import itertools

import jax.numpy as jnp
import made
import numpy as np
import pytest

import jaxopt_search as js
from jaxopt_search.driver.results import Report
from jaxopt_search.results import Record, plotting

pytest.importorskip("matplotlib")

HISTORY = [Record(0, 0.5, 200, 0.0), Record(10, 1.0, 150, 0.3), Record(20, 1.5, 100, 0.1)]


def test_a_tour_is_closed():
    """The line visits the cities in tour order and returns to the first."""
    points = np.array([[0, 0], [5, 0], [5, 5], [0, 5]])
    ax = plotting.detached_axes()
    assert plotting.plot_tour(points, [2, 0, 3, 1], ax) is ax
    np.testing.assert_array_equal(ax.lines[0].get_xydata(), points[[2, 0, 3, 1, 2]])
    np.testing.assert_array_equal(ax.lines[1].get_xydata(), points)


@pytest.mark.parametrize(
    "points, tour",
    [
        (np.zeros((4, 3)), range(4)),
        (np.zeros((4, 2)), [0, 1, 2, 9]),
        (np.zeros((0, 2)), []),
    ],
)
def test_shapes_that_do_not_fit_are_refused(points, tour):
    """Three dimensions, no city, or a tour of other cities."""
    with pytest.raises(ValueError, match="expected"):
        plotting.plot_tour(points, list(tour), plotting.detached_axes())


def test_convergence_shows_cost_or_gap():
    """Costs against steps as they are; with a best-known cost, percent above it."""
    ax = plotting.plot_convergence([HISTORY], against="step", ax=plotting.detached_axes())
    np.testing.assert_array_equal(ax.lines[0].get_xydata(), [[0, 200], [10, 150], [20, 100]])
    ax = plotting.plot_convergence([HISTORY], best_known=100, ax=plotting.detached_axes())
    np.testing.assert_allclose(ax.lines[0].get_xydata(), [[0.5, 100], [1.0, 50], [1.5, 0]])
    cut = js.solve_max_cut(js.max_cut(1, edges=[[0, 1]], best_known_cut=4), max_steps=9)
    ax = plotting.plot_result(cut, plotting.detached_axes(columns=2))[-1]
    assert (cut.fun, ax.lines[0].get_ydata()[-1]) == (1, 75)


@pytest.mark.parametrize(
    "options", [{"against": "time"}, {"labels": ["a", "b"]}, {"best_known": [1, 2]}], ids=str
)
def test_bad_arguments_are_refused(options):
    """An unknown axis, and lists of another length than the runs."""
    with pytest.raises(ValueError, match="expected"):
        plotting.plot_convergence([HISTORY], ax=plotting.detached_axes(), **options)


def test_an_assignment_is_a_map_of_its_cost():
    """Each pair of facilities has its flow times the distance of their locations."""
    flow, distance = np.arange(9).reshape(3, 3), np.arange(9)[::-1].reshape(3, 3)
    ax = plotting.plot_assignment(flow, distance, [2, 0, 1], plotting.detached_axes())
    shown = np.asarray(ax.images[0].get_array())
    assert shown[1, 2] == flow[1, 2] * distance[0, 1]
    for bad in ((flow[:2], distance, [2, 0, 1]), (flow, distance, [2, 0, 0]), (flow, flow[0], [0])):
        with pytest.raises(ValueError, match="expected"):
            plotting.plot_assignment(*bad, plotting.detached_axes())


@pytest.mark.parametrize("n", [5, 100, 101])
def test_queens_stand_in_their_rows(n):
    """The first row is at the top; of many queens, squares are not drawn."""
    queens = np.roll(np.arange(n), 2)
    ax = plotting.plot_board(queens, plotting.detached_axes())
    drawn = ax.collections[0].get_offsets()
    np.testing.assert_array_equal(drawn, np.stack([queens, np.arange(n)], 1))
    assert ax.yaxis_inverted() and len(ax.images) == (n <= 100)


def test_lines_join_queens_that_attack():
    """On a diagonal, each to the next; all pairs are counted, as the cost does."""
    queens = np.array([4, 1, 2, 3, 0, 5])
    ax = plotting.plot_board(queens, plotting.detached_axes(), attacks=True)
    lines = {frozenset(map(tuple, one)) for one in ax.collections[1].get_segments()}
    down, up = [(1, 1), (2, 2), (3, 3), (5, 5)], [(0, 4), (2, 2), (4, 0)]
    assert lines == {frozenset(pair) for way in (down, up) for pair in itertools.pairwise(way)}
    cost = js.nqueens(6).cost(jnp.asarray(queens, jnp.int32))
    assert f"{int(cost)} attacking" in ax.get_title()


def test_a_graph_shows_which_edges_join_equal_values():
    """At the places that are given, or on a circle where equal values are neighbors."""
    edges, places = [[0, 1], [1, 2], [2, 3]], np.arange(8).reshape(4, 2)
    ax = plotting.plot_graph(edges, [0, 0, 1, 0], plotting.detached_axes(), coords=places)
    others, equal = (one.get_segments() for one in ax.collections[:2])
    np.testing.assert_array_equal(others, places[edges[1:]])
    np.testing.assert_array_equal(equal, places[edges[:1]])
    ax = plotting.plot_graph(edges, [0, 1, 0, 1], plotting.detached_axes())
    places = ax.collections[2].get_offsets()
    assert np.linalg.norm(places[0] - places[2]) < 1.5 < np.linalg.norm(places[0] - places[1])
    for bad in ({"edges": [[0, 4]]}, {"coords": [[0, 0]]}):
        with pytest.raises(ValueError, match="expected"):
            options = {"edges": edges, "values": [0, 0, 1, 0], "ax": plotting.detached_axes()}
            plotting.plot_graph(**options | bad)


PROBLEMS = {
    "tour": lambda: js.tsp_from_coords([[0, 0], [1, 0], [1, 1], [0, 1]]),
    "assignment": lambda: js.qap(np.arange(16).reshape(4, 4), np.ones((4, 4))).padded(6),
    "board": lambda: js.nqueens(4),
    "coloring": lambda: js.graph_coloring([[0, 1], [2, 3]], 4, fixed=[[3, 1]], num_vertices=4),
    "cut": lambda: js.max_cut(1, edges=[[0, 1], [1, 2], [2, 3]]),
    "no picture": lambda: js.tsp(np.arange(16).reshape(4, 4)),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_result_draws_itself(name):
    """Its solution and its course, or the course alone where there is no picture: an array."""
    result = made.result(problem=PROBLEMS[name]())
    both = [plotting.detached_axes(), plotting.detached_axes()]
    if name == "no picture":
        assert list(result.plot(both[0])) == both[:1] and len(both[0].lines) == 1
        return
    axes = result.plot(both)
    assert list(axes) == both and len(both[1].lines) == 1
    assert both[0].get_title().endswith("\ncost 123,456 (1.250% from the best known)")
    only = plotting.detached_axes()
    assert list(result.plot(only)) == [only]
    assert only.lines + list(only.images) + list(only.collections)


@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_a_cut_has_the_edges_of_its_graph(storage):
    edges = np.array([[0, 1], [1, 2], [0, 4], [2, 3]])
    problem = js.max_cut(1, edges=edges, num_vertices=5, storage=storage)
    ax, places = plotting.detached_axes(), np.random.default_rng(0).random((5, 2))
    problem.picture(np.array([0, 0, 1, 1, 0]), coords=places)(ax)
    drawn = [one.ravel() for lines in ax.collections[:2] for one in lines.get_segments()]
    expected = places[edges].reshape(4, 4)
    np.testing.assert_array_equal(sorted(map(list, drawn)), sorted(map(list, expected)))


def test_a_tour_by_a_matrix_is_drawn_at_places_that_are_given():
    """So is a path, which is open."""
    places, matrix = np.array([[0, 0], [3, 0], [3, 1], [0, 1]]), np.ones((4, 4))
    ax = made.result(problem=js.tsp(matrix)).plot(plotting.detached_axes(), coords=places)[0]
    np.testing.assert_array_equal(ax.lines[0].get_xydata(), places[[3, 0, 2, 1, 3]])
    path = js.solve_tsp(matrix, start=0, end=3, max_steps=1)
    ax = path.plot(plotting.detached_axes(), coords=places)[0]
    np.testing.assert_array_equal(ax.lines[0].get_xydata(), places[path.x])


def test_an_animation_shows_each_run_where_it_stands():
    """At each moment, the best solution of every run by then; the last frame is the end."""
    points = [[0, 0], [1, 0], [1, 1], [0, 1]]
    problem, runs = js.tsp_from_coords(points), [[], []]
    tours = [[0, 2, 1, 3], [0, 1, 2, 3]], [[0, 1, 3, 2]]
    for run, times, own in zip(runs, ([0, 10], [5]), tours, strict=True):
        for step, tour in zip(times, own, strict=True):
            cost = float(problem.cost(jnp.array(tour)))
            run.append(Report(step, step / 10, cost, np.array(tour), None, 0.5, 0, None))
    found = plotting.animate(problem, runs, labels=["first", "second"])
    seen = []
    for moment in dict.fromkeys(found.new_saved_frame_seq()):
        found._func(moment)
        axes = found._fig.axes
        drawn = [ax.lines[0].get_xydata()[:-1].tolist() for ax in axes[:2]]
        seen.append((moment, *drawn, axes[2].lines[-1].get_xdata()[0]))
        assert axes[0].get_title().startswith("first")
    a, b, c = ([points[city] for city in tour] for tour in (*tours[0], *tours[1]))
    assert seen == [(0, a, c, 0), (5, a, c, 5), (10, b, c, 10)]
    found._draw_was_started = True  # it is not shown


def test_a_result_is_animated_from_its_reports(tmp_path):
    reports, path = [], tmp_path / "run.gif"
    limits = {"max_steps": 40, "chunk_steps": 5}
    search = js.tabu_search(js.Assign())
    problem = js.max_cut(1, edges=[[0, 1], [1, 2], [2, 3], [3, 0], [0, 2]])
    result = js.solve(problem, search, 0, num_searches=1, callback=reports.append, **limits)
    result.animate(reports, num_frames=2).save(path, "pillow")
    assert path.read_bytes().startswith(b"GIF89a")
    for shown, what in (([], "reports"), (reports[:1], "picture")):
        with pytest.raises(ValueError, match=what):
            made.result(problem=js.tsp(np.ones((4, 4)))).animate(shown)


def test_several_instances_draw_the_course_of_their_mean():
    ax = plotting.detached_axes()
    assert list(made.stacked().plot(ax)) == [ax]
    assert ax.lines[0].get_ydata()[-1] == 100 and "mean" in ax.get_ylabel()


def test_queens_draw_their_first_placement():
    ax = plotting.detached_axes()
    assert list(made.queens().plot(ax)) == [ax]
    assert ax.collections[0].get_offsets()[:, 0].tolist() == [1, 3, 0, 2]
    with pytest.raises(ValueError, match="solutions has none"):
        made.queens(solutions=np.zeros((0, 4), np.int16)).plot(ax)
