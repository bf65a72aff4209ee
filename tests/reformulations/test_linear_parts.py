"""Linear maps around networks are part of the networks, wherever they are written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

import dovetail as dt
from dovetail.bounds.box import propagate
from dovetail.core.problem import Problem
from dovetail.reformulations.linear_parts import LinearParts
from dovetail.reformulations.presolve import Presolve
from dovetail.reformulations.reformulated import Reformulated, reformulate
from dovetail_study.zoo.rewriting import rewritten


def network(inputs: int, outputs: int) -> nn.Sequential:
    torch.manual_seed(inputs)
    return nn.Sequential(nn.Linear(inputs, 5), nn.ReLU(), nn.Linear(5, outputs)).double()


def simplest(problem: Problem) -> Reformulated:
    start = Reformulated.start(problem, propagate(problem.mip.minimised()))
    return reformulate(start, (Presolve(), LinearParts(), Presolve()))


def two_samples() -> Problem:
    """Two integers and a number each, and a budget that both share."""
    A = np.array([[1.0, 1.0, 1.0, 0, 0, 0, 0, 0], [0, 0, 0, 1.0, 1.0, 1.0, 0, 0], [1.0] * 6 + [0, 0]])
    low, high = np.array([0.0] * 6 + [-np.inf] * 2), np.array([3.0] * 6 + [np.inf] * 2)
    whole = [True, True, False] * 2 + [False] * 2
    mip = dt.Mip([0.1] * 6 + [1.0, 1.0], A, -np.inf, [6.0, 6.0, 9.0], low, high, whole)
    problem = dt.Problem(mip)
    problem.add_predictor(network(3, 1), [[0, 1, 2], [3, 4, 5]], [[6], [7]])
    return problem


@pytest.mark.parametrize(
    "rule",
    ["inputs standardised", "last layer in rows", "unused inputs and outputs", "predictors twice"],
)
def test_the_ends_of_a_network_written_elsewhere_are_the_same_problem(rule: str) -> None:
    other = rewritten(two_samples(), [rule], 1)
    assert other is not None
    whole = simplest(other)
    (block,) = whole.problem.blocks
    assert whole.problem.mip.n_columns == 8
    assert (block.inputs.shape, block.outputs.shape) == ((2, 3), (2, 1))
    found = dt.solve(other, dt.Auto(effort=1), gap=1e-6, time_limit=600.0, log=False)
    best = dt.solve(two_samples(), dt.Auto(effort=1), gap=1e-6, time_limit=600.0, log=False)
    assert found.status == best.status == "optimal"
    assert found.x is not None
    assert found.objective == pytest.approx(best.objective, abs=1e-5)
    assert_allclose(whole.restrict(whole.lift(found.x))[:8], found.x[:8], atol=1e-7)


def defined(**changes: Any) -> Problem:
    """u = 0.5 x + 1, v = x - 0.5 z, and a network that reads u and v; whatever is said of u."""
    given: dict[str, Any] = {
        "cost": np.array([0.0, 0.0, 0.0, 0.0, 1.0]),
        "A": np.array([[-0.5, 0.0, 1.0, 0.0, 0.0], [-1.0, 0.5, 0.0, 1.0, 0.0]]),
        "row_lower": [1.0, 0.0],
        "row_upper": [1.0, 0.0],
        "lower": [0.0, 0.0, -9.0, -9.0, -np.inf],
        "upper": [1.0, 1.0, 9.0, 9.0, np.inf],
        "integer": [True, True, False, False, False],
    }
    problem = dt.Problem(dt.Mip(**{**given, **changes}))
    problem.add_predictor(nn.Sequential(nn.ReLU(), *network(2, 1)), [2, 3], [4])
    return problem


def test_a_network_reads_the_columns_of_which_its_inputs_are_made() -> None:
    problem = defined()
    whole = simplest(problem)
    (block,) = whole.problem.blocks
    x = problem.predict(np.array([1.0, 1.0, 1.5, 0.5, 0.0]))
    z = whole.lift(x)
    assert whole.problem.mip.n_columns == 3
    assert_allclose(block.predictor.predict(block.read(z)), [[x[4]]], rtol=1e-12)
    assert_allclose(whole.restrict(z), x, atol=1e-12)
    known = block.description
    assert known.program is not None
    assert_allclose(known.program(2).values(block.read(z)), [[x[4]]], rtol=1e-12)
    copy = block.predictor.snapshot("cpu")(torch.as_tensor(block.read(z)))
    assert_allclose(copy.detach().numpy(), [[x[4]]], rtol=1e-12)


def test_an_input_with_a_cost_is_still_read() -> None:
    whole = simplest(defined(cost=np.array([0.0, 0.0, 1.0, 0.0, 1.0])))
    assert 2 in whole.problem.blocks[0].inputs or whole.problem.mip.n_columns > 3


def test_sums_of_columns_stay_before_a_network_with_a_first_layer() -> None:
    A = np.array([[-1.0, -2.0, 1.0, 1.0, 0.0]])
    mip = dt.Mip(
        [0.0] * 4 + [1.0], A, [0.0], [0.0], [0.0] * 3 + [-9.0, -np.inf], [1.0] * 3 + [9.0, np.inf],
        [True] * 3 + [False] * 2,
    )  # fmt: skip
    problem = dt.Problem(mip)
    problem.add_predictor(network(1, 1), [3], [4])
    assert simplest(problem).problem.blocks[0].inputs.shape == (1, 1)


def three_outputs(**changes: Any) -> Problem:
    """x (2), three outputs h of which the objective has a sum, and what is said of h."""
    given: dict[str, Any] = {
        "cost": np.array([0.0, 0.0, 1.0, -2.0, 0.5]),
        "lower": np.array([0.0, 0.0, -np.inf, -np.inf, -np.inf]),
        "upper": np.array([1.0, 1.0, np.inf, np.inf, np.inf]),
    }
    problem = dt.Problem(dt.Mip(**{**given, **changes}))
    problem.add_predictor(network(2, 3), [0, 1], [2, 3, 4])
    return problem


def test_a_sum_of_outputs_is_one_output() -> None:
    problem = three_outputs()
    whole = simplest(problem)
    x = problem.predict(np.array([0.3, 0.8, 0.0, 0.0, 0.0]))
    assert whole.problem.blocks[0].outputs.shape == (1, 1)
    assert_allclose(whole.problem.mip.cost @ whole.lift(x), problem.mip.cost @ x, rtol=1e-12)
    assert_allclose(whole.restrict(whole.lift(x)), x, rtol=1e-12)


def test_an_output_with_a_bound_stays_one() -> None:
    some = three_outputs().predict(np.array([0.3, 0.8, 0.0, 0.0, 0.0]))
    upper = np.array([1.0, 1.0, some[2], np.inf, np.inf])
    problem = three_outputs(upper=upper)
    whole = simplest(problem)
    assert whole.problem.blocks[0].outputs.shape == (1, 2)
    x = problem.predict(np.array([0.9, 0.1, 0.0, 0.0, 0.0]))
    bounded = np.flatnonzero(whole.problem.mip.upper == some[2])
    assert_allclose(whole.lift(x)[bounded], [x[2]], rtol=1e-12)


def test_networks_of_different_thresholds_are_different() -> None:
    low, high = [0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]
    problem = dt.Problem(dt.Mip([0.0, 0.0, 1.0, -1.0], lower=low, upper=high))
    net = network(2, 1)
    for output, threshold in ((2, 0.1), (3, 0.2)):
        problem.add_predictor(net, [0, 1], [output], output_type="classification", threshold=threshold)
    assert len(simplest(problem).problem.blocks) == 2
