"""Heating: the arrays say what the text says, and the default method finds the optimum of a short day."""

import itertools

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail_study.problems.heat import FIRST, FLOW, FLOW_COST, TANK, heat


@pytest.fixture(scope="module")
def day():
    return heat(5, "1x8", rows=600, epochs=20)


def by_hand(day, level, flow, tolerance=0.0):
    """Cost and stock of a plan, or None if the tank runs dry or over by more than the tolerance."""
    rows = torch.tensor(np.column_stack([level, flow, day.weather]), dtype=torch.float64)
    with torch.no_grad():
        made = day.network(rows).numpy()[:, 0]
    stored = FIRST + np.cumsum(made - day.need)
    if np.any(stored < -tolerance) or np.any(stored > TANK + tolerance):
        return None
    return float(day.price @ level + FLOW_COST * np.sum(flow)), made, stored


def test_a_plan_by_hand_is_a_point_of_the_problem(day):
    level, flow = np.array([2.0, 2.0, 2.0, 2.0, 2.0]), np.full(5, 40.0)
    cost, made, stored = by_hand(day, level, flow)
    x = np.concatenate([level, flow, day.weather, made, stored])
    assert dt.check(day.problem, x).within()
    assert day.problem.mip.objective(x) == pytest.approx(cost)
    x[day.stored[2]] += 0.1
    assert not dt.check(day.problem, x).within()


def test_the_optimum_of_a_short_day(day):
    """All levels tried, flows on a grid that holds its own optimum: more flow costs more and heats less."""
    best = min(
        found[0]
        for level in itertools.product(range(5), repeat=5)
        if (found := by_hand(day, np.array(level, float), np.full(5, FLOW[0]))) is not None
    )
    result = dt.solve(day.problem, target=best + 1e-7, log=False)
    assert result.objective <= best + 1e-6
    assert result.objective >= best - 0.02 * abs(best)
    # the tank adds up five hours, each true to 1e-6 in the solver's sums and in these
    again = by_hand(day, result.value(day.level), result.value(day.flow), tolerance=1e-5)
    assert again is not None and again[0] == pytest.approx(result.objective)


def test_wrong_sizes_are_named():
    with pytest.raises(dt.OptionError, match="hours is 0"):
        heat(0)
