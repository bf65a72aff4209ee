"""The table: read like a list, written as CSV, a frame for those who have pandas.

Cases: products of a grid, as JSON has them; what is none is refused by name.

Rows: what a result says, to a line and back.
"""

import csv
import sys
from enum import StrEnum

import numpy as np
import pytest

import dovetail as dt
from dovetail.sweeping.sweep_result import COLUMNS, SweepRow, case_in_words, cases_of, key_of
from tests.small import knapsack

ROWS = (
    SweepRow({"a": 1}, "plant", status="optimal", objective=2.5),
    SweepRow({"a": 2, "b": [1, 2]}, "plant", error="build: ValueError: said\nin two, lines"),
)
TABLE = dt.SweepResult(ROWS, 3)


def test_it_is_read_like_a_list():
    assert len(TABLE) == 2
    assert TABLE[-1] is ROWS[1]
    assert TABLE[:1] == ROWS[:1]
    assert list(TABLE) == list(ROWS)
    assert TABLE.failed == ROWS[1:]
    assert TABLE.column("b") == [None, [1, 2]]
    assert repr(TABLE) == "<SweepResult: 2 of 3 cases, 1 failed>"


def test_csv(tmp_path):
    with TABLE.to_csv(tmp_path / "table.csv").open(newline="") as file:
        first, second = csv.DictReader(file)
    assert list(first) == ["a", "b", *COLUMNS]
    assert (first["a"], first["b"], first["objective"]) == ("1", "", "2.5")
    assert (second["b"], second["error"]) == ("[1, 2]", ROWS[1].error)


def test_a_frame_for_those_who_have_pandas(monkeypatch):
    assert TABLE.to_frame()["a"].tolist() == [1, 2]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(dt.MissingDependencyError, match="SweepResult.to_frame needs pandas"):
        TABLE.to_frame()


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


@pytest.fixture(scope="module")
def result():
    return dt.solve(knapsack(), log=False)


def test_to_a_line_and_back(result):
    row = SweepRow.solved({"a": [1]}, "plant", result, 0.25, keep=True)
    line = row.to_line()
    assert "\n" not in line
    again = SweepRow.from_line(line)
    assert again.record() == row.record()
    assert again.record()["objective"] == -4.0
    assert list(again.record()) == ["a", *COLUMNS]
    assert again.result.value(["a", "d"]).tolist() == [1.0, 1.0]
    assert again.to_line() == line  # having looked at the result changes nothing


def test_a_result_that_was_not_kept(result):
    row = SweepRow.solved({"a": 1}, "plant", result, 0.25, keep=False)
    assert row.objective == -4.0
    with pytest.raises(dt.DovetailError, match="a 1: the sweep was run with keep_results=False"):
        row.result  # noqa: B018


def test_a_failure_has_no_result():
    row = SweepRow({"a": 1}, "plant", error="build: ValueError: no such plant")
    assert str(row) == "a 1: failed, build: ValueError: no such plant"
    with pytest.raises(dt.DovetailError, match="a 1: build: ValueError: no such plant"):
        row.result  # noqa: B018


@pytest.mark.parametrize(
    "line",
    ["", "{}", "[]", "3", '{"case": 3, "build": "x"}', '{"case": {}, "build": "x", "colour": 1}',
     '{"case": {}, "build": "x", "full": 3}', '{"case": {}, "build": "x", "status": 3}'],
)  # fmt: skip
def test_lines_of_others_are_refused(line):
    with pytest.raises(dt.OptionError, match="no row of a sweep"):
        SweepRow.from_line(line)
