"""Sparse pieces against dense numpy."""

import numpy as np
import pytest
import scipy.sparse as sp

from dovetail.core.sparse import entries_of, row_of_entries, times


def random_matrix(rows, columns, used, seed=0):
    """A dense matrix with empty rows, and entries in `used` of its columns only."""
    rng = np.random.default_rng(seed)
    dense = np.zeros((rows, columns))
    dense[:, rng.choice(columns, used, replace=False)] = rng.normal(size=(rows, used))
    dense[rng.random(dense.shape) < 0.5] = 0.0
    dense[0] = 0.0
    return dense


@pytest.mark.parametrize("used", [3, 90, 200])
def test_products_with_many_points(used):
    dense = random_matrix(7, 200, used)
    X = np.random.default_rng(1).normal(size=(11, 200))
    assert times(sp.csr_array(dense), X) == pytest.approx(X @ dense.T)
    assert times(sp.csr_array(dense), X[0]) == pytest.approx(dense @ X[0])


def test_a_batch_of_one_is_the_point_to_the_last_digit():
    matrix = sp.csr_array(random_matrix(7, 200, 60))
    x = np.random.default_rng(2).normal(size=200)
    assert np.array_equal(times(matrix, x[None])[0], times(matrix, x))


def test_entries_by_row_and_by_column():
    dense = random_matrix(5, 9, 6)
    by_row, by_column = sp.csr_array(dense), sp.csc_array(dense)
    assert row_of_entries(by_row).tolist() == np.nonzero(dense)[0].tolist()
    for i in range(5):
        indices, values = entries_of(by_row, i)
        assert indices.tolist() == np.flatnonzero(dense[i]).tolist()
        assert values.tolist() == dense[i][dense[i] != 0.0].tolist()
    for j in range(9):
        indices, values = entries_of(by_column, j)
        assert values.tolist() == dense[indices, j].tolist()
        assert indices.size == np.count_nonzero(dense[:, j])
