"""Engines that rest in the middle of a MIP while others work."""

from functools import partial

import numpy as np
import pytest

import dovetail as dt
from dovetail.mip.answers import answer_of, loaded
from dovetail.run.budget import Budget, OutOfTime
from dovetail.run.engine import MipStatus, Quadratic
from dovetail.run.turns import FIRST, Clock, Computation

every_engine = pytest.mark.parametrize("engine", ["highs", "scip"])


def knapsack(n, m):
    rng = np.random.default_rng(0)
    A, cost = rng.integers(1, 60, (m, n)).astype(float), -rng.uniform(10, 60, n)
    return dt.Mip(cost=cost, A=A, row_lower=-np.inf, row_upper=12.0 * n, upper=1.0, integer=True)


def resting(engine, mip, **options):
    """A session, and its solve in turns by a clock."""
    clock, session = Clock(), loaded(engine, mip, seed=0, threads=1)
    solve = partial(session.solve, Quadratic.linear(mip.cost), budget=Budget(60.0).in_turns(clock), **options)
    return session, clock, Computation(solve, clock)


@every_engine
def test_it_rests_where_others_work(engine):
    """With and without rests the same answer, and what was heard before is true."""
    mip, heard = knapsack(30, 20), []
    whole = answer_of("MIP", mip, Budget(60.0), seed=0, threads=1, engine=engine)
    _, _, one = resting(engine, mip, heard=heard.append)
    turns = 0
    while (found := one.turn(FIRST)) is None:
        turns += 1
    assert whole is not None and turns > 3
    assert found.exact and found.value == pytest.approx(whole.value, rel=1e-6)
    assert heard
    for known in heard:
        assert known.bound <= whole.value + 1e-6
        assert known.x is None or known.value >= whole.value - 1e-6


@every_engine
@pytest.mark.parametrize("at_once", [False, True])
def test_one_that_rests_can_be_closed_and_asked_again(engine, at_once):
    mip = knapsack(70, 40)
    session, clock, one = resting(engine, mip)
    while clock.used < 3e5:
        assert one.turn(FIRST) is None
    if at_once:
        with pytest.raises(OutOfTime):
            one.close(at_once=True)
    else:
        assert one.close().status is MipStatus.LIMIT
    assert session.solve(Quadratic.linear(mip.cost), budget=Budget(600.0), gap=0.5).x is not None
