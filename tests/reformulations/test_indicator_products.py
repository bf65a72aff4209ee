"""Products in switched rows: the same value at every choice of integers, and a tighter relaxation."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import dovetail as dt
from dovetail.bounds.box import propagate
from dovetail.reformulations import indicators as switches
from dovetail.reformulations.indicators import IndicatorProducts
from dovetail.reformulations.reformulated import Reformulated
from dovetail.reformulations.tables import Tables
from tests.conftest import FULL
from tests.contexts import breach, by_scipy
from tests.small import linear_net, random_mlp

ROUNDS = 8 if FULL else 2
OPTIONS = 3
ONE_OF_THREE = {"exactly": (1.0, 1.0), "at most": (-np.inf, 1.0), "free": (-np.inf, 3.0)}


def options(rng, *, choose="exactly", low=0.0, high=1.0, inputs=1, negated=False, big=50.0):
    """Columns: p_k, gain c_k, value y_k, then the networks' integer inputs z, the same for every k.

    c_k <= p_k u_k, and c_k <= y_k where p_k = 1, by a big constant; y_k = f_k(z).
    """
    k = np.arange(OPTIONS)
    p, c, y, z = k, k + OPTIONS, k + 2 * OPTIONS, 3 * OPTIONS + np.arange(inputs)
    columns = 3 * OPTIONS + inputs
    A, below = [], []
    for i in k:
        A.append({c[i]: 1.0, p[i]: -rng.uniform(1.0, 6.0)})
        below.append(0.0)
        A.append({c[i]: 2.0, y[i]: -2.0, p[i]: big})
        below.append(big)
    dense = np.zeros((len(A) + 2, columns))
    for row, terms in zip(dense, A, strict=False):
        row[list(terms)] = list(terms.values())
    dense[-2, p] = 1.0
    dense[-1, np.concatenate([p, z])] = rng.normal(size=OPTIONS + inputs)
    middle = dense[-1, z].sum() * 0.5 * (low + high)
    lower = np.concatenate([np.full(len(A), -np.inf), [ONE_OF_THREE[choose][0]], [middle - 2.5]])
    upper = np.concatenate([below, [ONE_OF_THREE[choose][1]], [middle + 2.0]])
    if negated:
        dense[: len(A)] *= -1.0
        lower[: len(A)], upper[: len(A)] = -upper[: len(A)], np.inf
    cost = np.concatenate(
        [rng.normal(0, 0.3, OPTIONS), np.ones(OPTIONS), np.zeros(OPTIONS), rng.normal(0, 0.3, inputs)]
    )
    mip = dt.Mip(
        cost=cost,
        A=dense,
        row_lower=lower,
        row_upper=upper,
        lower=np.concatenate([np.zeros(OPTIONS), np.full(OPTIONS, -3.0), np.full(OPTIONS, -np.inf)]).tolist()
        + [low] * inputs,
        upper=np.concatenate([np.ones(OPTIONS), np.full(OPTIONS, 9.0), np.full(OPTIONS, np.inf)]).tolist()
        + [high] * inputs,
        integer=[True] * OPTIONS + [False] * 2 * OPTIONS + [True] * inputs,
        sense="max",
    )
    problem = dt.Problem(mip)
    for i in k:
        problem.add_predictor(random_mlp(inputs, seed=int(rng.integers(1000))), z, [y[i]])
    return problem


CASES = {
    "one of three": {},
    "at most one of three": {"choose": "at most"},
    "each for itself": {"choose": "free"},
    "rows the other way round": {"negated": True},
    "two binaries": {"inputs": 2},
    "an integer with three values": {"low": -1.0},
    "an integer with two values": {"low": 2.0, "high": 3.0},
}


def tables(problem) -> Reformulated:
    reformulated = Tables().apply(Reformulated.start(problem, propagate(problem.mip.minimised())))
    assert reformulated is not None and not reformulated.problem.blocks
    return reformulated


def with_products(given) -> Reformulated:
    return IndicatorProducts().apply(given) or given


def at_integers(problem):
    """Every choice of the original's integers."""
    mip = problem.mip
    integers = np.flatnonzero(mip.integer)
    ranges = [np.arange(mip.lower[j], mip.upper[j] + 1) for j in integers]
    for values in itertools.product(*ranges):
        yield integers, np.array(values)


def held(mip, columns, values):
    lower, upper = mip.lower.copy(), mip.upper.copy()
    lower[columns] = upper[columns] = values
    return replace(mip, lower=lower, upper=upper)


@pytest.mark.parametrize("seed", range(ROUNDS))
@pytest.mark.parametrize("case", CASES)
def test_every_choice_of_integers_is_worth_the_same(case, seed):
    problem = options(np.random.default_rng([seed, len(case)]), **CASES[case])
    before = tables(problem)
    after = with_products(before)
    assert after is not before
    feasible = 0
    for columns, values in at_integers(problem):
        old = by_scipy(held(before.problem.mip, columns, values))
        new = by_scipy(held(after.problem.mip, columns, values))
        assert (old is None) == (new is None), values
        if old is not None and new is not None:
            feasible += 1
            assert new[0] == pytest.approx(old[0], abs=1e-6)
            assert breach(before.problem.mip, new[1][: before.problem.mip.n_columns]) <= 1e-6
            assert breach(after.problem.mip, after.lift(before.restrict(old[1]))) <= 1e-6
    assert feasible > 0


@pytest.mark.parametrize("case", CASES)
def test_the_relaxation_is_tighter(case):
    problem = options(np.random.default_rng(5), **CASES[case])
    before = tables(problem)
    loose, tight = (by_scipy(e.problem.mip.relaxed()) for e in (before, with_products(before)))
    whole = by_scipy(before.problem.mip)
    assert loose is not None and tight is not None and whole is not None
    assert whole[0] - 1e-6 <= tight[0] < loose[0] - 0.1


def linear_options(first=1.0, **changes):
    """One of three, worth 2z + first, 2 - z and 1.5: two tables are lines in z, one is flat."""
    problem = options(np.random.default_rng(0), **changes)
    bare = dt.Problem(problem.mip)
    z = 3 * OPTIONS
    for k, (slope, base) in enumerate([(2.0, first), (-1.0, 2.0), (0.0, 1.5)]):
        bare.add_predictor(linear_net([[slope]], base), [z], [2 * OPTIONS + k])
    return bare


def test_products_replace_the_rows_and_no_big_constant_is_left():
    before = tables(linear_options(big=1000.0))
    after = with_products(before)
    assert after.problem.mip.n_columns == before.problem.mip.n_columns + 2, "a flat table needs no product"
    assert np.max(np.abs(after.problem.mip.A.data)) < 10.0
    x = np.array([1, 0, 0, 3, 0, 0, 3, 1, 1.5, 1.0])
    np.testing.assert_array_equal(after.lift(x)[-2:], [1.0, 0.0])


def test_a_row_that_still_limits_something_stays():
    """c_0 <= p_0 u_0: left out where u_0 is more than the table's 3, kept where it is less."""
    problem = linear_options()
    for most, kept in ((4.0, 0), (2.0, 1)):
        A = problem.mip.A.toarray()
        A[0, 0] = -most
        mip = with_products(tables(problem.derived(replace(problem.mip, A=A), problem.blocks))).problem.mip
        rows = mip.A.toarray()
        same = np.all(rows[:, : A.shape[1]] == A[0], axis=1)
        assert int(np.count_nonzero(same & (mip.row_upper == 0.0))) == kept


@pytest.mark.parametrize(("first", "switches_it"), [(-0.4, True), (-0.6, False)])
def test_a_row_that_limits_something_where_p_is_0_stays(first, switches_it):
    """2c <= 2y + 1 - p: with c = 0 at p = 0 it says nothing there as long as y is at least -1/2."""
    before = tables(linear_options(first, big=1.0))
    row = before.problem.mip.A.toarray()[1]
    rows = with_products(before).problem.mip.A.toarray()[:, : row.size]
    assert np.any(np.all(rows == row, axis=1)) != switches_it


def test_nothing_to_do(monkeypatch):
    problem = linear_options()
    before = tables(problem)
    monkeypatch.setattr(switches, "MOST_PRODUCTS", 1)
    assert with_products(before) is before
    plain = dt.Problem(dt.Mip(cost=[1.0, 1.0], A=[[1.0, 1.0]], row_lower=1.0, row_upper=np.inf, integer=True))
    alone = Reformulated(plain)
    assert with_products(alone) is alone
