"""Points moved onto rows within the room of their columns, and no farther."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.run.completion import near_equations, nearly_met, onto_rows

ALL = np.array([True, True])


def two_rows():
    A = [[2.0, -1.0, 0.0], [0.0, 0.0, 1.0]]
    lower, upper = [-5.0, -5.0, 0.0], [5.0, 5.0, 0.0]
    return dt.Mip([0.0] * 3, A=A, row_lower=[1.0, -9.0], row_upper=[1.0, 9.0], lower=lower, upper=upper)


def test_rows_and_bounds_are_met_within_the_room():
    mip, x, room = two_rows(), np.array([0.5001, 0.0, 1e-4]), np.array([1e-4, 3e-4, 2e-4])
    moved = onto_rows(mip, x, room, ALL)
    assert np.all(np.abs(moved - x) <= room) and moved[2] == 0.0
    assert 2.0 * moved[0] - moved[1] == pytest.approx(1.0, abs=1e-12)
    assert onto_rows(mip, x, np.array([1e-5, 1e-4, 2e-4]), ALL) is None  # the row needs 2e-4
    assert onto_rows(mip, x, np.array([1e-4, 3e-4, 0.0]), ALL) is None  # the bound
    assert onto_rows(mip, x, np.array([0.0, 0.0, 2e-4]), ~ALL).tolist() == [0.5001, 0.0, 0.0]  # no row asked
    assert onto_rows(mip, np.array([0.5, 0.0, 0.0]), np.zeros(3), ALL).tolist() == [0.5, 0.0, 0.0]


def test_only_equations_that_are_nearly_met_are_worth_a_look():
    mip, loose = two_rows(), np.array([True, True, True])
    assert near_equations(mip, np.array([3.00001, 5.0, 0.0]), loose, ALL)
    assert not near_equations(mip, np.array([3.0, 5.0, 0.0]), loose, ALL)  # nothing is missed
    assert not near_equations(mip, np.array([3.1, 5.0, 0.0]), loose, ALL)  # too far
    assert not near_equations(mip, np.array([3.00001, 5.0, 0.0]), ~loose, ALL)  # nothing there is rounded
    assert not near_equations(mip, np.array([3.00001, 5.0, 0.0]), loose, ~ALL)  # others see to that row
    assert not near_equations(mip, np.array([3.000005, 5.00001, 0.0]), loose, ALL)  # a bound with room


def test_what_is_nearly_met_is_so_by_the_size_of_its_columns():
    mip = dt.Mip([0.0, 0.0], A=[[1.0, -1.0]], row_lower=0.0, row_upper=0.0, upper=1e6)
    near = [nearly_met(mip, np.array([1e4 + off, 1e4])) for off in (0.0, 1.0, 3.0)]
    assert near == [True, True, False] and not nearly_met(mip, np.array([2e-4, 0.0]))


def test_a_side_that_leaves_room_is_not_moved_onto():
    """There are answers on the right side of it."""
    one = np.array([True])
    row = dt.Mip([0.0], A=[[1.0]], row_lower=-9.0, row_upper=1.0, upper=2.0)
    for mip, rows in ((row, one), (dt.Mip([0.0], upper=1.0), one[:0])):
        assert not near_equations(mip, np.array([1.00001]), one, rows)
