"""The gap that a caller asks for: reached by a bound that was proved, never by less."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.run.context import MethodOutcome
from dovetail.run.gap import GapLimit, explained


@pytest.mark.parametrize(
    ("limit", "objective", "bound", "met"),
    [
        (GapLimit(), 3.0, 3.0, False),  # nothing was asked for
        (GapLimit(relative=0.1), 10.0, 9.0, True),
        (GapLimit(relative=0.1), 10.0, 8.9, False),
        (GapLimit(relative=0.1), -10.0, -11.0, True),
        (GapLimit(absolute=0.5), 10.0, 9.5, True),
        (GapLimit(absolute=0.5), 10.0, 9.4, False),
        (GapLimit(relative=1e-9, absolute=0.5), 0.0, -0.5, True),
        (GapLimit(relative=0.1), 0.0, -1e-9, False),
        (GapLimit(relative=0.1), 10.0, -np.inf, False),
    ],
)
def test_either_is_enough(limit, objective, bound, met):
    assert limit.met(objective, bound) is met


@pytest.mark.parametrize(
    ("bound", "missed", "excused"),
    [(2.0 + 5e-7, 6e-7, True), (2.0 + 5e-7, 0.0, False), (2.1, 9e-7, False), (2.0 + 1e-4, 9e-7, True)],
)
def test_missed_rows_excuse_a_little(bound, missed, excused):
    assert explained(2.0, bound, missed) is excused


@pytest.mark.parametrize("room", [5e-7, 0.0])
def test_a_point_that_uses_the_tolerance_is_no_contradiction(room):
    """The rows say 1, and the bound as well; a point at 1 - 5e-7 is accepted, and nothing more is proved."""
    problem = dt.Problem(dt.Mip([1.0, 0.0], [[1.0, 0.0]], [1.0], [5.0], upper=9.0))

    class Fixed:
        name = "fixed"

        def solve(self, context):
            context.incumbent.raise_bound(1.0, "proof")
            context.incumbent.offer(np.array([1.0 - room, 0.0]), "point")
            assert context.incumbent.bound == 1.0 - room
            context.incumbent.raise_bound(1.0, "proof")
            return MethodOutcome(dt.StopReason.STALLED, 1)

    problem.add_predictor(lambda X: X, [0], [1])
    result = dt.solve(problem, Fixed(), log=False)
    assert 1.0 - room - 1e-12 <= result.bound <= result.objective  # the end may move it onto its row
    assert "contradicted" not in result.message
    assert result.status == "optimal"


def a_problem() -> dt.Problem:
    """The host alone proves 0; the network keeps every point at 0.05 or above."""
    problem = dt.Problem(dt.Mip(cost=[0.0, 1.0, 1.0], lower=0.0, upper=[3.0, 9.0, 9.0]))
    problem.add_predictor(lambda X: (X - 1.0) ** 2 + 0.05, inputs=[0], outputs=[1])
    return problem


def test_a_search_ends_where_the_bound_is_near_enough():
    result = dt.solve(a_problem(), absolute_gap=0.5, log=False)
    assert result.stop_reason is dt.StopReason.GAP
    assert result.status is dt.Status.FEASIBLE
    assert result.objective - result.bound <= 0.5


def test_without_one_it_goes_on():
    result = dt.solve(a_problem(), dt.SequentialLinear(starts=3), log=False)
    assert result.stop_reason is not dt.StopReason.GAP
    assert result.objective < 0.0501


@pytest.mark.parametrize("option", ["gap", "absolute_gap"])
@pytest.mark.parametrize("value", [-0.1, float("nan"), "much"])
def test_what_is_no_gap_is_refused(option, value):
    with pytest.raises(dt.OptionError, match="gap"):
        dt.solve(a_problem(), log=False, **{option: value})
