"""Our engines pass the public suite, agree with each other, and are chosen as measured."""

from dataclasses import replace

import numpy as np
import pytest

import dovetail as dt
from dovetail.mip import ENGINES, choose, engine_for
from dovetail.run.budget import Budget
from dovetail.testing import EngineSuite
from dovetail.testing.engine_suite import KINDS, objective, program
from tests.conftest import FULL

INSTANCES = 20 if FULL else 4
NAMES = frozenset(ENGINES)
"""Ours: other tests register some of their own later."""


class TestHighs(EngineSuite):
    engine = ENGINES.make("highs")
    instances = INSTANCES


class TestPiqp(EngineSuite):
    engine = ENGINES.make("piqp")
    takes = ("continuous",)
    instances = INSTANCES


class TestScip(EngineSuite):
    engine = ENGINES.make("scip")
    instances = INSTANCES


def test_every_engine_of_the_table_is_tested():
    assert {suite.engine.name for suite in EngineSuite.__subclasses__()} >= NAMES


def test_the_choice_follows_what_carries_weight():
    rng = np.random.default_rng(0)
    for kind in KINDS:
        mip, columns = program(kind, rng)
        assert choose(mip, columns).name == ("piqp" if kind == "continuous" else "highs")


def test_an_engine_that_cannot_says_why():
    mip, columns = program("binary", np.random.default_rng(0))
    with pytest.raises(dt.UnsupportedError, match=r"x\[0\] is integer.*highs"):
        engine_for("piqp", mip, columns)
    with pytest.raises(dt.OptionError, match="'cplex' is not known"):
        engine_for("cplex", mip, columns)


def test_engines_agree_on_a_larger_program():
    """HiGHS and SCIP, where both can take the block: the same value within the gap."""
    rng = np.random.default_rng(3)
    n = 24
    mip = dt.Mip(
        cost=np.zeros(n),
        A=rng.normal(0, 1, (6, n)).round(2),
        row_lower=np.full(6, -4.0),
        row_upper=np.full(6, 4.0),
        lower=np.repeat([0.0, -2.0], n // 2),
        upper=np.repeat([3.0, 2.0], n // 2),
        integer=np.repeat([True, False], n // 2),
    )
    goal = objective(mip, np.arange(n), rng)
    values = [
        ENGINES.make(name).load(mip, np.arange(n)).solve(goal, budget=Budget(120.0), gap=1e-5).value
        for name in ("highs", "scip")
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-4)


def test_relaxing_integers_never_costs():
    rng = np.random.default_rng(5)
    mip, columns = program("integer", rng)
    goal = objective(mip, columns, rng)
    whole = ENGINES.make("highs").load(mip, columns).solve(goal, budget=Budget(60.0)).value
    relaxed = (
        ENGINES.make("piqp")
        .load(replace(mip, integer=np.zeros(4, bool)), columns)
        .solve(goal, budget=Budget(60.0))
    )
    assert relaxed.value <= whole + 1e-7
