"""Elementwise code over tables means the same at once, in a kernel, and entry by entry."""

import contextlib
import functools

import chex
import jax
import jax.numpy as jnp
import kernels
import numpy as np
import pytest

from jaxopt_search.backends import memory, tables

SHAPES = [(1, 1), (1, 5), (3, 2), (17, 9), (40, 33)]
WAYS = {"at once": contextlib.nullcontext, "in turns": memory.in_turns}


def table(shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).integers(-9, 9, shape), jnp.int32)


SQUARES = tables.Prepare(lambda row: 2 * row, lambda column: column * column)


def mix(place, entries):
    a, b = entries
    return a * 3 + place.here - place.row - place.there, b + a * place.column


def update(shape, where, a, b):
    return tables.update(shape, mix, (a, b), where, SQUARES)


def some_rows(shape):
    """The last row, the first one and one between, as far as there are that many."""
    return sorted({shape[0] - 1, 0, shape[0] // 2}, reverse=True)


def update_rows(shape, where, a, b):
    rows = tuple(map(jnp.int32, some_rows(shape)))

    def add(place, entries):
        return entries[0] + place.row, entries[1] - place.column

    return tables.update_rows(rows, shape[1], add, (a, b), where)


def rank(place, entries):
    return entries[0], entries[1] + place.column


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_update_changes_every_entry_where_asked(shape, way):
    """And only where asked; rows and columns are those of the entry."""
    a, b = table(shape), table(shape, 1)
    row, column = np.indices(shape)
    with WAYS[way]():
        found = jax.jit(lambda *tables: update(shape, jnp.bool_(True), *tables))(a, b)
        kept = jax.jit(lambda *tables: update(shape, jnp.bool_(False), *tables))(a, b)
    chex.assert_trees_all_equal(found, (a * 3 + row - column * column, b + a * column))
    chex.assert_trees_all_equal(kept, (a, b))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_update_rows_leaves_other_rows(shape, way):
    """A few rows are changed, each by its number, and that only where asked."""
    a, b = table(shape), table(shape, 1)
    rows, column = np.array(some_rows(shape)), np.arange(shape[1])
    expected = a.at[rows].add(rows[:, None]), b.at[rows].add(-column)
    with WAYS[way]():
        found = jax.jit(lambda *tables: update_rows(shape, jnp.bool_(True), *tables))(a, b)
        kept = jax.jit(lambda *tables: update_rows(shape, jnp.bool_(False), *tables))(a, b)
    chex.assert_trees_all_equal(found, expected)
    chex.assert_trees_all_equal(kept, (a, b))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_first_compares_one_key_after_the_other(shape, way):
    """The lowest first key, of these the lowest second, of these the lowest number; ties abound."""
    for seed in range(5):
        a, b = table(shape, seed) // 6, table(shape, seed + 10) // 6
        column = np.indices(shape)[1]
        entries = zip(np.asarray(a).flat, (np.asarray(b) + column).flat, strict=True)
        first, second, number = min((*keys, i) for i, keys in enumerate(entries))
        with WAYS[way]():
            found = jax.jit(lambda *tables_: tables.first(shape, rank, tables_))(a, b)
        assert (*map(int, found.keys), int(found.number)) == (first, second, number)


@pytest.mark.parametrize(("shape", "has_loop"), [((30, 30), False), ((33, 33), True)], ids=str)
def test_a_kernel_loops_over_several_blocks_only(shape, has_loop):
    """Code for further blocks, where there is one, would take as long to compile."""
    with memory.one_search("interpreter"):
        jaxpr = jax.make_jaxpr(functools.partial(update, shape, jnp.bool_(True)))(
            table(shape), table(shape, 1)
        )
        of_rows = jax.make_jaxpr(functools.partial(update_rows, shape, jnp.bool_(True)))(
            table(shape), table(shape, 1)
        )
    assert ("while" in str(jaxpr)) == has_loop
    assert "while" not in str(of_rows)


@pytest.mark.parametrize("shape", [(3, 2), (5, 9), (40, 33), (20, 65)], ids=str)
def test_a_kernel_does_the_same(shape):
    """In one block of rows or in several, on refs; and it lowers for CUDA."""
    a, b = table(shape), table(shape, 1)

    def everything(a, b):
        a, b = update(shape, jnp.bool_(True), a, b)
        memory.barrier()
        a, b = update_rows(shape, jnp.bool_(True), a, b)
        memory.barrier()
        return (a, b), tables.first(shape, rank, (a, b))

    def body(a_ref, b_ref, out_a, out_b, out_found):
        whole = jnp.bool_(True)

        def copy(place, entries):
            return tuple(memory.load(ref, (place.row, place.column)) for ref in (a_ref, b_ref))

        tables.update(shape, copy, (out_a, out_b), whole)
        memory.barrier()
        _, found = everything(out_a, out_b)
        for k, value in enumerate((*found.keys, found.number)):
            out_found[k] = value

    def expected(a, b):
        (a, b), found = everything(a, b)
        return a, b, jnp.stack([*found.keys, found.number])

    out = (*(jax.ShapeDtypeStruct(shape, jnp.int32),) * 2, jax.ShapeDtypeStruct((3,), jnp.int32))
    kernels.check_in_kernel(body, out, expected, a, b)
