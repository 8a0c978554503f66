"""Classes of arrays are pytrees that no cache of JAX's confuses."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np

import jaxopt_search as js


def alike(number):
    """Returns a class with one field, like every other from here."""
    made = dataclasses.make_dataclass(f"Alike{number}", [("x", jax.Array)], frozen=True)
    made.plus = property(lambda part: part.x + number)
    return js.pytree(made)


def test_classes_with_equal_fields_differ():
    """Else JAX runs the program of another class: by its own registration it mostly does not."""
    structures = [jax.tree.structure(alike(number)(0.0)) for number in range(100)]
    assert all(first != second for first, second in itertools.combinations(structures, 2))


@js.pytree
@dataclasses.dataclass(frozen=True, kw_only=True)
class Weighted:
    weights: jax.Array
    size: int = dataclasses.field(metadata={"static": True})


def test_static_fields_are_no_leaves_and_paths_name_the_others():
    part = Weighted(weights=jnp.arange(3), size=3)
    ((path, leaf),) = jax.tree_util.tree_leaves_with_path(part)
    assert jax.tree_util.keystr(path) == ".weights" and leaf is part.weights
    assert jax.tree.structure(part) != jax.tree.structure(Weighted(weights=part.weights, size=4))
    twice = jax.tree.map(lambda leaf: 2 * leaf, part)
    assert (type(twice), twice.size, twice.weights.tolist()) == (Weighted, 3, [0, 2, 4])


def test_parts_with_arrays_compare_by_value():
    """Equal arrays make equal parts; others, other classes and other static fields do not."""
    matrix = np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    problem, other = js.tsp(matrix), js.tsp(matrix * matrix % 5)
    assert js.two_opt(problem) == js.two_opt(problem)
    assert js.two_opt(problem) != js.two_opt(other)
    assert js.two_opt(problem) != js.Relocate()
    assert js.two_opt(problem) != js.two_opt(problem, num_candidates=2)
