"""The LP over columns: linprog's value on the same columns, and prices that price."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

from dovetail.decomposition.choice import Columns, SharedColumns
from dovetail.run.budget import Budget
from tests.conftest import FULL

VARIANTS = ({}, {"spare": True}, {"equality": True})


def made(seed, *, spare=False, equality=False, per_block=12):
    """Random columns of four blocks under three rows that some choice meets, perhaps with a shared column."""
    rng = np.random.default_rng(seed)
    count, rows = 4, 3
    owner = np.repeat(np.arange(count), per_block)
    use = rng.uniform(0.0, 1.0, (owner.size, rows))
    limit = np.array([use[owner == c][:4].mean(axis=0) for c in range(count)]).sum(axis=0)
    if equality:
        use, limit = np.hstack([use, -use[:, :1]]), np.append(limit, -limit[0])
    shared = SharedColumns.none(limit.size)
    if spare:
        helps = np.where(np.arange(limit.size) < 2, -0.5, 0.0)[:, None]
        shared = SharedColumns(
            np.array([0.7]), sp.csr_array(helps), np.zeros(1), np.full(1, 2.0), np.zeros(1, bool)
        )
    cost = rng.normal(size=owner.size) - use.sum(axis=1)
    return Columns(count, limit, np.maximum(1.0, np.abs(limit)), shared, owner, cost, use)


def relaxed(columns, level_at=None):
    """The LP, rows missed at a hundred times the dearest column."""
    highest = 100.0 * np.max(np.abs(columns.cost)) / columns.scale
    return columns.relaxed(Budget(10.0), highest, level_at=level_at)[1]


def picked(columns):
    pick = np.zeros((columns.count, columns.size))
    pick[columns.owner, np.arange(columns.size)] = 1.0
    return pick


def by_linprog(columns):
    """The LP's value with every coupling row hard, or None where it is infeasible."""
    shared = columns.shared
    found = linprog(
        np.concatenate([columns.cost, shared.cost]),
        A_ub=np.hstack([columns.use.T, shared.use.toarray()]),
        b_ub=columns.limit,
        A_eq=np.hstack([picked(columns), np.zeros((columns.count, shared.cost.size))]),
        b_eq=np.ones(columns.count),
        bounds=[(0, None)] * columns.size + list(zip(shared.lower, shared.upper, strict=True)),
    )
    return found.fun if found.status == 0 else None


@pytest.mark.parametrize("options", VARIANTS)
@pytest.mark.parametrize("seed", range(40 if FULL else 4))
def test_the_value_is_linprogs_and_prices_price(options, seed):
    """Dual feasible, complementary, and worth exactly the value: a proof that both are right."""
    columns = made(seed, **options)
    found, truth, shared = relaxed(columns), by_linprog(columns), columns.shared
    assert truth is not None
    assert found.missed <= 1e-9 and found.on_cost == 1.0
    assert found.value == pytest.approx(truth, abs=1e-6)
    assert np.bincount(columns.owner, found.weight) == pytest.approx(np.ones(columns.count))
    slack = columns.limit - found.weight @ columns.use - shared.use @ found.shared
    assert np.all(slack >= -1e-6)
    assert columns.cost @ found.weight + shared.cost @ found.shared == pytest.approx(truth, abs=1e-6)
    reduced = found.reduced_cost(columns)
    assert np.all(found.prices >= 0.0) and np.all(reduced >= -1e-7)
    assert np.max(np.abs(reduced * found.weight)) <= 1e-6
    assert np.max(np.abs(slack * found.prices)) <= 1e-6
    own = shared.cost + shared.use.T @ found.prices
    best = np.minimum(own * shared.lower, own * shared.upper)
    dual = found.least.sum() - found.prices @ columns.limit + best.sum()
    assert dual == pytest.approx(found.value, abs=1e-6)


def test_rows_that_cannot_hold_are_missed_at_a_price():
    columns = made(0)
    columns.limit[:] -= 50.0  # no choice is within
    assert by_linprog(columns) is None
    found = relaxed(columns)
    assert found.missed > 0.0
    assert found.value > np.abs(columns.cost).max()
    assert np.any(found.prices > 0.0)


def test_a_block_without_columns_has_no_solution():
    columns = made(0)
    without = columns.owner != 2
    some = columns.owner[without], columns.cost[without], columns.use[without]
    assert relaxed(Columns(4, columns.limit, columns.scale, columns.shared, *some)) is None


def test_the_level_lp_says_how_far_limits_could_be_lowered():
    columns = made(1)
    first = relaxed(columns)
    at = first.value + 0.5
    level = relaxed(columns, level_at=at)
    truth = linprog(
        np.append(np.zeros(columns.size), 1.0),
        A_ub=np.vstack(
            [np.hstack([columns.use.T, -columns.scale[:, None]]), np.append(columns.cost, 0.0)[None]]
        ),
        b_ub=np.append(columns.limit, at),
        A_eq=np.hstack([picked(columns), np.zeros((columns.count, 1))]),
        b_eq=np.ones(columns.count),
        bounds=[(0, None)] * columns.size + [(-1, None)],
    )
    use = level.weight @ columns.use
    assert np.max((use - columns.limit) / columns.scale) == pytest.approx(truth.fun, abs=1e-6)
    assert columns.cost @ level.weight <= at + 1e-6
    assert np.all(level.reduced_cost(columns) >= -1e-7)
