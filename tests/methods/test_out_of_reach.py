"""Problems that have no point because of what their predictors give: proved, or not claimed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import dovetail as dt
from dovetail.methods import exact_mip
from dovetail.methods.branching import Branching
from dovetail.methods.exact_mip import ExactMip
from dovetail.structure import boxes
from tests.conftest import FULL, sample
from tests.differential.reach_claims import judged

FEASIBLE = (17, 35)
"""Random problems with a point near the end of what a network gives."""
TYPES = (torch.float64, torch.float32)


def network(*weights, dtype=torch.float64, last=()):
    """Dense layers with these weights and no bias, ReLUs between them."""
    layers = []
    for W in weights:
        linear = nn.Linear(len(W[0]), len(W), bias=False, dtype=torch.float64)
        with torch.no_grad():
            linear.weight.copy_(torch.tensor(W, dtype=torch.float64))
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1], *last).to(dtype)


def size_of(dtype=torch.float64):
    """|x|."""
    return network([[1.0], [-1.0]], [[1.0, 1.0]], dtype=dtype)


def same(dtype=torch.float64):
    """x, by way of two ReLUs."""
    return network([[1.0], [-1.0]], [[1.0, -1.0]], dtype=dtype)


def chain(first, least, *, dtype=torch.float64, width=1.0):
    """x within +-width; y = first(x), at least `least`; z = |y|, which is minimised."""
    mip = dt.Mip([0.0, 0.0, 1.0], lower=[-width, least, -np.inf], upper=[width, np.inf, np.inf])
    problem = dt.Problem(mip)
    problem.add_predictor(first, [0], [1])
    problem.add_predictor(size_of(dtype), [1], [2])
    return problem


@pytest.mark.parametrize("dtype", TYPES)
def test_a_bound_between_two_networks_that_the_first_cannot_meet(dtype):
    result = dt.solve(chain(size_of(dtype), 1.5, dtype=dtype), time_limit=60.0, log=False)
    assert (result.status, result.stop_reason) == ("infeasible", "proved")
    assert "x[1] would have to be at least 1.5 and at most 1" in result.message


@pytest.mark.parametrize("dtype", TYPES)
def test_one_that_it_can_just_meet(dtype):
    result = dt.solve(chain(size_of(dtype), 1.0, dtype=dtype), time_limit=60.0, log=False)
    assert result.objective == pytest.approx(1.0, abs=2e-6)


def test_what_the_check_forgives_is_not_called_infeasible():
    result = dt.solve(chain(size_of(), 1.0 + 0.9e-6), dt.Auto(effort=1), time_limit=5.0, log=False)
    assert result.status != "infeasible"


def test_one_network_whose_output_ends_before_its_bound():
    mip = dt.Mip([0.0, 0.0, 1.0], lower=[-1.0, -1.0, 5.0], upper=[1.0, 1.0, np.inf])
    problem = dt.Problem(mip)
    problem.add_predictor(network([[1.0, 2.0]], [[1.0]], last=[nn.Sigmoid()]), [0, 1], [2])
    for method in (dt.Auto(), Branching()):
        assert dt.solve(problem, method, time_limit=60.0, log=False).status == "infeasible"


def test_numbers_too_large_for_a_range_are_no_error():
    torch.manual_seed(0)
    first = nn.Sequential(nn.Linear(1, 4), nn.LayerNorm(4), nn.ReLU(), nn.Linear(4, 1)).double().eval()
    result = dt.solve(chain(first, -np.inf, width=1e9), dt.Auto(effort=1), time_limit=5.0, log=False)
    assert result.status in ("optimal", "feasible")


def apart(gap, dtype=torch.float64):
    """|x| - x <= -gap: no range of the two outputs excludes it, and no point has it."""
    mip = dt.Mip([1.0, 0.0, 0.0], [[0.0, 1.0, -1.0]], [-np.inf], [-gap], [-1.0, -9.0, -9.0], [1.0, 9.0, 9.0])
    problem = dt.Problem(mip)
    problem.add_predictor(size_of(dtype), [0], [1])
    problem.add_predictor(same(dtype), [0], [2])
    return problem


METHODS = (ExactMip(), Branching(), dt.Auto(effort=1))


@pytest.mark.parametrize("dtype", sample(TYPES))
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_outputs_that_do_not_go_together(method, dtype):
    result = dt.solve(apart(0.3, dtype), method, time_limit=60.0, log=False)
    assert (result.status, result.stop_reason) == ("infeasible", "proved")
    assert "most likely" not in result.message


@pytest.mark.parametrize("method", METHODS[:2], ids=lambda method: method.name)
def test_outputs_that_the_check_lets_go_together(method):
    assert dt.solve(apart(0.9e-6), method, time_limit=2.0, log=False).status != "infeasible"


def squares(side):
    """x whole, within 0 and 3, whose square is `side`."""
    mip = dt.Mip([1.0, 0.0], [[0.0, 1.0]], [side], [side], [0.0, -99.0], [3.0, 99.0], [True, False])
    problem = dt.Problem(mip)
    problem.add_predictor(lambda X: X**2, [0], [1])
    return problem


def test_a_point_that_only_the_check_accepts_is_not_called_unlikely():
    """The engine of the tables says that there is none, and what comes nearest passes."""
    result = dt.solve(squares(4.0 + 5e-7), time_limit=20.0, log=False)
    assert result.x is not None
    assert result.x[0] == 2.0
    assert "most likely" not in result.message


def test_no_proof_of_an_engine_ends_the_search(monkeypatch):
    """Where nothing refutes the problem, phases after the exact MIP are asked as well."""
    monkeypatch.setattr(exact_mip._WholeMip, "_refute", lambda self, budget: None)
    alone = dt.solve(apart(0.3), ExactMip(), time_limit=60.0, log=False)
    assert alone.status == "no_solution"
    assert "most likely there is no solution" in alone.message
    after = dt.solve(apart(0.3), dt.Auto(effort=1), time_limit=60.0, log=False)
    assert after.status == "infeasible"
    assert "branching" in after.message


@pytest.mark.long
@pytest.mark.parametrize("part", range(8 if FULL else 1))
def test_random_chains(part):
    """`python -m benchmarks.reach_volume` is the same at any volume."""
    for seed in range(part, 2000 if FULL else 6, 8 if FULL else 1):
        found = judged(seed, 0.3)
        assert (found.exception, found.wrong) == ("", []) or found.said == "refused", seed


def test_a_false_proof_is_heard(monkeypatch):
    """Ranges that are too narrow by a third make the judge of random chains say so."""
    honest = boxes._network

    def narrow(*given):
        least, most = honest(*given)
        third = (most - least) / 3.0
        return least + third, most - third

    monkeypatch.setattr(boxes, "_network", narrow)
    said = [what for seed in FEASIBLE for what in judged(seed, 0.3).wrong]
    assert any("called infeasible" in what for what in said)
