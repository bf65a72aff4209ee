"""The gap that a caller asks for decides what is optimal."""

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.run.bound import GapLimit


@pytest.mark.parametrize(
    ("limit", "objective", "bound", "met"),
    [
        (GapLimit(), 3.0, 3.0 - 2.9e-4, True),
        (GapLimit(), 3.0, 3.0 - 3.1e-4, False),
        (GapLimit(0.0), 3.0, 3.0 - 1e-9, True),
        (GapLimit(0.0), 3.0, 3.0 - 1e-8, False),
        (GapLimit(relative=0.1), 10.0, 9.0, True),
        (GapLimit(relative=0.1), 10.0, 8.9, False),
        (GapLimit(relative=0.1), -10.0, -11.0, True),
        (GapLimit(absolute=0.5), 10.0, 9.5, True),
        (GapLimit(absolute=0.5), 10.0, 9.4, False),
        (GapLimit(absolute=0.5), 0.0, -0.5, True),
        (GapLimit(relative=0.1), 0.0, -1e-8, False),
        (GapLimit(relative=0.1), 10.0, -np.inf, False),
    ],
)
def test_either_limit_is_enough(limit, objective, bound, met):
    assert limit.met(objective, bound) is met


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("gap", [1e-4, 1e-6, 0.0])
def test_what_is_proved_within_the_gap_is_optimal(dtype, gap):
    """The rounding of a float32 network is worth more than the smaller gaps: that is said."""
    torch.manual_seed(2)
    net = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)).to(dtype)
    problem = dt.Problem(dt.Mip([0.1, 0.2, 1.0], [[1.0, 1.0, 0.0]], [0.5], [1.5], [0, 0, -9], [1, 1, 9]))
    problem.add_predictor(net, [0, 1], [2])
    result = dt.solve(problem, gap=gap, log=False)
    assert (result.status, result.stop_reason) == ("optimal", "proved"), result.message
    if result.gap > max(gap, 1e-9):
        assert dtype is torch.float32 and "the rest is rounding of the predictors" in result.message
        assert result.gap <= 1e-4


def a_problem() -> dt.Problem:
    """The host alone proves 0; the network keeps every point at 0.05 or above."""
    problem = dt.Problem(dt.Mip(cost=[0.0, 1.0, 1.0], lower=0.0, upper=[3.0, 9.0, 9.0]))
    problem.add_predictor(lambda X: (X - 1.0) ** 2 + 0.05, inputs=[0], outputs=[1])
    return problem


def test_a_search_ends_where_the_bound_is_near_enough():
    result = dt.solve(a_problem(), absolute_gap=0.5, log=False)
    assert result.stop_reason is dt.StopReason.PROVED
    assert result.status is dt.Status.OPTIMAL
    assert result.objective - result.bound <= 0.5


def test_without_one_it_goes_on():
    result = dt.solve(a_problem(), dt.SequentialLinear(starts=3), log=False)
    assert result.stop_reason is not dt.StopReason.PROVED
    assert result.objective < 0.0501


@pytest.mark.parametrize("option", ["gap", "absolute_gap"])
@pytest.mark.parametrize("value", [-0.1, float("nan"), "much"])
def test_what_is_no_gap_is_refused(option, value):
    with pytest.raises(dt.OptionError, match="gap"):
        dt.solve(a_problem(), log=False, **{option: value})
