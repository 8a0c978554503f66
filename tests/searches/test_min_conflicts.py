"""Min-conflicts: its course by a slow reference, and its end."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
from probes import refuses
from queens import assert_valid, attacks, slow_count

import jaxopt_search as js
from jaxopt_search.backends import random

PARTNERS = js.QueenSwap.num_words_at


def search_of(moves_per_search, temperature=0.3):
    return js.min_conflicts(js.QueenSwap(), temperature, moves_per_search=moves_per_search)


def walked(n, moves_per_search, temperature, num_searches=400, num_steps=50):
    """Returns what searches were before and after each step, [T, S], and what they drew."""
    problem, search = js.nqueens(n), search_of(moves_per_search, temperature)
    index = jnp.arange(num_searches, dtype=jnp.uint32)
    key = random.as_key(int(np.random.default_rng().integers(2**31)))
    own = random.search_key(key, index, jnp.uint32(0))
    starts = jax.vmap(problem.init)(jax.vmap(lambda i: random.start_key(key, i))(index))

    def one(own, state, step):
        stream = random.Stream(own, step, step.astype(jnp.int32))
        after, info = search.step(stream, search.control(stream.step), problem, state)
        fresh, *words = stream.words(jnp.arange(moves_per_search, dtype=jnp.uint32), PARTNERS + 1)
        (last,) = stream.words(jnp.uint32(moves_per_search), 1)
        drawn = (
            random.below(fresh, n),
            jnp.stack([random.below(word, n - 1) for word in words], axis=-1),
            temperature * random.exponential(last),
        )
        return after, (state, after, info.accepted, drawn)

    @jax.jit
    def walk(starts):
        states = jax.vmap(search.init, in_axes=(None, 0))(problem, starts)
        steps = jnp.arange(num_steps, dtype=jnp.uint32)
        step_all = jax.vmap(one, in_axes=(0, 0, None))
        return jax.lax.scan(lambda states, step: step_all(own, states, step), states, steps)[1]

    return jax.device_get(walk(starts))


def slow_step(queens, place, fresh, others, threshold):
    """Returns the queens, the places and whether a move was made, one lane after the other."""
    n, is_attacked = len(queens), attacks(queens).any(axis=1)
    place, swapped = place.copy(), []
    for lane, row in enumerate(fresh):
        if not is_attacked[place[lane]]:
            place[lane] = row
        row = place[lane]
        partners = others[lane] + (others[lane] >= row)
        apart = np.abs(np.arange(n) - row)
        is_free = [(np.abs(queens - queens[k]) != apart).all() for k in partners]
        partner = partners[is_free.index(True) if any(is_free) else -1]
        after = queens.copy()
        after[[row, partner]] = queens[[partner, row]]
        swapped.append(after)
    deltas = slow_count(swapped) - slow_count(queens)
    winner = int(np.argmin(deltas))
    is_made = deltas[winner] <= threshold
    return swapped[winner] if is_made else queens, place, is_made


def test_the_course_is_that_of_a_slow_reference():
    """Lanes keep rows that are attacked and take others at random; the cheapest move is tested."""
    moves_per_search = 5
    before, after, accepted, drawn = walked(9, moves_per_search, 0.5)
    old, new = (states.representation.queens.astype(int) for states in (before, after))
    np.testing.assert_array_equal(before.cost, slow_count(old))
    np.testing.assert_array_equal(after.cost, slow_count(new))
    lowest = np.minimum(before.cost[0], np.minimum.accumulate(after.cost))
    np.testing.assert_array_equal(np.minimum(after.cost, after.best_cost), lowest)
    assert accepted.sum() > 400
    for at in np.ndindex(50, 4):
        place = before.place[at].copy()
        queens, own, is_made = old[at], place[:moves_per_search], False
        if before.cost[at] > 0:
            queens, own, is_made = slow_step(queens, own, *(part[at] for part in drawn))
        place[:moves_per_search] = own
        np.testing.assert_array_equal(new[at], queens)
        np.testing.assert_array_equal(after.place[at], place)
        assert accepted[at] == is_made


def test_a_valid_placement_stays():
    """A search whose cost is 0 makes no move, and its state is no longer changed."""
    problem, search = js.nqueens(8), search_of(16)
    state = js.init(2, problem, search, num_searches=4)
    state = js.advance(problem, search, state, 2000)
    assert (np.asarray(state.searches.cost) == 0).all()
    assert_valid(state.searches.representation.queens)
    later = js.advance(problem, search, state, 50)
    chex.assert_trees_all_equal(later.searches, state.searches)
    assert not np.asarray(later.info.accepted).any()
    assert not slow_count(jax.vmap(search.best, in_axes=(None, 0))(problem, later.searches)).any()


def test_it_lowers_for_cuda():
    """With lanes of several warps."""
    assert js.why_not_portable(js.nqueens(100), search_of(256)) == ""


def test_what_it_refuses():
    """Neighborhoods that know no conflicts, numbers out of range, and what is no temperature."""
    with refuses(TypeError, "neighborhood is a Relocate without is_in_conflict", "like QueenSwap"):
        js.min_conflicts(js.Relocate())
    for number in (0, -3, 2.5, None, True, random.MAX_SLOTS):
        with refuses(ValueError, f"moves_per_search is {number}, expected an integer from 1 to"):
            js.min_conflicts(js.QueenSwap(), moves_per_search=number)
    with refuses(TypeError, "schedule"):
        js.min_conflicts(js.QueenSwap(), "cold")
    with refuses(ValueError, "temperature is -1.0, expected a finite number >= 0"):
        js.solve(js.nqueens(5), js.min_conflicts(js.QueenSwap(), -1.0), 0, max_steps=5)
