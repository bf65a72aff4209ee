"""Every engine, the same programs, against optima found without any engine."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import dovetail as dt
from dovetail.mip import ENGINES, choose, engine_for
from dovetail.run.budget import Budget, StopReason
from dovetail.run.engine import MipStatus, Quadratic
from tests.conftest import FULL

KINDS = ("continuous", "binary", "integer", "mixed", "wide")
INSTANCES = 40 if FULL else 8


def program(kind, rng):
    """A small bounded program of a kind, and the columns that carry weights."""
    if kind == "continuous":
        integer = np.zeros(3, bool)
    elif kind in ("binary", "integer"):
        integer = np.ones(4, bool)
    else:
        integer = np.array([True, True, False, False])
    n = len(integer)
    lower = np.where(integer, 0.0, -1.0) if kind != "integer" else rng.integers(-3, 1, n).astype(float)
    upper = {"binary": np.ones(n), "integer": lower + rng.integers(1, 6, n)}.get(kind, np.full(n, 2.0))
    if kind == "wide":
        lower[:2], upper[:2] = -200.0, 200.0
    A = rng.normal(0, 1, (2, n)).round(3)
    inside = np.clip(rng.uniform(-1.0, 2.0, n), lower, upper)
    inside = np.where(integer, np.round(inside), inside)
    sides = A @ inside
    mip = dt.Mip(
        cost=np.zeros(n),
        A=A,
        row_lower=[-np.inf, sides[1] - 1.0],
        row_upper=[sides[0] + 0.5, sides[1] + 1.0],
        lower=lower,
        upper=upper,
        integer=integer,
    )
    return mip, np.arange(n)[: max(2, n - 1)]


def objective(mip, columns, rng):
    weight, centre = np.zeros(mip.n_columns), np.zeros(mip.n_columns)
    weight[columns] = rng.uniform(0.2, 5.0, columns.size)
    centre[columns] = rng.uniform(-1.5, 2.5, columns.size)
    return Quadratic(rng.normal(0, 1, mip.n_columns), float(rng.normal()), weight, centre)


def true_minimum(mip, goal):
    """Every combination of integers, and for the continuous rest every set of limits that may be active."""
    fixed = np.flatnonzero(mip.integer)
    near = [range(int(max(mip.lower[j], -9)), int(min(mip.upper[j], 9)) + 1) for j in fixed]
    best = np.inf
    for values in itertools.product(*near):
        x = np.zeros(mip.n_columns)
        x[fixed] = values
        best = min(best, _minimum_of_the_rest(mip, goal, x))
    return best


def _minimum_of_the_rest(mip, goal, x):
    """A convex quadratic is least at a point that its active limits, held as equations, make unique."""
    free = np.flatnonzero(~mip.integer)
    A = mip.A.toarray()
    G = np.vstack([A, -A, np.eye(mip.n_columns), -np.eye(mip.n_columns)])
    h = np.concatenate([mip.row_upper, -mip.row_lower, mip.upper, -mip.lower])
    G, h = G[np.isfinite(h)], h[np.isfinite(h)]
    limits = [i for i in range(len(h)) if np.any(G[i, free])]
    room = h - G @ x
    pull = goal.weight[free] * goal.centre[free] - goal.cost[free]
    best = np.inf
    for count in range(free.size + 1):
        for active in itertools.combinations(limits, count):
            E = G[np.ix_(active, free)]
            system = np.block([[np.diag(goal.weight[free]), E.T], [E, np.zeros((count, count))]])
            if np.linalg.matrix_rank(system) < len(system):
                continue
            z = x.copy()
            z[free] = np.linalg.solve(system, np.concatenate([pull, room[list(active)]]))[: free.size]
            if np.all(G @ z <= h + 1e-9):
                best = min(best, goal.value(z))
    return best


CASES = [(name, kind) for name in ENGINES for kind in KINDS if name != "piqp" or kind == "continuous"]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_finds_the_optimum_again_and_again(name, kind):
    """One session, objectives that change: every answer is the optimum, and its bound is one."""
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(INSTANCES // (8 if kind == "wide" else 2)):  # wide ones take long to enumerate
        mip, columns = program(kind, rng)
        session = ENGINES[name]().load(mip, columns)
        start = None
        for _ in range(3):
            goal = objective(mip, columns, rng)
            answer = session.solve(goal, budget=Budget(60.0), gap=1e-7, start=start)
            truth = true_minimum(mip, goal)
            assert answer.status is MipStatus.OPTIMAL
            assert answer.value == pytest.approx(truth, rel=1e-5, abs=1e-5)
            assert answer.value == goal.value(answer.x)
            assert answer.bound <= truth + 1e-5 * max(1.0, abs(truth))
            assert np.all(answer.x[mip.integer] == np.round(answer.x[mip.integer]))
            start = answer.x


@pytest.mark.parametrize("name", ENGINES)
def test_a_change_of_weights_is_seen(name):
    mip = dt.Mip(cost=[0.0, 0.0], A=[[1.0, 1.0]], row_lower=[1.0], row_upper=[1.0], lower=-5.0, upper=5.0)
    session = ENGINES[name]().load(mip, np.array([0, 1]))
    for w in (1.0, 3.0, 100.0, 0.01):
        goal = Quadratic(np.zeros(2), 0.0, np.array([1.0, w]), np.zeros(2))
        x = session.solve(goal, budget=Budget(60.0), gap=1e-9).x
        assert x == pytest.approx([w / (1 + w), 1 / (1 + w)], abs=1e-3)


@pytest.mark.parametrize("name", ENGINES)
def test_bounds_for_one_solve_only(name):
    mip = dt.Mip(cost=[1.0, 1.0], A=[[1.0, 1.0]], row_lower=[1.0], row_upper=[np.inf], lower=0.0, upper=5.0)
    session = ENGINES[name]().load(mip, np.array([0]))
    goal = Quadratic(np.ones(2), 0.0, np.array([1.0, 0.0]), np.zeros(2))
    fixed = (np.array([2.0, 0.0]), np.array([2.0, 5.0]))
    assert session.solve(goal, budget=Budget(60.0), bounds=fixed).value == pytest.approx(4.0, abs=1e-5)
    assert session.solve(goal, budget=Budget(60.0)).value == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("columns", [[], [0]])
def test_infeasible_and_unbounded_are_said(name, columns):
    impossible = dt.Mip(
        cost=[0.0, 0.0], A=[[1.0, 1.0]], row_lower=[9.0], row_upper=[10.0], lower=0.0, upper=1.0
    )
    linear = Quadratic.linear(np.array([0.0, -1.0]))
    answer = ENGINES[name]().load(impossible, np.array(columns, int)).solve(linear, budget=Budget(60.0))
    assert answer.status is MipStatus.INFEASIBLE
    assert answer.x is None
    endless = dt.Mip(cost=[0.0, 0.0], A=[[1.0, 0.0]], row_lower=[0.0], row_upper=[10.0], lower=0.0)
    answer = ENGINES[name]().load(endless, np.array(columns, int)).solve(linear, budget=Budget(60.0))
    assert answer.status is MipStatus.UNBOUNDED
    assert answer.x is None


@pytest.mark.parametrize("name", ENGINES)
def test_unbounded_columns_with_a_weight_are_bounded_by_it(name):
    mip = dt.Mip(cost=[0.0, 0.0], lower=-np.inf)
    goal = Quadratic(np.array([4.0, -6.0]), 0.0, np.array([2.0, 2.0]), np.array([1.0, 50.0]))
    answer = ENGINES[name]().load(mip, np.array([0, 1])).solve(goal, budget=Budget(60.0), gap=1e-9)
    assert answer.x == pytest.approx([-1.0, 53.0], abs=1e-3)


@pytest.mark.parametrize("name", ENGINES)
def test_fixed_columns_and_programs_without_rows(name):
    mip = dt.Mip(cost=[0.0, 0.0, 0.0], lower=[1.0, -2.0, 0.0], upper=[1.0, 2.0, 3.0])
    goal = Quadratic(np.array([1.0, 1.0, -1.0]), 5.0, np.array([2.0, 2.0, 0.0]), np.array([0.0, 1.0, 0.0]))
    answer = ENGINES[name]().load(mip, np.array([0, 1])).solve(goal, budget=Budget(60.0), gap=1e-9)
    assert answer.x == pytest.approx([1.0, 0.5, 3.0], abs=1e-4)
    assert answer.value == pytest.approx(5 + 1 + 1 + 0.5 + 0.25 - 3, abs=1e-5)


@pytest.mark.parametrize("name", ENGINES)
def test_no_time_is_a_limit_not_a_verdict(name):
    mip = dt.Mip(cost=[1.0], lower=0.0, upper=1.0)
    session = ENGINES[name]().load(mip, np.array([0]))
    answer = session.solve(Quadratic.linear(np.ones(1)), budget=Budget(0.0))
    assert answer.status is MipStatus.LIMIT
    assert answer.x is None


@pytest.mark.parametrize("name", ["highs", "scip"])
def test_a_limit_gives_the_start_back_with_a_bound(name):
    """An inexact answer is used: at worst the start, never something worse, marked, with a valid bound."""
    rng = np.random.default_rng(7)
    n = 60
    mip = dt.Mip(
        cost=np.zeros(n),
        A=rng.integers(1, 30, (25, n)),
        row_lower=np.full(25, -np.inf),
        row_upper=np.full(25, 200.0),
        lower=0.0,
        upper=1.0,
        integer=True,
    )
    columns = np.arange(n)
    goal = Quadratic(-rng.uniform(5, 20, n), 0.0, np.ones(n), np.zeros(n))
    session = ENGINES[name]().load(mip, columns)
    answer = session.solve(goal, budget=Budget(0.3), start=np.zeros(n), gap=1e-12)
    if answer.status is MipStatus.LIMIT:
        assert answer.x is not None
        assert answer.value <= goal.value(np.zeros(n))
        assert answer.bound <= answer.value
    else:
        assert answer.exact


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


def test_a_stop_request_ends_a_solve():
    mip, columns = program("mixed", np.random.default_rng(0))
    budget = Budget(60.0)
    budget.stop(StopReason.INTERRUPT)
    for engine in (ENGINES["highs"], ENGINES["scip"]):
        answer = (
            engine()
            .load(mip, columns)
            .solve(objective(mip, columns, np.random.default_rng(1)), budget=budget)
        )
        assert answer.status is MipStatus.LIMIT


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
        ENGINES[name]().load(mip, np.arange(n)).solve(goal, budget=Budget(120.0), gap=1e-5).value
        for name in ("highs", "scip")
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-4)


def test_relaxing_integers_never_costs():
    rng = np.random.default_rng(5)
    mip, columns = program("integer", rng)
    goal = objective(mip, columns, rng)
    whole = ENGINES["highs"]().load(mip, columns).solve(goal, budget=Budget(60.0)).value
    relaxed = (
        ENGINES["piqp"]()
        .load(replace(mip, integer=np.zeros(4, bool)), columns)
        .solve(goal, budget=Budget(60.0))
    )
    assert relaxed.value <= whole + 1e-7
