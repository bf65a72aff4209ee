"""Networks of torch_geometric: stand-ins with what its modules hold, against their formulas node by node."""

import itertools

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from dovetail.compat.omlt import OmltBlock
from dovetail.compat.omlt.io.torch_geometric import (
    gnn_with_fixed_graph,
    gnn_with_non_fixed_graph,
    load_torch_geometric_sequential,
)

import dovetail as dt

LINE = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])


class GCNConv(torch.nn.Module):
    """sum over u, v itself among them, of W x(u) / sqrt(degree(u) degree(v)), and a bias."""

    def __init__(self, n_in, n_out, improved=False):
        super().__init__()
        self.in_channels, self.improved = n_in, improved
        self.lin, self.bias = torch.nn.Linear(n_in, n_out, bias=False), torch.nn.Parameter(torch.randn(n_out))

    def forward(self, x, A):
        A = np.maximum(A, np.eye(len(A)))
        degree = A.sum(axis=0)
        rows = [
            sum(A[u, v] / np.sqrt(degree[u] * degree[v]) * self.lin(x[u]) for u in range(len(A))) + self.bias
            for v in range(len(A))
        ]
        return torch.stack(rows)


class SAGEConv(torch.nn.Module):
    """The sum or mean of the neighbours through one layer, the node through another."""

    def __init__(self, n_in, n_out, aggr="sum", root_weight=True):
        super().__init__()
        self.in_channels, self.aggr, self.root_weight = n_in, aggr, root_weight
        self.lin_l = torch.nn.Linear(n_in, n_out)
        self.lin_r = torch.nn.Linear(n_in, n_out, bias=False) if root_weight else None

    def forward(self, x, A):
        rows = []
        for v in range(len(A)):
            near = [x[u] for u in range(len(A)) if A[u, v] and u != v]
            total = sum(near) if near else torch.zeros_like(x[0])
            row = self.lin_l(total / max(len(near), 1) if self.aggr == "mean" else total)
            rows.append(row + self.lin_r(x[v]) if self.root_weight else row)
        return torch.stack(rows)


def global_add_pool(x):
    return x.sum(dim=0, keepdim=True)


def global_mean_pool(x):
    return x.mean(dim=0, keepdim=True)


def network(conv, pool=global_add_pool, activation=torch.nn.ReLU):
    torch.manual_seed(3)
    return [
        conv(2, 4),
        activation(),
        torch.nn.Linear(4, 3),
        pool,
        torch.nn.Linear(3, 2),
        torch.nn.Linear(2, 1),
    ]


def said(parts, x, A):
    x = torch.tensor(x, dtype=torch.float32)
    with torch.no_grad():
        for part in parts:
            x = part(x, A) if type(part).__name__.endswith("Conv") else part(x)
    return x.numpy().ravel()


CONVOLUTIONS = [
    GCNConv,
    SAGEConv,
    lambda a, b: SAGEConv(a, b, "mean"),
    lambda a, b: SAGEConv(a, b, "sum", root_weight=False),
]


@pytest.mark.parametrize("A", [LINE, np.zeros((3, 3), dtype=int), LINE + np.eye(3, dtype=int)])
@pytest.mark.parametrize("conv", CONVOLUTIONS)
@pytest.mark.parametrize(
    ("pool", "activation"), [(global_mean_pool, torch.nn.ReLU), (global_add_pool, torch.nn.Tanh)]
)
def test_what_a_network_says_of_a_graph(A, conv, pool, activation):
    parts, x = network(conv, pool, activation), np.random.default_rng(0).normal(size=(3, 2))
    net = load_torch_geometric_sequential(parts, 3, A)
    edges = np.maximum(A, np.eye(3))
    row = torch.tensor(np.concatenate([x.ravel(), edges.ravel()])[None])
    assert net.predictor(row).detach().numpy().ravel() == pytest.approx(said(parts, x, A), abs=1e-5)
    assert [layer.activation for layer in net.layers][1] == activation.__name__.lower()
    assert len([*net.layers]) == 6


def test_a_fixed_graph_in_a_block():
    parts, x = network(GCNConv), np.random.default_rng(1).normal(size=(3, 2))
    m = pyo.ConcreteModel()
    m.nn = OmltBlock()
    bounds = {k: (value, value) for k, value in enumerate(x.ravel())}
    assert gnn_with_fixed_graph(m.nn, parts, 3, LINE, scaled_input_bounds=bounds) is m.nn
    m.obj = pyo.Objective(expr=m.nn.outputs[0])
    dt.solve(m, log=False)
    assert pyo.value(m.obj) == pytest.approx(said(parts, x, LINE)[0], abs=1e-4)
    assert m.nn.A[0, 1].value == m.nn.A[2, 2].value == 1 and m.nn.A[0, 2].fixed


def test_the_best_graph_is_the_best_of_all():
    parts, x = network(SAGEConv), np.random.default_rng(2).normal(size=(3, 2))
    m = pyo.ConcreteModel()
    m.nn = OmltBlock()
    bounds = {k: (value, value) for k, value in enumerate(x.ravel())}
    gnn_with_non_fixed_graph(m.nn, parts, 3, None, bounds)
    m.obj = pyo.Objective(expr=m.nn.outputs[0])
    every = []
    for pairs in itertools.product((0, 1), repeat=3):
        A = np.zeros((3, 3), dtype=int)
        A[np.triu_indices(3, 1)] = pairs
        every.append(said(parts, x, A + A.T)[0])
    result = dt.solve(m, time_limit=60, target=min(every) + 1e-5, log=False)
    assert result.objective == pytest.approx(min(every), abs=1e-4)
    assert m.nn.A[0, 1].value == m.nn.A[1, 0].value


@pytest.mark.parametrize(
    ("parts", "A", "word"),
    [
        ([GCNConv(2, 2)], None, "needs a graph that is fixed"),
        ([SAGEConv(2, 2, "mean")], None, "needs a graph that is fixed"),
        ([SAGEConv(2, 2, "max")], LINE, "aggr='max' is not supported"),
        ([GCNConv(2, 2, improved=True)], LINE, "improved=True is not supported"),
        ([torch.nn.Linear(2, 2), torch.nn.GELU()], LINE, "GELU of torch_geometric is not supported"),
        ([torch.nn.Linear(2, 2)], LINE[:2], "A has shape"),
        ([torch.nn.Linear(2, 2)], np.triu(LINE), "the same both ways"),
    ],
)
def test_what_is_not_taken(parts, A, word):
    with pytest.raises(ValueError, match=word):
        load_torch_geometric_sequential(parts, 3, A)
