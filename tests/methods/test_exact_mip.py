"""Whole MIPs: what a host without predictors, or with all of them replaced, is given to."""

import numpy as np

import dovetail as dt
from tests.tanh import problem_of


def test_a_mip_without_predictors_gets_all_the_time():
    rng = np.random.default_rng(0)
    A = rng.integers(1, 60, (8, 60)).astype(float)
    p = problem_of(
        -rng.integers(5, 40, 60), A, np.full(8, -np.inf), A.sum(axis=1) * 0.4, upper=1.0, integer=True
    )
    result = dt.solve(p, time_limit=4.0, log=False)
    assert result.stop_reason == "proved" or result.seconds > 3.5
