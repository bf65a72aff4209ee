"""Small ONNX models, what onnxruntime says of them, and how far ours is from it."""

from __future__ import annotations

import numpy as np
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

onnxruntime.set_default_logger_severity(4)

KINDS = {np.float32: TensorProto.FLOAT, np.float64: TensorProto.DOUBLE, np.float16: TensorProto.FLOAT16}


def model_of(nodes, constants, shape, *, dtype=np.float32, opset=20, outputs=("y",), batch="n", functions=()):
    """A model with input x of shape (batch, *shape)."""
    kind = KINDS[dtype]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", kind, [batch, *shape])],
        [helper.make_tensor_value_info(name, kind, None) for name in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    imports = [helper.make_opsetid("", opset)]
    imports += [helper.make_opsetid(domain, 1) for domain in {f.domain for f in functions}]
    return helper.make_model(graph, opset_imports=imports, ir_version=10, functions=list(functions))


def answer_of(model, X):
    """onnxruntime's first output; None where it has no such kernel (often so for float64)."""
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        return session.run(None, {session.get_inputs()[0].name: X})[0].astype(np.float64)
    except Exception:
        return None


def truth_of(model, X):
    """onnxruntime's answer as rows; that of onnx's own slow evaluator where onnxruntime has none."""
    values = answer_of(model, X)
    if values is None:
        (values, *_) = ReferenceEvaluator(model).run(None, {"x": X})
    return np.asarray(values, dtype=np.float64).reshape(len(X), -1)


def error_of(ours, truth):
    return float(np.max(np.abs(ours - truth)) / max(1.0, float(np.max(np.abs(truth)))))


def slope_error(predictor, X, seed=0):
    """The gradient along a random direction against a difference."""
    rng = np.random.default_rng(seed)
    forward = predictor.snapshot("cpu")
    u = torch.tensor(X, requires_grad=True)
    values = forward(u)
    weights = torch.tensor(rng.normal(size=tuple(values.shape)))
    (slope,) = torch.autograd.grad((weights * values).sum(), u)
    way = torch.tensor(rng.normal(size=X.shape))
    with torch.no_grad():
        rise = (weights * (forward(u + 1e-6 * way) - forward(u - 1e-6 * way))).sum() / 2e-6
    return abs(float((slope * way).sum() - rise)) / max(1.0, abs(float(rise)))


def ints(*values):
    return np.array(values, dtype=np.int64)


def gemm_model(weight, bias, *, batch="n", last=(), dtype=np.float32):
    """y = last(weight x + bias)."""
    nodes = [helper.make_node("Gemm", ["x", "W", "b"], ["h0"], name="dense", transB=1)]
    nodes += [helper.make_node(op, [f"h{k}"], [f"h{k + 1}"], name=op.lower()) for k, op in enumerate(last)]
    nodes.append(helper.make_node("Identity", [f"h{len(last)}"], ["y"], name="end"))
    constants = {"W": np.asarray(weight, dtype=dtype), "b": np.asarray(bias, dtype=dtype)}
    return model_of(nodes, constants, (constants["W"].shape[1],), batch=batch, dtype=dtype)
