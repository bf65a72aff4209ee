"""Proximal terms as linear programs: the costs add up to the parabola at every point."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.mip.expansion import Expansion
from dovetail.run.engine import Quadratic


def everything():
    """A binary, a small integer, a wide integer, a continuous, a free and two fixed columns."""
    return dt.Mip(
        cost=np.zeros(7),
        A=np.ones((1, 7)),
        row_lower=[-100.0],
        row_upper=[100.0],
        lower=[0.0, -2.0, -500.0, -1.0, -np.inf, 3.0, 0.5],
        upper=[1.0, 4.0, 500.0, 2.0, np.inf, 3.0, 0.5],
        integer=[True, True, True, False, False, True, False],
    )


def random_point(rng):
    return np.array(
        [
            rng.integers(2),
            rng.integers(-2, 5),
            rng.integers(-40, 40),
            rng.uniform(-1, 2),
            rng.normal(),
            3.0,
            0.5,
        ]
    )


def test_the_lifted_cost_is_the_objective():
    mip = everything()
    rng = np.random.default_rng(0)
    expansion = Expansion.of(mip, np.arange(7))
    A, row_lower, row_upper, lower, upper, integer = expansion.program()
    for _ in range(50):
        goal = Quadratic(rng.normal(size=7), 2.5, rng.uniform(0, 4, 7), rng.normal(size=7))
        cost, offset = expansion.cost(goal)
        x = random_point(rng)
        lifted = expansion.lift(x)
        assert cost @ lifted + offset == pytest.approx(goal.value(x))
        activity = A @ lifted
        assert np.all(activity >= row_lower - 1e-9) and np.all(activity <= row_upper + 1e-9)
        assert np.all(lifted >= lower) and np.all(lifted <= upper)
    assert integer.sum() == 4 + 6


def test_tangents_touch_and_stay_below():
    expansion = Expansion.of(everything(), np.arange(7))
    squares = expansion.squares_of
    rng = np.random.default_rng(1)
    at = random_point(rng)
    A, lower, _ = expansion.tangents(np.arange(squares.size), at[squares])
    touching = expansion.lift(at)
    assert A @ touching == pytest.approx(lower, abs=1e-9)
    for _ in range(50):
        lifted = expansion.lift(random_point(rng))
        assert np.all(A @ lifted >= lower - 1e-9)
