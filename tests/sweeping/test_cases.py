"""Cases: products of a grid, as JSON has them; what is none is refused by name."""

from enum import StrEnum

import numpy as np
import pytest

import dovetail as dt
from dovetail.sweeping.sweep_result import case_in_words, cases_of, key_of


def test_a_mapping_is_a_product_in_its_order():
    cases = cases_of({"budget": [1, 2.5], "seed": range(2)}, ())
    assert cases == [
        {"budget": 1, "seed": 0},
        {"budget": 1, "seed": 1},
        {"budget": 2.5, "seed": 0},
        {"budget": 2.5, "seed": 1},
    ]


def test_a_sequence_is_taken_as_it_is():
    assert cases_of([{"a": 1}, {"a": 1, "b": None}, {}], ()) == [{"a": 1}, {"a": 1, "b": None}, {}]


def test_numpy_and_tuples_become_what_a_file_would_give_back():
    level = StrEnum("level", ["high"]).high
    (case,) = cases_of([{"a": np.float64(0.5), "b": np.arange(2), "c": (1, (True, "x")), "d": level}], ())
    assert case == {"a": 0.5, "b": [0, 1], "c": [1, [True, "x"]], "d": "high"}
    assert type(case["a"]) is float
    assert type(case["d"]) is str
    assert type(case["b"][0]) is int


def test_keys_do_not_depend_on_the_order_of_names():
    assert key_of({"a": 1, "b": [2]}) == key_of({"b": [2], "a": 1})
    assert key_of({"a": 1}) != key_of({"a": "1"})
    assert case_in_words({"a": 1, "b": "x"}) == 'a 1, b "x"'


@pytest.mark.parametrize(
    ("grid", "culprit"),
    [
        ({}, "grid is empty"),
        ([], "grid is empty"),
        ({"seed": []}, "no values of 'seed'"),
        ({"seed": 3}, "values of 'seed' are 3"),
        ({"kind": "fast"}, "values of 'kind' are 'fast'"),
        (7, "grid is 7"),
        ("seed", "grid is 'seed'"),
        ([{"a": 1}, 3], "case 1 of grid is 3"),
        ([{1: 2}], "case 0 of grid has the name 1"),
        ({"a": [1.0, float("nan")]}, "case 1 of grid: a is nan, which JSON"),
        ({"a": [float("inf")]}, "a is inf"),
        ({"a": [object()]}, "a is <object"),
        ({"a": [{1: 2}]}, r"a is \{1: 2\}"),
        ({"gap": [0.1]}, "grid names 'gap', which is a column"),
        ({"a": [1, 2, 1]}, "cases 0 and 2 of grid are the same"),
    ],
)
def test_what_is_no_grid_is_refused_by_name(grid, culprit):
    with pytest.raises(dt.OptionError, match=culprit):
        cases_of(grid, ("gap",))
