"""Our predictors pass the public suite, all the twins have the same optimum, and what one kind is about."""

import itertools

import numpy as np
import pytest
import torch
from torch import nn

import dovetail as dt
from dovetail.core import predictor as register
from dovetail.core.predictor import as_predictor
from dovetail.testing import PredictorSuite
from tests.conformance import nets
from tests.conformance.predictor_kinds import ESTIMATORS, KINDS, RANDOM, TWINS, Recipe, Whole, twin

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


@pytest.fixture(autouse=True)
def _restored(monkeypatch):
    """What a test teaches dovetail is forgotten after it."""
    monkeypatch.setattr(register, "_register", [*register._register])


def points(count=7, seed=0):
    return np.random.default_rng(seed).uniform(-2, 2, (count, nets.FEATURES))


class TestEveryKind(PredictorSuite):
    cases = (*KINDS, *RANDOM, *ESTIMATORS)


def price(owner):
    """min y + 0.3 (x0 + x1 + x2) over x in {0..3}^3 with x0 + x1 + x2 >= 3, y = owner(x)."""
    mip = dt.Mip(
        cost=[0.3, 0.3, 0.3, 1.0],
        A=[[1.0, 1.0, 1.0, 0.0]],
        row_lower=3.0,
        row_upper=np.inf,
        lower=[0.0, 0.0, 0.0, -np.inf],
        upper=[3.0, 3.0, 3.0, np.inf],
        integer=[True, True, True, False],
    )
    problem = dt.Problem(mip)
    problem.add_predictor(owner, [0, 1, 2], [3])
    return problem


BEST = min(
    0.3 * sum(x) + float(twin([x])[0, 0]) for x in itertools.product(range(4), repeat=3) if sum(x) >= 3
)


@pytest.mark.parametrize("method", ["auto", "big-m"])
@pytest.mark.parametrize("kind", TWINS, ids=str)
def test_every_kind_is_solved_to_the_same_enumerated_optimum(kind, method, tmp_path):
    owner = kind.make(tmp_path)
    before, problem = kind.state(owner), price(owner)
    if method == "big-m" and not kind.layers:
        with pytest.raises(dt.UnsupportedError):
            dt.solve(problem, method, log=False)
        return
    result = dt.solve(problem, method, log=False, time_limit=60.0)
    # what float32 may round is taken off SCIP's bound, which then does not meet the objective any more
    rounds = method == "big-m" and not problem.blocks[0].description.is_float64
    assert result.status == "optimal" or (rounds and result.status == "feasible")
    assert result.objective == pytest.approx(BEST, abs=1e-5)
    assert dt.check(problem, result.x).within()
    assert kind.state(owner) == before


def test_old_style_weight_norm_can_be_copied():
    torch.manual_seed(0)
    with pytest.warns(FutureWarning):
        net = nn.Sequential(nn.utils.weight_norm(nn.Linear(nets.FEATURES, 4)), nn.ReLU(), nn.Linear(4, 1))
    net(torch.zeros(2, nets.FEATURES))
    predictor = as_predictor(net)
    X = points()
    assert np.allclose(
        predictor.snapshot("cpu")(torch.tensor(X)).detach().numpy(), predictor.predict(X), atol=1e-5
    )


def test_a_module_that_cannot_be_copied_is_refused_with_the_reason():
    class Locked(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(2, 1)

        def __deepcopy__(self, memo):
            raise RuntimeError("it holds a lock")

        def forward(self, x):
            return self.inner(x)

    problem = dt.Problem(dt.Mip(cost=[0.0, 0.0, 1.0], lower=-1.0, upper=1.0))
    with pytest.raises(dt.PredictorError, match="Locked cannot be copied.*it holds a lock"):
        problem.add_predictor(Locked(), [0, 1], [2])


def test_a_module_without_parameters():
    class Sum(nn.Module):
        def forward(self, x):
            return x.sum(dim=1)

    predictor = as_predictor(Sum())
    assert predictor.predict(points()).shape == (7, 1)
    assert predictor.describe(points()).is_float64


def bend(X):
    """Two outputs, one of them kinked."""
    return np.column_stack([np.sin(X[:, 0]) * X[:, 1], np.maximum(X[:, 2], 0.3 * X[:, 3]) + X[:, 4]])


class TestCallables:
    def test_one_number_per_row_is_a_column(self):
        assert as_predictor(lambda X: X[:, 0]).predict(points()).shape == (7, 1)

    def test_its_gradient_is_right(self):
        X = points()
        u = torch.tensor(X, requires_grad=True)
        values = as_predictor(bend).snapshot("cpu")(u)
        (slope,) = torch.autograd.grad(3.0 * values[:, 0].sum() + values[:, 1].sum(), u)
        exact = np.zeros_like(X)
        exact[:, 0] = 3 * np.cos(X[:, 0]) * X[:, 1]
        exact[:, 1] = 3 * np.sin(X[:, 0])
        first = X[:, 2] > 0.3 * X[:, 3]
        exact[:, 2], exact[:, 3], exact[:, 4] = first, 0.3 * ~first, 1.0
        assert np.allclose(slope.numpy(), exact, atol=1e-6)

    def test_one_gradient_is_one_call(self):
        calls = []

        def counted(X):
            calls.append(len(X))
            return X.sum(axis=1)

        u = torch.tensor(points(), requires_grad=True)
        torch.autograd.grad(as_predictor(counted).snapshot("cpu")(u).sum(), u)
        assert calls == [7, 2 * 7 * nets.FEATURES]

    def test_it_cannot_change_the_solver_s_arrays(self):
        def rude(X):
            X[:] = 0.0
            return X.sum(axis=1)

        X = points()
        as_predictor(rude).predict(X)
        assert np.array_equal(X, points())


def test_a_predictor_of_the_users_own_is_taken_as_it_is():
    mine = Whole(Recipe())
    assert as_predictor(mine) is mine
