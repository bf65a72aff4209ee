"""The restricted master: the best choice of one column per component, by brute force."""

import itertools

import numpy as np
import pytest

from dovetail.run.budget import Budget
from tests.conftest import FULL
from tests.contexts import breach
from tests.methods.component_prices.workshop import opened, workshops


def brute_force(made):
    """The cheapest choice of one column per component within the rows (no shared columns)."""
    pool, coupling = made.pool, made.coupling
    groups = [np.flatnonzero(pool.owner == c) for c in range(made.parts.count)]
    best, choice = np.inf, None
    for chosen in itertools.product(*groups):
        chosen = np.array(chosen)
        cost = pool.cost[chosen].sum()
        if cost < best and np.all(pool.activity[chosen].sum(axis=0) <= coupling.h + 1e-9):
            best, choice = cost, chosen
    return best, choice


@pytest.mark.parametrize("seed", range(6 if FULL else 3))
def test_the_restricted_master_is_brute_force(seed):
    made = opened(workshops(n=3, seed=seed), seed=seed, points=12)
    made.coupling.h[:2] *= 0.3  # so that the rows bite
    made.master.rebuild()
    master = made.master.solve(Budget(10.0))
    truth, _ = brute_force(made)
    nothing = np.empty(0, dtype=np.int64)
    found = made.restricted.solve(master, nothing, Budget(10.0), made.pool.size)
    assert (found is None) == (not np.isfinite(truth))
    if found is not None:
        chosen, shared = found
        assert shared.size == 0
        assert sorted(made.pool.owner[chosen]) == [0, 1, 2]
        assert made.pool.cost[chosen].sum() == pytest.approx(truth, abs=1e-6)
        assert np.all(made.pool.activity[chosen].sum(axis=0) <= made.coupling.h + 1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_the_restricted_master_from_a_known_choice_leaves_nothing_out_that_pays(seed):
    """Columns that cannot pay at the prices are dropped: the best choice is never among them."""
    made = opened(workshops(n=3, seed=seed), seed=seed, points=10)
    x = made.problem.predict(np.full(made.problem.mip.n_columns, -0.2))
    known = made.pool.add(x)
    assert np.all(known >= 0)
    assert made.context.incumbent.admit(x, "test") is not None
    master = made.master.solve(Budget(10.0))
    truth, _ = brute_force(made)
    chosen, _ = made.restricted.solve(master, known, Budget(10.0), made.pool.size)
    assert made.pool.cost[chosen].sum() == pytest.approx(truth, abs=1e-6)
    fewer, _ = made.restricted.solve(master, known, Budget(10.0), 1)
    assert truth - 1e-6 <= made.pool.cost[fewer].sum() <= made.pool.cost[known].sum() + 1e-6


@pytest.mark.parametrize("seed", range(4))
def test_the_restricted_master_from_the_second_best_choice_finds_the_best(seed):
    """Here the limit on what can still pay is as tight as it gets."""
    made = opened(workshops(n=3, seed=seed), seed=seed, points=10)
    assert made.context.incumbent.admit(np.full(made.problem.mip.n_columns, -0.2), "test") is not None
    pool, coupling = made.pool, made.coupling
    groups = [np.flatnonzero(pool.owner == c) for c in range(3)]
    every = np.array(list(itertools.product(*groups)))
    use = pool.activity[every].sum(axis=1)
    coupling.h[:2] = np.quantile(use[:, :2], 0.4, axis=0)  # two rows that a part of the choices holds
    every = every[np.all(use <= coupling.h, axis=1)]
    cost = pool.cost[every].sum(axis=1)
    assert cost.size > 1
    best, second = np.sort(cost)[:2]
    known = every[np.argsort(cost, kind="stable")[1]]
    master = made.master.solve(Budget(10.0))
    assert master.value <= best + 1e-6
    chosen, _ = made.restricted.solve(master, known, Budget(10.0), pool.size)
    assert pool.cost[chosen].sum() == pytest.approx(best, abs=1e-6)
    assert best < second


def test_the_restricted_master_chooses_shared_columns_too():
    made = opened(workshops(n=3, seed=1, spare=True), seed=1, points=15)
    master = made.master.solve(Budget(10.0))
    chosen, shared = made.restricted.solve(master, np.empty(0, dtype=np.int64), Budget(10.0), 100)
    z = made.problem.predict(np.zeros(made.problem.mip.n_columns))
    z[made.parts.shared] = shared
    assert breach(made.problem.mip, made.pool.point(chosen, z)) <= 1e-6
