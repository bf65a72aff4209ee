"""OMLT's programs: a block, a definition of the network, a formulation, and the block's own variables."""

import gc
import itertools
import os
import weakref

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from dovetail.compat.omlt import OffsetScaling, OmltBlock
from dovetail.compat.omlt.gbt import GBTBigMFormulation, GradientBoostedTreeModel
from dovetail.compat.omlt.io import (
    load_keras_sequential,
    load_onnx_neural_network,
    load_onnx_neural_network_with_bounds,
    write_onnx_model_with_bounds,
)
from dovetail.compat.omlt.linear_tree import LinearTreeDefinition, LinearTreeGDPFormulation
from dovetail.compat.omlt.neuralnet import (
    FullSpaceNNFormulation,
    NetworkDefinition,
    ReducedSpaceNNFormulation,
    ReluBigMFormulation,
)
from dovetail.compat.omlt.neuralnet.activations import ComplementarityReLUActivation
from dovetail.compat.omlt.neuralnet.layer import DenseLayer, InputLayer
from onnx import helper, numpy_helper

import dovetail as dt

FLOATS = helper.make_tensor_value_info


def solve(model, target=None):
    """Ends by a proof, or at the target; the limit is for machines that are busy with something else."""
    return dt.solve(model, time_limit=60, gap=1e-4, target=target, log=False)


def bowl():
    """|x - 1| from two ReLUs, by hand."""
    net = NetworkDefinition(unscaled_input_bounds={0: (-3.0, 4.0)})
    layers = [
        InputLayer([1]),
        DenseLayer([1], [2], [[1.0, -1.0]], [-1.0, 1.0], activation="relu"),
        DenseLayer([2], [1], [[1.0], [1.0]], [0.0]),
    ]
    for layer in layers:
        net.add_layer(layer)
    for before, after in itertools.pairwise(layers):
        net.add_edge(before, after)
    return net


@pytest.mark.parametrize(
    "formulation", [FullSpaceNNFormulation, ReluBigMFormulation, ReducedSpaceNNFormulation]
)
def test_a_network_by_hand_beside_other_variables(formulation):
    m = pyo.ConcreteModel()
    m.nn = OmltBlock()
    m.nn.build_formulation(formulation(bowl()))
    m.x, m.y = pyo.Var(bounds=(2, 3)), pyo.Var()
    m.link_in = pyo.Constraint(expr=m.x == m.nn.inputs[0])
    m.link_out = pyo.Constraint(expr=m.y == m.nn.outputs[0])
    m.obj = pyo.Objective(expr=m.y)
    solve(m)
    assert pyo.value(m.x) == pytest.approx(2.0) and pyo.value(m.nn.outputs[0]) == pytest.approx(1.0)
    assert (m.nn.inputs[0].lb, m.nn.inputs[0].ub) == (-3.0, 4.0)


@pytest.fixture(scope="module")
def network():
    """2 -> 6 -> 1 with ReLUs, as an ONNX model and as torch has it."""
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(2, 6), torch.nn.ReLU(), torch.nn.Linear(6, 1))
    weights = [
        numpy_helper.from_array(value.detach().numpy(), name) for name, value in net.named_parameters()
    ]
    nodes = [
        helper.make_node("Gemm", ["x", "0.weight", "0.bias"], ["a"], transB=1),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Gemm", ["b", "2.weight", "2.bias"], ["y"], transB=1),
    ]
    graph = helper.make_graph(nodes, "net", [FLOATS("x", 1, [None, 2])], [FLOATS("y", 1, [None, 1])], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]), net


def lowest(net, low, high):
    grid = np.stack(np.meshgrid(*[np.linspace(low, high, 201)] * 2), axis=-1).reshape(-1, 2)
    with torch.no_grad():
        return float(net(torch.tensor(grid, dtype=torch.float32)).min())


def test_an_onnx_file_with_its_bounds(network, tmp_path):
    model, net = network
    copy = str(tmp_path / "copy.onnx")
    write_onnx_model_with_bounds(copy, model, [(-1.0, 1.0), (-1.0, 1.0)])
    m = pyo.ConcreteModel()
    m.nn = OmltBlock()
    m.nn.build_formulation(ReluBigMFormulation(load_onnx_neural_network_with_bounds(copy)))
    m.obj = pyo.Objective(expr=m.nn.outputs[0])
    assert solve(m).bound <= pyo.value(m.obj) <= lowest(net, -1, 1) + 1e-6


def test_scaling_is_rows_between_the_networks_variables_and_the_models(network):
    model, net = network
    scaler = OffsetScaling([10.0, 20.0], [2.0, 4.0], {0: 100.0}, {0: 5.0})
    definition = load_onnx_neural_network(model, scaler, {0: (-1.0, 1.0), 1: (-1.0, 1.0)})
    m = pyo.ConcreteModel()
    m.nn = OmltBlock()
    m.nn.build_formulation(FullSpaceNNFormulation(definition))
    m.obj = pyo.Objective(expr=m.nn.outputs[0])
    solve(m, target=100 + 5 * lowest(net, -1, 1) + 1e-4)
    assert (m.nn.inputs[1].lb, m.nn.inputs[1].ub) == (16.0, 24.0)
    assert pyo.value(m.nn.inputs[0]) == pytest.approx(10 + 2 * pyo.value(m.nn.scaled_inputs[0]), abs=1e-5)
    assert pyo.value(m.obj) == pytest.approx(100 + 5 * lowest(net, -1, 1), abs=1e-3)
    with pytest.raises(dt.OptionError, match="factor_inputs is 0.0 at index 1"):
        OffsetScaling([0.0, 0.0], [1.0, 0.0], [0.0], [1.0])
    with pytest.raises(dt.OptionError, match="offset_inputs"):
        scaler.get_scaled_input_expressions({0: 1.0})


def test_a_keras_network_with_scaled_bounds():
    keras.utils.set_random_seed(0)
    net = keras.Sequential([keras.Input((2,)), keras.layers.Dense(5, "relu"), keras.layers.Dense(2)])
    scaler = OffsetScaling([1.0, 1.0], [2.0, 2.0], [0.0, 0.0], [1.0, 1.0])
    definition = load_keras_sequential(net, scaler, unscaled_input_bounds={0: (-1.0, 3.0), 1: (-1.0, 3.0)})
    assert definition.scaled_input_bounds == {0: (-1.0, 1.0), 1: (-1.0, 1.0)}
    m = pyo.ConcreteModel()
    m.nn = OmltBlock()
    m.nn.build_formulation(FullSpaceNNFormulation(definition))
    m.obj = pyo.Objective(expr=m.nn.outputs[0] - m.nn.outputs[1], sense=pyo.maximize)
    result = solve(m, target=-1e6)  # any point will do
    inputs = np.array([[m.nn.scaled_inputs[k].value for k in (0, 1)]])
    said = net.predict(inputs, verbose=0)[0]
    assert pyo.value(m.obj) == pytest.approx(said[0] - said[1], abs=1e-5) and result.x is not None


def test_trees_by_onnx_and_linear_trees_by_their_predict():
    node = helper.make_node(
        "TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=1,
        nodes_treeids=[0, 0, 0], nodes_nodeids=[0, 1, 2], nodes_featureids=[1, 0, 0],
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_values=[0.5, 0.0, 0.0],
        nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0], target_treeids=[0, 0],
        target_nodeids=[1, 2], target_ids=[0, 0], target_weights=[7.0, 3.0])  # fmt: skip
    graph = helper.make_graph([node], "trees", [FLOATS("x", 1, [None, 2])], [FLOATS("y", 1, [None, 1])])
    opsets = [helper.make_opsetid("", 1), helper.make_opsetid("ai.onnx.ml", 3)]  # the first is not used
    trees = GradientBoostedTreeModel(
        helper.make_model(graph, opset_imports=opsets), scaled_input_bounds=[(0.0, 1.0), (0.0, 1.0)]
    )

    class LinearTree:
        n_features_in_ = 1

        def predict(self, X):
            return np.where(X[:, 0] <= 1.0, 2.0 - X[:, 0], X[:, 0])

    m = pyo.ConcreteModel()
    m.trees, m.line = OmltBlock(), OmltBlock()
    m.trees.build_formulation(GBTBigMFormulation(trees))
    m.line.build_formulation(
        LinearTreeGDPFormulation(LinearTreeDefinition(LinearTree(), None, {0: (0, 3)}), "bigm")
    )
    m.obj = pyo.Objective(expr=m.trees.outputs[0] + m.line.outputs[0])
    solve(m, target=4.0 + 1e-4)  # nothing is proved of a function
    assert trees.n_inputs == 2 and pyo.value(m.obj) == pytest.approx(4.0, abs=2e-4)
    assert m.trees.inputs[1].value > 0.5


def test_unsupported_parts_say_what_to_do():
    with pytest.raises(dt.UnsupportedError, match="activation_constraints= is not supported"):
        FullSpaceNNFormulation(bowl(), activation_constraints={"relu": None})
    own = ComplementarityReLUActivation(transform="mpec.simple_nonlinear")
    FullSpaceNNFormulation(bowl(), activation_constraints={"relu": own})  # the same function
    with pytest.raises(dt.UnsupportedError, match="load it with dovetail.compat.omlt.io"):
        FullSpaceNNFormulation(object())
    with pytest.raises(dt.UnsupportedError, match="a layer of class object is not supported"):
        NetworkDefinition().add_layer(object())
    with pytest.raises(dt.OptionError, match="one InputLayer"):
        _ = NetworkDefinition().predictor
    with pytest.raises(dt.OptionError, match="the linear tree itself"):
        LinearTreeDefinition({0: {"children": (1, 2), "col": 0, "th": 0.5}})


def test_indices_of_two_axes_and_inputs_fixed_again_and_again():
    """As OMLT's own tests have them; bounds in a row are the inputs' in their order."""
    net = NetworkDefinition(scaled_input_bounds=[(-10.0, 10.0)])
    first = InputLayer([1, 1])
    dense = DenseLayer(first.output_size, [1, 2], [[1.0, -1.0]], [0.0, 0.0], activation="relu")
    last = DenseLayer(dense.output_size, [1, 2], [[1.0, 0.0], [5.0, 1.0]], [0.0, 0.0], activation="linear")
    for layer in (first, dense, last):
        net.add_layer(layer)
    net.add_edge(first, dense)
    net.add_edge(dense, last)
    m = pyo.ConcreteModel()
    m.nn = OmltBlock()
    m.nn.build_formulation(ReluBigMFormulation(net))
    m.obj = pyo.Objective(expr=1)
    assert m.nn.inputs[0, 0].lb == -10.0 and ReluBigMFormulation(net).input_indexes == [(0, 0)]
    for x, wanted in ((-2.0, (10.0, 2.0)), (1.0, (1.0, 0.0))):
        m.nn.inputs[0, 0].fix(x)
        solve(m)
        assert tuple(pyo.value(m.nn.outputs[0, k]) for k in (0, 1)) == pytest.approx(wanted)
        said = last.eval_single_layer(dense.eval_single_layer(first.eval_single_layer([[x]])))
        assert said.tolist() == [[*wanted]]


def test_libraries_as_omlt_has_them():
    from dovetail.compat.omlt import dependencies

    assert dependencies.keras_available and dependencies.keras is keras
    assert dependencies.torch is torch and not hasattr(dependencies, "numpy")


def built():
    m = pyo.ConcreteModel()
    m.nn = OmltBlock()
    m.nn.build_formulation(ReluBigMFormulation(bowl()))
    m.obj = pyo.Objective(expr=m.nn.outputs[0])
    return m


@pytest.mark.parametrize("rows", ["layer", "layers", "input_assignment", "output_assignment"])
def test_who_asks_a_block_for_its_rows_is_told_what_to_read(rows):
    m = built()
    with pytest.raises(dt.UnsupportedError, match=f"no {rows}: .*eval_single_layer"):
        getattr(m.nn, rows)
    assert not hasattr(m.nn, rows)  # as Pyomo asks before it adds a component
    setattr(m.nn, rows, pyo.Var())
    assert getattr(m.nn, rows).ctype is pyo.Var
    with pytest.raises(AttributeError, match="nonsense"):
        _ = m.nn.nonsense


def test_a_block_has_the_variables_of_inputs_and_outputs_alone():
    m = built()
    assert (m.nvariables(), m.nconstraints()) == (4, 2)  # own and scaled


def test_other_solvers_refuse_a_network_that_they_do_not_see():
    m = built()
    with pytest.raises(dt.ModelError, match=r"dovetail\.solve\(model\)"):
        pyo.SolverFactory("appsi_highs").solve(m)
    with pytest.raises(dt.ModelError, match="a copy"):
        solve(m.clone())


def test_a_model_that_its_owner_lets_go_is_forgotten():
    m = built()
    solve(m)
    seen = weakref.ref(m)
    del m
    gc.collect()
    assert seen() is None
