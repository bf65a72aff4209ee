"""What stands behind a bound; a bound is held against every verified point."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.run.bound import Bound, BoundFaultError, Scope, Support, reconciled
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
        with pytest.raises(BoundFaultError, match="test proved that no point is below"):
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
    assert "proof proved that no point is below" in result.message


def test_an_engines_word_is_called_that():
    result = dt.solve(one_row(1.0), Fixed([1.0, 0.0], 1.0, support=Support.ENGINE), log=False)
    assert (result.status, result.bound_kind) == ("optimal", "proven")  # the host proves as much by itself
    result = dt.solve(square(), Fixed([0.0, 0.0], 0.0, support=Support.ENGINE), log=False)
    assert (result.status, result.bound_kind) == ("optimal", "engine")
    assert "the word of a MIP engine" in result.message
