"""Attention as one operator, against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from dovetail.core.predictor import as_predictor
from tests.predictors.onnx.oracle import error_of, model_of, slope_error, truth_of


@pytest.mark.parametrize("form", ["heads", "flat", "grouped", "causal", "masked", "capped"])
def test_attention_as_one_operator(form):
    flat = form in ("flat", "grouped")
    q, k = ((4, 6), (1, 5, 6)) if flat else ((2, 4, 3), (1, 2, 5, 3))
    if form == "grouped":
        q = (4, 12)
    attributes = {
        "flat": {"q_num_heads": 2, "kv_num_heads": 2},
        "grouped": {"q_num_heads": 4, "kv_num_heads": 2},
        "causal": {"is_causal": 1, "scale": 0.4},
        "capped": {"softcap": 1.5},
    }.get(form, {})
    draw = np.random.default_rng(0)
    constants = {"k": draw.normal(size=k).astype(np.float32), "v": draw.normal(size=k).astype(np.float32)}
    inputs = ["x", "k", "v"]
    if form == "masked":
        constants["mask"] = draw.uniform(size=(4, 5)) < 0.7
        constants["mask"][:, 0] = True
        inputs.append("mask")
    node = helper.make_node("Attention", inputs, ["y"], **attributes)
    model = model_of([node], constants, q, opset=23)
    predictor = as_predictor(model)
    X = draw.uniform(-2, 2, (1, *q)).astype(
        np.float32
    )  # the keys have one sample, which the oracle insists on
    rows = X.reshape(1, -1).astype(np.float64)
    assert error_of(predictor.predict(rows), truth_of(model, X)) < 1e-5
    assert slope_error(predictor, rows) < 2e-5
