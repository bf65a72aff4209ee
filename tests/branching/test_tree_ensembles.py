"""Boxes over the inputs of trees: no point is lost, whatever tightens or divides them."""

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.branching.model import Model
from dovetail.methods.branching import Branching
from dovetail.methods.branching_model import model_of
from dovetail.structure.trees import ensembles_of
from tests.conftest import FULL
from tests.tree_problems import free_inputs, several_ensembles

SEEDS = range(60 if FULL else 3)


def model_with_trees(problem) -> Model:
    mip = problem.mip
    derived = problem.derived(mip.minimised(), problem.blocks)
    lower, upper = np.fmax(mip.lower, -50.0), np.fmin(mip.upper, 50.0)
    return model_of(derived, lower, upper, ensembles_of(problem))


def points(problem, model, rng, many=60):
    """With the predictors' own outputs; inputs on cuts and on the next numbers too."""
    inputs, found = free_inputs(problem), []
    for _ in range(many):
        x = rng.uniform(model.lower, model.upper)
        for block in problem.blocks:
            for j, cuts in zip(block.inputs[0], block.description.trees().cuts, strict=True):
                if cuts.size and rng.random() < 0.5:
                    cut = rng.choice(cuts)
                    x[j] = cut if rng.random() < 0.5 else np.nextafter(cut, np.inf)
        x = np.clip(x, model.lower, model.upper)
        x = np.where(problem.mip.integer, np.round(x), x)
        assert np.all((x >= model.lower)[inputs] & (x <= model.upper)[inputs])
        found.append(problem.predict(x))
    return np.array(found)


def inside(x, lower, upper):
    return np.all((lower <= x) & (x <= upper), axis=1)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_point_stays_in_its_box(seed):
    problem, rng = several_ensembles(seed), np.random.default_rng(seed)
    model = model_with_trees(problem)
    x = points(problem, model, rng)
    wide = rng.random(x.shape) < 0.5  # else some part of the box, of inputs and outputs alike
    lower = np.where(wide, model.lower, x - rng.uniform(0.0, 1.0, x.shape) * (rng.random(x.shape) < 0.7))
    upper = np.where(wide, model.upper, x + rng.uniform(0.0, 1.0, x.shape) * (rng.random(x.shape) < 0.7))
    before = upper - lower
    for _ in range(2):  # the second time from memory
        model.trees.tighten(lower, upper)
        assert np.all(inside(x, lower, upper))
    assert np.any(upper - lower < before - 1e-3)


@pytest.mark.parametrize("seed", SEEDS)
def test_parts_of_a_division_have_all_points_and_no_cell_in_common(seed):
    problem, rng = several_ensembles(seed), np.random.default_rng(seed)
    model = model_with_trees(problem)
    x = points(problem, model, rng)
    lower, upper = model.lower[None].copy(), model.upper[None].copy()
    model.trees.tighten(lower, upper)
    at = np.where(model.host.cost > 0.0, lower, upper)
    (cuts,) = model.trees.cuts(lower, upper, at, model.host.cost[None], 8)
    for column, below, above in zip(cuts.columns, cuts.below, cuts.above, strict=True):
        assert np.all((x[:, column] <= below) | (x[:, column] >= above))
        assert above == np.nextafter(below, np.inf) or (problem.mip.integer[column] and above == below + 1.0)
        left, right = upper.copy(), lower.copy()
        left[0, column], right[0, column] = below, above
        place = np.searchsorted(np.setdiff1d(problem.inputs, []), column)
        assert model.trees.cells_of(left)[0, place] + 1 == model.trees.cells_of(right)[0, place]


def test_an_ensemble_and_a_network_in_one_problem():
    """A tree's output is read by a network: against all whole inputs."""
    from sklearn.tree import DecisionTreeRegressor

    X = np.stack(np.meshgrid(np.arange(5.0), np.arange(5.0)), axis=-1).reshape(-1, 2)
    tree = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, np.sin(X[:, 0]) * X[:, 1])
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(2, 5), torch.nn.ReLU(), torch.nn.Linear(5, 1)).double()
    mip = dt.Mip(
        [0.1, 0.1, 0.0, 1.0],
        lower=[0.0, 0.0, -9.0, -99.0],
        upper=[4.0, 4.0, 9.0, 99.0],
        integer=[True, True, False, False],
    )
    problem = dt.Problem(mip)
    problem.add_predictor(tree, [0, 1], [2])
    problem.add_predictor(network, [0, 2], [3])
    result = dt.solve(problem, Branching(), log=False)
    best = min(mip.objective(problem.predict(np.append(at, [0.0, 0.0]))) for at in X)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(best, rel=1e-4, abs=1e-6)
    assert result.bound <= best + 1e-6
