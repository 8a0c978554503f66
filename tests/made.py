"""Results made by hand, without a run."""

import numpy as np

import jaxopt_search as js
from jaxopt_search.results import History, Hit, Record

ENV = {
    "jaxopt_search": "0.1.0",
    "jax": "0.10.2",
    "platform": "cpu",
    "cpu": "AMD EPYC",
    "devices": "2 x cpu",
    "implementation": "native",
}
LINES = History([Record(0, 0.5, 200, 0.0), Record(10, 1.0, 2**70, 0.3), Record(20, 1.5, 100, 0.1)])


def result(**changes):
    made = js.Result(
        x=np.array([3, 0, 2, 1], np.int32),
        fun=123_456,
        success=True,
        status=js.Status.TARGET,
        message="the target was reached",
        nit=20,
        nfev=3_400_000_000,
        gap=0.0125,
        first_hit=Hit(17, 1),
        feasible=True,
        history=LINES,
        costs=np.array([7, 9], np.int32),
        solutions=np.array([[3, 0, 2, 1], [0, 1, 2, 3]], np.int32),
        ancestors=np.array([0, 0], np.int32),
        state=object(),
        compile_seconds=2.5,
        elapsed=14.25,
        env=ENV,
        problem=js.nqueens(4),
    )
    return made._replace(**changes)


def stacked(**changes):
    made = js.StackedResult(
        x=[np.array([1, 0], np.int32), np.array([0, 2, 1], np.int32)],
        fun=np.array([1.5, 2.5]),
        costs=np.array([[1.5, 2.0], [4.0, 2.5]]),
        history=LINES,
        success=False,
        status=js.Status.INTERRUPTED,
        nit=9,
        nfev=90,
        compile_seconds=0.0,
        elapsed=0.001,
        env=ENV,
    )
    return made._replace(**changes)


def queens(**changes):
    made = js.QueensResult(
        solutions=np.array([[1, 3, 0, 2], [2, 0, 3, 1]], np.int16),
        success=True,
        status=js.Status.EXHAUSTED,
        message="there are no more",
        num_found=5,
        nit=3,
        compile_seconds=0.5,
        elapsed=0.75,
        env=ENV,
    )
    return made._replace(**changes)
