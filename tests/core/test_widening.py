"""Limits that would have to give way: those that are suggested help, and are no wider than they must be."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.core.widening import widenings


def mip(**more):
    given = {
        "cost": [1.0, 1.0],
        "A": [[1.0, 1.0], [1.0, -1.0]],
        "row_lower": [2.0, -np.inf],
        "row_upper": [np.inf, 0.5],
        "lower": [0.0, 0.0],
        "upper": [1.0, np.inf],
        "names": ["a", "b"],
        "row_names": ["sum", "row[1]"],
    }
    return dt.Mip(**{**given, **more})


def test_what_is_met_needs_nothing():
    assert widenings(mip(), np.array([1.0, 1.0])) == ()
    assert widenings(mip(), np.array([1.0, 1.0 - 5e-7])) == ()  # within the tolerance of the check


def test_the_least_missed_comes_first():
    found = widenings(mip(), np.array([1.1, 0.1]))
    assert [(one.kind, one.name, one.side) for one in found] == [
        ("column", "a", "upper"),
        ("row", "row[1]", "upper"),
        ("row", "sum", "lower"),
    ]
    assert [str(one) for one in found] == [
        "the upper limit of variable a from 1 to 1.1",
        "the upper limit of row[1] from 0.5 to 1",
        "the lower limit of constraint sum from 2 to 1.2",
    ]


@pytest.mark.parametrize("seed", range(30))
def test_what_is_suggested_lets_the_point_pass(seed):
    """Rounded to six digits: the point keeps within it, at any size of the numbers, and just so."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=2) * 10.0 ** rng.integers(-2, 5)
    A = rng.normal(size=(2, 2))
    given = mip(A=A)
    sides = {
        "row": {"lower": given.row_lower.copy(), "upper": given.row_upper.copy()},
        "column": {"lower": given.lower.copy(), "upper": given.upper.copy()},
    }
    value = {"row": A @ x, "column": x}
    names = {"row": ["sum", "row[1]"], "column": ["a", "b"]}
    for one in widenings(given, x):
        k = names[one.kind].index(one.name)
        sides[one.kind][one.side][k] = one.needed
        assert one.needed == pytest.approx(value[one.kind][k], rel=1e-5, abs=1e-6)
    rows, columns = sides["row"], sides["column"]
    wide = mip(A=A, row_lower=rows["lower"], row_upper=rows["upper"], **columns)
    assert dt.check(dt.Problem(wide), x).within()
