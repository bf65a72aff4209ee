"""What stands behind a bound; a bound is held against every verified point.

The gap that a caller asks for decides what is optimal.
"""

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.run.bound import Bound, BoundFaultError, GapLimit, Scope, Support, reconciled
from dovetail.run.context import MethodOutcome


def test_the_higher_value_counts_and_then_the_better_support():
    said, proved = Bound(1.0, support=Support.ENGINE), Bound(1.0)
    assert proved.better_than(said) and not said.better_than(proved) and not proved.better_than(proved)
    assert Bound(1.1, support=Support.ENGINE).better_than(proved)


@pytest.mark.parametrize(
    ("scope", "excess", "missed", "fine"),
    [
        (Scope.WRITTEN, 5e-7, 6e-7, True),  # the point gains that by missing a constraint
        (Scope.WRITTEN, 7e-7, 6e-7, False),
        (Scope.WRITTEN, 1e-12, 0.0, True),  # what sums round
        (Scope.CHECKED, 5e-7, 6e-7, False),  # proved of points that miss constraints, too
        (Scope.CHECKED, 0.0, 0.0, True),
    ],
)
def test_a_bound_may_be_undercut_only_by_what_the_point_misses(scope, excess, missed, fine):
    bound = Bound(2.0 + excess, "test", scope)
    if fine:
        assert reconciled(bound, 2.0, 1e-11, lambda: missed).value == 2.0
    else:
        with pytest.raises(BoundFaultError, match="test proved that no solution is below"):
            reconciled(bound, 2.0, 1e-11, lambda: missed)


def test_where_nobody_knows_what_the_point_gained_its_own_value_is_all_that_is_claimed():
    assert reconciled(Bound(2.0 + 1e-7, scope=Scope.WRITTEN), 2.0, 1e-11, lambda: None).value == 2.0


class Fixed:
    """Offers a point and raises a bound of the constraints as written."""

    name = "fixed"

    def __init__(self, x, bound, **more):
        self._x, self._bound = np.array(x), Bound(bound, "proof", Scope.WRITTEN, **more)

    def solve(self, context):
        context.incumbent.raise_bound(self._bound)
        context.incumbent.offer(self._x, "point")
        return MethodOutcome(dt.StopReason.STALLED, 1)


def one_row(price):
    """min price x, x >= 1 by a row: the multiplier of the row is the price."""
    problem = dt.Problem(dt.Mip([price, 0.0], [[1.0, 0.0]], [1.0], [5.0], upper=9.0))
    problem.add_predictor(lambda X: X, [0], [1])
    return problem


@pytest.mark.parametrize("price", [1.0, 1e3])
@pytest.mark.parametrize("room", [5e-7, 0.0])
def test_a_point_that_uses_the_tolerance_is_no_contradiction(price, room):
    """The row proves `price`; a point at 1 - 5e-7 is accepted, and no more is proved than its value."""
    result = dt.solve(one_row(price), Fixed([1.0 - room, 0.0], price), log=False)
    assert price * (1.0 - room) - 1e-9 <= result.bound <= result.objective  # the end may move it onto its row
    assert result.status == "optimal"


def square():
    """min y, y = x^2: the host alone proves -9."""
    problem = dt.Problem(dt.Mip([0.0, 1.0], lower=-9.0, upper=[9.0, 99.0]))
    problem.add_predictor(lambda X: X**2, [0], [1])
    return problem


@pytest.mark.parametrize("excess", [1e-6, 1e-3])
def test_a_wrong_bound_is_a_fault_that_strict_mode_raises(excess, monkeypatch):
    wrong = Fixed([0.0, 0.0], excess)
    with pytest.raises(BoundFaultError):
        dt.solve(square(), wrong, log=False)
    monkeypatch.setenv("DOVETAIL_STRICT", "0")
    result = dt.solve(square(), wrong, log=False)
    assert (result.status, result.bound) == ("feasible", None)
    assert "proof proved that no solution is below" in result.message


def test_an_engines_word_is_called_that():
    result = dt.solve(one_row(1.0), Fixed([1.0, 0.0], 1.0, support=Support.ENGINE), log=False)
    assert (result.status, result.bound_kind) == ("optimal", "proven")  # the host proves as much by itself
    result = dt.solve(square(), Fixed([0.0, 0.0], 0.0, support=Support.ENGINE), log=False)
    assert (result.status, result.bound_kind) == ("optimal", "engine")
    assert "the bound of a MIP engine" in result.message


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
        assert dtype is torch.float32 and "from the rounding of the predictors" in result.message
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
