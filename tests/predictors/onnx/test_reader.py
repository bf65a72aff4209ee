"""Damaged models end in errors that name what is wrong."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import dovetail as dt
from dovetail.core.predictor import as_predictor
from tests.predictors.onnx.oracle import gemm_model, ints


def damaged(change):
    model = gemm_model([[1.0, 2.0]], [0.5])
    change(model)
    return model


def integer_input(model):
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64


def second_input(model):
    model.graph.input.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, ["n", 2]))


def flat_input(model):
    model.graph.input[0].type.tensor_type.shape.dim.pop()


def time_first(model):
    model.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", TensorProto.FLOAT, [5, "n", 2]))


def training(model):
    model.graph.node[0].CopyFrom(helper.make_node("Dropout", ["x", "", "on"], ["h0"], name="drop"))
    model.graph.initializer.append(numpy_helper.from_array(np.array(True), "on"))


def bomb(model):
    model.graph.initializer.append(numpy_helper.from_array(ints(2**40, 2**20), "huge"))
    model.graph.node[1].CopyFrom(helper.make_node("ConstantOfShape", ["huge"], ["big"], name="bomb"))
    model.graph.node.append(helper.make_node("Add", ["big", "h0"], ["y"]))


def weights(*values):
    def change(model):
        model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.float32([values]), "W"))

    return change


def wrong_length(model):
    model.graph.initializer[0].raw_data = b"\0\0\0\0\0"


def complex_weights(model):
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.array([[1j, 2.0]]), "W"))


@pytest.mark.parametrize(
    ("change", "error", "culprit"),
    [
        (integer_input, dt.UnsupportedError, "input 'x' holds int64, not floats"),
        (second_input, dt.UnsupportedError, r"2 inputs \('x', 'z'\)"),
        (flat_input, dt.PredictorError, r"'x' has no shape \(samples, features"),
        (time_first, dt.PredictorError, r"shape \(5, \?, 2\).*samples must be the first axis"),
        (training, dt.UnsupportedError, r"node 'drop' \(Dropout\): training mode"),
        (bomb, dt.PredictorError, r"node 'bomb' \(ConstantOfShape\): a tensor of shape"),
        (weights(np.nan, 1.0), dt.PredictorError, "'W' holds NaN or infinity"),
        (weights(np.inf, 1.0), dt.PredictorError, "'W' holds NaN or infinity"),
        (weights(1.0, 2.0, 3.0), dt.PredictorError, r"node 'dense' \(Gemm\) fails"),
        (wrong_length, dt.PredictorError, "cannot be read"),
        (complex_weights, dt.UnsupportedError, "'W' has ONNX element type 15"),
        (lambda m: m.graph.node.pop(0), dt.PredictorError, "'h0', which no earlier node computes"),
        (lambda m: m.graph.node.pop(1), dt.PredictorError, "no node computes the output 'y'"),
        (lambda m: m.graph.node.append(m.graph.node[0]), dt.PredictorError, "'h0' is computed twice"),
        (lambda m: m.graph.ClearField("output"), dt.PredictorError, "holds no ONNX graph"),
        (lambda m: m.graph.node[0].input.pop(), None, ""),
        (lambda m: m.graph.node[0].input.__delitem__(slice(1, 3)), dt.PredictorError, "has 1 inputs"),
        (
            lambda m: m.graph.node[0].input.__setitem__(0, "W"),
            dt.PredictorError,
            "does not depend on the input",
        ),
    ],
)
def test_damaged_models(change, error, culprit):
    model = damaged(change)
    if error is None:
        as_predictor(model)
        return
    with pytest.raises(error, match=culprit):
        as_predictor(model)


def test_a_shape_that_somebody_else_reads_stays():
    """What is reshaped to one column at the end is taken without that; an earlier Reshape may share it."""
    shape = helper.make_node("Constant", [], ["shape"], value=numpy_helper.from_array(ints(-1, 1)))
    nodes = [
        shape,
        helper.make_node("Reshape", ["x", "shape"], ["tall"]),
        helper.make_node("Relu", ["tall"], ["h"]),
        helper.make_node("Reshape", ["h", "shape"], ["y"]),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 1]) for name in "xy"]
    model = helper.make_model(
        helper.make_graph(nodes, "shared", ends[:1], ends[1:]), opset_imports=[helper.make_opsetid("", 20)]
    )
    X = np.array([[-1.0], [2.0]])
    assert as_predictor(model).predict(X).tolist() == [[0.0], [2.0]]
