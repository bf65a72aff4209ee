"""Points moved onto rows within the room of their columns, and no farther."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.core.onto_rows import onto_rows


def test_rows_and_bounds_are_met_within_the_room():
    A = [[2.0, -1.0, 0.0], [0.0, 0.0, 1.0]]
    upper = [5.0, 5.0, 0.0]
    mip = dt.Mip([0.0] * 3, A=A, row_lower=[1.0, -9.0], row_upper=[1.0, 9.0], lower=-5.0, upper=upper)
    x = np.array([0.5001, 0.0, 1e-4])
    room = np.array([1e-4, 3e-4, 2e-4])
    moved = onto_rows(mip, x, room)
    assert np.all(np.abs(moved - x) <= room) and moved[2] == 0.0
    assert 2.0 * moved[0] - moved[1] == pytest.approx(1.0, abs=1e-12)
    assert onto_rows(mip, x, np.array([1e-5, 1e-4, 2e-4])) is None  # the row needs 2e-4
    assert onto_rows(mip, x, np.array([1e-4, 3e-4, 0.0])) is None  # the bound
    assert onto_rows(mip, np.array([0.5, 0.0, 0.0]), np.zeros(3)).tolist() == [0.5, 0.0, 0.0]
