"""Names that share words are families over these; all others stand alone."""

from dovetail.report.page.decision import grids
from dovetail.report.page.families import families, word_families

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
