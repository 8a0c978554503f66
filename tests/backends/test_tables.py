"""Code over tables means the same at once and in a kernel, which handles them part by part."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest
from kernels import check_everywhere

from jaxopt_search.backends import memory, rows, tables

SQUARES = tables.Prepare(lambda row: 2 * row, lambda column: column * column)


def table(shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).integers(-9, 9, shape), jnp.int32)


def mix(place, entries):
    a, b = entries
    return a * 3 + place.here - place.row - place.there, b + a * place.column


def add(place, entries):
    return entries[0] + place.row, entries[1] - place.column


def some_rows(shape):
    """The last row, the first one and one between, as far as there are that many."""
    return sorted({shape[0] - 1, 0, shape[0] // 2}, reverse=True)


def rank(place, entries):
    return entries[0] // 6, entries[1] + place.column


def work(shape, where, a, b):
    """Returns both tables after two updates, and which entries come first in three senses.

    The first update is of all entries, the second one of some rows.
    """

    def change(place, entries):
        return tuple(map(functools.partial(jnp.where, where), mix(place, entries), entries))

    within = tables.within(jnp.int32(max(shape[0] - 2, 1)), jnp.int32(shape[1]))
    a, b = tables.update(shape, change, (a, b), where, SQUARES)
    first = tables.first(shape, rank, (a, b))
    some = tuple(map(jnp.int32, some_rows(shape)))
    a, b = tables.update_rows(some, shape[1], add, (a, b), where)
    inside = tables.first(shape, rank, (a, b), within=within)
    odd = tables.first_of_some(shape, lambda row: row % 2 == 1, rank, (a, b))
    return a, b, [value for one in (first, inside, odd) for value in (*one.keys, one.number)]


def first_by_hand(a, b, count=lambda row: True):
    """Returns the keys and the number of the entry that comes first."""
    found = [
        (
            *(
                int(key)
                for key in rank(tables.Place(row, column), (a[row, column], b[row, column]))
            ),
            i,
        )
        for i, (row, column) in enumerate(np.ndindex(*a.shape))
        if count(row)
    ]
    return min(found, default=(2**31 - 1, 2**31 - 1, 0))


@pytest.mark.parametrize(
    ("where", "shape"), [(False, (17, 9)), (True, (1, 1)), (True, (20, 65))], ids=str
)
def test_tables_are_updated_and_searched(where, shape):
    """Entry by entry; ties abound, and the lowest number wins."""
    (row, column), number = np.indices(shape), jnp.zeros((), jnp.int32)
    first, second = table(shape), table(shape, 1)
    a, b = np.array(first), np.array(second)
    if where:
        a, b = a * 3 + row - column * column, b + a * column
    expected = first_by_hand(a, b)
    if where:
        some = some_rows(shape)
        a[some] += row[some]
        b[some] -= column[some]
    expected += first_by_hand(a, b, lambda row: row < max(shape[0] - 2, 1))
    expected += first_by_hand(a, b, lambda row: row % 2 == 1)

    def everything(where, changed):
        return work(shape, where, *changed[:2])

    given = jnp.bool_(where), (first, second, [number] * 9)
    check_everywhere(everything, *given, (a, b, list(map(np.int32, expected))))


def rows_by_parts(shape, a, sums, b):
    def body(block, carry):
        a, sums = carry
        for tile in block.tiles:
            old = tile.get(a)
            new = old * tile.get_column(b, jnp.int32(0)) + tile.column
            a = tile.put(a, new, old > 0)
        total = block.sums([tile.get(a) for tile in block.tiles])
        return a, memory.store(sums, block.rows, total, block.is_row)

    return rows.by_rows(shape, body, (a, sums))


@pytest.mark.parametrize("shape", [(17, 9), (300, 35)], ids=str)
def test_whole_rows(shape):
    """At once and in a kernel, where rows and columns do not fill blocks."""
    a, b = table(shape), table(shape, 1)
    new = np.asarray(a)
    new = np.where(new > 0, new * np.asarray(b)[:, :1] + np.arange(shape[1]), new)

    def by_parts(b, changed):
        return rows_by_parts(shape, *changed, b)

    expected = new.astype(np.int32), new.sum(axis=1, dtype=np.int32)
    check_everywhere(by_parts, b, (a, jnp.zeros(shape[0], jnp.int32)), expected)
