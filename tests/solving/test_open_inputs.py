"""Inputs without a limit are found, those that rows limit are not taken for them."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.run.budget import Budget
from dovetail.solving import hints as module
from dovetail.solving.hints import open_inputs
from tests.small import linear_net


def problem(lower, upper, A=None, row_lower=-np.inf, row_upper=np.inf):
    mip = dt.Mip(
        cost=[0.0, 0.0, 1.0],
        A=[[0.0, 0.0, 0.0]] if A is None else A,
        row_lower=row_lower,
        row_upper=row_upper,
        lower=[*lower, -np.inf],
        upper=[*upper, np.inf],
        names=["a", "b", "y"],
    )
    made = dt.Problem(mip)
    made.add_predictor(linear_net([1.0, 1.0]), [0, 1], [2])
    return made


def found(*given, **more):
    return [str(each) for each in open_inputs(problem(*given, **more), Budget(10.0))]


def test_bounds_on_both_sides_are_enough():
    assert found([0.0, 0.0], [1.0, 1.0]) == []


def test_sides_are_named():
    assert found([0.0, -np.inf], [np.inf, np.inf]) == ["a (above)", "b (below and above)"]
    assert found([-np.inf, 0.0], [0.0, 1.0]) == ["a (below)"]


def test_rows_limit_too():
    """One row by itself, or two together, which only an LP sees."""
    assert found([0.0, 0.0], [np.inf, np.inf], A=[[1.0, 1.0, 0.0]], row_upper=5.0) == []
    both = [[1.0, 1.0, 0.0], [1.0, -1.0, 0.0]]
    assert found([-np.inf] * 2, [np.inf] * 2, A=both, row_lower=-5.0, row_upper=5.0) == []
    assert found([-np.inf] * 2, [np.inf] * 2, A=both[:1], row_lower=-5.0, row_upper=5.0) != []


def test_what_another_network_gives_is_limited_by_it():
    mip = dt.Mip(cost=[0.0, 0.0, 1.0], lower=[0.0, -np.inf, -np.inf], upper=[1.0, np.inf, np.inf])
    chained = dt.Problem(mip)
    chained.add_predictor(linear_net([1.0]), [0], [1])
    chained.add_predictor(linear_net([1.0]), [1], [2])
    assert open_inputs(chained, Budget(10.0)) == ()


@pytest.mark.parametrize("seconds", [0.0, 10.0])
def test_where_nobody_is_sure_nobody_is_warned(seconds, monkeypatch):
    monkeypatch.setattr(module, "MOST_ENTRIES", 10**6 if seconds == 0.0 else 0)
    rows = [[1.0, 1.0, 0.0], [1.0, -1.0, 0.0]]
    given = problem([-np.inf] * 2, [np.inf] * 2, A=rows, row_lower=-5.0, row_upper=5.0)
    assert open_inputs(given, Budget(seconds)) == ()
