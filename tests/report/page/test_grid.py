"""Layout: few indices across, many downwards, two ways as a matrix; every column is in exactly one place."""

import numpy as np

from dovetail.report.page.decision import NO_COLUMN, grids
from dovetail.report.page.families import families


def laid_out(names):
    found = grids(families(names, len(names)))
    places = np.concatenate([grid.columns.ravel() for grid in found])
    assert sorted(places[places != NO_COLUMN].tolist()) == list(range(len(names)))
    return found


def test_families_over_the_same_weeks_stand_below_each_other():
    (grid,) = laid_out([f"{kind}[{t}]" for kind in ("promo", "make", "stock") for t in range(8)])
    assert (list(grid.rows), list(grid.across)) == (["promo", "make", "stock"], [str(t) for t in range(8)])
    assert grid.columns[1].tolist() == list(range(8, 16))


def test_over_many_indices_they_stand_side_by_side():
    (grid,) = laid_out([f"{kind}[{t}]" for kind in ("a", "b") for t in range(50)])
    assert (len(grid.rows), list(grid.across)) == (50, ["a", "b"])


def test_too_many_families_are_several_tables():
    found = laid_out([f"k{chr(97 + k)}[{t}]" for k in range(20) for t in range(30)])
    assert [len(grid.across) for grid in found] == [12, 8]


def test_two_indices():
    (grid,) = laid_out([f"x[{i},{f}]" for i in range(30) for f in ("ph", "salt") if (i, f) != (3, "salt")])
    assert list(grid.across) == ["ph", "salt"]
    assert grid.columns[3].tolist() == [6, NO_COLUMN]
    (turned,) = laid_out([f"x[{i},{j}]" for i in range(3) for j in range(40)])
    assert (list(turned.across), len(turned.rows)) == (["0", "1", "2"], 40)
    (long,) = laid_out([f"x[{i},{j}]" for i in range(20) for j in range(20)])
    assert (list(long.across), len(long.rows), long.rows[21]) == (["value"], 400, "1,1")
    (three,) = laid_out([f"x[{i},{j},{k}]" for i in range(2) for j in range(3) for k in range(4)])
    assert (three.rows[4], list(three.across)) == ("1,1", ["0", "1", "2", "3"])


def test_single_columns():
    (grid,) = laid_out(["dose", "effect"])
    assert (grid.title, list(grid.rows), grid.mixed) == ("Single columns", ["dose", "effect"], True)
