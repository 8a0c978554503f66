"""Simulated bifurcation: particles that are driven apart, for QUBO and maximum cuts.

Goto, Tatsumura, Dixon, "Combinatorial optimization by simulating adiabatic bifurcations in
nonlinear Hamiltonian systems", 2019, in the forms of Goto, Endo, Suzuki, Sakai, Kanao, Hamakawa,
Hidaka, Yamasaki, Tatsumura, "High-performance combinatorial optimization based on classical
mechanics", 2021.
"""

import dataclasses
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.backends import floats, loops, random
from jaxopt_search.backends.costs import cost_of
from jaxopt_search.checks import (
    check_count,
    check_number,
    check_option,
    check_suits,
    float32,
    int32,
)
from jaxopt_search.problems.finite.qubo import QUBO
from jaxopt_search.pytrees import pytree, static
from jaxopt_search.searches.base import SolutionSearch
from jaxopt_search.types import Cost, Info, Stream

_START = 0.1  # within this of 0, on either side, are the first positions and momenta
_FORCE = 0.5  # of all couplings together, against what holds a particle in the middle
_STABLE = 1.5  # of the highest frequency, times the time step; from 2 on oscillations grow
_LOOK_EVERY = 8  # steps
_POWERS = 20  # of the couplings, by which their largest eigenvalue is known well enough


class BifurcationState(NamedTuple):
    """The state of one search.

    Attributes:
      position: [n] float32 from -1 to 1; a variable is 1 where it is above 0.
      momentum: [n] float32.
      scale: [] float32, which makes forces of couplings as large as they are to be.
      time_step: [] float32, which is short enough for all oscillations.
      solution: [n] int32, the variables when they were looked at last.
      cost: [] its cost.
      best: [n] int32, the best solution so far.
      best_cost: [] its cost.
    """

    position: jax.Array
    momentum: jax.Array
    scale: jax.Array
    time_step: jax.Array
    solution: jax.Array
    cost: Cost
    best: jax.Array
    best_cost: Cost


@pytree
@dataclasses.dataclass(frozen=True, kw_only=True)
class SimulatedBifurcation(SolutionSearch):
    """Build it with `simulated_bifurcation`."""

    num_steps: jax.Array
    time_step: jax.Array
    form: Literal["discrete", "ballistic"] = static()

    space = "vector"

    def init(self, problem: QUBO, solution: jax.Array) -> BifurcationState:
        check_suits("simulated_bifurcation", "a QUBO", problem, isinstance(problem, QUBO))
        # Spins of -1 and 1 have a quarter of the couplings of zeros and ones.
        strength = problem.couplings.norm() / 4
        scale = _FORCE * jnp.sqrt(jnp.float32(max(problem.n - 1, 1)))
        scale = scale / jnp.where(strength > 0, strength, 1)
        highest = jnp.sqrt(1 + scale / 4 * _largest_eigenvalue(problem))
        time_step = jnp.minimum(self.time_step, _STABLE / highest)
        position, cost = _near_middle(solution), cost_of(problem, solution)
        still, looked_at = jnp.zeros_like(position), (solution, cost, solution, cost)
        return BifurcationState(position, still, scale, time_step, *looked_at)

    def control(self, step: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Returns the drive, 0 to 1, whether it begins again, and whether to look at solutions."""
        made = lax.rem(step, self.num_steps)
        drive = made.astype(jnp.float32) / self.num_steps.astype(jnp.float32)
        is_look = lax.rem(made, jnp.int32(_LOOK_EVERY)) == _LOOK_EVERY - 1
        is_due = is_look | (made == self.num_steps - 1)
        return drive, (made == 0) & (step > 0), is_due

    def step(
        self, stream: Stream, control: Any, problem: QUBO, state: BifurcationState
    ) -> tuple[BifurcationState, Info]:
        """Lets the particles move for a moment.

        Each is pushed by the others along its couplings, and held in the middle, the less the
        longer the drive lasts. Walls at -1 and 1 take all of its momentum.
        """
        drive, is_new, is_due = control
        position, momentum = lax.cond(
            is_new,
            lambda: (_drawn(stream, problem.n), jnp.zeros_like(state.momentum)),
            lambda: (state.position, state.momentum),
        )
        pushing = position > 0 if self.form == "discrete" else (position + 1) / 2
        fields = problem.fields_of(pushing.astype(jnp.float32))
        force = (drive - 1) * position - state.scale / 2 * fields
        momentum = momentum + state.time_step * force
        position = position + state.time_step * momentum
        momentum = jnp.where(jnp.abs(position) > 1, 0.0, momentum)
        state = state._replace(position=jnp.clip(position, -1, 1), momentum=momentum)
        looked_at = (state.position > 0).astype(jnp.int32)
        after = lax.cond(is_due, lambda: self.moved(problem, state, looked_at), lambda: state)
        is_other = (after.solution != state.solution).any()
        return after, Info(accepted=is_other.astype(jnp.int32))

    def evaluations_per_step(self, problem: QUBO) -> int:
        return 1

    def adopt(
        self, problem: QUBO, state: BifurcationState, solution: jax.Array
    ) -> BifurcationState:
        position = _near_middle(solution)
        at_rest = state._replace(position=position, momentum=jnp.zeros_like(position))
        return self.moved(problem, at_rest, solution)


def _largest_eigenvalue(problem: QUBO) -> jax.Array:
    """Returns about the largest absolute eigenvalue of the couplings, [] float32, mostly below."""

    def multiply(_: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        vector, _ = carry
        product = problem.couplings.weighted(vector)
        length = floats.norm(product)
        return product / jnp.where(length > 0, length, 1), length

    number = lax.iota(jnp.float32, problem.n)
    start = 1 + jnp.cos(number * number)  # no eigenvector is far from all of such a one
    start = start / jnp.sqrt(jnp.square(start).sum())
    return loops.fori_loop(0, _POWERS, multiply, (start, jnp.float32(0)))[1]


def _near_middle(solution: jax.Array) -> jax.Array:
    """Returns the positions, [n], with which a drive starts at a solution."""
    return _START * (2 * solution - 1).astype(jnp.float32)


def _drawn(stream: Stream, n: int) -> jax.Array:
    """Returns random positions, [n]."""
    (words,) = stream.words(lax.iota(jnp.uint32, n), 1)
    return _START * (2 * random.uniform(words) - 1)


def simulated_bifurcation(
    *,
    num_steps: int = 2000,
    time_step: float = 1.0,
    form: Literal["discrete", "ballistic"] = "discrete",
) -> SimulatedBifurcation:
    """Returns simulated bifurcation, for `qubo` and `max_cut`: particles that are driven apart.

    Variables are the signs of particles' positions. Driven for `num_steps` steps, positions leave
    the middle for one side, where the others push them along the couplings. Then the next drive
    starts from random positions. Solutions are looked at every 8 steps, and costs are exact.

    A step multiplies the couplings with all variables, of all searches at once: it suits dense
    instances and GPUs. Nothing is differentiated.

    Args:
      num_steps: of a drive, above 0.
      time_step: above 0, at most. Forces are scaled so that 1 suits most instances; it is made
        shorter where the largest eigenvalue of the couplings asks for that.
      form: `"discrete"`, where signs push, or `"ballistic"`, where positions do.

    Raises:
      ValueError: for an option out of range.

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.max_cut(1, edges=[[0, 1], [1, 2], [2, 3], [3, 0], [0, 2]])
      >>> search = simulated_bifurcation(num_steps=50)
      >>> js.solve(problem, search, 0, num_searches=4, max_steps=100).fun
      -4
    """
    check_option("form", form, ("discrete", "ballistic"))
    step = check_number("time_step", time_step)
    if not 0 < step < np.inf:
        raise ValueError(f"time_step is {time_step}, expected a number above 0")
    return SimulatedBifurcation(
        num_steps=int32(check_count("num_steps", num_steps)), time_step=float32(step), form=form
    )
