"""ONNX operators, one by one: onnxruntime is the oracle, differences judge the gradients.

The table of operators: each once, and what is not in it is named before anything runs.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import dovetail as dt
from dovetail.core.predictor import as_predictor
from dovetail.predictors.onnx.node import Operator
from dovetail.predictors.onnx.operators import table
from tests.conftest import sample
from tests.predictors.onnx.oracle import error_of, ints, model_of, slope_error, truth_of

TOLERANCE = {np.float32: 1e-5, np.float64: 1e-10}


@dataclass
class Case:
    """One node, x its input number `at`, the others constants."""

    operator: str
    constants: list = field(default_factory=list)
    shape: tuple = (6,)
    at: int = 0
    opset: int = 20
    low: float = -2.0
    high: float = 2.0
    outputs: int = 1
    taken: int = 0
    attributes: dict = field(default_factory=dict)

    def model(self, dtype):
        constants, inputs = {}, []
        for k, value in enumerate(self.constants):
            if value is None:
                inputs.append("")
                continue
            value = np.asarray(value)
            constants[f"c{k}"] = value.astype(dtype) if value.dtype.kind == "f" else value
            inputs.append(f"c{k}")
        inputs.insert(self.at, "x")
        outputs = [f"y{k}" for k in range(self.outputs)]
        node = helper.make_node(self.operator, inputs, outputs, name="it", **self.attributes)
        return model_of(
            [node], constants, self.shape, dtype=dtype, opset=self.opset, outputs=(outputs[self.taken],)
        )


def of(
    operator, *constants, shape=(6,), at=0, opset=20, low=-2.0, high=2.0, outputs=1, taken=0, **attributes
):
    return Case(operator, list(constants), shape, at, opset, low, high, outputs, taken, attributes)


rng = np.random.default_rng(7)


def some(*shape):
    return rng.normal(size=shape)


IMAGE = {"shape": (4, 7, 6)}


UNARY = ["Abs", "Atan", "Cos", "Erf", "Exp", "HardSwish", "Identity", "Mish", "Neg", "Relu", "Sigmoid", "Sin",
         "Softplus", "Softsign", "Tanh", "Elu", "Selu", "Celu", "LeakyRelu", "HardSigmoid", "Gelu", "Softmax",
         "LogSoftmax", "Sinh", "Cosh", "Asinh", "ThresholdedRelu"]  # fmt: skip

CASES = [
    *(of(name) for name in UNARY),
    *(of(name, low=0.2, high=3.0) for name in ("Sqrt", "Log", "Reciprocal")),
    *(of(name, some(6)) for name in ("Add", "Sub", "Mul", "Min", "Max", "Sum", "Mean")),
    *(of(name, some(3, 1, 6), shape=(3, 4, 6)) for name in ("Add", "Sub", "Mul")),
    *(of(name, some(6), some(1)) for name in ("Min", "Max", "Sum", "Mean")),
    of("Sub", some(6), at=1),
    of("Div", np.abs(some(6)) + 0.5),
    of("Div", some(6), at=1, low=0.5),
    of("Pow", np.array(3.0)),
    of("Pow", ints(2)),
    of("Pow", np.array(0.5), low=0.1),
    of("Elu", alpha=0.3),
    of("Selu", alpha=1.2, gamma=0.8),
    of("Celu", alpha=0.4),
    of("LeakyRelu", alpha=0.2),
    of("HardSigmoid", alpha=0.3, beta=0.4),
    of("Gelu", approximate="tanh"),
    of("ThresholdedRelu", alpha=0.3),
    of("PRelu", np.abs(some(6))),
    of("PRelu", some(4, 1, 1), **IMAGE),
    of("Swish", opset=24),
    of("Swish", opset=24, alpha=1.7),
    of("Softmax", shape=(4, 5), axis=1),
    of("Softmax", shape=(4, 5), axis=-1),
    of("LogSoftmax", shape=(4, 5), axis=1),
    of("Clip", np.array(-0.5), np.array(1.0)),
    of("Clip", None, np.array(0.7)),
    of("Clip", np.array(0.1)),
    of("Clip"),
    of("Gemm", some(6, 3)),
    of("Gemm", some(3, 6), some(3), transB=1),
    of("Gemm", some(6, 3), some(1, 3), alpha=0.5, beta=2.0),
    of("Gemm", some(6, 3), np.array(0.7)),
    of("MatMul", some(6, 4)),
    of("MatMul", some(6)),
    of("MatMul", some(5, 3), shape=(4, 5)),
    of("MatMul", some(3, 4), shape=(4, 5), at=1),
    of("Einsum", some(6, 4), equation="ni,ij->nj"),
    of("Einsum", some(5, 3), shape=(4, 5), equation="nab,bc->nca"),
    of("BatchNormalization", some(6), some(6), some(6), np.abs(some(6)) + 0.1),
    of("BatchNormalization", some(4), some(4), some(4), np.abs(some(4)) + 0.1, **IMAGE, epsilon=1e-3),
    of("LayerNormalization", some(6), some(6)),
    of("LayerNormalization", some(6), epsilon=1e-3),
    of("LayerNormalization", some(4, 5), some(4, 5), shape=(4, 5), axis=1),
    of("LayerNormalization", some(5), shape=(4, 5), axis=-1),
    of("RMSNormalization", some(6), opset=23),
    of("RMSNormalization", some(4, 5), shape=(4, 5), opset=23, axis=1),
    of("InstanceNormalization", some(4), some(4), **IMAGE),
    of("GroupNormalization", some(4), some(4), **IMAGE, opset=21, num_groups=2),
    of("GroupNormalization", some(2), some(2), **IMAGE, opset=18, num_groups=2),
    of("Dropout"),
    of("Dropout", np.array(0.5), np.array(False)),
    of("Conv", some(3, 4, 3), some(3), shape=(4, 9)),
    of("Conv", some(3, 4, 3), shape=(4, 9), strides=[2], pads=[1, 2]),
    of("Conv", some(6, 2, 3, 2), some(6), **IMAGE, group=2, dilations=[2, 1], pads=[1, 0, 2, 1]),
    of("Conv", some(3, 4, 3, 3), **IMAGE, pads=[1, 1, 1, 1], strides=[2, 1]),
    *(
        of("Conv", some(3, 4, 2, 3), some(3), **IMAGE, auto_pad=pad, strides=[2, 2])
        for pad in ("SAME_UPPER", "SAME_LOWER", "VALID")
    ),
    of("Conv", some(2, 2, 2, 2, 2), some(2), shape=(2, 4, 3, 5), pads=[0, 1, 0, 1, 0, 1]),
    of("ConvTranspose", some(4, 3, 3), some(3), shape=(4, 5), strides=[2]),
    of(
        "ConvTranspose",
        some(4, 3, 3, 2),
        some(3),
        **IMAGE,
        strides=[2, 1],
        pads=[1, 0, 0, 1],
        output_padding=[1, 0],
    ),
    of("ConvTranspose", some(4, 2, 3, 2), **IMAGE, group=2, dilations=[2, 1]),
    of("ConvTranspose", some(4, 3, 3, 3), some(3), **IMAGE, strides=[2, 2], auto_pad="SAME_UPPER"),
    of("ConvTranspose", some(4, 3, 3, 3), some(3), **IMAGE, strides=[2, 2], output_shape=[15, 12]),
    of("ConvTranspose", some(2, 2, 2, 2, 2), shape=(2, 3, 2, 3), strides=[1, 2, 1]),
    *(
        of("MaxPool", **IMAGE, kernel_shape=[3, 2], **more)
        for more in (
            {},
            {"strides": [2, 2]},
            {"pads": [1, 0, 1, 1]},
            {"strides": [2, 3], "ceil_mode": 1},
            {"strides": [2, 2], "pads": [1, 1, 1, 0], "ceil_mode": 1},
            {"dilations": [2, 1]},
            {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
            {"auto_pad": "SAME_LOWER", "strides": [2, 2]},
        )
    ),
    of("MaxPool", shape=(3, 9), kernel_shape=[2], strides=[2]),
    of("MaxPool", shape=(2, 4, 4, 4), kernel_shape=[2, 2, 2]),
    *(
        of("AveragePool", **IMAGE, kernel_shape=[3, 2], **more)
        for more in (
            {},
            {"strides": [2, 2]},
            {"pads": [1, 0, 1, 1]},
            {"pads": [1, 0, 1, 1], "count_include_pad": 1},
            {"strides": [2, 3], "ceil_mode": 1},
            {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
            {"strides": [2, 2], "pads": [1, 1, 1, 0], "ceil_mode": 1, "count_include_pad": 1},
        )
    ),
    of("AveragePool", shape=(3, 9), kernel_shape=[2], strides=[2]),
    of("GlobalAveragePool", **IMAGE),
    of("GlobalMaxPool", **IMAGE),
    of("Flatten", shape=(3, 4)),
    of("Flatten", shape=(3, 4), axis=-2),
    of("Reshape", ints(-1, 4, 3), shape=(3, 4)),
    of("Reshape", ints(0, 2, -1), shape=(3, 4)),
    of("Reshape", ints(-1, 12), shape=(3, 4), allowzero=1),
    of("Squeeze", ints(1, -1), shape=(1, 4, 1)),
    of("Unsqueeze", ints(1, -1)),
    of("Unsqueeze", ints(-1, 2)),
    of("Transpose", shape=(3, 4), perm=[0, 2, 1]),
    of("Expand", ints(1, 3, 1), shape=(1, 6)),
    of("Expand", ints(6), shape=(4, 1)),
    of("Split", shape=(6,), outputs=2, taken=1, axis=1, num_outputs=2),
    of("Split", ints(2, 1, 3), shape=(6,), outputs=3, taken=2, axis=1),
    of("Split", shape=(7,), outputs=3, taken=2, axis=-1, num_outputs=3),
    of("Split", shape=(6,), outputs=3, taken=0, axis=1, opset=13),
    of("Slice", ints(1), ints(4), ints(1)),
    of("Slice", ints(-1), ints(-(2**62)), ints(1), ints(-1)),
    of("Slice", ints(0, 3), ints(2**62, -4), ints(1, 2), ints(2, -2), shape=(5, 4)),
    of("Slice", ints(1, 1), ints(-1, 2**62), ints(-1, 1), shape=(5, 4)),
    of("Gather", ints(2, 0, -1), axis=1),
    of("Gather", np.array(1), axis=1, shape=(3, 4)),
    of("Gather", np.array([[0, 1], [-1, 2]]), axis=2, shape=(3, 4)),
    of("Tile", ints(1, 3)),
    of("Tile", ints(1, 2, 2), shape=(2, 3)),
    of("Trilu", shape=(4, 5)),
    of("Trilu", np.array(-1), shape=(4, 5), upper=0),
    of("Pad", ints(0, 1, 0, 2)),
    of("Pad", ints(0, 1, 0, 2), np.array(0.3)),
    of("Pad", ints(0, 0, 2, 0, 0, 3), shape=(2, 5), mode="reflect"),
    of("Pad", ints(0, 1, 2, 0, 3, 1), shape=(2, 5), mode="edge"),
    of("Pad", ints(2, 1), None, ints(1), shape=(6,)),
    of("Pad", ints(0, 2, 0, 1), shape=(6,), mode="wrap", opset=19),
    of("Pad", ints(0, -1, 0, -2)),
    *(
        of(name, ints(1))
        for name in (
            "ReduceMean",
            "ReduceMax",
            "ReduceMin",
            "ReduceL1",
            "ReduceL2",
            "ReduceProd",
            "ReduceSum",
            "ReduceSumSquare",
            "ReduceLogSumExp",
        )
    ),
    *(
        of(name, ints(1, -1), shape=(3, 4), keepdims=0)
        for name in ("ReduceMean", "ReduceMax", "ReduceL2", "ReduceProd", "ReduceSum")
    ),
    of("ReduceMean", shape=(3, 4), opset=13, axes=[2], keepdims=0),
    of("ReduceMax", shape=(3, 4), opset=13, axes=[1]),
    of("ReduceSum", shape=(3, 4), noop_with_empty_axes=1),
    of("ReduceLogSum", ints(1), low=0.1),
    of("Cast", to=TensorProto.DOUBLE),
    of("Cast", to=TensorProto.FLOAT),
    of("CastLike", np.zeros(1)),
    of("Where", np.array([True, False, True, True, False, False]), some(6), at=1),
]


def named(case):
    extra = "-".join(f"{k}={v}" for k, v in case.attributes.items())
    return f"{case.operator}-{extra}".replace(" ", "").rstrip("-")


COARSE = ("Erf", "Gelu", "HardSwish", "GroupNormalization", "Cast")
"""Operators with float32 in them even in a float64 model: in the oracle's code, or by what they say."""


@pytest.mark.parametrize("dtype", sample([np.float32, np.float64]))
@pytest.mark.parametrize("case", CASES, ids=named)
def test_an_operator_computes_what_onnx_says(case, dtype):
    model = case.model(dtype)
    predictor = as_predictor(model)
    X = np.random.default_rng(1).uniform(case.low, case.high, (7, *case.shape)).astype(dtype)
    rows = X.reshape(len(X), -1).astype(np.float64)
    tolerance = 1e-6 if case.operator in COARSE and dtype == np.float64 else TOLERANCE[dtype]
    if case.operator == "ConvTranspose" and dtype == np.float64:  # no oracle has it
        model, X, tolerance = case.model(np.float32), X.astype(np.float32), 1e-5
    assert error_of(predictor.predict(rows), truth_of(model, X)) < tolerance
    if case.operator != "Cast" or dtype == np.float32:  # differences of rounded numbers say nothing
        assert slope_error(predictor, rows) < 2e-5


@pytest.mark.parametrize(
    "body",
    [
        "m = Less(x, c) w = Where(m, x, c) y = Mul(w, x)",
        "m = GreaterOrEqual(x, c) k = Not(m) f = Cast<to=1>(k) y = Mul(f, x)",
        "a = Greater(x, c) b = LessOrEqual(x, c) m = Or(a, b) k = And(m, a) w = Where(k, x, c) y = Add(w, x)",
        "e = Equal(x, c) i = IsNaN(x) m = Xor(e, i) f = Cast<to=1>(m) g = Add(f, x) y = Identity(g)",
        "z = Floor(x) r = Ceil(x) o = Round(x) s = Sign(x) a = Sub(x, z) b = Mul(r, x) d = Mul(s, o) "
        "e = Add(a, b) f = Mul(d, x) y = Add(e, f)",
        "i = ArgMax<axis=1, keepdims=1>(x) f = Cast<to=1>(i) y = Mul(f, x)",
        "i = ArgMin<axis=1, keepdims=1, select_last_index=1>(x) f = Cast<to=1>(i) y = Mul(f, x)",
        "i = ArgMax<axis=1, keepdims=1>(x) y = GatherElements<axis=1>(x, i)",
        "s = Shape(x) o = ConstantOfShape<value=float[1] {2.0}>(s) a = Mul(o, x) q = Concat<axis=1>(a, x, o) "
        "y = Identity(q)",
        "s = Size(x) d = Shape<start=0,end=1>(x) e = Div(s, d) w = Concat<axis=0>(d, e) y = Reshape(x, w)",
        "l = Constant<value_int=0>() h = Constant<value_int=4>() t = Constant<value_int=1>() "
        "r = Range(l, h, t) f = Cast<to=1>(r) y = Mul(f, x)",
        "a, b = Split<axis=1, num_outputs=2>(x) y = MatMul(a, W)",
        "t = Constant<value_float=0.5>() u = Constant<value_floats=[1.0, 2.0, 3.0, 4.0]>() a = Mul(t, x) "
        "y = Add(a, u)",
        "f = CastLike(x, c) h = Cast<to=10>(f) y = Cast<to=1>(h)",
    ],
)
def test_small_graphs(body):
    text = f"""<ir_version: 10, opset_import: ["" : 20]>
    net (float[n, 4] x) => (float[n, m] y)
    <float[4] c = {{0.5, -0.25, 0.75, 0.1}}, float[2, 2] W = {{1.0, 2.0, -1.0, 0.5}}> {{ {body} }}"""
    model = onnx.parser.parse_model(text)
    X = np.random.default_rng(1).uniform(-2, 2, (6, 4)).astype(np.float32)
    predictor = as_predictor(model)
    rows = X.astype(np.float64)
    assert error_of(predictor.predict(rows), truth_of(model, X)) < 1e-5
    assert slope_error(predictor, rows) < 2e-5
    stepped = any(word in body for word in ("Less", "Greater", "Arg", "Floor", "Equal"))
    assert predictor.describe(rows).smooth == (not stepped)


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
