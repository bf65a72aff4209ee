"""Values by name: one column's, and a family's by index."""

import numpy as np
import pandas as pd
import pytest

import dovetail as dt
from dovetail.run.result import Values

NAMES = ["x[0,a]", "x[1,a]", "y_3", "y_4", "cost", "z[2]"]
VALUES = Values(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 0.0]), NAMES)


def test_columns_and_families():
    assert VALUES["cost"] == 5.0 and VALUES["x[1,a]"] == 2.0
    assert VALUES["x"] == {(0, "a"): 1.0, (1, "a"): 2.0}
    assert VALUES["y"] == {3: 3.0, 4: 4.0} and VALUES.families["z"] == {2: 0.0}
    assert list(VALUES) == NAMES and len(VALUES) == 6
    assert "x" in VALUES and "cost" in VALUES and "w" not in VALUES
    assert dict(VALUES)["y_3"] == 3.0


def test_a_column_comes_before_a_family_of_its_name():
    values = Values(np.array([1.0, 2.0]), ["x", "x[0]"])
    assert values["x"] == 1.0 and values.families["x"] == {0: 2.0}


def test_names_that_are_not_there():
    with pytest.raises(KeyError, match="no column and no family called 'costs'; did you mean 'cost'"):
        VALUES["costs"]
    assert VALUES.get("w") is None


def test_columns_without_names():
    values = Values(np.array([0.0, 2.5]), None)
    assert values["x[1]"] == 2.5 and values["x"] == {0: 0.0, 1: 2.5}


def test_shown_in_short():
    assert repr(VALUES) == "<Values: x[0,a] = 1, x[1,a] = 2, y_3 = 3, y_4 = 4, cost = 5, 1 at 0>"
    assert VALUES.in_short(2) == "x[0,a] = 1, x[1,a] = 2, 3 more, 1 at 0"
    assert "\n" not in repr(Values(np.ones(1), ["a\n\x1b[31m" + "b" * 100]))


def test_of_a_result_and_of_one_from_a_file():
    mip = dt.Mip([1.0, 1.0], lower=[2.0, 3.0], names=["a[0]", "b"])
    result = dt.solve(dt.Problem(mip), log=False)
    for read in (result, dt.Result.from_json(result.to_json())):
        assert read.values["a"] == {0: 2.0} and read.value({"p": "b", "q": "a[0]"}) == {"p": 3.0, "q": 2.0}
        assert read.value(pd.Series(["b"], index=["k"])).loc["k"] == 3.0
