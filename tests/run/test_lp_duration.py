"""How long LPs take at the least: in proportion to their entries."""

import numpy as np
import scipy.sparse as sp

import dovetail as dt
from dovetail.run.engine import least_seconds


def chain(rows):
    """x[i] + x[i+1] >= 1."""
    A = sp.diags_array([np.ones(rows), np.ones(rows)], offsets=[0, 1], shape=(rows, rows + 1))
    return dt.Mip(np.ones(rows + 1), A, 1.0, np.inf, upper=9.0)


def test_twice_as_many_entries_take_twice_as_long():
    assert least_seconds(chain(2000)) == 2.0 * least_seconds(chain(1000)) > 0.0
    assert least_seconds(dt.Mip([1.0])) == 0.0
