"""The table: read like a list, written as CSV, a frame for those who have pandas."""

import csv
import sys

import pytest

import dovetail as dt
from dovetail.sweeping.sweep_result import COLUMNS, SweepRow

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
