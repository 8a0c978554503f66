"""Sets of placements: symmetries as of a board, fingerprints, and diversity by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from queens import all_valid, assert_valid

from jaxopt_search.problems.queens import symmetry
from jaxopt_search.problems.queens.symmetry import Diversity, canonical, diversity, symmetric_images


def turned_and_mirrored(queens):
    """Returns the placements read off a board that is turned and mirrored, as a set."""
    board = np.eye(len(queens), dtype=int)[np.asarray(queens)]
    boards = [np.rot90(each, turns) for each in (board, board.T) for turns in range(4)]
    return {tuple(each.argmax(axis=1).tolist()) for each in boards}


@pytest.mark.parametrize("n", [1, 4, 5, 8])
def test_images_are_those_of_the_board(n):
    """All eight, valid as the placement is, and every image has the same eight."""
    for queens in all_valid(n):
        images = symmetric_images(np.array(queens, np.int16))
        assert (images.shape, images.dtype) == ((8, n), np.int16)
        assert_valid(images)
        found = {tuple(image) for image in images.tolist()}
        assert found == turned_and_mirrored(queens)
        first = min(found)
        for image in images:
            assert {tuple(other) for other in symmetric_images(image).tolist()} == found
            assert tuple(canonical(image).tolist()) == first


def test_fingerprints_tell_placements_apart():
    """All that differ, or all classes: the same for what is turned or mirrored."""
    n, number, num_classes = 9, 352, 46
    there = jnp.asarray(all_valid(n), jnp.int32)

    def numbers(distinct):
        words = jax.jit(jax.vmap(lambda one: symmetry.fingerprint(one, distinct)))(there)
        assert (words.shape, words.dtype) == ((number, 2), jnp.uint32)
        return symmetry.as_numbers(np.asarray(words)).tolist()

    assert len(set(numbers("raw"))) == number
    classes = [tuple(canonical(queens).tolist()) for queens in np.asarray(there)]
    pairs = set(zip(numbers("symmetry"), classes, strict=True))
    assert len(pairs) == len(set(classes)) == len(set(numbers("symmetry"))) == num_classes
    assert diversity(there).num_classes == num_classes


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([[1, 3, 0, 2], [1, 3, 0, 2], [2, 0, 3, 1]], (2 / 3, 0.75, 0.5, 1)),
        ([[0, 1, 2], [0, 2, 1]], (2 / 3, 2 / 3, 5 / 9, 2)),
        ([[0, 1, 2], [2, 1, 0], [0, 1, 2], [2, 1, 0]], (4 / 9, 2 / 3, 5 / 9, 1)),
        ([[0], [0]], (0, 0, 1, 1)),
    ],
)
def test_diversity_by_hand(rows, expected):
    """Doubles differ in no row; a mirrored placement is no class of its own."""
    for dtype in (np.int16, np.int64):
        assert diversity(np.array(rows, dtype)) == pytest.approx(Diversity(*expected))
