"""What OMLT's users write themselves: scalings of their own, and looks into a network."""

import pyomo.environ as pyo
import pytest
from dovetail.compat.omlt import OmltBlock
from dovetail.compat.omlt.io import load_onnx_neural_network
from dovetail.compat.omlt.neuralnet import FullSpaceNNFormulation, NetworkDefinition
from dovetail.compat.omlt.neuralnet.layer import DenseLayer, InputLayer
from dovetail.compat.omlt.scaling import ScalingInterface

import dovetail as dt
from tests.compat import trained


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


def test_a_formulation_of_ones_own_is_refused():
    m = pyo.ConcreteModel()
    m.own = OmltBlock()
    with pytest.raises(dt.UnsupportedError, match="object is no formulation.*to the model itself"):
        m.own.build_formulation(object())
