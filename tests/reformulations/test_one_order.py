"""Problems that list the same things in another order are the same problem after the presolve."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import dovetail as dt
from dovetail.bounds.box import propagate
from dovetail.core.problem import Problem
from dovetail.reformulations.one_order import OneOrder
from dovetail.reformulations.presolve import Presolve
from dovetail.reformulations.reformulated import Reformulated, reformulate
from dovetail.structure.components import components
from dovetail.structure.templates import found_templates
from dovetail_study.zoo import build as made
from dovetail_study.zoo.rewriting import rewritten
from tests.conftest import sample
from tests.small import random_mlp

build = cache(made)
"""Problems are only read here."""


def in_order(problem: Problem) -> Reformulated:
    start = Reformulated.start(problem, propagate(problem.mip.minimised()))
    return reformulate(start, (OneOrder(), Presolve(), OneOrder()))


def assert_same(one: Problem, other: Problem) -> None:
    """Row by row and column by column, but for the units of rows."""
    a, b = one.mip, other.mip
    assert_allclose(a.sign * a.cost, b.sign * b.cost, rtol=1e-9)
    assert_allclose(a.lower, b.lower, rtol=1e-9)
    assert_allclose(a.upper, b.upper, rtol=1e-9)
    assert_array_equal(a.integer, b.integer)
    sizes = [abs(mip.A).max(axis=1).toarray().ravel() for mip in (a, b)]
    for mine, others in (
        (a.A.toarray(), b.A.toarray()),
        (a.row_lower[:, None], b.row_lower[:, None]),
        (a.row_upper[:, None], b.row_upper[:, None]),
    ):
        assert_allclose(mine / sizes[0][:, None], others / sizes[1][:, None], rtol=1e-9, atol=1e-12)
    assert len(one.blocks) == len(other.blocks)
    for block, twin in zip(one.blocks, other.blocks, strict=True):
        assert_array_equal(block.inputs, twin.inputs)
        assert_array_equal(block.outputs, twin.outputs)


@pytest.mark.parametrize("kind", sample(["ladders", "offers-trees", "portfolio", "water", "chain"], 3))
@pytest.mark.parametrize("rule", ["permuted", "samples apart", "negated", "rows in other units", "slacks"])
def test_another_way_of_writing_is_the_same_problem(kind: str, rule: str) -> None:
    problem = build(kind, 1, 0)
    other = rewritten(problem, [rule], 3)
    if other is None:
        pytest.skip("the rule changes nothing here")
    assert_same(in_order(problem).problem, in_order(other).problem)


def test_points_go_there_and_back() -> None:
    problem = build("portfolio", 1, 0)
    other = rewritten(problem, ["permuted"], 3)
    assert other is not None
    there = reformulate(Reformulated.start(other, propagate(other.mip.minimised())), (OneOrder(),))
    x = np.random.default_rng(0).normal(size=other.mip.n_columns)
    z = there.lift(x)
    assert_array_equal(there.restrict(z), x)
    assert there.problem.mip.objective(z) == pytest.approx(other.mip.objective(x), rel=1e-12)
    rows = np.abs(there.problem.mip.A @ z)
    assert_allclose(np.sort(rows), np.sort(np.abs(other.mip.A @ x)), rtol=1e-9)


def test_one_object_added_twice_is_one_block_and_two_objects_with_other_weights_are_not() -> None:
    torch.manual_seed(0)
    net, twin = torch.nn.Linear(1, 1).double(), torch.nn.Linear(1, 1).double()
    problem = dt.Problem(dt.Mip(cost=[0.0] * 3 + [1.0] * 3, lower=-1.0, upper=1.0))
    for k, module in enumerate((net, twin, net)):
        problem.add_predictor(module, [k], [3 + k])
    assert [block.samples for block in in_order(problem).problem.blocks] == [2, 1]


def test_a_row_turned_round_is_the_same_row() -> None:
    made = []
    for sign in (1.0, -1.0):
        A, ends = sign * np.array([[1.0, -2.0, 1.0]]), np.sort([sign * -1.0, sign * 3.0])
        problem = dt.Problem(dt.Mip([1.0, 1.0, 1.0], A, ends[:1], ends[1:], lower=-5.0, upper=5.0))
        problem.add_predictor(lambda X: X.sum(axis=1, keepdims=True), [0, 1], [2])
        made.append(in_order(problem).problem)
    assert_same(*made)


def test_blocks_that_are_the_same_up_to_their_data_stay_so():
    """x = w + p - q, with a budget for every p and q that all blocks share: numbers give no block an order or
    a sign of its own."""
    rng, blocks, d = np.random.default_rng(0), 12, 3
    size = 3 * d + 1
    data, upper = rng.normal(size=(blocks, d)), rng.uniform(1.0, 2.0, (blocks, 2 * d))
    private, shared = np.zeros((blocks, d, blocks, size)), np.zeros((2 * d, blocks, size))
    for k in range(blocks):
        moves = np.tile(np.eye(d), (2, 1)) * np.repeat([-1.0, 1.0], d)[:, None]
        private[k, :, k] = np.hstack([np.eye(d), moves.T, np.zeros((d, 1))])
        shared[:, k, d : 3 * d] = np.eye(2 * d)
    mip = dt.Mip(
        cost=np.tile(np.append(np.zeros(size - 1), 1.0), blocks),
        A=np.vstack([private.reshape(blocks * d, -1), shared.reshape(2 * d, -1)]),
        row_lower=np.append(data.ravel(), np.full(2 * d, -np.inf)),
        row_upper=np.append(data.ravel(), np.full(2 * d, 3.0)),
        lower=np.hstack([data - 9.0, np.zeros((blocks, 2 * d)), np.full((blocks, 1), -99.0)]).ravel(),
        upper=np.hstack([data + 9.0, upper, np.full((blocks, 1), 99.0)]).ravel(),
    )
    problem = dt.Problem(mip)
    columns = np.arange(blocks * size).reshape(blocks, size)
    problem.add_predictor(random_mlp(d, width=3, layers=1, seed=0), columns[:, :d], columns[:, -1:])
    for one in (problem, in_order(problem).problem):
        (template,) = found_templates(one, components(one)).arrays
        assert template.count == blocks


def test_levels_are_in_the_same_order_in_all_blocks() -> None:
    """However the levels of prices are listed, all stores are one template with the same entries."""
    other = rewritten(build("ladders", 2, 0), ["permuted"], 3)
    assert other is not None
    problem = in_order(other).problem
    found = found_templates(problem, components(problem))
    assert found is not None
    (stores,) = found.arrays
    assert stores.count == 8
    assert_allclose(
        stores.private.entry, np.broadcast_to(stores.private.entry[0], stores.private.entry.shape)
    )
