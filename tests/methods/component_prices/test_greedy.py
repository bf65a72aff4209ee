"""Greedy choices: rows are never left, cost never rises, and easy cases are solved."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from dovetail.methods.component_prices import master as greedy
from dovetail.methods.component_prices.pool import ColumnPool


def pool_of(owner, cost, activity):
    """All that the functions read of a pool, ranked as the real one ranks."""
    pool = SimpleNamespace(
        owner=np.array(owner),
        cost=np.array(cost, float),
        activity=np.array(activity, float),
        components=SimpleNamespace(count=1 + max(owner, default=-1)),
    )
    pool.ranked = partial(ColumnPool.ranked, pool)
    return pool


def random_pool(rng):
    count, rows = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    size = int(rng.integers(2, 7)) * count
    owner = np.concatenate([np.arange(count), rng.integers(0, count, size - count)])
    pool = pool_of(owner, np.round(rng.normal(size=size), 2), rng.uniform(0, 2, (size, rows)))
    chosen = np.array([rng.choice(np.flatnonzero(owner == c)) for c in range(count)])
    room = pool.activity[chosen].sum(axis=0) + rng.uniform(0, 1.5, rows)
    return pool, chosen, room, rng.uniform(0, 1, rows), count


def is_a_choice(pool, chosen, count):
    return pool.owner[chosen].tolist() == list(range(count))


def test_improving_stays_within_the_rows_and_never_costs_more():
    rng = np.random.default_rng(0)
    gained = 0
    for _ in range(300):
        pool, chosen, room, prices, count = random_pool(rng)
        before = chosen.copy()
        better = greedy.improve(pool, chosen, room, prices)
        assert np.array_equal(chosen, before)
        assert is_a_choice(pool, better, count)
        assert np.all(pool.activity[better].sum(axis=0) <= room + 1e-8)
        assert pool.cost[better].sum() <= pool.cost[chosen].sum() + 1e-8
        gained += pool.cost[better].sum() < pool.cost[chosen].sum() - 1e-6
        # nothing simple is left: no single swap gains within the rows
        for k in range(pool.owner.size):
            swapped = better.copy()
            swapped[pool.owner[k]] = k
            fits = np.all(pool.activity[swapped].sum(axis=0) <= room)
            assert not fits or pool.cost[swapped].sum() >= pool.cost[better].sum() - 1e-8
    assert gained > 100


def test_rounding_the_lp_stays_within_the_rows_and_never_costs_more():
    rng = np.random.default_rng(1)
    for _ in range(300):
        pool, chosen, room, prices, count = random_pool(rng)
        theta = np.where(rng.random(pool.owner.size) < 0.4, rng.random(pool.owner.size), 0.0)
        better = greedy.round_lp(pool, theta, chosen, room, prices)
        assert is_a_choice(pool, better, count)
        assert np.all(pool.activity[better].sum(axis=0) <= room + 1e-8)
        assert pool.cost[better].sum() <= pool.cost[chosen].sum() + 1e-8


def test_without_limits_every_component_takes_its_cheapest():
    rng = np.random.default_rng(2)
    for _ in range(50):
        pool, chosen, room, prices, count = random_pool(rng)
        best = sum(pool.cost[pool.owner == c].min() for c in range(count))
        everything = np.full(room.size, np.inf)
        assert pool.cost[greedy.improve(pool, chosen, everything, prices)].sum() == pytest.approx(best)


def test_equal_cost_for_less_makes_room_for_others():
    # component 0 can do the same for less; only then has component 1 room for its cheap column
    pool = pool_of([0, 0, 1, 1], [1.0, 1.0, 5.0, 0.0], [[3.0], [1.0], [0.0], [2.0]])
    chosen = greedy.improve(pool, np.array([0, 2]), np.array([3.0]), np.array([1.0]))
    assert chosen.tolist() == [1, 3]


def test_the_most_gain_per_resource_comes_first():
    # room for one swap only: the one that gains 3 for 1, not the one that gains 4 for 2
    pool = pool_of([0, 0, 1, 1], [4.0, 0.0, 3.0, 0.0], [[0.0], [2.0], [0.0], [1.0]])
    chosen = greedy.improve(pool, np.array([0, 2]), np.array([2.0]), np.array([1.0]))
    assert chosen.tolist() == [0, 3]


def test_the_column_that_uses_least():
    rng = np.random.default_rng(3)
    for _ in range(100):
        pool, _, _, prices, count = random_pool(rng)
        chosen = greedy.least_use(pool, prices, count)
        use = pool.activity @ prices
        assert is_a_choice(pool, chosen, count)
        for c, k in enumerate(chosen):
            assert use[k] == use[pool.owner == c].min()


@pytest.mark.parametrize("owner", [[], [0], [1], [0, 2], [1, 2], [0, 1]])
def test_a_component_without_a_column_is_no_choice(owner):
    pool = pool_of(np.array(owner, dtype=np.int64), np.zeros(len(owner)), np.zeros((len(owner), 1)))
    assert greedy.least_use(pool, np.ones(1), 3) is None
