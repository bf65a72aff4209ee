"""A network cut into two is one network again, where nothing else knows the numbers between."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from torch import nn

import dovetail as dt
from dovetail.bounds.box import propagate
from dovetail.core.problem import Problem
from dovetail.reformulations.chained_networks import ChainedNetworks
from dovetail.reformulations.reformulated import Reformulated, reformulate


def put_together(problem: Problem) -> Reformulated:
    start = Reformulated.start(problem, propagate(problem.mip.minimised()))
    return reformulate(start, (ChainedNetworks(),))


def two(**changes: Any) -> Problem:
    """x -> h -> y with columns x (2), h (3), y, and whatever is said of h."""
    torch.manual_seed(0)
    first = nn.Sequential(nn.Linear(2, 3), nn.ReLU()).double()
    second = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)).double()
    lower, upper = np.array([-1.0, -1.0, 0.0, 0.0, 0.0, -np.inf]), np.full(6, np.inf)
    upper[:2] = 1.0
    given = {"cost": [0.0] * 5 + [1.0], "lower": lower, "upper": upper, **changes}
    problem = dt.Problem(dt.Mip(**given))
    problem.add_predictor(first, [0, 1], [2, 3, 4])
    problem.add_predictor(second, [2, 3, 4], [5])
    return problem


def test_the_columns_between_go_and_come_back() -> None:
    problem = two()
    whole = put_together(problem)
    assert whole.problem.mip.n_columns == 3
    (block,) = whole.problem.blocks
    x = problem.predict(np.array([0.3, -0.7, 0.0, 0.0, 0.0, 0.0]))
    z = whole.lift(x)
    assert_array_equal(z, x[[0, 1, 5]])
    assert_allclose(whole.restrict(z), x, rtol=1e-12)
    assert_allclose(block.predictor.predict(z[None, :2]), [[x[5]]], rtol=1e-12)


def test_three_in_a_row_become_one() -> None:
    layers = [nn.Sequential(nn.Linear(2, 2), nn.Tanh()).double() for _ in range(3)]
    problem = dt.Problem(
        dt.Mip([0.0] * 7 + [1.0], lower=[-1.0] * 2 + [-np.inf] * 6, upper=[1.0] * 2 + [np.inf] * 6)
    )
    for k, layer in enumerate(layers):
        problem.add_predictor(layer, [2 * k, 2 * k + 1], [2 * k + 2, 2 * k + 3])
    whole = put_together(problem)
    assert [block.samples for block in whole.problem.blocks] == [1]
    x = problem.predict(np.array([0.3, -0.7, *[0.0] * 6]))
    assert_allclose(whole.restrict(whole.lift(x)), x, rtol=1e-12)


LIMIT = np.array([1.0, 1.0, 1e-3, np.inf, np.inf, np.inf])


@pytest.mark.parametrize(
    "changes",
    [
        {"cost": [0.0, 0.0, 0.5, 0.0, 0.0, 1.0]},
        {"upper": LIMIT},
        {"A": [[0.0, 0.0, 1.0, 1.0, 0.0, 0.0]], "row_lower": [0.0], "row_upper": [5.0]},
        {"integer": [False, False, True, False, False, False]},
    ],
    ids=["cost", "bound", "row", "integer"],
)
def test_what_the_problem_says_of_the_numbers_between_keeps_them(changes: dict[str, Any]) -> None:
    problem = two(**changes)
    assert put_together(problem).problem is problem


def test_the_solution_has_the_numbers_between() -> None:
    problem = two()
    result = dt.solve(problem, log=False, time_limit=600.0)
    assert result.status is dt.Status.OPTIMAL
    assert result.x is not None
    assert_allclose(problem.predict(result.x), result.x, atol=1e-9)
