"""The pool: columns are true points of their components, measured as numpy measures them."""

import numpy as np
import pytest

from dovetail.structure.components import NOBODY
from tests.contexts import breach
from tests.methods.component_prices.workshop import completed, opened, workshops


def coupled(mip, parts):
    """The coupling rows as G z <= h, put together row by row."""
    G, h = [], []
    rows = np.flatnonzero(parts.row_owner == NOBODY)
    for i in rows:
        if np.isfinite(mip.row_upper[i]):
            G.append(mip.A.toarray()[i])
            h.append(mip.row_upper[i])
    for i in rows:
        if np.isfinite(mip.row_lower[i]):
            G.append(-mip.A.toarray()[i])
            h.append(-mip.row_lower[i])
    return np.array(G), np.array(h)


@pytest.mark.parametrize("options", [{}, {"spare": True}, {"equality": True}])
def test_coupling_rows_are_both_sides_of_what_nobody_owns(options):
    made = opened(workshops(**options))
    G, h = coupled(made.scaled.host, made.parts)
    assert made.pool.G.toarray() == pytest.approx(G)
    assert made.pool.limit == pytest.approx(h)
    assert np.all(made.pool.scale > 0)
    assert made.parts.count == 4
    assert bool(made.parts.shared.any()) == ("spare" in options)


def test_a_limit_of_nothing_has_a_scale_all_the_same():
    from dataclasses import replace

    problem = workshops()
    upper = problem.mip.row_upper.copy()
    upper[0] = 0.0
    made = opened(problem.derived(replace(problem.mip, row_upper=upper), problem.blocks))
    assert made.pool.limit[0] == 0.0
    assert made.pool.scale[0] > 0.1


@pytest.mark.parametrize("spare", [False, True])
def test_cost_and_use_add_up_to_the_whole(spare):
    made = opened(workshops(spare=spare))
    rng = np.random.default_rng(1)
    host, shared = made.scaled.host, made.parts.shared
    for _ in range(10):
        z = completed(made.scaled, rng)
        cost, activity = made.pool.measure(z)
        rest = np.where(shared, z, 0.0)
        assert cost.sum() + host.cost @ rest == pytest.approx(host.cost @ z)
        G = made.pool.G
        assert activity.sum(axis=0) + G @ rest == pytest.approx(G @ z)
        for c in range(made.parts.count):  # and each component's part is its own
            own = np.where(made.parts.owner == c, z, 0.0)
            assert cost[c] == pytest.approx(host.cost @ own)
            assert activity[c] == pytest.approx(G @ own)


def test_columns_are_exactly_the_components_that_hold():
    """Against a judge of its own: bounds, integers, and the rows of one component."""
    made = opened(workshops())
    rng = np.random.default_rng(2)
    kept = refused = 0
    for _ in range(60):
        z = completed(made.scaled, rng)
        numbers = made.pool.add(z)
        for c in range(made.parts.count):
            mip, owner = made.problem.mip, made.parts.owner
            mine = owner == c
            rows = made.parts.row_owner == c
            activity = mip.A @ z
            good = np.all((z >= mip.lower - 1e-7)[mine]) and np.all((z <= mip.upper + 1e-7)[mine])
            good = good and np.all(activity[rows] <= mip.row_upper[rows] + 1e-7)
            good = good and np.all(activity[rows] >= mip.row_lower[rows] - 1e-7)
            assert (numbers[c] >= 0) == good
            if good:
                kept += 1
                k = numbers[c]
                assert made.pool.owner[k] == c
                assert made.pool.points[k] == pytest.approx(z[made.pool.members[c]])
                own = np.where(mine, z, 0.0)
                assert made.pool.cost[k] == pytest.approx(made.scaled.host.cost @ own)
                assert made.pool.use[k] == pytest.approx(made.pool.G @ own)
            else:
                refused += 1
    assert kept > 20
    assert refused > 0
    assert made.pool.size == len(made.pool.points) == made.pool.cost.size == len(made.pool.use)


def test_a_component_with_a_fraction_where_an_integer_belongs_is_refused():
    from dataclasses import replace

    problem = workshops()
    integer = np.zeros(problem.mip.n_columns, dtype=bool)
    integer[0] = True
    made = opened(problem.derived(replace(problem.mip, integer=integer), problem.blocks))
    z = problem.predict(np.zeros(problem.mip.n_columns))
    z[0] = 0.4
    numbers = made.pool.add(problem.predict(z))
    assert numbers[made.parts.owner[0]] == -1
    assert np.count_nonzero(numbers >= 0) == made.parts.count - 1


def test_the_same_column_is_known_again():
    made = opened(workshops())
    z = made.problem.predict(np.full(made.problem.mip.n_columns, 0.1))
    first = made.pool.add(z)
    assert np.all(first >= 0)
    assert made.pool.add(z).tolist() == first.tolist()
    assert made.pool.size == made.parts.count
    z[0] += 0.05  # one component moves
    second = made.pool.add(made.problem.predict(z))
    assert np.count_nonzero(second != first) == 1
    assert made.pool.size == made.parts.count + 1


def test_forgetting_keeps_the_rest_as_it_was():
    made = opened(workshops(), points=12)
    pool = made.pool
    which = np.arange(0, pool.size, 3)
    before = (pool.owner[which], pool.cost[which], pool.use[which], [pool.points[k] for k in which])
    pool.keep(which)
    assert pool.size == which.size
    assert np.array_equal(pool.owner, before[0])
    assert np.array_equal(pool.cost, before[1])
    assert np.array_equal(pool.use, before[2])
    assert all(np.array_equal(a, b) for a, b in zip(pool.points, before[3], strict=True))
    # what was kept is known under its new number, what was forgotten may come again
    z = np.zeros(made.problem.mip.n_columns)
    z[pool.members[pool.owner[0]]] = pool.points[0]
    size = pool.size
    assert pool.add(made.problem.predict(z))[pool.owner[0]] == 0
    assert pool.size == size + made.parts.count - 1


def test_points_and_combinations_put_components_in():
    made = opened(workshops(spare=True), points=30)
    pool = made.pool
    base = made.problem.predict(np.full(made.problem.mip.n_columns, 0.3))
    rng = np.random.default_rng(4)
    chosen = np.array([rng.choice(np.flatnonzero(pool.owner == c)) for c in range(made.parts.count)])
    z = pool.point(chosen, base)
    cost, activity = pool.measure(z)
    assert cost == pytest.approx(pool.cost[chosen])
    assert activity == pytest.approx(pool.use[chosen])
    assert z[-1] == base[-1]
    assert made.problem.predict(z) == pytest.approx(z, abs=1e-9)
    private = made.parts.private_rows
    activity = made.problem.mip.A @ z
    assert np.all(activity[private] <= made.problem.mip.row_upper[private] + 1e-6)
    weights = np.zeros(pool.size)
    for c in range(made.parts.count):
        weights[pool.owner == c] = rng.dirichlet(np.ones(np.count_nonzero(pool.owner == c)))
    mixed = pool.convex_combination(weights, base)
    cost, activity = pool.measure(mixed)
    for c in range(made.parts.count):
        mine = pool.owner == c
        assert cost[c] == pytest.approx(weights[mine] @ pool.cost[mine], abs=1e-6)
        assert activity[c] == pytest.approx(weights[mine] @ pool.use[mine], abs=1e-6)
    assert mixed[-1] == base[-1]


def test_a_whole_feasible_point_is_one_column_each():
    made = opened(workshops())
    z = made.problem.predict(np.full(made.problem.mip.n_columns, -0.2))
    assert breach(made.problem.mip, z) <= 1e-9
    numbers = made.pool.add(z)
    assert np.all(numbers >= 0)
    assert made.pool.point(numbers, np.zeros_like(z)) == pytest.approx(z)
