"""Tables of the decision: limits marked, large ones cut down with a word, and never more than fits.

Layout: few indices across, many downwards, two ways as a matrix; every column is in exactly one place.

Names that share words are families over these; all others stand alone.
"""

import numpy as np

from dovetail.report.page.decision import (
    MOST_CELLS,
    NO_COLUMN,
    decision_tables,
    families,
    family_rows,
    grids,
    word_families,
)
from tests.report.results import result, treated


def table_of(made):
    (table,), more = decision_tables(made)
    assert more == ""
    return table


def test_values_at_their_limits_are_marked():
    made = result(
        [4.0, 1.0, 0.0, 2.0, 3.0, 1.0],
        names=["a", "b", "c", "d", "e", "f"],
        lower=[0.0, 1.0, 0.0, 2.0, 0.0, 0.0],
        upper=[4.0, 5.0, 4.0, 2.0, 9.0, 1.0],
        integer=[False, False, False, False, True, True],
    )
    cells = dict(table_of(made).rows)
    assert [cells[name][0].mark for name in "abcdef"] == ["up", "low", "no", "fixed", "", "yes"]
    assert cells["f"][0].text == "yes"
    assert [cells[name][1].text for name in "ad"] == ["0 to 4", "fixed"]


def test_weeks_across():
    x = np.concatenate([[1, 0, 1], [0.4, 0.0, 0.125]])
    names = [f"{kind}[{t}]" for kind in ("promo", "discount") for t in range(3)]
    made = result(x, names=names, upper=np.repeat([1.0, 0.4], 3), integer=np.repeat([True, False], 3))
    table = table_of(made)
    assert table.head == ["family", "0", "1", "2"]
    assert [cell.text for cell in table.rows[0][1]] == ["yes", "no", "yes"]
    assert [tuple(cell) for cell in table.rows[1][1]] == [("0.4000", "up"), ("0", "no"), ("0.1250", "")]


def test_a_table_says_how_many_of_its_columns_a_predictor_writes():
    """One family of two is not both."""
    made = result([1.0, 0.0, 5.0, 6.0], names=["open[0]", "open[1]", "profit[0]", "profit[1]"])
    made.facts.written[2:] = True
    assert table_of(made).about.startswith("4 variables, 2 outputs of a predictor")


def test_many_classes_are_listed_by_those_that_are_yes():
    made = result(np.arange(40) % 4 == 0, names=[f"on[{i}]" for i in range(40)], upper=1.0, integer=True)
    table = table_of(made)
    assert table.chosen[:3] == ["0", "4", "8"] and "10 of 40 are yes" in table.about


def test_what_is_left_out_is_said():
    x = np.zeros(3000)
    x[[5, 17, 2999]] = [1.5, -9.0, 4.0]
    table = table_of(result(x, names=[f"flow[{i}]" for i in range(3000)], lower=-10.0, upper=10.0))
    assert [label for label, _ in table.rows] == ["5", "17", "2999"]
    assert table.left_out == "3 of 3,000 rows. Left out: 2,997 rows of zeros."
    full = table_of(result(x + 1.0, names=[f"flow[{i}]" for i in range(3000)], lower=-10.0, upper=10.0))
    assert len(full.rows) == 200
    assert "Left out: 2,800 others" in full.left_out
    assert {"5", "17", "2999"} <= {label for label, _ in full.rows}


def test_no_page_has_more_cells_than_fit():
    n = 400
    names = [
        f"f{k}_{'abcdefghij'[k % 10]}[{i},{j}]" for k in range(60) for i in range(n // 10) for j in range(12)
    ]
    tables, more = decision_tables(result(np.ones(len(names)), names=names))
    assert sum(len(table.rows) * len(table.head) for table in tables) <= 1.3 * MOST_CELLS
    assert more.startswith("36 more families")


def test_families_at_a_glance():
    rows = dict(family_rows(treated(30)))
    assert [cell.text for cell in rows["x"][:3]] == ["270", "continuous", "input"]
    assert [cell.text for cell in rows["potable"][:3]] == ["30", "yes or no", "output"]


def test_a_result_of_an_old_file_has_no_limits():
    table = table_of(result([1.0, 2.0], names=["a", "b"], facts=None))
    assert [cells[0].mark for _, cells in table.rows] == ["", ""]


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
    assert (grid.title, list(grid.rows), grid.mixed) == ("Single variables", ["dose", "effect"], True)


MIX = ["cement_wall", "cement_beam", "cost", "ash_beam", "ash_wall", "net_cost", "net_profit"]


def test_words_that_two_labels_have_in_common():
    assert word_families(dict(enumerate(MIX))) == {
        "cement": {"wall": 0, "beam": 1},
        "ash": {"wall": 4, "beam": 3},
    }


def test_one_word_or_one_label_is_no_family():
    assert word_families(dict(enumerate(["a_x", "b_x", "_x", "c_", "d_y", "d_z"]))) == {}


def test_they_stand_below_each_other():
    found = families(MIX, len(MIX))
    assert [(family.label, family.columns.tolist()) for family in found] == [
        ("cement", [0, 1]), ("ash", [4, 3]), ("", [2, 5, 6]),
    ]  # fmt: skip
    table = grids(found)[0]
    assert (list(table.rows), list(table.across)) == (["cement", "ash"], ["wall", "beam"])
    assert table.columns.tolist() == [[0, 1], [4, 3]]


def test_data_is_no_decision_at_a_limit():
    """A family of constants has no table; a constant beside decisions is marked as fixed and not counted."""
    made = result(
        [5.0, 6.0, 2.0, 4.0],
        names=["demand[0]", "demand[1]", "make[0]", "make[1]"],
        lower=[5.0, 6.0, 0.0, 4.0],
        upper=[5.0, 6.0, 2.0, 4.0],
    )
    assert [name for name, _ in table_of(made).rows] == ["make"]
    at_limits = {name: [cell.text for cell in cells[-2:]] for name, cells in family_rows(made)}
    assert at_limits == {"demand": ["0", "0"], "make": ["0", "1"]}


def test_values_within_the_tolerance_of_zero_are_zero():
    made = result([9e-9, 3.5], names=["a", "b"])
    assert dict(table_of(made).rows)["a"][0].text == "0"
