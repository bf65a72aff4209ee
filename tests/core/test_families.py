"""What users say of families: small objects that hold what was given."""

import numpy as np

import dovetail as dt


def test_they_hold_what_was_given():
    worth = np.arange(3.0)
    family = dt.Family(0.0, 1.0, worth, True)
    assert family.cost is worth
    assert (family.lower, family.upper, family.integer, family.fixed, family.width) == (
        0.0,
        1.0,
        True,
        None,
        None,
    )
    row = dt.FamilyRow({"a": worth}, upper=3.0, name="budget")
    assert row.coefficients["a"] is worth
    assert (row.lower, row.upper, row.summed, row.name) == (-np.inf, 3.0, False, "budget")
