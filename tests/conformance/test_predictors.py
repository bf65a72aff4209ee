"""Every predictor: the owner's own answer, the same map for gradients, and the owner's object untouched."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

import dovetail as dt
from dovetail.core.predictor import as_predictor
from tests.conformance import nets


def points(count=7, seed=0):
    return np.random.default_rng(seed).uniform(-2, 2, (count, nets.FEATURES))


def state_of(net):
    return (
        [part.training for part in net.modules()],
        [(p.dtype, p.requires_grad, None if p.grad is None else p.grad.clone()) for p in net.parameters()],
        copy.deepcopy(net.state_dict()),
        torch.get_default_dtype(),
    )


def assert_same_state(before, after):
    assert before[0] == after[0]
    for (dtype, wants, grad), (dtype2, wants2, grad2) in zip(before[1], after[1], strict=True):
        assert (dtype, wants) == (dtype2, wants2)
        assert (grad is None) == (grad2 is None)
        assert grad is None or torch.equal(grad, grad2)
    for key, value in before[2].items():
        assert torch.equal(value, after[2][key]), key
    assert before[3] == after[3]


CASES = [
    pytest.param(kind, dtype, id=f"{kind}-{str(dtype).removeprefix('torch.')}")
    for kind in nets.KINDS
    for dtype in (torch.float32, torch.float64)
    if not (kind == "own-first-state" and dtype == torch.float64)  # it cannot run at all
]


@pytest.mark.parametrize(("kind", "dtype"), CASES)
class TestTorchModules:
    def test_predict_is_the_module_in_evaluation_mode(self, kind, dtype):
        net = nets.make(kind, 2, dtype)
        X = points()
        with torch.no_grad():
            truth = copy.deepcopy(net).eval()(torch.tensor(X, dtype=dtype)).double().numpy()
        assert np.array_equal(as_predictor(net).predict(X), truth)

    def test_the_copy_says_the_same_and_its_gradient_is_right(self, kind, dtype):
        net = nets.make(kind, 2, dtype)
        predictor = as_predictor(net)
        X = points()
        predictor.examine(X)
        forward = predictor.snapshot("cpu")
        u = torch.tensor(X, requires_grad=True)
        values = forward(u)
        assert values.dtype == torch.float64
        tolerance = 1e-12 if dtype == torch.float64 else 2e-5
        assert np.allclose(values.detach().numpy(), predictor.predict(X), atol=tolerance)
        (slope,) = torch.autograd.grad(values[:, 0].sum() - 2.0 * values[:, 1].sum(), u)
        step = 1e-6
        for j in range(nets.FEATURES):
            ahead, behind = X.copy(), X.copy()
            ahead[:, j] += step
            behind[:, j] -= step
            with torch.no_grad():
                rise = forward(torch.tensor(ahead)) - forward(torch.tensor(behind))
            difference = ((rise[:, 0] - 2.0 * rise[:, 1]) / (2 * step)).numpy()
            assert np.allclose(slope[:, j].numpy(), difference, atol=1e-5)

    def test_the_owner_gets_it_back_as_it_was(self, kind, dtype):
        net = nets.make(kind, 1, dtype)
        sum(p.sum() for p in net.parameters()).backward()
        before = state_of(net)
        mip = dt.Mip(
            cost=[0.0] * nets.FEATURES + [1.0], lower=[-1.0] * 5 + [-np.inf], upper=[1.0] * 5 + [np.inf]
        )
        problem = dt.Problem(mip)
        problem.add_predictor(net, list(range(5)), [5])
        dt.solve(problem, dt.DualDecomposition(iterations=2), log=False)
        assert_same_state(before, state_of(net))

    def test_smoothness_is_seen(self, kind, dtype):
        traits = as_predictor(nets.make(kind, 1, dtype)).examine(points())
        assert traits.smooth == (kind in nets.SMOOTH)
        assert traits.ends_in_sigmoid is False


def test_training_between_solves_is_seen():
    net = nets.make("mlp")
    predictor = as_predictor(net)
    X = points()
    before = predictor.snapshot("cpu")(torch.tensor(X))
    net.get_submodule("0").weight.data.mul_(2.0)  # .data leaves no trace that torch could notice
    after = predictor.snapshot("cpu")(torch.tensor(X))
    assert not torch.allclose(before, after)
    assert np.allclose(after.detach().numpy(), predictor.predict(X), atol=1e-5)


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
    assert predictor.exact


def bend(X):
    """Two outputs, one of them kinked."""
    return np.column_stack([np.sin(X[:, 0]) * X[:, 1], np.maximum(X[:, 2], 0.3 * X[:, 3]) + X[:, 4]])


class TestCallables:
    def test_predict_is_the_function(self):
        X = points()
        assert np.array_equal(as_predictor(bend).predict(X), bend(X))
        assert as_predictor(lambda X: X[:, 0]).predict(X).shape == (7, 1)

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


def test_a_class_of_the_users_own():
    class Mine:
        name, device, exact, doubles = "mine", "cpu", True, True

        def predict(self, X):
            return 2.0 * X.sum(axis=1, keepdims=True)

        def snapshot(self, device):
            return lambda u: 2.0 * u.sum(dim=1, keepdim=True)

        def examine(self, X):
            from dovetail.core.predictor import Traits

            return Traits(smooth=True, ends_in_sigmoid=False)

    mine = Mine()
    assert as_predictor(mine) is mine
