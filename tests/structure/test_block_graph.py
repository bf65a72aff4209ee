"""Graphs of blocks: the deployed network is never farther from its graph than the slack says."""

import numpy as np
import pytest
import torch
from torch import nn

import dovetail as dt
from dovetail.core.class_rounding import block_slack, slack_of
from dovetail.core.errors import UnsupportedError
from dovetail.structure.networks import block_graph, required_graph
from tests.networks.graph_values import values as of_graph
from tests.predictors.torch.networks import FEATURES, NETWORKS, network


def problem_of(predictor, outputs=1, **options):
    """One sample with six inputs between -1 and 1."""
    columns = FEATURES + outputs
    lower = np.r_[-np.ones(FEATURES), np.full(outputs, -50.0 if "output_type" not in options else 0.0)]
    upper = np.r_[np.ones(FEATURES), np.full(outputs, 50.0 if "output_type" not in options else 1.0)]
    problem = dt.Problem(dt.Mip(cost=np.zeros(columns), lower=lower, upper=upper))
    inputs, given = [list(range(FEATURES))], [list(range(FEATURES, columns))]
    return problem, problem.add_predictor(predictor, inputs=inputs, outputs=given, **options)


def points(count=500):
    return np.random.default_rng(0).uniform(-1.0, 1.0, size=(count, FEATURES))


@pytest.mark.parametrize(
    "name", ["flatten", "conv1d", "conv2d", "residual", "GELU", "lstm", "softmax", "attention"]
)
def test_values(name):
    module = network(name)
    problem, block = problem_of(module, 3 if name == "softmax" else 1 if name != "GELU" else 2)
    graph, X = block_graph(problem, block), points()
    slack = block_slack(block, X, X)
    assert graph is not None and np.all(np.isfinite(slack))
    assert np.all(np.abs(of_graph(graph, X) - block.predictor.predict(X)) <= slack)


@pytest.mark.parametrize("name", ["conv1d", "residual", "SiLU", "lstm", "gru"])
@pytest.mark.parametrize("threshold", [0.5, 0.3])
def test_a_class_is_decided_at_the_logit(name, threshold):
    """The deployed class, in float32 with a sigmoid at the end, is within what the slack leaves open."""
    body = (
        network(name)
        if name != "SiLU"
        else nn.Sequential(nn.Flatten(), nn.Linear(6, 4), nn.SiLU(), nn.Linear(4, 1))
    )
    module = nn.Sequential(body, nn.Sigmoid()).eval()
    problem, block = problem_of(module, output_type="classification", threshold=threshold)
    graph, X = block_graph(problem, block), points()
    X = np.concatenate([X, _near_the_border(graph, X)])
    logit, slack = of_graph(graph, X)[:, 0], slack_of(block)(X, X)
    one = block.decode(block.predictor.predict(X))[:, 0] == 1.0
    assert np.all(logit[one] >= -slack[one, 0]) and np.all(logit[~one] <= slack[~one, 1])
    assert float(slack.max()) < 1e-3


def _near_the_border(graph, X):
    """Between pairs of points on either side, where the graph is all but 0."""
    value = of_graph(graph, X)[:, 0]
    low, high = X[value < 0.0], X[value >= 0.0]
    count = min(len(low), len(high), 50)
    low, high = low[:count], high[:count]
    for _ in range(40):
        middle = 0.5 * (low + high)
        below = (of_graph(graph, middle)[:, 0] < 0.0)[:, None]
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.concatenate([low, high])


@pytest.mark.parametrize("end", [nn.Softmax(dim=1), nn.LogSoftmax(dim=1), nn.Sigmoid(), nn.Identity()])
def test_several_classes(end):
    torch.manual_seed(0)
    body = nn.Sequential(
        nn.Unflatten(1, (1, 6)), nn.Conv1d(1, 2, 3), nn.Tanh(), nn.Flatten(), nn.Linear(8, 3)
    )
    problem, block = problem_of(nn.Sequential(body, end).eval(), 3, output_type="classification")
    graph, X = block_graph(problem, block), points()
    logits, slack = of_graph(graph, X), block_slack(block, X, X)
    won = np.argmax(block.decode(block.predictor.predict(X)), axis=1)
    at = np.arange(len(X))
    assert np.all(logits[at, won][:, None] - logits >= -slack[at, won])
    exact = body.double()(torch.tensor(X)).detach().numpy()
    np.testing.assert_allclose(logits - logits[:, :1], exact - exact[:, :1], atol=1e-9)


def test_a_hook_that_clamps_is_in_the_graph():
    """It gave a false optimum once."""
    module = nn.Sequential(nn.Linear(FEATURES, 4), nn.ReLU(), nn.Linear(4, 1))
    module[2].register_forward_hook(lambda part, given, made: made.clamp(max=0.1))
    problem, block = problem_of(module)
    graph, X = block_graph(problem, block), points()
    assert block.description.layers_if_known() is None
    np.testing.assert_allclose(of_graph(graph, X), block.predictor.predict(X), atol=1e-6)


def test_the_missing_operation_is_named():
    class Rounded(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(FEATURES, 1)

        def forward(self, x):
            return torch.round(self.linear(x)) + self.linear(x)

    problem, block = problem_of(Rounded())
    assert block_graph(problem, block) is None
    assert np.all(np.isinf(block_slack(block, points(3), points(3))))
    with pytest.raises(UnsupportedError, match="round"):
        required_graph(problem, block)


def test_a_function_says_nothing():
    problem, block = problem_of(lambda X: X[:, :1] ** 2)
    with pytest.raises(UnsupportedError, match="has operations that are not known"):
        required_graph(problem, block)


def test_networks_of_all_kinds_have_a_graph():
    for name in NETWORKS:
        module = network(name)
        outputs = module(torch.zeros(2, FEATURES)).shape[1]
        problem, block = problem_of(module, outputs)
        assert block_graph(problem, block) is not None, name


def test_a_predictor_that_differs_from_its_operations_is_quoted(monkeypatch):
    problem, block = problem_of(nn.Sequential(nn.Linear(FEATURES, 4), nn.ReLU(), nn.Linear(4, 1)))
    answer = block.predictor.predict
    monkeypatch.setattr(block.predictor, "predict", lambda X: answer(X) + 1.0, raising=False)
    with pytest.raises(UnsupportedError, match=r"it answers .* instead of .* for output 0 at the inputs \["):
        required_graph(problem, block)
