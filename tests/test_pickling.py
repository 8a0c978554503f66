"""Problems, searches and results can be sent to another process, and compared."""

import pickle
import subprocess
import sys

import chex
import jax
import numpy as np
import pytest
from probes import annealing, assert_same_results, small_tsp

import jaxopt_search as js

TABLE = np.arange(16).reshape(4, 4)
PROBLEMS = {
    "matrix": lambda: js.tsp(TABLE),
    "forbidden": lambda: js.tsp(np.where(TABLE == 7, np.inf, TABLE + 0.5), forbidden="inf"),
    "qap of floats": lambda: js.qap(TABLE / 3, TABLE.T),
    "queens": lambda: js.nqueens(4),
}


@pytest.mark.parametrize("kind", PROBLEMS)
def test_problems_can_be_sent(kind):
    """What comes back has the same arrays, and on the host the same costs and checks."""
    problem, solution = PROBLEMS[kind](), np.array([2, 1, 0, 3])
    back = pickle.loads(pickle.dumps(problem))
    chex.assert_trees_all_equal(jax.tree.leaves(back), jax.tree.leaves(problem))
    assert back.host.cost(solution) == problem.host.cost(solution)
    assert back.host.is_feasible(solution) == problem.host.is_feasible(solution)
    assert back.host.best_known == problem.host.best_known
    with pytest.raises(ValueError, match="start holds 2 twice"):
        back.host.check([2, 2, 0, 3], "start")


@pytest.mark.slow
def test_a_new_process_takes_them(tmp_path):
    """As multiprocessing by `spawn` sends them, and the result continues here as its own would."""
    problem, search = small_tsp(), annealing()
    (tmp_path / "sent").write_bytes(pickle.dumps((problem, search)))
    code = (
        "import pickle, pathlib, sys; path = pathlib.Path(sys.argv[1]); import jaxopt_search as js;"
        "problem, search = pickle.loads(path.read_bytes());"
        "result = js.solve(problem, search, 0, max_steps=20, num_searches=2);"
        "path.write_bytes(pickle.dumps(result))"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path / "sent"], check=True, timeout=300)
    result = pickle.loads((tmp_path / "sent").read_bytes())
    own = js.solve(problem, search, 0, max_steps=20, num_searches=2)
    assert_same_results(result, own)
    ends = [js.solve(problem, search, 0, max_steps=40, state=r.state) for r in (result, own)]
    assert_same_results(*ends)
