"""Each function of `networks/functions.py` with all that is promised of it: a new entry is tested here too.

A small network is made of it, in torch and in ONNX; its least value by a fine grid is the truth.
"""

import numpy as np
import pytest
import torch
from onnx import helper
from torch import nn
from torch.nn import functional

import dovetail as dt
from dovetail.core.predictor import as_predictor
from dovetail.networks.elementwise import Functions
from dovetail.networks.functions import FUNCTIONS
from dovetail.predictors.torch.operations import named
from tests.conftest import FULL
from tests.predictors.onnx.oracle import model_of, truth_of

LOWER, UPPER = -2.0, 2.0
UNNAMED = ("root", "matern32", "matern52")
"""Functions that neither torch nor ONNX has."""
GAP = 1e-3


class Between(nn.Module):
    """Dense, the function, dense; what the function reads is positive where only that is allowed."""

    def __init__(self, name):
        super().__init__()
        torch.manual_seed(1)
        self.name, known = name, FUNCTIONS[name]
        self.first, self.last = nn.Linear(2, 5), nn.Linear(5, 1)
        if known.above == 0.0:
            with torch.no_grad():
                self.first.bias.copy_(0.25 - LOWER * self.first.weight.abs().sum(dim=1))

    def forward(self, x):
        if self.name in UNNAMED:
            return self.last(named(self.name, self.first(x)))
        operation = FUNCTIONS[self.name].operation
        if self.name == "gelu_tanh":
            return self.last(functional.gelu(self.first(x), approximate="tanh"))
        return self.last((getattr(torch, operation, None) or getattr(functional, operation))(self.first(x)))


def problem_of(predictor):
    mip = dt.Mip(cost=[0.0, 0.0, 1.0], lower=[LOWER, LOWER, -1e3], upper=[UPPER, UPPER, 1e3])
    problem = dt.Problem(mip)
    problem.add_predictor(predictor, [0, 1], [2])
    return problem


def grid():
    side = np.linspace(LOWER, UPPER, 201)
    return np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)


NEWEST = [name for name in FUNCTIONS if name != "root"][-6:]
"""Tested always. The root is steep at 0 and takes a minute."""


@pytest.mark.parametrize("name", FUNCTIONS if FULL else NEWEST)
def test_it_is_solved_proved_and_certified(name):
    net = Between(name).double()
    problem = problem_of(net)
    result = dt.solve(problem, gap=GAP, log=False)
    least = float(as_predictor(net).predict(grid()).min())
    assert result.status == "optimal"
    assert result.bound <= least + 1e-9
    assert result.objective <= least + GAP
    assert result.certificate.kind == "checked"
    verification = dt.check(problem, result.x, certificate=result.certificate).verification
    assert verification.holds
    assert verification.bound == pytest.approx(result.bound, abs=2.0 * GAP * (1.0 + abs(result.objective)))


OPERATORS = {
    "gelu_tanh": ("Gelu", {"approximate": "tanh"}, None),
    "silu": ("Swish", {}, None),
    "square": ("Pow", {}, 2.0),
    "rsqrt": ("Pow", {}, -0.5),
}
"""Of ONNX, with their attributes and a second input, where they are not called like the function."""


def onnx_of(net):
    """Gemm, the operator that is nothing but the function, Gemm."""
    operator, attributes, other = OPERATORS.get(net.name, (net.name.capitalize(), {}, None))
    constants = {name: value.detach().numpy() for name, value in net.named_parameters()}
    if other is not None:
        constants["other"] = np.float32(other)
    nodes = [
        helper.make_node("Gemm", ["x", "first.weight", "first.bias"], ["z"], transB=1),
        helper.make_node(operator, ["z"] if other is None else ["z", "other"], ["f"], **attributes),
        helper.make_node("Gemm", ["f", "last.weight", "last.bias"], ["y"], transB=1),
    ]
    return model_of(nodes, constants, (2,), opset=24 if operator == "Swish" else 20)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in UNNAMED])
def test_its_operator_of_onnx_is_the_function(name):
    """The same answers as onnxruntime, and the function is one operation of the program."""
    model = onnx_of(Between(name))
    X = np.random.default_rng(0).uniform(LOWER, UPPER, size=(200, 2)).astype(np.float32)
    predictor, rows = as_predictor(model), X.astype(float)
    np.testing.assert_allclose(predictor.predict(rows), truth_of(model, X), rtol=1e-5, atol=1e-5)
    program = predictor.program(2)
    assert [one.kind for one in program.operations if isinstance(one, Functions)] == [name]
    np.testing.assert_allclose(program.values(rows), as_predictor(Between(name)).program(2).values(rows))
