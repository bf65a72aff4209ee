"""Functions of a model, written out where they are called."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

import dovetail as dt
from dovetail.core.predictor import as_predictor
from tests.predictors.onnx.oracle import error_of, model_of


def local_function():
    """scaled(v, w) = alpha * (v @ w), passed = w; alpha is 2 unless given."""
    nodes = [
        helper.make_node("MatMul", ["v", "w"], ["p"]),
        helper.make_node("Constant", [], ["a"]),
        helper.make_node("Mul", ["p", "a"], ["out"]),
    ]
    reference = nodes[1].attribute.add()
    reference.name, reference.ref_attr_name, reference.type = (
        "value_float",
        "alpha",
        onnx.AttributeProto.FLOAT,
    )
    return helper.make_function(
        "mine", "scaled", ["v", "w"], ["out", "w"], nodes, [helper.make_opsetid("", 20)],
        attribute_protos=[helper.make_attribute("alpha", 2.0)],
    )  # fmt: skip


def test_functions_in_the_model_are_written_out():
    nodes = [
        helper.make_node("scaled", ["x", "W"], ["h", "V"], domain="mine"),
        helper.make_node("scaled", ["h", "V"], ["y"], domain="mine", alpha=0.5),
    ]
    weight = np.random.default_rng(0).normal(size=(3, 3)).astype(np.float32)
    model = model_of(nodes, {"W": weight}, (3,), functions=[local_function()])
    X = np.random.default_rng(1).normal(size=(4, 3)).astype(np.float32)
    assert error_of(as_predictor(model).predict(X.astype(float)), X @ weight @ weight) < 1e-6


def test_functions_without_end_are_refused(monkeypatch):
    monkeypatch.setattr("dovetail.predictors.onnx.file.MOST_NODES", 2000)
    body = [helper.make_node("again", ["v"], ["a"], domain="mine"), helper.make_node("Relu", ["a"], ["out"])]
    again = helper.make_function("mine", "again", ["v"], ["out"], body, [helper.make_opsetid("", 20)])
    model = model_of([helper.make_node("again", ["x"], ["y"], domain="mine")], {}, (3,), functions=[again])
    with pytest.raises(dt.UnsupportedError, match="more than 32 deep"):
        as_predictor(model)
    twice = [
        helper.make_function(
            "mine", f"f{k}", ["v"], ["out"],
            [helper.make_node(f"f{k + 1}" if k < 30 else "Relu", [i], [o], domain="mine" if k < 30 else "")
             for i, o in (("v", "a"), ("a", "out"))],
            [helper.make_opsetid("", 20)],
        )
        for k in range(31)
    ]  # fmt: skip
    model = model_of([helper.make_node("f0", ["x"], ["y"], domain="mine")], {}, (3,), functions=twice)
    with pytest.raises(dt.UnsupportedError, match="more than 2000 nodes"):
        as_predictor(model)
