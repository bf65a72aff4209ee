"""Multipliers of earlier LPs, with boxes and cutoffs of now: as good as the LP was, and never wrong."""

import numpy as np
import scipy.optimize

import dovetail as dt
from dovetail.bounds.safe_lp import SafeLp
from dovetail.methods.cutoff_tightening import with_cutoff
from dovetail.methods.planes_lp.implied_bounds import Implied, ImpliedBounds
from dovetail.run.budget import Budget

ROWS, COLUMNS = 3, 6


def program(rng):
    """A random LP around a point that it allows."""
    A, x = rng.normal(size=(ROWS, COLUMNS)), rng.uniform(0.2, 0.8, COLUMNS)
    return dt.Mip(
        cost=rng.normal(size=COLUMNS), A=A, row_lower=A @ x - 0.3, row_upper=A @ x + 0.3, lower=0.0, upper=1.0
    ), x


def least(mip, column, sign, box, limit):
    """By scipy: the least of sign x_j within rows, box and cost'x <= limit; infinity: nothing is left."""
    cost = np.zeros(COLUMNS)
    cost[column] = sign
    A = mip.A.toarray()
    rows = np.vstack([A, -A, mip.cost])
    sides = np.concatenate([mip.row_upper, -mip.row_lower, [limit]])
    found = scipy.optimize.linprog(cost, A_ub=rows, b_ub=sides, bounds=np.column_stack(box))
    return found.fun if found.status == 0 else np.inf


def test_they_hold_in_smaller_boxes_and_for_lower_cutoffs():
    rng = np.random.default_rng(3)
    better = 0
    for _ in range(5):
        mip, x = program(rng)
        limit = float(mip.cost @ x) + 0.5
        held = with_cutoff(mip, limit)
        lp, known = SafeLp(held), ImpliedBounds(mip.n_rows)
        before = {}
        for column in range(COLUMNS):
            for sign in (1.0, -1.0):
                cost = np.zeros(COLUMNS)
                cost[column] = sign
                answer = lp.minimise(cost, 0.0, Budget(9.0))
                known.keep(column, sign, Implied(cost, 0.0, lp.program, answer.multipliers))
                before[column, sign] = answer.bound
        box = np.maximum(0.0, x - 0.25), np.minimum(1.0, x + 0.25)
        lower_limit = float(mip.cost @ x) + 0.1
        other = known.copy()
        other.lower_cutoff(lower_limit)
        for column, sign in other:
            value = other.value(column, sign, *box)
            assert value >= before[column, sign] - 1e-9  # boxes and cutoff only shrink
            assert value <= least(mip, column, sign, box, lower_limit) + 1e-7
            better += value > before[column, sign] + 1e-3
            kept = known.value(column, sign, held.lower, held.upper)
            assert kept <= before[column, sign] + 1e-9  # the first ones know nothing of the other cutoff
    assert better > 5


def test_the_last_multipliers_of_a_question_count():
    mip = dt.Mip(cost=[1.0, 0.0], A=[[1.0, 1.0]], row_lower=1.0, row_upper=2.0, upper=[3.0, 3.0])
    held, cost = with_cutoff(mip, 9.0), np.array([1.0, 0.0])
    known = ImpliedBounds(1)
    known.keep(0, 1.0, Implied(cost, 0.0, held, np.array([0.0, 0.0])))
    assert abs(known.value(0, 1.0, np.zeros(2), np.ones(2))) < 1e-12
    known.keep(0, 1.0, Implied(cost, 0.0, held, np.array([1.0, 0.0])))
    assert abs(known.value(0, 1.0, np.zeros(2), np.array([3.0, 0.25])) - 0.75) < 1e-12
    assert list(known) == [(0, 1.0)]
