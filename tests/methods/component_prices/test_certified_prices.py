"""Certified prices on small water-like problems: against the exact MIP, at prices from anywhere."""

import numpy as np
import pytest
import torch
from torch import nn

import dovetail as dt
from dovetail.bounds.dual_value import next_step, objective_step
from dovetail.branching.sign_search import SignSearch
from dovetail.methods.component_prices import prices as method
from dovetail.methods.component_prices.coupled_problem import CoupledProblem
from dovetail.methods.component_prices.prices import BlockPrices
from dovetail.methods.exact_mip import ExactMip
from dovetail.run.budget import Budget
from dovetail.structure import structure as structure_file
from dovetail.structure.structure import Structure
from dovetail_study.problems.training import Training
from dovetail_study.problems.water import formulate
from tests.conftest import FULL
from tests.contexts import context_of

TRAINED = Training(1.0, 0.5, 1.0, 1)


def small_water(seed, n=4, dtype=torch.float64):
    """Four samples that are not potable: some may fit the budget."""
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(9, 4), nn.ReLU(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 1)).to(dtype)
    samples = np.random.default_rng(seed).normal(size=(n, 9))
    with torch.no_grad():
        logits = net(torch.as_tensor(samples, dtype=dtype))
        net[4].bias -= logits.max() + 0.7  # nothing is potable at first
    return formulate(samples, net, TRAINED).problem


@pytest.mark.parametrize("seed", range(4 if FULL else 1))
def test_the_bound_holds_and_is_better_than_the_host_s(seed):
    problem = small_water(seed)
    exact = context_of(problem)
    ExactMip().solve(exact)
    context = context_of(problem)
    outcome = BlockPrices(batch=64).solve(context)
    assert context.incumbent.bound <= -exact.incumbent.objective + 1e-9, outcome.message
    assert context.incumbent.bound >= -4.0 - 1e-9  # what the host knows by itself


def test_smooth_networks_have_bounds_too():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(9, 4), nn.GELU(), nn.Linear(4, 1)).double()
    samples = np.random.default_rng(0).normal(size=(12, 9))
    with torch.no_grad():
        net[2].bias -= net(torch.as_tensor(samples)).max() + 0.6
    context = context_of(formulate(samples, net, TRAINED).problem)
    outcome = BlockPrices(batch=256).solve(context)
    assert -12.0 < context.incumbent.bound <= -context.incumbent.objective + 1e-9, outcome.message


@pytest.mark.parametrize("much", [1e-7, 0.01])
def test_what_rounding_leaves_open_is_said(much, monkeypatch):
    monkeypatch.setattr(method, "ROUNDING", much)
    monkeypatch.setattr(structure_file, "block_steps", lambda block, graph: None)
    context = context_of(small_water(0, 2, torch.float32))
    slack = max(group.slack.max() for group in CoupledProblem.of(Structure(context.problem)).groups)
    assert 1e-7 < slack < 1e-2
    assert ("own rounding" in BlockPrices(batch=64).solve(context).message) == (slack > much)


@pytest.mark.parametrize("seed", range(3 if FULL else 1))
def test_any_prices_prove_something_true(seed):
    problem = small_water(seed, n=3)
    exact = context_of(problem)
    ExactMip().solve(exact)
    coupled = CoupledProblem.of(Structure(problem))
    rng = np.random.default_rng(seed)
    for scale in (0.0, 0.1, 0.5, 5.0):
        at = coupled.at(scale * rng.random(coupled.sides.count))
        searches = [None if part.targets is None else SignSearch(part.targets) for part in at.parts]
        for search in searches:
            if search is not None:
                search.run(Budget(600.0))
        bound = at.bound([None if one is None else one.lower.numpy() for one in searches])
        assert bound <= -exact.incumbent.objective + 1e-9


def test_prices_of_the_wrong_sign_or_no_number_count_for_nothing():
    coupled = CoupledProblem.of(Structure(small_water(0)))
    assert coupled.at(np.full(coupled.sides.count, -1.0)).bound([None]) <= 0.0
    assert coupled.at(np.full(coupled.sides.count, np.nan)).bound([None]) == coupled.at(
        np.zeros(coupled.sides.count)
    ).bound([None])


def test_a_bound_by_prices_takes_part_of_the_rows_tolerance():
    """A budget's side is 1e-6 farther out than it says: the bound at a price must know."""
    coupled = CoupledProblem.of(Structure(small_water(0)))
    free, dear = (coupled.at(np.full(coupled.sides.count, p)) for p in (0.0, 1.0))
    assert free.constant - dear.constant >= coupled.sides.count * (2.0 + 1e-6) - 1e-9


def test_where_it_does_not_apply_it_says_so():
    problem = dt.Problem(dt.Mip(cost=[1.0, -1.0], upper=[3.0, 9.0]))
    problem.add_predictor(lambda X: X**2, inputs=[0], outputs=[1])
    context = context_of(problem, 5.0)
    assert "no blocks that share" in BlockPrices().solve(context).message


def test_too_many_components_for_the_time_are_left_alone(monkeypatch):
    monkeypatch.setattr(method, "BEGINNING_SECONDS", 1.0)
    monkeypatch.setattr(method, "coupled_problem", None)  # nobody asks
    assert "too many" in BlockPrices().solve(context_of(small_water(0, n=12), 5.0)).message


def test_steps_of_objectives():
    whole = dt.Mip(cost=[2.0, 6.0, 0.0], integer=[True, True, False], offset=0.5, upper=9.0)
    assert objective_step(whole, whole.integer) == 2.0
    assert next_step(whole, 2.0, 0.7) == pytest.approx(2.5)
    assert next_step(whole, 2.0, 2.5) == pytest.approx(2.5)
    assert next_step(whole, 2.0, 2.5 + 1e-12) == pytest.approx(2.5)
    assert next_step(whole, 2.0, 2.6) == pytest.approx(4.5)
    mixed = dt.Mip(cost=[2.0, 6.0, 1e-3], integer=[True, True, False], upper=9.0)
    assert objective_step(mixed, mixed.integer) == 0.0 and next_step(mixed, 0.0, 0.7) == 0.7
    halves = dt.Mip(cost=[0.75, -0.5], integer=[True, True], upper=9.0)
    assert objective_step(halves, halves.integer) == 0.25
