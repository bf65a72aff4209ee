"""Frames are made by pandas; who has none is told by whom it is needed."""

import sys

import pytest

import dovetail as dt
from dovetail.run.trace import frame


def test_one_row_per_record():
    assert frame("the test", [{"a": 1}, {"a": 2, "b": 3.0}])["a"].tolist() == [1, 2]


def test_pandas_is_asked_for_by_name(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(dt.MissingDependencyError, match="the test needs pandas: pip install pandas"):
        frame("the test", [])
