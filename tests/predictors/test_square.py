"""Squares of outputs and of variables."""

import numpy as np
import pytest
import torch
from sklearn.tree import DecisionTreeRegressor
from torch import nn

import dovetail as dt

X = np.random.default_rng(0).uniform(-2, 2, size=(10, 2))


@pytest.mark.parametrize("keep", [False, True])
def test_values_gradients_and_program(keep):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 5), nn.Tanh(), nn.Linear(5, 2)).double()
    square = dt.Square(net, output=1, centre=0.5, keep=keep)
    with torch.no_grad():
        Y = net(torch.tensor(X)).numpy()
    wanted = (Y[:, 1:] - 0.5) ** 2
    wanted = np.column_stack([Y, wanted]) if keep else wanted
    assert np.array_equal(square.predict(X), wanted)
    U = torch.tensor(X, requires_grad=True)
    assert torch.autograd.gradcheck(square.snapshot("cpu"), (U,))
    assert np.allclose(square.describe(X).program(2).values(X), wanted)


def test_variables_themselves_and_a_proof():
    """min (a - 1)^2 + (b - 2)^2 over a + b <= 2: 0.5 at (0.5, 1.5)."""
    mip = dt.Mip([0.0, 0.0, 1.0, 1.0], [[1.0, 1.0, 0.0, 0.0]], -np.inf, 2.0, upper=[9, 9, 99, 99])
    problem = dt.Problem(mip)
    problem.add_predictor(dt.Square(centre=[1.0, 2.0]), [0, 1], [2, 3])
    result = dt.solve(problem, log=False)
    assert result.objective == pytest.approx(0.5, rel=1e-4)
    assert result.bound == pytest.approx(0.5, rel=1e-3)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: dt.Square(output=3), "Square: output is 3"),
        (lambda: dt.Square(centre="a"), "centre is 'a'"),
        (lambda: dt.Square(centre=np.nan), "centre is nan"),
        (lambda: dt.Square(centre=[1.0, 2.0, 3.0]), "centre has 3 numbers for 2 squares"),
    ],
)
def test_what_cannot_be_is_refused(make, words):
    problem = dt.Problem(dt.Mip(np.zeros(4), upper=1.0))
    with pytest.raises(dt.PredictorError, match=words):
        problem.add_predictor(make(), [0, 1], [2, 3])


def test_the_square_of_trees_is_not_taken_for_the_trees():
    """Their leaves say nothing of it: a bound would be that of another function."""
    X = np.linspace(-2.0, 2.0, 60)[:, None]
    model = DecisionTreeRegressor(max_depth=2).fit(X, 3.0 * X[:, 0])
    problem = dt.Problem(
        dt.Mip([0.0, 1.0], lower=[-2, -99], upper=[2, 99], integer=[True, False], sense="max")
    )
    block = problem.add_predictor(dt.Square(model), [0], [1])
    assert block.description.trees is None
    best = float(np.max(model.predict(np.arange(-2.0, 3.0)[:, None]) ** 2))
    result = dt.solve(problem, log=False, time_limit=60.0)
    assert result.objective == pytest.approx(best)
    assert result.bound is None or result.bound >= best - 1e-6
