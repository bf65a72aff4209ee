"""Where a solve begins."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.modelling.snapshot import take_snapshot
from dovetail.run.context import Start
from dovetail.solving.job import read_start
from tests.small import bowl, knapsack


@pytest.mark.parametrize(
    ("start", "culprit"),
    [
        ([1.0, 2.0], "start has 2 entries, expected 5"),
        ([1.0, np.nan, 0.0, 0.0, 0.0], "start is nan for b"),
        ([1.0, np.inf, 0.0, 0.0, 0.0], "start is inf for b"),
    ],
)
def test_refuses_before_any_work(start, culprit):
    with pytest.raises(dt.OptionError, match=culprit):
        dt.solve(knapsack(), start=start, log=False)


def test_a_result_of_another_problem():
    with pytest.raises(dt.OptionError, match="the result of another problem"):
        dt.solve(knapsack(), start=dt.solve(bowl(), log=False), log=False)


def test_a_result_brings_its_point_and_its_prices():
    before = dt.solve(bowl(), dt.DualDecomposition(iterations=3), log=False)
    start = read_start(take_snapshot(bowl()), before)
    assert start.x is before.x and start.multipliers is before.multipliers
    assert read_start(take_snapshot(bowl()), None) == Start()
