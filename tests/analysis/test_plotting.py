"""What is drawn is the tour and the history, on the axes given."""

import sys

import numpy as np
import pytest

from jaxopt_search.analysis import plotting
from jaxopt_search.results import Record

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
        (np.zeros((4, 2)), [0, 1]),
        (np.zeros((4, 2)), [0, 1, 2, 9]),
        (np.zeros((4, 2)), [0, 1, 2, 2]),
        (np.zeros((0, 2)), []),
    ],
)
def test_shapes_that_do_not_fit_are_refused(points, tour):
    """Three dimensions, no city, or a tour of other cities."""
    with pytest.raises(ValueError, match="expected"):
        plotting.plot_tour(points, list(tour), plotting.detached_axes())


@pytest.mark.parametrize("n", [6, 100, 101])
def test_queens_stand_in_their_columns(n):
    """One in each row; of more than 100 without the squares of the board."""
    queens = np.roll(np.arange(n), 2)
    ax = plotting.plot_queens(queens, plotting.detached_axes())
    expected = np.stack([queens, np.arange(n)], axis=1)
    np.testing.assert_array_equal(ax.lines[0].get_xydata(), expected)
    assert len(ax.images) == (n <= 100)
    with pytest.raises(ValueError, match="queens"):
        plotting.plot_queens(np.zeros(n, int), plotting.detached_axes())


def test_convergence_shows_cost_or_gap():
    """Costs against steps as they are; with a best-known cost, percent above it."""
    ax = plotting.plot_convergence([HISTORY], against="step", ax=plotting.detached_axes())
    np.testing.assert_array_equal(ax.lines[0].get_xydata(), [[0, 200], [10, 150], [20, 100]])
    ax = plotting.plot_convergence([HISTORY], best_known=100, ax=plotting.detached_axes())
    np.testing.assert_allclose(ax.lines[0].get_xydata(), [[0.5, 100], [1.0, 50], [1.5, 0]])


@pytest.mark.parametrize(
    "options", [{"against": "time"}, {"labels": ["a", "b"]}, {"best_known": [1, 2]}], ids=str
)
def test_bad_arguments_are_refused(options):
    """An unknown axis, and lists of another length than the runs."""
    with pytest.raises(ValueError, match="expected"):
        plotting.plot_convergence([HISTORY], ax=plotting.detached_axes(), **options)


def test_axes_that_are_given_leave_pyplot_alone():
    """No figure is registered with pyplot."""
    from matplotlib import pyplot

    before = pyplot.get_fignums()
    plotting.plot_convergence([HISTORY], ax=plotting.detached_axes())
    assert pyplot.get_fignums() == before


def test_a_missing_matplotlib_is_named(monkeypatch):
    """The error is one line with the command that installs it."""
    for module in ("matplotlib", "matplotlib.pyplot", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=r"jaxopt_search\[plot\]"):
        plotting.plot_convergence([HISTORY])
    with pytest.raises(ImportError, match=r"jaxopt_search\[plot\]"):
        plotting.detached_axes()
