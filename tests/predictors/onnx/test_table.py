"""The table of operators: each once, and what is not in it is named before anything runs."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from onnx import TensorProto, helper

import dovetail as dt
from dovetail.core.predictor import as_predictor
from dovetail.predictors.onnx.node import Operator
from dovetail.predictors.onnx.operators import table
from tests.predictors.onnx.oracle import model_of

FAMILIES = Path(table.__file__).parent.glob("*.py")


def test_every_operator_of_every_family_is_in_the_table_once():
    listed = []
    for path in FAMILIES:
        family = importlib.import_module(f"dovetail.predictors.onnx.operators.{path.stem}")
        for value in vars(family).values():
            own = isinstance(value, dict) and value is not table.OPERATORS
            if own and path.stem != "table" and isinstance(next(iter(value.values()), None), Operator):
                listed += value
    assert sorted(listed) == sorted(set(listed)) == sorted(table.OPERATORS)


def one(op, *, domain="", opset=20, **attributes):
    model = model_of([helper.make_node(op, ["x"], ["y"], name="odd", domain=domain, **attributes)], {}, (3,))
    model.opset_import[0].version = opset
    return model


BODY = helper.make_graph([], "body", [], [])


@pytest.mark.parametrize(
    ("model", "culprit"),
    [
        (one("Nonsense"), r"operator Nonsense \(node 'odd'\) is not supported"),
        (one("NonZero"), r"operator NonZero \(node 'odd'\)"),
        (one("FusedConv", domain="com.microsoft"), r"FusedConv of domain 'com.microsoft' \(node 'odd'\)"),
        (one("Scaler", domain="ai.onnx.ml"), r"Scaler of domain 'ai.onnx.ml'.*scikit-learn"),
        (one("QuantizeLinear"), r"QuantizeLinear \(node 'odd'\).*quantised"),
        (one("DequantizeLinear"), r"DequantizeLinear .*quantised"),
        (one("If", then_branch=BODY, else_branch=BODY), r"operator If \(node 'odd'\).*control flow"),
        (one("Loop", body=BODY), r"operator Loop \(node 'odd'\).*control flow"),
        (one("Scan", body=BODY, num_scan_inputs=1), r"operator Scan \(node 'odd'\).*control flow"),
        (one("Relu", opset=6), r"opset 6; 7 to"),
        (one("Relu", opset=99), r"opset 99, newer"),
        (one("Relu", alpha=0.1), r"node 'odd' \(Relu\): attribute 'alpha'"),
        (one("Gelu", approximate="sometimes"), r"\(Gelu\): approximate='sometimes'"),
        (one("Cast", to=TensorProto.STRING), r"\(Cast\): element type 8"),
        (one("ArgMax"), r"no gradient: node 'odd' \(ArgMax\)"),
        (one("AveragePool", kernel_shape=[2], dilations=[2]), r"\(AveragePool\): a dilation"),
        (one("BatchNormalization", training_mode=1), r"has 1 inputs"),
    ],
)
def test_what_is_not_supported_is_named_before_anything_runs(model, culprit, monkeypatch):
    def forbidden(*_):
        raise AssertionError("something ran")

    monkeypatch.setattr("dovetail.predictors.onnx.module.folded_constants", forbidden)
    monkeypatch.setattr("dovetail.predictors.onnx.module.OnnxModule._values", forbidden)
    with pytest.raises((dt.UnsupportedError, dt.PredictorError), match=culprit):
        as_predictor(model)
