"""What is drawn follows the weights, and the random order is a uniform permutation.

Every bound holds for nearly any seed, so seeds are drawn.
"""

import itertools

import jax.numpy as jnp
import numpy as np
from scipy import stats
from successors import heuristics as parts

import jaxopt_search as js

HIGHLY_UNLIKELY = 1e-9  # p-value below which a statistical test fails: no seed is needed
MOST = 300  # more than one block of lanes
NUM_STATES, NUM_SUCCESSORS, NUM_SEEDS = 600, 4, 2
NUM_DRAWS = NUM_STATES * NUM_SUCCESSORS * NUM_SEEDS
_RANDOM = np.random.default_rng(5)


def row(*weights):
    return np.pad(np.asarray(weights, np.int64), (0, MOST - len(weights)))


SHAPES = {
    "few": row(1, 1, 1, 1, 1),
    "equal": np.ones(MOST, np.int64),
    "rising": np.arange(MOST) + 1,
    "one heavy": np.where(np.arange(MOST) == 299, 1000, 1),
    "sparse": (_RANDOM.random(MOST) < 0.1) * _RANDOM.integers(1, 9, MOST),
    "sum above 2**32": 2**32 - 1 - (np.arange(MOST) % 3) * 2**30,
    "all sizes": 2 ** (np.arange(MOST) % 32),
    "sum below 2**32": row(2**30, 0, 2**30, 2**30),
    "one": row(0, 0, 7),
}


def p_value(draws, weights):
    """Returns that of Pearson's test; possibilities expected less than 10 times count together.

    It is 0 if one that is forbidden was drawn.
    """
    counts = np.bincount(draws, minlength=MOST)
    if counts[weights == 0].any() or len(counts) > MOST:
        return 0.0
    counts, weights = counts[weights > 0], weights[weights > 0] / weights.sum()
    wanted = weights * len(draws)
    is_often = wanted >= 10
    rest = [int((~is_often).any())]
    found = np.concatenate([counts[is_often], np.repeat(counts[~is_often].sum(), rest)])
    wanted = np.concatenate([wanted[is_often], np.repeat(wanted[~is_often].sum(), rest)])
    if len(found) == 1:
        return 1.0
    return stats.chisquare(found, wanted * found.sum() / wanted.sum()).pvalue


def fresh_seeds(number):
    return np.random.default_rng().integers(2**32, size=number).tolist()


def engine_draws():
    """Returns what the engine drew, [seeds, states, successors, shapes], and the seeds."""
    heuristic = parts.table(np.stack(list(SHAPES.values())))
    states = parts.states(NUM_STATES, len(SHAPES))
    seeds = fresh_seeds(NUM_SEEDS)
    draws = [
        js.successors.generate(
            seed, heuristic, parts.ALONE, states, num_successors=NUM_SUCCESSORS
        ).states.values
        for seed in seeds
    ]
    shape = NUM_SEEDS, NUM_STATES, NUM_SUCCESSORS, len(SHAPES)
    return np.stack(draws).reshape(shape), seeds


def neighbors(draws, axis):
    """Returns the p-value of: draws next to each other along an axis are independent."""
    halves = np.moveaxis(draws % 5, axis, 0)
    halves = halves[: len(halves) // 2 * 2]
    table = np.zeros((5, 5), np.int64)
    np.add.at(table, (halves[::2].ravel(), halves[1::2].ravel()), 1)
    return stats.chi2_contingency(table).pvalue


AXES = {"key": 0, "state": 1, "successor": 2, "variable": 3}


def test_draws_follow_the_weights_and_are_independent():
    """Chi-square over states, successors and keys; what weighs 0 is never drawn.

    Neighbors along each axis of the stream have nothing to do with each other.
    """
    draws, seeds = engine_draws()
    for k, (shape, weights) in enumerate(SHAPES.items()):
        assert p_value(draws[..., k].ravel(), weights) > HIGHLY_UNLIKELY, (shape, seeds)
    alike = draws[..., :2]  # modulo 5, draws of these two are uniform
    for axis, number in AXES.items():
        assert neighbors(alike, number) > HIGHLY_UNLIKELY, (axis, seeds)


ACTIVE = (3, 31, 32, 70)
NUM_ORDERS = 24 * 400


def order_p_value(orders):
    """Returns that of: the [N, 4] positions are uniform over all permutations."""
    numbers = {order: k for k, order in enumerate(itertools.permutations(range(4)))}
    found = [numbers[tuple(order)] for order in orders.tolist()]
    return stats.chisquare(np.bincount(found, minlength=24)).pvalue


def test_a_random_order_is_a_uniform_permutation():
    """Of four active variables in three words, over states and successors."""
    number = NUM_ORDERS // NUM_SUCCESSORS
    states = parts.states(number, 71)._replace(last=jnp.zeros(number, jnp.int32))
    active = np.zeros((number, 71), bool)
    active[:, ACTIVE] = True
    (seed,) = fresh_seeds(1)
    found = js.successors.generate(
        seed,
        parts.Positions(71),
        (),
        states,
        active=js.successors.bit_sets.pack(active),
        num_successors=NUM_SUCCESSORS,
        order="random",
    )
    orders = np.asarray(found.states.values)[:, ACTIVE]
    assert order_p_value(orders) > HIGHLY_UNLIKELY, seed
