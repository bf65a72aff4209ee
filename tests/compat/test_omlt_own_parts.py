"""What OMLT's users write themselves: formulations and scalings of their own, and looks into a network."""

import numpy as np
import pyomo.environ as pyo
import pytest
from dovetail.compat.omlt import OffsetScaling, OmltBlock
from dovetail.compat.omlt.formulation import _PyomoFormulation, _setup_scaled_inputs_outputs
from dovetail.compat.omlt.gbt.gbt_formulation import add_formulation_to_block
from dovetail.compat.omlt.io import load_onnx_neural_network
from dovetail.compat.omlt.linear_tree import LinearTreeDefinition, LinearTreeGDPFormulation
from dovetail.compat.omlt.neuralnet import FullSpaceNNFormulation, NetworkDefinition
from dovetail.compat.omlt.neuralnet.layer import DenseLayer, InputLayer
from dovetail.compat.omlt.scaling import ScalingInterface
from onnx import helper

import dovetail as dt
from tests.compat import trained

rng = np.random.default_rng(1)


class Doubled(_PyomoFormulation):
    """Outputs twice the inputs, of any indices, by rows of Pyomo's."""

    def __init__(self, indexes, scaling=None):
        super().__init__()
        self.input_indexes = self.output_indexes = indexes
        self._scaling = scaling

    input_indexes = output_indexes = None  # set for each; the base class only asks that they are there

    def _build_formulation(self):
        bounds = dict.fromkeys(self.input_indexes, (-1.0, 1.0))
        _setup_scaled_inputs_outputs(self.block, self._scaling, bounds)
        self.block.twice = pyo.Constraint(
            self.block.inputs_set, rule=lambda b, *k: b.scaled_outputs[k] == 2 * b.scaled_inputs[k]
        )


@pytest.mark.parametrize("indexes", [["a", "b"], [(0, 1), (7, 2)]])
def test_a_formulation_of_ones_own_fills_the_block(indexes):
    first, second = indexes
    m = pyo.ConcreteModel()
    m.own = OmltBlock()
    own = Doubled(indexes)
    assert own.block is None
    m.own.build_formulation(own)
    assert own.block is m.own and [*m.own.inputs] == [*m.own.outputs] == indexes
    m.obj = pyo.Objective(expr=m.own.outputs[first] - m.own.outputs[second])
    result = dt.solve(m, log=False)
    assert result.status == "optimal" and pyo.value(m.obj) == pytest.approx(-4.0)
    assert m.own.inputs[first].value == pytest.approx(-1.0)


def test_its_scaling_is_rows_and_bounds_of_the_models_inputs():
    m = pyo.ConcreteModel()
    m.own = OmltBlock()
    m.own.build_formulation(Doubled([0], OffsetScaling([10.0], [4.0], [100.0], [3.0])))
    m.obj = pyo.Objective(expr=m.own.outputs[0])
    dt.solve(m, log=False)
    assert (m.own.inputs[0].lb, m.own.inputs[0].ub) == (6.0, 14.0)
    assert m.own.inputs[0].value == pytest.approx(6.0) and pyo.value(m.obj) == pytest.approx(100 - 2 * 3)


@pytest.mark.parametrize("what", ["input", "output"])
def test_a_formulation_without_indices_is_refused(what):
    m = pyo.ConcreteModel()
    m.own = OmltBlock()
    empty = Doubled([0])
    setattr(empty, f"{what}_indexes", [])
    with pytest.raises(ValueError, match=f"has no {what}s"):
        m.own.build_formulation(empty)


class Tenfold(ScalingInterface):
    """Without a way back for the inputs, which OMLT does not ask for."""

    def get_scaled_input_expressions(self, input_vars):
        return {k: v / 10 for k, v in input_vars.items()}

    def get_unscaled_output_expressions(self, scaled_output_vars):
        return {k: v * 10 for k, v in scaled_output_vars.items()}


def test_a_scaling_of_ones_own():
    net = NetworkDefinition(Tenfold(), scaled_input_bounds={0: (-1.0, 1.0)})
    layers = [InputLayer([1]), DenseLayer([1], [1], [[3.0]], [0.5])]
    for layer in layers:
        net.add_layer(layer)
    net.add_edge(*layers)
    m = pyo.ConcreteModel()
    m.nn = OmltBlock()
    m.nn.build_formulation(FullSpaceNNFormulation(net))
    m.obj = pyo.Objective(expr=m.nn.outputs[0])
    dt.solve(m, log=False)
    assert m.nn.inputs[0].value == pytest.approx(-10.0) and pyo.value(m.obj) == pytest.approx(-25.0)


def test_layers_of_a_read_network_are_a_chain_that_stays():
    net = load_onnx_neural_network(trained.onnx_network())
    assert isinstance(net, NetworkDefinition)
    layers = [*net.layers]
    assert all(a is b for a, b in zip(layers, net.layers, strict=True)) and str(len(layers)) in str(net)
    with pytest.raises(dt.UnsupportedError, match="NetworkDefinition of your own"):
        net.add_layer(layers[1])


def test_pooling_of_a_file_that_names_the_depth():
    """OMLT's own test file is one; samples are an axis of size 1 in it."""
    floats = helper.make_tensor_value_info
    nodes = [
        helper.make_node("MaxPool", ["x"], ["a"], kernel_shape=[3, 2, 3]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MaxPool", ["b"], ["y"], kernel_shape=[4, 2], strides=[3, 1], ceil_mode=1),
    ]
    graph = helper.make_graph(nodes, "pool", [floats("x", 1, [1, 3, 6, 7])], [floats("y", 1, [1, 3, 2, 4])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    _, first, last = load_onnx_neural_network(model).layers
    assert first.kernel_shape == (2, 3) and first.output_size == [3, 5, 5]
    assert first.activation == "relu" and last.output_size == [3, 2, 4]


def test_a_transformation_that_is_none():
    tree = LinearTreeDefinition(trained.fitted("LinearRegression"))
    with pytest.raises(NotImplementedError, match="'huge' is not known"):
        LinearTreeGDPFormulation(tree, transformation="huge")
    assert LinearTreeGDPFormulation(lt_definition=tree, transformation="hull", epsilon=1e-4).epsilon == 1e-4


def test_a_tree_tied_to_variables_that_are_there():
    tree = trained.fitted("DecisionTreeRegressor")
    X = np.random.default_rng(0).uniform(size=(200, tree.n_features_in_))

    class Given:
        predictor = tree

    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(tree.n_features_in_), bounds=(0, 1))
    m.y = pyo.Var(range(1))
    m.trees = pyo.Block()
    add_formulation_to_block(m.trees, Given(), m.x, m.y)
    m.obj = pyo.Objective(expr=m.y[0])
    result = dt.solve(m, log=False)
    assert result.objective <= tree.predict(X).min() + 1e-6
    assert tree.predict([[m.x[k].value for k in m.x]])[0] == pytest.approx(m.y[0].value)
