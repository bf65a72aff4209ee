"""Layers of OMLT's by hand: convolutions, pooling, graphs; each as numpy has it, and in a network."""

import itertools
import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from dovetail.compat.omlt import OmltBlock
from dovetail.compat.omlt.io import load_keras_sequential, load_onnx_neural_network
from dovetail.compat.omlt.linear_tree import LinearTreeDefinition
from dovetail.compat.omlt.neuralnet import FullSpaceNNFormulation, NetworkDefinition
from dovetail.compat.omlt.neuralnet.layer import (
    ConvLayer2D,
    DenseLayer,
    GNNLayer,
    IndexMapper,
    InputLayer,
    PoolingLayer2D,
)
from onnx import helper, numpy_helper

import dovetail as dt
from tests.compat import trained

rng = np.random.default_rng(0)


def network(*layers, bounds=None):
    net = NetworkDefinition(scaled_input_bounds=bounds)
    for layer in layers:
        net.add_layer(layer)
    for before, after in itertools.pairwise(layers):
        net.add_edge(before, after)
    return net


def windows(picture, shape, strides, rows, columns):
    """What is under a kernel at each of its places; less at an end that it stands out of."""
    for r, c in np.ndindex(rows, columns):
        top, left = r * strides[0], c * strides[1]
        yield r, c, picture[:, top : top + shape[0], left : left + shape[1]]


@pytest.mark.parametrize("strides", [(1, 1), (2, 1), (1, 2)])
def test_a_convolution(strides):
    picture, kernel = rng.normal(size=(2, 5, 4)), rng.normal(size=(3, 2, 2, 3))
    rows, columns = (5 - 2) // strides[0] + 1, (4 - 3) // strides[1] + 1
    layer = ConvLayer2D([2, 5, 4], [3, rows, columns], strides, kernel, activation="relu")
    wanted = np.zeros((3, rows, columns))
    for r, c, part in windows(picture, (2, 3), strides, rows, columns):
        wanted[:, r, c] = np.maximum(np.sum(kernel * part, axis=(1, 2, 3)), 0.0)
    assert layer.eval_single_layer(picture) == pytest.approx(wanted)
    with pytest.raises(dt.OptionError, match=r"gives \[3, 4, 2\]"):
        ConvLayer2D([2, 5, 4], [3, 9, 9], [1, 1], kernel).eval_single_layer(picture)


@pytest.mark.parametrize(("rows", "columns"), [(2, 1), (3, 2)])
def test_pooling_by_whole_kernels_and_by_partial_ones(rows, columns):
    picture = rng.normal(size=(1, 6, 4))
    layer = PoolingLayer2D([1, 6, 4], [1, rows, columns], [2, 2], "max", [3, 3], 1)
    wanted = np.zeros((1, rows, columns))
    for r, c, part in windows(picture, (3, 3), (2, 2), rows, columns):
        wanted[0, r, c] = part.max()
    assert layer.eval_single_layer(picture) == pytest.approx(wanted)


def test_what_pooling_is_not_taken():
    with pytest.raises(dt.UnsupportedError, match="only by 'max'"):
        PoolingLayer2D([1, 4, 4], [1, 2, 2], [2, 2], "mean", [2, 2], 1)
    deep = PoolingLayer2D([3, 4, 4], [3, 2, 2], [2, 2], "max", [2, 2], 3)
    with pytest.raises(dt.UnsupportedError, match="of depth 3"):
        deep.eval_single_layer(np.zeros((3, 4, 4)))


def test_dense_layers_go_along_the_last_axis_and_mappers_change_shapes_alone():
    weights, biases = rng.normal(size=(3, 2)), rng.normal(size=2)
    mapper = IndexMapper([3, 2], [2, 3])
    layer = DenseLayer([2, 3], [2, 2], weights, biases, input_index_mapper=mapper)
    x = rng.normal(size=(3, 2))
    assert layer.eval_single_layer(x) == pytest.approx(x.reshape(2, 3) @ weights + biases)
    with pytest.raises(dt.OptionError, match="got 5 numbers"):
        layer.eval_single_layer(np.zeros(5))


def test_biases_of_each_row():
    """As OMLT's page on building networks has them: (rows, 1), and (1, 1) for a single number."""
    x, weights = rng.normal(size=(2, 2)), np.array([[1.0], [-0.5]])
    by_row = DenseLayer([2, 2], [2, 1], weights, [[0.1], [0.25]], activation="relu")
    wanted = np.maximum(x @ weights + [[0.1], [0.25]], 0.0)
    assert by_row.eval_single_layer(x) == pytest.approx(wanted)
    last = DenseLayer([2], [1], [[2.0], [-1.0]], [[0.5]], input_index_mapper=IndexMapper([2, 1], [2]))
    assert last.eval_single_layer(wanted) == pytest.approx(wanted.ravel() @ [2.0, -1.0] + 0.5)


def test_a_network_of_pictures():
    """The smallest of a few: what is under two kernels, the largest of it, weighed."""
    size = [1, 3, 3]
    net = network(
        InputLayer(size),
        ConvLayer2D(size, [1, 2, 2], [1, 1], [[[[1.0, -1.0], [0.5, 0.0]]]], activation="relu"),
        PoolingLayer2D([1, 2, 2], [1, 1, 2], [1, 1], "max", [2, 1], 1),
        DenseLayer([2], [1], [[1.0], [-2.0]], [0.5], input_index_mapper=IndexMapper([1, 1, 2], [2])),
        bounds=dict.fromkeys(np.ndindex(*size), (-1.0, 1.0)),
    )
    m = pyo.ConcreteModel()
    m.nn = OmltBlock()
    m.nn.build_formulation(FullSpaceNNFormulation(net))
    m.obj = pyo.Objective(expr=m.nn.outputs[0])
    result = dt.solve(m, time_limit=60, target=-4.5 + 1e-3, log=False)  # 0.5 - 2 (1 + 1 + 0.5): the least
    assert result.objective == pytest.approx(-4.5, abs=2e-3)
    x = np.array([m.nn.inputs[index].value for index in np.ndindex(*size)]).reshape(size)
    for layer in net.layers:
        x = layer.eval_single_layer(x)
    assert x == pytest.approx(result.objective, abs=1e-5)


def joined(layer, x, edges):
    """A graph's layer of two nodes written out: two numbers of each go in, three come out."""
    weights = layer.weights * np.kron(edges, np.ones((2, 3)))
    return x @ weights + layer.biases


def test_a_network_of_a_graph_whose_edges_are_chosen():
    layer = GNNLayer([4], [6], rng.normal(size=(4, 6)), rng.normal(size=6), N=2)
    last = DenseLayer([6], [1], rng.normal(size=(6, 1)), [0.0])
    net = network(InputLayer([4]), layer, last, bounds=dict.fromkeys(range(4), (0.5, 0.5)))
    x = np.full(4, 0.5)
    assert layer.eval_single_layer(x) == pytest.approx(joined(layer, x, np.ones((2, 2))))
    m = pyo.ConcreteModel()
    m.nn = OmltBlock()
    with pytest.raises(dt.OptionError, match="give the block a variable A"):
        m.nn.build_formulation(FullSpaceNNFormulation(net))
    m.other = OmltBlock()
    m.other.A = pyo.Var(range(2), range(2), domain=pyo.Binary)
    m.other.build_formulation(FullSpaceNNFormulation(net))
    m.obj = pyo.Objective(expr=m.other.outputs[0])
    every = [np.reshape(edges, (2, 2)) for edges in itertools.product((0.0, 1.0), repeat=4)]
    best = min((joined(layer, x, edges) @ last.weights)[0] for edges in every)
    result = dt.solve(m, time_limit=60, target=best + 1e-6, log=False)
    assert result.objective == pytest.approx(best, abs=1e-5)
    with pytest.raises(dt.OptionError, match="output_size is 5 for 2 nodes"):
        GNNLayer([4], [5], np.zeros((4, 5)), np.zeros(5), N=2)


def test_layers_that_are_no_chain_are_refused_where_they_are_passed():
    first, dense = InputLayer([1]), DenseLayer([1], [1], [[1.0]], [0.0])
    net = network(first, dense)
    assert [*net.layers] == [first, dense]
    with pytest.raises(dt.OptionError, match="to_layer is .* no layer of this network"):
        net.add_edge(dense, DenseLayer([1], [1], [[1.0]], [0.0]))
    with pytest.raises(dt.OptionError, match="from_layer is .* no layer of this network"):
        net.add_edge(DenseLayer([1], [1], [[1.0]], [0.0]), dense)
    formulation = FullSpaceNNFormulation(net)
    net.add_layer(InputLayer([1]))
    with pytest.raises(dt.OptionError, match="3 layers with 1 edges are no chain"):
        _ = formulation.input_indexes
    forked = network(first, dense)
    for weight in (2.0, 3.0):
        forked.add_layer(other := DenseLayer([1], [1], [[weight]], [0.0]))
        forked.add_edge(first, other)
        with pytest.raises(dt.OptionError, match="are no chain: .* as an ONNX model"):
            FullSpaceNNFormulation(forked)
    circle = network(first, dense)
    circle.add_edge(dense, first)
    with pytest.raises(dt.OptionError, match="2 layers with 2 edges are no chain"):
        FullSpaceNNFormulation(circle)


def through(layers, x):
    for layer in layers:
        x = layer.eval_single_layer(x)
    return x


def test_layers_of_trained_networks():
    """As OMLT lists them: what they make of a sample, one after the other, is what the network says."""
    onnx, keras_net = load_onnx_neural_network(trained.onnx_network()), trained.keras_network()
    x = np.array([0.3, 0.6, 0.9])
    with torch.no_grad():
        said = trained.network()(torch.tensor(x[None], dtype=torch.float32)).numpy()
    assert through(onnx.layers, x) == pytest.approx(said[0], abs=1e-6)
    assert [layer.activation for layer in onnx.layers] == ["linear", "relu", "linear"]
    dense = load_keras_sequential(keras_net)
    assert through(dense.layers, x) == pytest.approx(keras_net.predict(x[None], verbose=0)[0], abs=1e-6)
    assert [layer.activation for layer in dense.layers] == ["linear", "relu", "linear"]
    with pytest.raises(dt.UnsupportedError, match="trees have no layers"):
        _ = LinearTreeDefinition(trained.fitted("LinearRegression")).layers


def test_layers_of_a_trained_network_of_pictures():
    net = torch.nn.Sequential(
        torch.nn.Conv2d(2, 1, 2, stride=(1, 2)), torch.nn.ReLU(), torch.nn.MaxPool2d((2, 1)),
        torch.nn.Flatten(), torch.nn.Linear(4, 2), torch.nn.Tanh())  # fmt: skip
    weights = [numpy_helper.from_array(w.detach().numpy(), name) for name, w in net.named_parameters()]
    nodes = [
        helper.make_node("Conv", ["x", "0.weight", "0.bias"], ["a"], strides=[1, 2]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MaxPool", ["b"], ["c"], kernel_shape=[2, 1], strides=[2, 1]),
        helper.make_node("Flatten", ["c"], ["d"]),
        helper.make_node("Gemm", ["d", "4.weight", "4.bias"], ["e"], transB=1),
        helper.make_node("Tanh", ["e"], ["y"]),
    ]
    floats = helper.make_tensor_value_info
    x, y = floats("x", 1, [None, 2, 5, 4]), floats("y", 1, [None, 2])
    model = helper.make_model(
        helper.make_graph(nodes, "cnn", [x], [y], weights), opset_imports=[helper.make_opsetid("", 17)]
    )
    picture = rng.normal(size=(2, 5, 4))
    with torch.no_grad():
        said = net(torch.tensor(picture[None], dtype=torch.float32)).numpy()
    definition = load_onnx_neural_network(model)
    assert through(definition.layers, picture) == pytest.approx(said[0], abs=1e-5)
    assert [layer.output_size for layer in definition.layers] == [[2, 5, 4], [1, 4, 2], [1, 2, 2], [2]]
    seen = helper.make_graph(nodes[:2], "kernel", [x], [floats("b", 1, [None, 1, 4, 2])], weights[:2])
    m = pyo.ConcreteModel()
    m.nn = OmltBlock()
    kernel = helper.make_model(seen, opset_imports=[helper.make_opsetid("", 17)])
    m.nn.build_formulation(FullSpaceNNFormulation(load_onnx_neural_network(kernel)))
    assert [*m.nn.outputs] == [*np.ndindex(1, 4, 2)]  # outputs are indexed as the last layer's are
    rows = numpy_helper.from_array(np.array([-1, 4]), "rows")
    nodes[3] = helper.make_node("Reshape", ["c", "rows"], ["d"])
    row = helper.make_model(
        helper.make_graph(nodes, "cnn", [x], [y], [*weights, rows]),
        opset_imports=[helper.make_opsetid("", 17)],
    )
    m.row = OmltBlock()
    m.row.build_formulation(FullSpaceNNFormulation(load_onnx_neural_network(row)))
    assert [*m.row.outputs] == [(0, 0), (0, 1)]  # as in OMLT
    assert through(load_onnx_neural_network(row).layers, picture) == pytest.approx(said, abs=1e-5)
    nodes[4] = helper.make_node("Gemm", ["d", "4.weight", "4.bias"], ["e"], transB=1, alpha=2.0)
    twice = helper.make_model(
        helper.make_graph(nodes, "cnn", [x], [y], [*weights, rows]),
        opset_imports=[helper.make_opsetid("", 17)],
    )
    with pytest.raises(dt.UnsupportedError, match="cannot be listed; the network itself can be solved"):
        _ = load_onnx_neural_network(twice).layers
