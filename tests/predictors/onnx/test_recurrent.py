"""LSTM, GRU and RNN against onnxruntime, and what they cannot do."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper, numpy_helper

import dovetail as dt
from dovetail.core.predictor import as_predictor
from tests.conftest import FULL, sample
from tests.predictors.onnx.oracle import error_of, ints, model_of, slope_error, truth_of

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def recurrent(operator, direction, taken, dtype, *, layout=0, state=False, bias=True, **attributes):
    """x (n, 5, 3) through a recurrent layer of four units, the samples first at the end."""
    draw, count, gates = np.random.default_rng(3), 2 if direction == "bidirectional" else 1, GATES[operator]
    constants = {"W": draw.normal(size=(count, gates * 4, 3)), "R": draw.normal(size=(count, gates * 4, 4))}
    if bias:
        constants["B"] = draw.normal(size=(count, gates * 8))
    constants = {name: value.astype(dtype) for name, value in constants.items()}
    inputs = ["x" if layout else "steps", "W", "R", "B" if bias else ""]
    nodes = [] if layout else [helper.make_node("Transpose", ["x"], ["steps"], perm=[1, 0, 2])]
    if state:
        constants |= {"many": ints(count, 1, 4), "one": ints(1), "zero": ints(0), "half": ints(count, 4)}
        constants["first"] = draw.normal(size=(count, 1, 4)).astype(dtype)
        nodes += [
            helper.make_node("Shape", ["x"], ["rows"], start=0, end=1),
            helper.make_node("Concat", ["count", "rows", "width"], ["shape"], axis=0),
            helper.make_node("Expand", ["first", "shape"], ["h0"]),
        ]
        constants |= {"count": ints(count), "width": ints(4)}
        inputs += ["", "h0"] + (["h0"] if operator == "LSTM" else [])
    outputs = ["Y", "Yh", "Yc"][: 3 if operator == "LSTM" else 2]
    nodes.append(
        helper.make_node(
            operator, inputs, outputs, direction=direction, hidden_size=4, layout=layout, **attributes
        )
    )
    perm = [2, 0, 1, 3] if taken == "Y" else [1, 0, 2]
    last = "Identity" if layout else "Transpose"
    nodes.append(helper.make_node(last, [taken], ["y"], **({} if layout else {"perm": perm})))
    return model_of(nodes, constants, (5, 3), dtype=dtype)


@pytest.mark.parametrize("dtype", sample([np.float32, np.float64]), ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("operator", GATES)
def test_recurrent_layers(operator, direction, dtype):
    X = np.random.default_rng(1).uniform(-2, 2, (7, 5, 3)).astype(dtype)
    variants = [{"taken": "Y"}, {"taken": "Yh"}, {"taken": "Y", "state": True}, {"taken": "Y", "bias": False}]
    if operator == "LSTM":
        variants.append({"taken": "Yc"})
    if operator == "GRU":
        variants += [{"taken": "Y", "linear_before_reset": 1}]
    if operator == "RNN":
        variants += [{"taken": "Y", "activations": ["Relu"] * (2 if direction == "bidirectional" else 1)}]
    for variant in variants if FULL or direction == "bidirectional" else variants[:1]:  # it has both in one
        model = recurrent(operator, direction, dtype=np.float32, **variant)
        truth = truth_of(model, X.astype(np.float32))
        predictor = as_predictor(recurrent(operator, direction, dtype=dtype, **variant))
        rows = X.reshape(7, -1).astype(np.float64)
        assert error_of(predictor.predict(rows), truth) < 1e-5, variant  # no oracle has float64
        assert slope_error(predictor, rows) < 2e-5, variant
        if variant == {"taken": "Y"}:
            batch_first = as_predictor(recurrent(operator, direction, dtype=dtype, layout=1, **variant))
            assert error_of(batch_first.predict(rows), truth) < 1e-5


def test_what_a_recurrent_layer_cannot_do_is_named():
    for attributes, culprit in (
        ({"clip": 1.0}, "clip="),
        ({"activations": ["Affine"]}, "activation 'Affine'"),
    ):
        model = recurrent("RNN", "forward", "Y", np.float32, **attributes)
        with pytest.raises(dt.UnsupportedError, match=rf"\(RNN\): {culprit}"):
            as_predictor(model)
    model = recurrent("LSTM", "forward", "Y", np.float32)
    model.graph.initializer.append(numpy_helper.from_array(np.zeros((1, 12), np.float32), "P"))
    (node,) = (node for node in model.graph.node if node.op_type == "LSTM")
    node.input.extend(["", "", "", "P"])
    with pytest.raises(dt.UnsupportedError, match=r"\(LSTM\): a peephole"):
        as_predictor(model)
