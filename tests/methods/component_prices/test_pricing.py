"""Pricing: what it finds is true and valid, and better than where it began."""

from dataclasses import replace

import numpy as np
import pytest

import dovetail as dt
from dovetail.methods.component_prices.pricing import Pricing, _cheapest_class
from dovetail.run.budget import Budget
from tests.methods.component_prices.workshop import opened, workshops
from tests.small import linear_net


def answers(made, cost, z, steps=8, budget=None):
    found = []
    pricing = Pricing(made.context, made.scaled, made.parts)
    pricing.answer(cost, z, steps, budget or Budget(20.0), lambda point: found.append(point.copy()))
    return found


@pytest.mark.parametrize("options", [{}, {"spare": True}, {"equality": True}])
def test_columns_are_true_and_valid(options):
    made = opened(workshops(seed=1, **options))
    mip, parts = made.problem.mip, made.parts
    start = made.problem.predict(np.full(mip.n_columns, 0.1))
    found = answers(made, made.scaled.host.cost, start)
    assert found
    valid = 0
    for z in found:
        assert made.problem.predict(z) == pytest.approx(z, abs=1e-9)  # outputs are the networks' own
        numbers = made.pool.add(z)
        activity = mip.A @ z
        for c in np.flatnonzero(numbers >= 0):
            valid += 1
            rows = parts.row_owner == c
            assert np.all(activity[rows] <= mip.row_upper[rows] + 1e-6)
            assert np.all(activity[rows] >= mip.row_lower[rows] - 1e-6)
    assert valid >= parts.count
    if "spare" in options:  # what nobody owns is held
        assert all(z[-1] == pytest.approx(start[-1]) for z in found)


@pytest.mark.parametrize("seed", range(3))
def test_every_component_gets_a_better_point_than_it_had(seed):
    """And none better than a fine grid of its own two inputs allows."""
    made = opened(workshops(seed=seed))
    rng = np.random.default_rng(seed)
    cost = made.scaled.host.cost + 0.1 * rng.normal(size=made.problem.mip.n_columns)
    start = made.problem.predict(np.full(made.problem.mip.n_columns, -0.1))
    for z in answers(made, cost, start, steps=25):
        made.pool.add(z)
    priced = np.array(
        [cost[made.pool.members[c]] @ p for c, p in zip(made.pool.owner, made.pool.points, strict=True)]
    )
    axis = np.linspace(-1, 1, 81)
    for c in range(made.parts.count):
        members = made.pool.members[c]
        best = priced[made.pool.owner == c].min()
        assert best <= cost[members] @ start[members] + 1e-9
        assert best >= grid_truth(made, c, cost, axis) - 0.25  # a grid step is 0.025


def grid_truth(made, c, cost, axis):
    """The least cost of one component's valid points over a grid of its inputs."""
    members = made.pool.members[c]
    mip = made.problem.mip
    rows = np.flatnonzero(made.parts.row_owner == c)
    A = mip.A.toarray()[rows]
    regression, classifier = made.problem.blocks
    (i,) = [k for k in range(regression.samples) if made.parts.owner[regression.outputs[k, 0]] == c]
    X = np.array(np.meshgrid(axis, axis)).reshape(2, -1).T
    Z = np.zeros((len(X), mip.n_columns))
    Z[:, regression.inputs[i]] = X
    Z[:, regression.outputs[i]] = regression.predictor.predict(X)
    Z[:, classifier.outputs[i]] = classifier.decode(classifier.predictor.predict(X))
    good = np.all((mip.row_upper[rows] >= Z @ A.T) & (mip.row_lower[rows] <= Z @ A.T), axis=1)
    return float((Z[good][:, members] @ cost[members]).min())


def test_components_do_not_feel_each_other():
    """The answer of one component is the same, whatever the others pay."""
    made = opened(workshops(n=3, seed=2))
    start = made.problem.predict(np.full(made.problem.mip.n_columns, 0.1))
    cost = made.scaled.host.cost.copy()
    other = cost.copy()
    first = made.pool.members[0]
    rest = np.setdiff1d(np.arange(cost.size), first)
    other[rest] = -3.0 * other[rest]
    one, two = answers(made, cost, start, steps=3), answers(made, other, start, steps=3)
    assert one[0][first] == pytest.approx(two[0][first], abs=1e-6)


def test_coupling_rows_are_not_felt():
    """A row that holds all first inputs together where they are, and a cost that draws them up."""
    problem = workshops(n=3, seed=2)
    start = problem.predict(np.full(problem.mip.n_columns, 0.1))
    upper = problem.mip.row_upper.copy()
    upper[0] = 0.3
    tight = opened(problem.derived(replace(problem.mip, row_upper=upper), problem.blocks))
    cost = tight.scaled.host.cost.copy()
    cost[[0, 2, 4]] = -5.0
    found = answers(tight, cost, start, steps=1)[0]
    assert np.all(found[[0, 2, 4]] > 0.15)
    assert found[[0, 2, 4]].sum() > 0.3


def test_the_class_that_pays_is_tried():
    # one component, class 1 where x >= 0.5: from x = 0 pricing goes over if 1 pays, and stays below if not
    problem = dt.Problem(dt.Mip(cost=[0.0, 0.0], lower=[0.0, 0.0], upper=1.0))
    problem.add_predictor(linear_net([1.0], -0.5), [0], [1], output_type="classification")
    made = opened(problem)
    over = answers(made, np.array([0.1, -5.0]), np.zeros(2), steps=12)
    assert any(z[1] == 1.0 for z in over)
    under = answers(made, np.array([-0.1, 5.0]), problem.predict(np.ones(2)), steps=12)
    assert any(z[1] == 0.0 for z in under)


def test_without_time_nothing_is_found():
    made = opened(workshops())
    start = np.zeros(made.problem.mip.n_columns)
    assert answers(made, made.scaled.host.cost, start, budget=Budget(0.0)) == []


def test_the_chosen_class_is_the_cheapest_that_bounds_allow():
    def cheapest(cost, lower=(0, 0, 0), upper=(1, 1, 1)):
        n = len(cost)
        return _cheapest_class(
            np.array(cost, float), np.arange(n), np.array(lower[:n], float), np.array(upper[:n], float)
        ).tolist()

    assert cheapest([3.0, -1.0, 2.0]) == [0.0, 1.0, 0.0]
    assert cheapest([3.0, -1.0, 2.0], upper=(1, 0, 1)) == [0.0, 0.0, 1.0]


def test_the_chosen_class_is_one_class_even_where_a_bound_demands_another():
    """A class that its bound holds at 1 is the only one that can be."""
    lower, upper = np.array([1.0, 0.0, 0.0]), np.ones(3)
    assert _cheapest_class(np.array([3.0, -1.0, 2.0]), np.arange(3), lower, upper).tolist() == [1.0, 0.0, 0.0]
