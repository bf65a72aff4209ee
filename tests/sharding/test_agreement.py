"""Rows over all shards: what data use of them in each is taken off once."""

from functools import partial

import numpy as np
import pytest

import dovetail as dt
from dovetail.core.check import Violation, Worst
from dovetail.decomposition.shard import PricingOptions
from dovetail.sharding.own_share import OwnShare, ShardAnswer
from dovetail.sharding.shard_source import ShardSource
from dovetail.sharding.solve_shards import Agreement
from dovetail.testing.problems import random_mlp

SPENT = [np.linspace(0.0, 0.1, 60), np.linspace(0.0, 0.3, 50)]


def with_data(number):
    """What is spent already counts; at least 10 have to be."""
    spent = SPENT[number]
    problem = dt.Problem(sense="min")
    made = problem.add_template(
        len(spent),
        {
            "spent": dt.Family(fixed=spent),
            "offer": dt.Family(upper=1.0),
            "out": dt.Family(lower=-np.inf, cost=1),
        },
        coupling=[
            dt.FamilyRow({"offer": 1.0, "spent": 2.0}, lower=10.0, upper=40.0, name="budget"),
            dt.FamilyRow({"offer": -1.0}, lower=-50.0, name="floor"),
        ],
    )
    problem.add_predictor(random_mlp(2, seed=1), made["spent", "offer"], made["out"])
    return problem


@pytest.fixture(scope="module")
def agreed():
    shares = [OwnShare(ShardSource.of(with_data, k, k), PricingOptions(), "cpu") for k in range(2)]
    return Agreement.of([share.facts() for share in shares])


def test_sides_are_those_of_the_whole_less_what_all_data_use(agreed):
    used = 2.0 * sum(spent.sum() for spent in SPENT)
    assert agreed.totals == [60, 50]
    assert agreed.sign == 1.0
    np.testing.assert_allclose(agreed.limit, [40.0 - used, -10.0 + used, 50.0])


def test_the_worst_of_all_shards_and_of_the_rows_over_them(agreed):
    said = partial(ShardAnswer, 1.0)
    fine, bad = Violation(), Violation(prediction=Worst(0.5, "block0, sample 3, output 0"))
    within = [said(np.array([15.0, -15.0]), fine), said(np.array([20.0, -20.0]), fine)]
    assert agreed.violation(within).within()
    assert agreed.activity(within) == {"budget": 35.0, "floor": -35.0}
    beyond = [said(np.array([15.0, -15.0]), fine), said(np.array([26.0, -20.0]), fine)]
    assert agreed.violation(beyond).missed == "row budget by 1.0e+00"
    assert agreed.violation([within[0], said(np.array([20.0, -20.0]), bad)]).missed.startswith(
        "shard 1: block0"
    )


def test_a_lower_limit_is_met_by_all_shards_together(tmp_path):
    result = dt.solve_shards(with_data, range(2), out=tmp_path, log=False)
    assert result.violation.within()
    assert 10.0 - 1e-6 <= result.activity["budget"] <= 40.0 + 1e-6
    assert result.activity["floor"] >= -50.0 - 1e-6
