"""Rows of one block: what was stated for families, column by column."""

import numpy as np

from dovetail.core.template import column_of, entries_of, places_of
from tests.structure.stated_problems import campaign, treatments


def test_a_row_for_each_column_of_wide_families():
    (template,) = treatments(5).templates
    entries = entries_of(template, template.rows[0], 2)
    assert {place: numbers.tolist() for place, numbers in entries.items()} == {
        ("x", 2): [1.0], ("up", 2): [-1.0], ("down", 2): [1.0]
    }  # fmt: skip


def test_a_summed_row_has_all_columns_and_a_single_one_its_own_numbers():
    (template,) = campaign(5).templates
    paid, ways = template.rows
    assert list(entries_of(template, ways, 0)) == [("way", 0), ("way", 1), ("letters", 0)]
    assert entries_of(template, paid, 0)["discount", 0].shape == (5,)


def test_columns_of_arrays_that_are_spread():
    assert column_of(np.array(3.0), 1).tolist() == [3.0]
    assert column_of(np.array([[1.0], [2.0]]), 1).tolist() == [1.0, 2.0]
    assert column_of(np.array([[1.0, 2.0]]), 1).tolist() == [2.0]


def test_places_side_by_side():
    (template,) = treatments(5).templates
    assert places_of(template["good", "up"]) == [("good", 0), ("up", 0), ("up", 1), ("up", 2)]
