"""Layers of a network in its block: rows that other solvers use, and that dovetail knows for what they are.

The judge is HiGHS by Pyomo, which sees the rows alone, or the layers' own values.
"""

import gc
import itertools
import weakref
from types import SimpleNamespace

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from dovetail.compat.omlt.io import load_onnx_neural_network
from dovetail.compat.omlt.linear_tree import (
    LinearTreeDefinition,
    LinearTreeGDPFormulation,
    LinearTreeHybridBigMFormulation,
)
from dovetail.compat.omlt.neuralnet import (
    FullSpaceNNFormulation,
    NetworkDefinition,
    ReducedSpaceNNFormulation,
    ReluBigMFormulation,
)
from dovetail.compat.omlt.neuralnet.layer import ConvLayer2D, DenseLayer, GNNLayer, InputLayer, PoolingLayer2D
from onnx import helper, numpy_helper

import dovetail as dt
from dovetail.compat.omlt import OffsetScaling, OmltBlock, written_layers
from dovetail.compat.omlt.network import LoadedNetwork


def chained(*layers, **told):
    net = NetworkDefinition(**told)
    for layer in layers:
        net.add_layer(layer)
    for before, after in itertools.pairwise(layers):
        net.add_edge(before, after)
    return net


def dense(activation="relu", scaler=None, bounds=((-1.0, 1.0), (-2.0, 2.0))):
    rng = np.random.default_rng(3)
    hidden = DenseLayer([2], [4], rng.normal(size=(2, 4)), rng.normal(size=4), activation=activation)
    last = DenseLayer([4], [1], rng.normal(size=(4, 1)), [0.5])
    return chained(InputLayer([2]), hidden, last, scaling_object=scaler, scaled_input_bounds=bounds)


def pictures():
    rng = np.random.default_rng(4)
    return chained(
        InputLayer([1, 3, 3]),
        ConvLayer2D([1, 3, 3], [1, 2, 2], [1, 1], rng.normal(size=(1, 1, 2, 2)), activation="relu"),
        PoolingLayer2D([1, 2, 2], [1, 1, 1], [2, 2], "max", [2, 2], 1),
        DenseLayer([1, 1, 1], [1, 1, 1], [[-1.0]], [0.25]),
        scaled_input_bounds=dict.fromkeys(np.ndindex(1, 3, 3), (-1.0, 1.0)),
    )


def graph():
    rng = np.random.default_rng(5)
    over = GNNLayer([4], [4], rng.normal(size=(4, 4)), rng.normal(size=4), 2, activation="relu")
    bounds = dict.fromkeys(range(4), (-1.0, 1.0))
    return chained(
        InputLayer([4]),
        over,
        DenseLayer([4], [1], rng.normal(size=(4, 1)), [0.0]),
        scaled_input_bounds=bounds,
    )


def built(net, formulation=FullSpaceNNFormulation):
    m = pyo.ConcreteModel()
    m.nn = OmltBlock()
    if net.nodes:
        m.nn.A = pyo.Var(range(2), range(2), domain=pyo.Binary)
        m.nn.A[0, 0].fix(1)
        m.nn.A[1, 1].fix(1)
        m.same = pyo.Constraint(expr=m.nn.A[0, 1] == m.nn.A[1, 0])
    m.nn.build_formulation(formulation(net))
    m.obj = pyo.Objective(expr=sum(m.nn.outputs.values()), sense=pyo.maximize)
    return m


def by_rows(m):
    """The optimum of all that Pyomo knows, by HiGHS."""
    pyo.SolverFactory("appsi_highs").solve(m)
    return pyo.value(m.obj)


def solve(m, target=None):
    """Ends by a proof, or at the target."""
    return dt.solve(m, time_limit=60, gap=1e-5, target=target, log=False)


@pytest.mark.parametrize(
    "net",
    [dense(), dense(scaler=OffsetScaling([1.0, 2.0], [3.0, 0.5], [1.0], [2.0])), pictures(), graph()],
    ids=["dense", "scaled", "pictures", "graph"],
)
def test_the_rows_mean_the_network_and_dovetail_fills_them(net):
    m = built(net)
    best = by_rows(m)
    for variable in m.component_data_objects(pyo.Var):
        if not variable.fixed:
            variable.set_value(None)
    assert solve(m, best - 1e-5).objective == pytest.approx(best, abs=1e-4)
    rows = m.component_data_objects(pyo.Constraint, active=True)
    assert min(min(row.lslack(), row.uslack()) for row in rows) >= -1e-6
    copy = m.clone()  # which has the rows and no ties
    assert solve(copy, best - 1e-5).objective == pytest.approx(best, abs=1e-4)


def test_what_is_counted_is_what_is_there():
    m = built(dense())
    assert m.nvariables() == 2 * (2 + 1) + 2 + 2 * (4 + 1) + 4  # own and scaled, z, zhat and z, binaries
    assert m.nconstraints() == 3 + 2 + 1 + (4 + 4 * 4) + (1 + 1)
    reduced = built(dense("tanh"), ReducedSpaceNNFormulation)
    assert (reduced.nvariables(), reduced.nconstraints()) == (6, 3 + 1)


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "softplus", "linear"])
def test_curves_are_expressions_in_the_reduced_space(activation):
    net = dense(activation)
    m = built(net, ReducedSpaceNNFormulation)
    for k, x in enumerate((0.3, -0.7)):
        m.nn.inputs[k].fix(x)
        m.nn.scaled_inputs[k].set_value(x)
    x = np.array([0.3, -0.7])
    for layer in net.layers:
        x = layer.eval_single_layer(x)
    assert pyo.value(m.nn.layer[m.nn.layers.at(3)].z[0]) == pytest.approx(x.item())


def test_rows_and_limits_of_the_owners_on_what_is_inside_are_kept():
    whole = by_rows(built(dense()))
    for limit in (
        lambda m, hidden: m.add_component("own", pyo.Constraint(expr=sum(hidden.z.values()) >= 2.0)),
        lambda m, hidden: hidden.zhat[3].setlb(0.25),
        lambda m, hidden: (
            hidden.z[1].fix(2.25),
            hidden.add_component("own", pyo.Constraint(expr=hidden.z[0] + hidden.z[2] == 1.0)),
        ),
    ):
        m, other = built(dense(), ReluBigMFormulation), built(dense())
        for model in (m, other):
            limit(model, model.nn.layer[model.nn.layers.at(2)])
        best = by_rows(other)
        assert solve(m, best - 1e-5).objective == pytest.approx(best, abs=1e-4) and best < whole - 1e-3
    m = built(dense())
    m.own = pyo.Constraint(expr=m.nn.layer[m.nn.layers.at(2)].q_relu[0] == 0)
    with pytest.raises(dt.ModelError, match="only what goes into activations"):
        solve(m)


def test_what_cannot_be_written_is_solved_without(monkeypatch):
    assert built(dense(bounds=None)).nn.component("layer") is None  # ReLU has rows only where it has limits
    assert built(dense("tanh", bounds=None)).nn.component("layer") is not None
    monkeypatch.setattr(written_layers, "MOST_TERMS", 11)
    m = built(dense())
    assert m.nn.component("layer") is None and solve(m).x is not None


def test_layers_that_say_something_else_than_the_network_are_not_written():
    told = dense()
    net = LoadedNetwork(
        dense("tanh").predictor, (2,), lambda: [*told.layers], None, [(-1.0, 1.0), (-2.0, 2.0)]
    )
    assert built(net).nn.component("layer") is None


def test_a_model_that_its_owner_lets_go_is_forgotten():
    m = built(dense())
    solve(m)
    seen = weakref.ref(m)
    del m
    gc.collect()
    assert seen() is None


def test_a_float32_network_has_its_layers_in_the_block():
    torch.manual_seed(0)
    weights = [
        numpy_helper.from_array(value.detach().numpy(), name)
        for name, value in torch.nn.Linear(2, 3).named_parameters()
    ]
    gemm = helper.make_node("Gemm", ["x", "weight", "bias"], ["a"], transB=1)
    nodes = [gemm, helper.make_node("Tanh", ["a"], ["y"])]
    floats = helper.make_tensor_value_info
    made = helper.make_graph(nodes, "net", [floats("x", 1, [None, 2])], [floats("y", 1, [None, 3])], weights)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 20)])
    m = built(load_onnx_neural_network(model, None, [(-1.0, 1.0)] * 2))
    for k, x in enumerate((0.25, -0.5)):
        m.nn.inputs[k].fix(x)
    solve(m)
    last = m.nn.layer[m.nn.layers.at(2)]
    said = [m.nn.outputs[k].value for k in range(3)]
    assert [last.z[k].value for k in range(3)] == pytest.approx(said, abs=1e-6)


def leaf(slope, intercept):
    """As the linear-tree package has it."""
    coef = np.array(slope)
    return {
        "models": SimpleNamespace(coef_=coef, intercept_=intercept, predict=lambda X: X @ coef + intercept)
    }


@pytest.mark.parametrize("formulation", [LinearTreeGDPFormulation, LinearTreeHybridBigMFormulation])
def test_a_linear_tree_has_its_leaves_in_the_block(formulation):
    summary = {
        0: {"col": 0, "th": 1.0, "children": (1, 2)},
        1: leaf([1.0, 2.0], 0.5),
        2: leaf([-1.0, 0.0], 9.0),
    }
    tree = LinearTreeDefinition(summary, unscaled_input_bounds={0: (0.0, 3.0), 1: (-1.0, 1.0)})
    m = built(tree, formulation)
    for x, wanted, taken in (((0.5, 0.25), 1.5, 1), ((1.0, 1.0), 3.5, 1), ((2.5, 0.0), 6.5, 2)):
        for k in range(2):
            m.nn.inputs[k].fix(x[k])
        solve(m)
        assert pyo.value(m.nn.outputs[0]) == pytest.approx(wanted) and m.nn.leaf[taken].value == 1.0
        rows = m.component_data_objects(pyo.Constraint, active=True)
        assert min(min(row.lslack(), row.uslack()) for row in rows) >= -1e-6
    m.own = pyo.Constraint(expr=m.nn.leaf[1] == 1)
    with pytest.raises(dt.ModelError, match="inside of a predictor"):
        solve(m)
    endless = LinearTreeDefinition(summary, unscaled_input_bounds={0: (0.0, 3.0)})
    assert built(endless, formulation).nn.component("leaf") is None
