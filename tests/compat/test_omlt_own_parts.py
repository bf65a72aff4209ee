"""What OMLT's users write themselves: formulations and scalings of their own, and looks into a network."""

import pyomo.environ as pyo
import pytest
from dovetail.compat.omlt import OffsetScaling, OmltBlock
from dovetail.compat.omlt.formulation import _PyomoFormulation, _setup_scaled_inputs_outputs
from dovetail.compat.omlt.io import load_onnx_neural_network
from dovetail.compat.omlt.neuralnet import FullSpaceNNFormulation, NetworkDefinition
from dovetail.compat.omlt.neuralnet.layer import DenseLayer, InputLayer
from dovetail.compat.omlt.scaling import ScalingInterface

import dovetail as dt
from tests.compat import trained


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
