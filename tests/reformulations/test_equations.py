"""Columns that equations fix: exactly, from row to row, and not where no float64 is the value."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.reformulations.equations import fixed_by_equations


def fixed(A, sides, *, lower=-9.0, upper=9.0, integer=False):
    A = np.array(A)
    mip = dt.Mip(
        np.zeros(A.shape[1]), A=A, row_lower=sides, row_upper=sides, lower=lower, upper=upper, integer=integer
    )
    columns, values = fixed_by_equations(mip)
    return dict(zip(columns.tolist(), values.tolist(), strict=True))


def test_one_column_and_what_follows_from_it():
    # the second row is of no use before the first is: -2 x1 + x0 = -0.5
    assert fixed([[1.0, -2.0, 0.0], [4.0, 0.0, 0.0]], [-0.5, 2.0]) == {0: 0.5, 1: 0.5}


@pytest.mark.parametrize(
    ("A", "side", "limits"),
    [
        ([[3.0]], 1.0, {}),  # no float64 is a third
        ([[1.0]], 0.5, {"integer": True}),
        ([[1.0]], 20.0, {}),  # beyond its bounds
        ([[1.0]], 0.5, {"lower": 0.5, "upper": 0.5}),  # its bounds say so already
        ([[1.0, 1.0]], 0.5, {}),
    ],
)
def test_what_is_not_fixed(A, side, limits):
    assert fixed(A, [side], **limits) == {}


def test_inequalities_fix_nothing():
    mip = dt.Mip(
        [0.0, 0.0], A=np.eye(2), row_lower=[0.5, -np.inf], row_upper=[0.6, np.inf], lower=-1, upper=1
    )
    assert fixed_by_equations(mip)[0].size == 0
