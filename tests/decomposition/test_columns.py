"""The LP over columns: linprog's value on the same columns, and prices that price."""

import numpy as np
import pytest
from scipy.optimize import linprog

from dovetail.run.budget import Budget
from tests.conftest import FULL
from tests.methods.component_prices.workshop import completed, opened, workshops

VARIANTS = ({}, {"spare": True}, {"equality": True})


def relaxed(made, level_at=None):
    """The LP over the pool, rows missed at a hundred times the dearest column."""
    highest = 100.0 * np.max(np.abs(made.pool.cost), initial=1e-6) / made.pool.scale
    return made.pool.relaxed(Budget(10.0), highest, level_at=level_at)[1]


def by_linprog(made):
    """Value and theta of the master LP with every coupling row hard, or None where it is infeasible."""
    pool, host = made.pool, made.scaled.host
    shared = np.flatnonzero(made.parts.shared)
    pick = np.zeros((made.parts.count, pool.size + shared.size))
    pick[pool.owner, np.arange(pool.size)] = 1.0
    found = linprog(
        np.concatenate([pool.cost, host.cost[shared]]),
        A_ub=np.hstack([pool.use.T, pool.G.toarray()[:, shared]]),
        b_ub=pool.limit,
        A_eq=pick,
        b_eq=np.ones(made.parts.count),
        bounds=[(0, None)] * pool.size + list(zip(host.lower[shared], host.upper[shared], strict=True)),
    )
    return found.fun if found.status == 0 else None


@pytest.mark.parametrize("options", VARIANTS)
@pytest.mark.parametrize("seed", range(4 if FULL else 2))
def test_the_masters_value_is_linprogs(options, seed):
    made = opened(workshops(seed=seed, **options), seed=seed, points=40)
    master = relaxed(made)
    truth = by_linprog(made)
    assert truth is not None
    assert master.missed <= 1e-9
    assert master.value == pytest.approx(truth, abs=1e-6)
    pool, host = made.pool, made.scaled.host
    shared = np.flatnonzero(made.parts.shared)
    # theta is a choice: weights of each component add up to one, rows hold
    assert np.bincount(pool.owner, master.weight) == pytest.approx(np.ones(made.parts.count))
    use = master.weight @ pool.use + pool.G[:, shared] @ master.shared
    assert np.all(use <= pool.limit + 1e-6)
    assert pool.cost @ master.weight + host.cost[shared] @ master.shared == pytest.approx(truth, abs=1e-6)


@pytest.mark.parametrize("options", VARIANTS)
def test_prices_price(options):
    """Dual feasible, complementary, and worth exactly the value: a proof that both are right."""
    made = opened(workshops(seed=1, **options), seed=1, points=40)
    master = relaxed(made)
    pool, host = made.pool, made.scaled.host
    shared = np.flatnonzero(made.parts.shared)
    prices = master.prices
    assert master.on_cost == 1.0
    assert np.all(prices >= 0.0)
    reduced = master.reduced_cost(pool)
    assert np.all(reduced >= -1e-7)
    assert np.max(np.abs(reduced * master.weight)) <= 1e-6
    slack = pool.limit - master.weight @ pool.use - pool.G[:, shared] @ master.shared
    assert np.max(np.abs(slack * prices)) <= 1e-6
    # shared columns answer the prices from their bounds
    own = host.cost[shared] + pool.G.toarray()[:, shared].T @ prices
    best = np.minimum(own * host.lower[shared], own * host.upper[shared])
    dual = master.least.sum() - prices @ pool.limit + best.sum()
    assert dual == pytest.approx(master.value, abs=1e-6)
    # the price of a column is its cost plus what it uses, priced
    z = completed(made.scaled, np.random.default_rng(0))
    cost, use = pool.measure(z)
    rest = np.where(made.parts.shared, z, 0.0)
    priced = host.cost + pool.G.T @ prices
    expected = (cost + use @ prices).sum() + priced @ rest
    assert priced @ z == pytest.approx(expected)


def test_a_growing_pool_is_as_good_as_a_new_master():
    made = opened(workshops(n=5, seed=3), seed=3, points=10)
    rng = np.random.default_rng(9)
    values = []
    for k in range(6):
        master = relaxed(made)
        truth = by_linprog(made)
        if truth is not None:
            assert master.value == pytest.approx(truth, abs=1e-6)
            values.append(truth)
        if k == 3:
            made.pool.keep(np.flatnonzero((master.weight > 1e-9) | (np.arange(made.pool.size) % 2 == 0)))
        for _ in range(6):
            made.pool.add(completed(made.scaled, rng))
    assert values
    assert np.all(np.diff(values) <= 1e-9)  # one LP may be solved to other last digits than the next


def test_rows_that_cannot_hold_are_missed_at_a_price():
    made = opened(workshops(seed=0), points=20)
    made.pool.limit[:] -= 50.0  # no choice is within
    assert by_linprog(made) is None
    master = relaxed(made)
    assert master.missed > 0.0
    assert master.value > np.abs(made.pool.cost).max()
    assert np.any(master.prices > 0.0)


def test_a_component_without_columns_has_no_solution():
    made = opened(workshops())
    assert relaxed(made) is None
    z = made.problem.predict(np.full(made.problem.mip.n_columns, 0.1))
    made.pool.add(z)
    made.pool.keep(np.arange(1, made.pool.size))
    assert relaxed(made) is None


def test_the_level_lp_says_how_far_limits_could_be_lowered():
    made = opened(workshops(seed=1), seed=1, points=40)
    master = relaxed(made)
    at = master.value + 0.5
    level = relaxed(made, level_at=at)
    pool = made.pool
    pick = np.zeros((made.parts.count, pool.size + 1))
    pick[pool.owner, np.arange(pool.size)] = 1.0
    cost = np.append(np.zeros(pool.size), 1.0)
    truth = linprog(
        cost,
        A_ub=np.vstack([np.hstack([pool.use.T, -pool.scale[:, None]]), np.append(pool.cost, 0.0)[None]]),
        b_ub=np.append(pool.limit, at),
        A_eq=pick,
        b_eq=np.ones(made.parts.count),
        bounds=[(0, None)] * pool.size + [(-1, None)],
    )
    use = level.weight @ pool.use
    assert np.max((use - pool.limit) / pool.scale) == pytest.approx(truth.fun, abs=1e-6)
    assert pool.cost @ level.weight <= at + 1e-6
    assert np.all(level.reduced_cost(pool) >= -1e-7)
    # and the ordinary program is back afterwards
    assert relaxed(made).value == pytest.approx(master.value, abs=1e-9)
