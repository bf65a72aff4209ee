"""Files older than opset 13: attributes that became inputs, another softmax; onnxruntime is the oracle."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import dovetail as dt
from dovetail.core.predictor import as_predictor
from dovetail.networks.layers import evaluate
from tests.predictors.onnx.oracle import answer_of, error_of, model_of, slope_error, truth_of
from tests.predictors.onnx.test_operators import TOLERANCE, of, some

IMAGE = {"shape": (2, 3, 4)}
LEARNED = (some(2), some(2), some(2), 0.5 + np.abs(some(2)))
CASES = [
    of("Squeeze", shape=(1, 6), opset=11, axes=[1]),
    of("Squeeze", shape=(6, 1), opset=9, axes=[2]),
    of("Unsqueeze", opset=11, axes=[1, 3]),
    of("Unsqueeze", opset=8, axes=[2]),
    *(of(name, **IMAGE, opset=11, axes=[1, 3], keepdims=0) for name in ("ReduceSum", "ReduceMax")),
    of("ReduceSum", **IMAGE, opset=11, axes=[-1], keepdims=1),
    of("Split", opset=11, outputs=2, taken=1, axis=1, split=[4, 2]),
    of("Split", opset=11, outputs=3, taken=2, axis=1),
    *(of(name, opset=opset) for name in ("Softmax", "LogSoftmax") for opset in (7, 11, 12)),
    *(of("Softmax", **IMAGE, opset=11, axis=axis) for axis in (1, 2, 3)),
    of("LogSoftmax", **IMAGE, opset=8, axis=2),
    of("Clip", opset=8, min=-0.5, max=1.25),
    of("Clip", opset=7, max=0.5),
    of("Clip", opset=10),
    of("Clip", np.float64(-0.5), np.float64(0.75), opset=11),
    of("Dropout", opset=7, ratio=0.5),
    of("Dropout", opset=10, ratio=0.25),
    of("BatchNormalization", *LEARNED, **IMAGE, opset=7, epsilon=1e-3),
    of("BatchNormalization", *LEARNED, **IMAGE, opset=9, momentum=0.9),
    of("Pad", shape=(3, 4), opset=10, pads=[0, 1, 0, 0, 2, 1], value=0.75),
    of("Pad", shape=(3, 4), opset=8, pads=[0, 1, 0, 0, 1, 1], mode="edge"),
    of("Slice", shape=(3, 4), opset=9, starts=[0, 1], ends=[2, 99], axes=[1, 2]),
    of("Slice", shape=(5,), opset=7, starts=[0, -3], ends=[1000, -1]),
    of("Upsample", **IMAGE, opset=8, scales=[1.0, 1.0, 2.0, 3.0]),
    of("Upsample", np.float32([1.0, 1.0, 2.0, 2.0]), **IMAGE, opset=9),
    of("Gemm", some(6, 3), some(3), opset=7),
    of("MatMul", some(6, 3), opset=8),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.operator}-{case.opset}-{case.attributes}")
def test_older_operators_mean_what_they_meant(case):
    model = case.model(np.float32)
    predictor = as_predictor(model)
    rng = np.random.default_rng(1)
    X = rng.uniform(case.low, case.high, (5, *case.shape)).astype(np.float32)
    rows = X.reshape(5, -1).astype(np.float64)
    assert error_of(predictor.predict(rows), truth_of(model, X)) < TOLERANCE[np.float32]
    assert slope_error(predictor, rows) < 1e-5


def test_an_attribute_that_a_newer_file_cannot_have_is_refused():
    with pytest.raises(dt.UnsupportedError, match="attribute 'axes'"):
        as_predictor(of("Squeeze", shape=(1, 6), opset=13, axes=[1]).model(np.float32))
    with pytest.raises(dt.UnsupportedError, match="Upsample in opset 11"):
        as_predictor(of("Upsample", **IMAGE, opset=11, scales=[1.0, 1.0, 2.0, 3.0]).model(np.float32))
    with pytest.raises(dt.UnsupportedError, match="spatial=0"):
        as_predictor(of("BatchNormalization", *[some(2)] * 4, **IMAGE, opset=8, spatial=0).model(np.float32))
    with pytest.raises(dt.PredictorError, match="cannot be; the file is damaged"):
        as_predictor(of("Unsqueeze", opset=11).model(np.float32))
    with pytest.raises(dt.UnsupportedError, match="uses opset 6; 7 to 28 are supported"):
        as_predictor(of("Relu", opset=6).model(np.float32))


def exported_mlp(opset=9, last="initializer"):
    """As skl2onnx writes an MLPRegressor of four outputs: laid out in one column at the end."""
    rng = np.random.default_rng(0)
    weights = {
        "W0": rng.normal(size=(3, 5)), "b0": rng.normal(size=(1, 5)),
        "W1": rng.normal(size=(5, 4)), "b1": rng.normal(size=(1, 4)),
    }  # fmt: skip
    constants = {name: value.astype(np.float32) for name, value in weights.items()}
    shape = np.int64([-1, 1])
    nodes = [
        helper.make_node("Cast", ["x"], ["cast"], to=TensorProto.FLOAT),
        helper.make_node("MatMul", ["cast", "W0"], ["m0"]),
        helper.make_node("Add", ["m0", "b0"], ["a0"]),
        helper.make_node("Relu", ["a0"], ["h"]),
        helper.make_node("MatMul", ["h", "W1"], ["m1"]),
        helper.make_node("Add", ["m1", "b1"], ["a1"]),
    ]
    if last == "initializer":
        constants["shape"] = shape
    else:
        nodes.append(helper.make_node("Constant", [], ["shape"], value=numpy_helper.from_array(shape)))
    nodes.append(helper.make_node("Reshape", ["a1", "shape"], ["y"]))
    return model_of(nodes, constants, (3,), opset=opset), weights


@pytest.mark.parametrize("last", ["initializer", "constant"])
def test_several_outputs_in_one_column_are_told_apart(last):
    model, w = exported_mlp(last=last)
    X = np.random.default_rng(1).normal(size=(6, 3))
    truth = np.maximum(X @ w["W0"] + w["b0"], 0.0) @ w["W1"] + w["b1"]
    predictor = as_predictor(model)
    assert error_of(predictor.predict(X), truth) < 1e-5
    column = answer_of(model, X.astype(np.float32))  # what a runtime says, sample after sample
    assert error_of(column.reshape(6, 4), truth) < 1e-5
    assert error_of(evaluate(predictor.describe(X).layers(), X), truth) < 1e-5
