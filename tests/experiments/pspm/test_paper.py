"""The figures typed in from the PSPM paper are consistent, but for misprints named here."""

import numpy as np
import pytest

from experiments.pspm import paper


def flat(row):
    return np.hstack([np.atleast_1d(value) for value in row])


def means(table):
    return np.mean([flat(row) for row in table.values()], axis=0)


def test_tables_list_the_same_20_instances():
    """Tables 2 and 3 have the same rows in the same order."""
    assert len(paper.TABLE_2) == 20
    assert list(paper.TABLE_2) == list(paper.TABLE_3)


def test_averages_of_table_2_are_the_column_means():
    """The last row is the mean of each column to its rounding."""
    np.testing.assert_allclose(means(paper.TABLE_2), flat(paper.TABLE_2_AVERAGE), atol=0.051)


def test_averages_of_table_3_are_the_column_means_but_one():
    """The printed average SEC of PSSM, 54.9, is a misprint: the column's mean is 49.4.

    The next column supports this: 49.4 - 2.5 is the printed improvement of 47.0.
    """
    found, printed = means(paper.TABLE_3), flat(paper.TABLE_3_AVERAGE)
    is_misprint = np.array([name == "sec_pssm" for name in paper.Effectiveness._fields])
    np.testing.assert_allclose(found[~is_misprint], printed[~is_misprint], atol=0.051)
    assert found[is_misprint] == pytest.approx(49.4, abs=0.051)
    assert printed[is_misprint] == 54.9


def test_speedups_of_table_2_are_quotients():
    """Equation 6, to the rounding of the printed speeds."""
    for row in paper.TABLE_2.values():
        assert row.pspm[0] / row.sspm[0] == pytest.approx(row.speedup_over_sspm, rel=0.02)
        assert row.pspm[0] / row.pssm[0] == pytest.approx(row.speedup_over_pssm, rel=0.012)


def test_improvements_of_table_3_are_differences():
    """SEC of the CPU scheme minus SEC of PSPM, to the rounding of the three figures."""
    for row in paper.TABLE_3.values():
        over_sspm, over_pssm = row.sec_sspm - row.sec_pspm, row.sec_pssm - row.sec_pspm
        assert over_sspm == pytest.approx(row.improvement_over_sspm, abs=0.151)
        assert over_pssm == pytest.approx(row.improvement_over_pssm, abs=0.151)


def test_table_4_continues_table_2():
    """Twelve moves are Table 2's averages; the other speedups are quotients, to rounding."""
    row = paper.TABLE_4[12]
    assert (row.sspm, row.pspm) == (paper.TABLE_2_AVERAGE.sspm, paper.TABLE_2_AVERAGE.pspm)
    for row in paper.TABLE_4.values():
        assert row.pspm[0] / row.sspm[0] == pytest.approx(row.speedup, rel=0.04)
