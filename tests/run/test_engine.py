"""Answers of engines are looked at before they are believed."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.run.engine import MipAnswer, MipStatus, Quadratic, certified

MIP = dt.Mip(
    cost=[1.0, 1.0],
    A=[[1.0, 1.0]],
    row_lower=[1.0],
    row_upper=[2.0],
    lower=0.0,
    upper=5.0,
    integer=[True, False],
)
GOAL = Quadratic.linear(np.ones(2))


@pytest.mark.parametrize(
    ("x", "culprit"),
    [
        ([np.nan, 0.0], "not finite"),
        ([np.inf, 0.0], "not finite"),
        ([0.5, 1.0], "fractional"),
        ([0.0, 0.5], r"violates row\[0\]"),
        ([3.0, 0.0], r"violates row\[0\]"),
    ],
)
def test_engine_points_are_looked_at(x, culprit):
    with pytest.raises(dt.EngineError, match=culprit):
        certified("engine", MIP, GOAL, np.array(x), MipStatus.OPTIMAL, 0.0)


def test_engine_values_are_recomputed_and_impossible_bounds_dropped():
    answer = certified("engine", MIP, GOAL, np.array([1.0 + 1e-9, 0.0]), MipStatus.OPTIMAL, 7.0)
    assert isinstance(answer, MipAnswer)
    assert answer.value == 1.0
    assert answer.bound == -np.inf
