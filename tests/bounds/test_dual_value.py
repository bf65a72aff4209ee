"""Multipliers prove bounds, never wrong ones: against optima in fractions, whatever the multipliers."""

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import dovetail as dt
from dovetail.bounds.dual_value import dual_value
from dovetail.bounds.safe_lp import SafeLp
from dovetail.run.budget import Budget
from dovetail.run.engine import MipStatus
from tests.conftest import FULL
from tests.differential.hosts import make, optimum
from tests.tanh import problem_of

SEEDS = range(2000 if FULL else 60)


def test_costs_below_an_engine_s_tolerance_count():
    result = dt.solve(problem_of([-1e-10, 0.0], [[1.0, 1.0]], -np.inf, 1e9, upper=1e9), log=False)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(-0.1)


@cache
def relaxed(seed):
    """Program number `seed` as a minimisation, and the optimum of its whole points: no bound may be above."""
    program = make(seed)
    mip = dt.Mip(
        program.cost, program.A, program.row_lower, program.row_upper, program.lower, program.upper,
        program.integer, program.sense,
    ).minimised()  # fmt: skip
    best = optimum(program).exact
    return mip, None if best is None else (best if program.sense == "min" else -best)


def test_any_multipliers_prove_something_true():
    rng = np.random.default_rng(0)
    for seed in SEEDS:
        mip, best = relaxed(seed)
        for scale in (1.0, 1e6, 1e12):
            y = scale * rng.normal(size=mip.n_rows)
            bound = dual_value(mip, mip.cost, mip.offset, y, mip.lower, mip.upper)
            assert best is None or bound == -math.inf or Fraction(bound) <= best


def test_the_best_multipliers_prove_nearly_the_optimum():
    for seed in SEEDS:
        mip, best = relaxed(seed)
        answer = SafeLp(mip).minimise(mip.cost, mip.offset, Budget(10.0))
        assert best is None or answer.bound == -math.inf or Fraction(answer.bound) <= best
        largest = max(np.max(np.abs(mip.cost)), np.max(np.abs(mip.A.data), initial=0.0))
        if answer.status is MipStatus.OPTIMAL and largest < 1e3:
            value = float(mip.cost @ answer.x) + mip.offset
            assert answer.bound == pytest.approx(value, rel=1e-7, abs=1e-7)


def test_a_free_column_whose_reduced_cost_vanishes_exactly():
    """min t, t >= 0.1 x + 0.3, t >= -0.7 x: t has no bounds, and 0.1 has no exact binary form."""
    mip = dt.Mip([1.0, 0.0], [[1.0, -0.1], [1.0, 0.7]], [0.3, 0.0], np.inf, [-np.inf, -5.0], [np.inf, 5.0])
    answer = SafeLp(mip).minimise(mip.cost, 0.0, Budget(10.0))
    assert answer.bound == pytest.approx(0.2625, abs=1e-9)


def test_a_column_that_only_the_cost_bounds():
    """Both columns free, tied by rows with entries of no exact form: bounded through the cost itself."""
    A = [[0.1, 0.3], [0.7, -0.9], [-0.3, 0.2]]
    mip = dt.Mip([0.37, 0.11], A, [1.0, -2.0, -3.0], np.inf, -np.inf, np.inf)
    answer = SafeLp(mip).minimise(mip.cost, 0.0, Budget(10.0))
    value = float(mip.cost @ answer.x)
    assert answer.bound <= value + 1e-12
    assert answer.bound == pytest.approx(value, rel=1e-6)


def test_columns_without_an_upper_bound():
    """min 0.3 x + 0.7 y over two rows that meet at (1, 2): neither column is bounded above."""
    mip = dt.Mip([0.3, 0.7], [[0.1, 0.3], [0.7, 0.1]], [0.7, 0.9], np.inf, 0.0, np.inf)
    answer = SafeLp(mip).minimise(mip.cost, 0.0, Budget(10.0))
    value = float(mip.cost @ answer.x)
    assert value - 1e-9 <= answer.bound <= value + 1e-12


def test_infeasible_is_proved_by_multipliers():
    mip = dt.Mip([0.0, 0.0], [[0.1, 0.2], [0.1, 0.2]], [1.0, -np.inf], [np.inf, 0.9], -np.inf, np.inf)
    assert SafeLp(mip).minimise(mip.cost, 0.0, Budget(10.0)).status is MipStatus.INFEASIBLE


def test_multipliers_that_are_not_numbers_prove_nothing():
    mip, _ = relaxed(0)
    y = np.full(mip.n_rows, np.nan)
    assert dual_value(mip, mip.cost, 0.0, y, mip.lower, mip.upper) == -math.inf


def test_a_wrong_infeasible_of_the_solver_is_not_passed_on(monkeypatch):
    from dovetail.mip.loaded_highs import LoadedHighs

    monkeypatch.setattr(LoadedHighs, "run", lambda self, budget, gap: (MipStatus.INFEASIBLE, None, -np.inf))
    mip = dt.Mip([1.0], [[1.0]], [0.0], [1.0], 0.0, 1.0)
    answer = SafeLp(mip).minimise(mip.cost, 0.0, Budget(10.0))
    assert answer.status is MipStatus.LIMIT
    assert answer.bound == -math.inf


def test_free_columns_that_no_row_in_use_touches_do_not_count():
    """A hundred free columns beside the two that matter: only those are corrected in fractions."""
    n = 100
    A = np.zeros((3, n + 2))
    A[0, :2], A[1, :2], A[2, 2:] = [0.1, 0.7], [0.3, -0.9], 1.0
    mip = dt.Mip(np.zeros(n + 2), A, -np.inf, [1.0, 2.0, 3.0], -np.inf, np.inf)
    answer = SafeLp(mip).minimise(np.array([-0.4, 0.2] + [0.0] * n), 0.0, Budget())
    assert answer.bound == pytest.approx(-3.0, rel=1e-9)
