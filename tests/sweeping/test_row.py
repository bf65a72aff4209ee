"""Rows: what a result says, to a line and back."""

import pytest

import dovetail as dt
from dovetail.sweeping.sweep_result import COLUMNS, SweepRow
from tests.small import knapsack


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
