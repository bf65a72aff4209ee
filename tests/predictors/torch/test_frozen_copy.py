"""Copies for gradients: the same before and after a module is described, in float64 where it can be."""

import numpy as np
import pytest
import torch
from torch import nn

from dovetail.core.errors import PredictorError
from dovetail.predictors.torch.module import TorchPredictor

X = np.random.default_rng(0).uniform(-1, 1, (5, 3))


class CastsDown(nn.Module):
    """Code that asks for float32 itself."""

    def __init__(self, dtype=torch.float32):
        super().__init__()
        self.body, self.dtype = nn.Linear(3, 2, dtype=dtype), dtype

    def forward(self, x):
        return torch.tanh(self.body(x.to(self.dtype)))


class Insists(CastsDown):
    """Code that knows no other precision than its own."""

    def forward(self, x):
        if self.body.weight.dtype != torch.float32:
            raise RuntimeError("only float32")
        return super().forward(x)


class Mixed(nn.Module):
    """Takes float32, though its first parameter is float64."""

    def __init__(self):
        super().__init__()
        self.head, self.trunk = nn.Linear(4, 1).double(), nn.Linear(3, 4)

    def forward(self, x):
        if self.head.weight.dtype == self.trunk.weight.dtype:
            raise RuntimeError("one precision only")
        return self.head(torch.tanh(self.trunk(x)).double())


def values(forward):
    u = torch.tensor(X, requires_grad=True)
    found = forward(u)
    (slope,) = torch.autograd.grad(found.sum(), u)
    return found.detach(), slope


@pytest.mark.parametrize("make", [lambda: nn.Linear(3, 2), CastsDown, Insists, Mixed])
def test_a_copy_is_the_same_before_and_after_the_module_is_described(make):
    torch.manual_seed(0)
    predictor = TorchPredictor(make())
    early = values(predictor.snapshot("cpu"))
    has_float64_copy = predictor.describe(X).has_float64_copy
    late = values(predictor.snapshot("cpu"))
    assert torch.equal(early[0], late[0]) and torch.equal(early[1], late[1])
    assert early[0].dtype == torch.float64
    assert has_float64_copy == (make not in (Insists, Mixed))
    apart = np.max(np.abs(early[0].numpy() - predictor.predict(X)))
    assert apart < 1e-6 and (apart > 0.0) == has_float64_copy


def test_a_copy_made_before_it_is_described_is_frozen_too():
    net = nn.Linear(3, 1)
    forward = TorchPredictor(net).snapshot("cpu")
    with torch.no_grad():
        net.weight.mul_(2.0)
    assert np.max(np.abs(forward(torch.tensor(X)).numpy() - TorchPredictor(net).predict(X))) > 1e-3


def test_floats_made_on_the_way_cost_nothing_where_there_are_none():
    predictor = TorchPredictor(nn.Linear(3, 1))
    predictor.describe(X)
    assert not predictor.snapshot("cpu").mode.sets_default


def test_a_module_that_fails_for_its_owner_is_told_as_that():
    predictor = TorchPredictor(nn.Sequential(nn.Tanh(), nn.Linear(4, 1)))
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        predictor.describe(X)


def test_a_module_without_a_gradient_is_refused():
    class ThroughNumpy(nn.Module):
        def forward(self, x):
            return torch.as_tensor(np.sin(x.numpy()))

    with pytest.raises(PredictorError, match="no gradient that torch can follow"):
        TorchPredictor(ThroughNumpy()).describe(X)
    with pytest.raises(PredictorError, match="no gradient that torch can follow"):
        TorchPredictor(ThroughNumpy()).snapshot("cpu")(torch.tensor(X))
