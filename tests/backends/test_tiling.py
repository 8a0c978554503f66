"""How kernels cut tables: every entry once, and as it was fastest on GPUs."""

import pytest

from jaxopt_search.backends import rows, tables, tiling

# By shape: for code of entries the warps, the height of a block, and its height where only some
# rows are handled; for code of whole rows the warps, the height, and the widths of the tiles.
CHOICES = [
    ((1, 1), (1, 1, 1), (1, 1, (1,))),
    ((1, 5), (1, 1, 1), (1, 1, (4, 1))),
    ((3, 2), (1, 4, 4), (1, 4, (2,))),
    ((9, 9), (1, 16, 16), (1, 16, (8, 1))),
    ((16, 33), (2, 16, 16), (2, 16, (32, 1))),
    ((20, 20), (4, 32, 32), (2, 32, (16, 4))),
    ((25, 30), (4, 32, 32), (2, 32, (32,))),
    ((32, 32), (4, 32, 32), (2, 32, (32,))),
    ((33, 32), (4, 32, 32), (4, 64, (32,))),
    ((40, 33), (2, 16, 16), (8, 64, (32, 1))),
    ((64, 64), (2, 16, 16), (8, 64, (64,))),
    ((65, 64), (4, 16, 16), (8, 128, (64,))),
    ((50, 70), (8, 8, 8), (8, 64, (64, 4, 2))),
    ((100, 100), (8, 8, 8), (8, 64, (64, 32, 4))),
    ((150, 150), (8, 4, 4), (8, 32, (128, 16, 4, 2))),
    ((200, 40), (4, 16, 16), (8, 128, (32, 8))),
    ((256, 256), (8, 4, 4), (8, 32, (256,))),
    ((1000, 3), (1, 128, 128), (8, 1024, (4,))),
    ((4096, 1), (1, 512, 512), (8, 4096, (1,))),
    ((2, 3000), (8, 1, 1), (8, 2, (2048, 1024))),
    ((1000, 1000), (8, 1, 1), (8, 8, (1024,))),
    ((5, 20000), (8, 1, 1), (8, 1, (16384, 4096))),
]


@pytest.mark.parametrize(("shape", "of_entries", "of_rows"), CHOICES, ids=str)
def test_tables_are_cut_as_was_fastest(shape, of_entries, of_rows):
    """Results are the same whatever is chosen here; only GPUs can tell which choice is fast."""
    whole, some = tiling.for_entries(shape), tiling.for_some_rows(shape)
    assert (tables.num_warps(shape), whole.height, some.height) == of_entries
    assert whole.widths == some.widths == (1 << (shape[1] - 1).bit_length(),)
    cut = tiling.for_rows(shape)
    assert (rows.num_warps(shape), cut.height, cut.widths) == of_rows


@pytest.mark.parametrize(("shape", "of_entries", "of_rows"), CHOICES, ids=str)
def test_blocks_cover_the_rows(shape, of_entries, of_rows):
    for cut in (tiling.for_entries(shape), tiling.for_some_rows(shape), tiling.for_rows(shape)):
        assert cut.height.bit_count() == 1
        assert (cut.num_blocks - 1) * cut.height < shape[0] <= cut.num_blocks * cut.height


@pytest.mark.parametrize("n", [1, 2, 3, 5, 25, 30, 35, 36, 40, 50, 100, 256])
def test_tiles_cover_the_columns_with_few_in_excess(n):
    widths = tiling.for_rows((1, n)).widths
    assert all(width.bit_count() == 1 for width in widths)
    assert n <= sum(widths) <= n + max(1, n // 4)
