"""ONNX models as predictors: exported networks against onnxruntime, refusals, and files from strangers."""

from __future__ import annotations

import io
import logging
import os
import subprocess
import sys
import warnings

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

import dovetail as dt
from dovetail.core.layers import Activation, Dense, evaluate
from dovetail.core.predictor import as_predictor
from dovetail.predictors.onnx import file as onnx_file
from dovetail.predictors.onnx.model import OnnxPredictor
from tests.conftest import FULL
from tests.predictors.onnx.test_operators import answer_of, error_of, ints, model_of, slope_error, truth_of

POINTS = 100
ACTIVATIONS = [
    nn.ReLU, nn.Tanh, nn.Sigmoid, nn.GELU, nn.SiLU, nn.ELU, nn.SELU, nn.CELU, nn.Softplus, nn.LeakyReLU,
    nn.PReLU, nn.Mish, nn.Hardswish, nn.Hardsigmoid, nn.Softsign, nn.ReLU6, nn.Hardtanh, nn.LogSigmoid,
    nn.Tanhshrink, lambda: nn.GELU(approximate="tanh"), lambda: nn.Softmax(dim=1),
]  # fmt: skip
IN_FLOAT32 = (nn.SELU, nn.CELU, nn.LeakyReLU, nn.Hardswish, nn.Hardsigmoid, ACTIVATIONS[-2])
"""Activations that ONNX, its exporter or the oracle compute partly in float32: not for float64 networks."""


# Networks through torch's exporters


class Residual(nn.Module):
    def __init__(self, width, act):
        super().__init__()
        self.into, self.inner, self.out = nn.Linear(5, width), nn.Linear(width, width), nn.Linear(width, 2)
        self.norm, self.act = nn.LayerNorm(width), act()

    def forward(self, x):
        h = self.into(x)
        return self.out(h + self.act(self.inner(self.norm(h))))


class Recurrent(nn.Module):
    def __init__(self, kind, width, bidirectional, layers):
        super().__init__()
        self.net = kind(3, width, layers, batch_first=True, bidirectional=bidirectional)
        self.out = nn.Linear(width * (2 if bidirectional else 1), 2)

    def forward(self, x):
        return self.out(self.net(x)[0][:, -1])


class Attention(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.embed, self.out = nn.Linear(3, 4 * heads), nn.Linear(4 * heads, 2)
        self.attend = nn.MultiheadAttention(4 * heads, heads, batch_first=True)

    def forward(self, x):
        h = self.embed(x)
        return self.out((h + self.attend(h, h, h, need_weights=False)[0]).mean(dim=1))


class Transformer(nn.Module):
    def __init__(self, heads, activation, norm_first):
        super().__init__()
        self.embed, self.out = nn.Linear(3, 4 * heads), nn.Linear(4 * heads * 4, 2)
        self.layer = nn.TransformerEncoderLayer(
            4 * heads, heads, 8, activation=activation, batch_first=True, norm_first=norm_first
        )

    def forward(self, x):
        return self.out(self.layer(self.embed(x)).flatten(1))


class Causal(nn.Module):
    """Attention with a mask of minus infinity."""

    def __init__(self, heads):
        super().__init__()
        self.embed, self.out, self.heads = nn.Linear(3, 12 * heads), nn.Linear(16 * heads, 2), heads

    def forward(self, x):
        q, k, v = self.embed(x).unflatten(2, (3, self.heads, 4)).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(1))


def random_network(seed, dtype=torch.float32):
    """A network with random weights, and the shape of one of its samples."""
    draw = np.random.default_rng(seed)
    torch.manual_seed(seed)
    acts = [act for act in ACTIVATIONS if dtype == torch.float32 or act not in IN_FLOAT32]
    act = acts[int(draw.integers(len(acts)))]
    width = int(draw.integers(4, 13))
    kind = seed % 10
    if kind == 0:
        parts = [nn.Linear(5, width), act()]
        for _ in range(int(draw.integers(3))):
            parts += [nn.Linear(width, width), acts[int(draw.integers(len(acts)))]()]
        net, shape = nn.Sequential(*parts, nn.Linear(width, 2)), (5,)
    elif kind == 1:
        net, shape = Residual(width, act), (5,)
    elif kind == 2:
        pad, dilation = int(draw.integers(3)), int(draw.integers(1, 3))
        pool = [nn.AvgPool1d(2), nn.MaxPool1d(2), nn.AdaptiveAvgPool1d(1)][int(draw.integers(3))]
        net = nn.Sequential(nn.Conv1d(2, width, 3, padding=pad, dilation=dilation), act(), pool, nn.Flatten())
        shape = (2, 9)
    elif kind == 3:
        net = nn.Sequential(
            nn.Conv2d(2, 4, 3, int(draw.integers(1, 3)), 1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(4, 4, 2, groups=2, padding="same"), nn.InstanceNorm2d(4, affine=True), act(),
            nn.Flatten(),
        )  # fmt: skip
        shape = (2, 8, 8)
    elif kind == 4:
        net, shape = Recurrent(nn.LSTM, width, False, int(draw.integers(1, 3))), (4, 3)
    elif kind == 5:
        net, shape = Recurrent(nn.GRU, width, False, int(draw.integers(1, 3))), (4, 3)
    elif kind == 6:
        cell = [nn.LSTM, nn.GRU, nn.RNN][int(draw.integers(3))]
        net, shape = Recurrent(cell, width, True, int(draw.integers(1, 3))), (4, 3)
    elif kind == 7:
        heads = int(draw.integers(1, 4))
        net, shape = (Attention(heads) if draw.integers(2) else Causal(heads)), (4, 3)
    elif kind == 8:
        how = ["relu", "gelu"][int(draw.integers(2))]
        net, shape = Transformer(int(draw.integers(1, 4)), how, bool(draw.integers(2))), (4, 3)
    else:
        norm = [nn.BatchNorm1d(8), nn.LayerNorm(8), nn.GroupNorm(2, 8)][int(draw.integers(3))]
        net = nn.Sequential(nn.Linear(5, 8), norm, act(), nn.Dropout(0.4), nn.Linear(8, 2))
        shape = (5,)
    for part in net.modules():
        if isinstance(part, (nn.BatchNorm1d, nn.BatchNorm2d)):
            part.running_mean.normal_()
            part.running_var.uniform_(0.5, 2.0)
        if hasattr(part, "eps"):
            part.eps = 2.0**-17  # about 1e-5, and the same number in float32, as ONNX keeps it
    return net.eval().to(dtype), shape


def exported(net, shape, dtype, *, dynamo=False, batch=2, fixed=False):
    """The network as torch's exporter writes it."""
    net, sample = net.to(dtype), torch.randn(batch, *shape, dtype=dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            if dynamo:
                open_axis = None if fixed else ({0: torch.export.Dim("n")},)
                program = torch.onnx.export(
                    net, (sample,), dynamo=True, dynamic_shapes=open_axis, verbose=False
                )
                return program.model_proto
            content = io.BytesIO()
            axes = None if fixed else {"x": {0: "n"}, "y": {0: "n"}}
            torch.onnx.export(
                net,
                (sample,),
                content,
                dynamo=False,
                input_names=["x"],
                output_names=["y"],
                dynamic_axes=axes,
            )
            return onnx.load_from_string(content.getvalue())
        finally:
            logging.disable(logging.NOTSET)


def compare(seed, dtype, dynamo):
    """Errors of a random network's values (relative) and slope, and who judged the values."""
    net, shape = random_network(seed, dtype)
    model = exported(net, shape, dtype, dynamo=dynamo)
    X = np.random.default_rng(seed).uniform(-2, 2, (POINTS, *shape))
    X = X.astype(np.float64 if dtype == torch.float64 else np.float32)
    rows = X.reshape(POINTS, -1).astype(np.float64)
    truth, judge = answer_of(model, X), "onnxruntime"
    if truth is None:  # it lacks many kernels in float64
        with torch.no_grad():
            truth, judge = net(torch.tensor(X)).double().numpy(), "torch"
    predictor = as_predictor(model)
    error = error_of(predictor.predict(rows), truth.reshape(POINTS, -1))
    return error, slope_error(predictor, rows[:10]), judge


def assert_like_the_oracle(seed, dtype, dynamo=False):
    error, slope, judge = compare(seed, dtype, dynamo)
    assert error < (1e-5 if dtype == torch.float32 else 1e-10), (seed, error, judge)
    assert slope < 1e-4, (seed, slope)


@pytest.mark.parametrize("chunk", range(28 if FULL else 4))
def test_random_networks(chunk):
    for seed in range(10 * chunk, 10 * chunk + 10):
        assert_like_the_oracle(seed, torch.float64 if chunk % 4 == 3 else torch.float32)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1030) if FULL else (1007,))
def test_random_networks_through_the_new_exporter(seed):
    assert_like_the_oracle(seed, torch.float32, dynamo=True)


# What a model is taken for


def gemm_model(weight, bias, *, batch="n", last=(), dtype=np.float32):
    """y = last(weight x + bias)."""
    nodes = [helper.make_node("Gemm", ["x", "W", "b"], ["h0"], name="dense", transB=1)]
    nodes += [helper.make_node(op, [f"h{k}"], [f"h{k + 1}"], name=op.lower()) for k, op in enumerate(last)]
    nodes.append(helper.make_node("Identity", [f"h{len(last)}"], ["y"], name="end"))
    constants = {"W": np.asarray(weight, dtype=dtype), "b": np.asarray(bias, dtype=dtype)}
    return model_of(nodes, constants, (constants["W"].shape[1],), batch=batch, dtype=dtype)


def test_a_model_has_its_file_s_name_and_precision(tmp_path):
    model = gemm_model([[1.0, 2.0]], [0.5])
    path = tmp_path / "price.ONNX"
    path.write_bytes(model.SerializeToString())
    for given in (path, str(path)):
        predictor = as_predictor(given)
        assert isinstance(predictor, OnnxPredictor)
        said = predictor.describe(np.zeros((2, 2)))
        assert (said.name, said.device) == ("price.ONNX", "cpu")
        assert not said.is_float64 and said.has_float64_copy
    double = as_predictor(gemm_model([[1.0, 2.0]], [0.5], dtype=np.float64))
    assert double.describe(np.zeros((2, 2))).is_float64


def test_what_it_ends_in_is_seen():
    X = np.random.default_rng(0).uniform(-1, 1, (4, 2))
    for last, smooth, sigmoid in (
        ((), True, False), (("Relu",), False, None), (("Sigmoid",), True, True), (("Tanh",), True, None),
        (("Tanh", "Sigmoid"), True, True),
    ):  # fmt: skip
        said = as_predictor(gemm_model([[1.0, 2.0]], [0.5], last=last)).describe(X)
        assert (said.smooth, said.ends_in_sigmoid) == (smooth, sigmoid), last


def test_a_float16_model_and_its_float64_copy():
    draw = np.random.default_rng(0)
    nodes = [
        helper.make_node("Gemm", ["x", "W", "b"], ["h"]),
        helper.make_node("Cast", ["h"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Tanh", ["f"], ["t"]),
        helper.make_node("Cast", ["t"], ["y"], to=TensorProto.FLOAT16),
    ]
    weights = {"W": draw.normal(size=(4, 3)), "b": draw.normal(size=3)}
    model = model_of(nodes, {k: v.astype(np.float16) for k, v in weights.items()}, (4,), dtype=np.float16)
    X = draw.uniform(-1, 1, (9, 4)).astype(np.float16)
    predictor, rows = as_predictor(model), X.astype(np.float64)
    assert error_of(predictor.predict(rows), truth_of(model, X)) < 2e-3
    exact = np.tanh(rows @ weights["W"].astype(np.float16) + weights["b"].astype(np.float16))
    assert error_of(predictor.snapshot("cpu")(torch.tensor(rows)).numpy(), exact) < 1e-12
    assert slope_error(predictor, rows) < 1e-6


def test_a_float32_part_of_a_float64_model_is_copied_in_float64():
    nodes = [
        helper.make_node("Cast", ["x"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("MatMul", ["f", "W"], ["h"]),
        helper.make_node("Cast", ["h"], ["y"], to=TensorProto.DOUBLE),
    ]
    weight = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    predictor = as_predictor(model_of(nodes, {"W": weight}, (4,), dtype=np.float64))
    X = np.random.default_rng(1).uniform(-1, 1, (5, 4))
    assert predictor.describe(X).narrowest_dtype == "float32"
    assert 1e-12 < error_of(predictor.predict(X), X @ weight) < 1e-6
    assert error_of(predictor.snapshot("cpu")(torch.tensor(X)).numpy(), X @ weight.astype(np.float64)) < 1e-14


def test_the_features_of_an_image_are_laid_out_flat():
    net = nn.Sequential(nn.Conv2d(2, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(12, 2)).eval()
    predictor = as_predictor(exported(net, (2, 3, 3), torch.float32))
    X = np.random.default_rng(0).uniform(-1, 1, (4, 18))
    with torch.no_grad():
        truth = net(torch.tensor(X, dtype=torch.float32).reshape(4, 2, 3, 3)).numpy()
    assert error_of(predictor.predict(X), truth) < 1e-6
    with pytest.raises(dt.PredictorError, match=r"takes 18 features \(2 x 3 x 3\), not \(9,\)"):
        predictor.predict(X[:, :9])


@pytest.mark.parametrize("seed", [2, 3, 4, 6, 8, 9])
def test_a_model_exported_for_one_sample_takes_any_number(seed):
    net, shape = random_network(seed)
    model = exported(net, shape, torch.float32, batch=1, fixed=True)
    predictor = as_predictor(model)
    X = np.random.default_rng(0).uniform(-1, 1, (6, *shape)).astype(np.float32)
    truth = np.concatenate([truth_of(model, row[None]) for row in X])
    rows = X.reshape(6, -1).astype(np.float64)
    assert error_of(predictor.predict(rows), truth) < 1e-5
    assert error_of(predictor.predict(rows[:1]), truth[:1]) < 1e-5
    assert slope_error(predictor, rows) < 1e-5


def test_a_model_exported_for_several_samples_is_refused_unless_it_takes_any_number():
    assert as_predictor(gemm_model([[1.0, 2.0]], [0.5], batch=4)).predict(np.zeros((3, 2))).shape == (3, 1)
    reshape = [helper.make_node("Reshape", ["x", "s"], ["y"], name="fixed")]
    model = model_of(reshape, {"s": ints(4, 6)}, (2, 3), batch=4)
    with pytest.raises(dt.PredictorError, match="'fixed'.* exported for batches of 4.*dynamic_shapes"):
        as_predictor(model)


def test_an_output_per_sample_without_an_axis():
    nodes = [helper.make_node("ReduceSum", ["x", "a"], ["s"]), helper.make_node("Squeeze", ["s"], ["y"])]
    predictor = as_predictor(model_of(nodes, {"a": ints(1)}, (3,)))
    for count in (1, 4):
        assert np.array_equal(predictor.predict(np.ones((count, 3))), np.full((count, 1), 3.0))


def test_an_open_number_of_features_is_read_off_the_weights():
    predictor = as_predictor(model_of([helper.make_node("MatMul", ["x", "W"], ["y"])],
                                      {"W": np.eye(3, 2, dtype=np.float32)}, ("features",)))  # fmt: skip
    assert predictor.predict(np.ones((2, 3))).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    with pytest.raises(dt.PredictorError, match=r"shape \(\?, \?\).*only the first axis open"):
        as_predictor(model_of([helper.make_node("Relu", ["x"], ["y"])], {}, ("features",)))


def test_one_of_several_outputs_is_chosen_by_name():
    nodes = [
        helper.make_node("Softmax", ["x"], ["scores"]),
        helper.make_node("ArgMax", ["scores"], ["label"], axis=1),
    ]
    model = model_of(nodes, {}, (3,), outputs=("label", "scores"))
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    with pytest.raises(
        dt.UnsupportedError, match=r"2 outputs \('label', 'scores'\).*OnnxPredictor\(model, output="
    ):
        as_predictor(model)
    predictor = OnnxPredictor(model, output="scores")
    assert as_predictor(predictor) is predictor
    assert np.allclose(predictor.predict(np.zeros((2, 3))), 1 / 3)
    with pytest.raises(dt.UnsupportedError, match=r"'label' has no gradient.*\(ArgMax\).*classification"):
        OnnxPredictor(model, output="label")
    with pytest.raises(dt.PredictorError, match=r"no output 'other'; it has 'label', 'scores'"):
        OnnxPredictor(model, output="other")


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
    monkeypatch.setattr(onnx_file, "MOST_NODES", 2000)
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


# Layers


def test_dense_networks_are_written_out_as_layers():
    draw = np.random.default_rng(0)
    W, V = draw.normal(size=(3, 4)).astype(np.float32), draw.normal(size=(4, 2)).astype(np.float32)
    constants = {
        "W": W,
        "V": V,
        "b": draw.normal(size=4).astype(np.float32),
        "c": np.float32([[0.5, -1.0]]),
        "mean": draw.normal(size=3).astype(np.float32),
        "std": np.float32([0.5, 2.0, 1.5]),
    }
    nodes = [
        helper.make_node("Sub", ["x", "mean"], ["s"]),
        helper.make_node("Div", ["s", "std"], ["z"]),
        helper.make_node("MatMul", ["z", "W"], ["p"]),
        helper.make_node("Add", ["b", "p"], ["q"]),
        helper.make_node("Relu", ["q"], ["r"]),
        helper.make_node("Dropout", ["r"], ["d"]),
        helper.make_node("Gemm", ["d", "V", "c"], ["g"], alpha=0.5, beta=2.0),
        helper.make_node("Softmax", ["g"], ["y"]),
    ]
    predictor = as_predictor(model_of(nodes, constants, (3,)))
    layers = predictor.layers()
    assert [type(layer) for layer in layers] == [Dense, Activation, Dense, Activation]
    X = draw.uniform(-1, 1, (9, 3))
    assert error_of(evaluate(layers, X), predictor.predict(X)) < 1e-6


@pytest.mark.long
def test_what_the_new_exporter_makes_of_a_dense_network_is_written_out():
    torch.manual_seed(0)
    parts = [
        nn.Flatten(),
        nn.Linear(6, 4),
        nn.ReLU(),
        nn.Linear(4, 4, bias=False),
        nn.Tanh(),
        nn.Linear(4, 1),
    ]
    predictor = as_predictor(exported(nn.Sequential(*parts), (2, 3), torch.float64, dynamo=True))
    layers = predictor.layers()
    assert [type(layer) for layer in layers] == [Dense, Activation, Dense, Activation, Dense]
    X = np.random.default_rng(0).uniform(-1, 1, (9, 6))
    assert error_of(evaluate(layers, X), predictor.predict(X)) < 1e-12


def test_what_is_no_layer_is_named():
    for op, more in (("Gelu", {}), ("Softmax", {"axis": 0}), ("Transpose", {"perm": [0, 1]})):
        model = model_of([helper.make_node(op, ["x"], ["y"], name="odd", **more)], {}, (3,))
        with pytest.raises(dt.UnsupportedError, match=rf"node 'odd' \({op}\) cannot be written out"):
            as_predictor(model).layers()
    model = model_of([helper.make_node("Add", ["x", "x"], ["y"], name="twice")], {}, (3,))
    with pytest.raises(dt.UnsupportedError, match=r"node 'twice' \(Add\)"):
        as_predictor(model).layers()
    model = model_of(
        [helper.make_node("MatMul", ["x", "W"], ["y"])], {"W": np.eye(3, dtype=np.float32)}, (2, 3)
    )
    with pytest.raises(dt.UnsupportedError, match=r"\(MatMul\)"):
        as_predictor(model).layers()


# Refusals


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
        (one("Relu", opset=11), r"opset 11; 13 to"),
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

    monkeypatch.setattr("dovetail.predictors.onnx.model.OnnxModule._folded", forbidden)
    monkeypatch.setattr("dovetail.predictors.onnx.model.OnnxModule._values", forbidden)
    with pytest.raises((dt.UnsupportedError, dt.PredictorError), match=culprit):
        as_predictor(model)


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
        (lambda m: m.graph.node.pop(0), dt.PredictorError, "'h0', which nothing has made"),
        (lambda m: m.graph.node.pop(1), dt.PredictorError, "nothing makes the output 'y'"),
        (lambda m: m.graph.node.append(m.graph.node[0]), dt.PredictorError, "'h0' is made twice"),
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


def test_a_mask_of_minus_infinity_is_no_damaged_weight():
    mask = np.float32([[0.0, -np.inf, 0.0]])
    nodes = [helper.make_node("Add", ["x", "mask"], ["m"]), helper.make_node("Softmax", ["m"], ["y"])]
    predictor = as_predictor(model_of(nodes, {"mask": mask}, (3,)))
    X = np.random.default_rng(0).uniform(-1, 1, (4, 3))
    assert np.all(predictor.predict(X)[:, 1] == 0.0)
    assert slope_error(predictor, X) < 1e-6


# Weights in other files


def external_model(folder, location, **entries):
    """A model in `folder` whose weights W are said to be at `location`."""
    model = gemm_model([[1.0, 2.0]], [0.5])
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    path = folder / "net.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def test_external_weights_are_read(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "w.bin").write_bytes(b"1234" + np.float32([3.0, 4.0]).tobytes())
    predictor = as_predictor(external_model(tmp_path, "sub/w.bin", offset=4, length=8))
    assert predictor.predict(np.ones((1, 2))).tolist() == [[7.5]]


def test_what_onnx_itself_writes_beside_a_model_is_read(tmp_path):
    path = tmp_path / "net.onnx"
    onnx.save(
        gemm_model([[3.0, 4.0]], [0.5]), path, save_as_external_data=True, location="w.bin", size_threshold=0
    )
    assert as_predictor(path).predict(np.ones((1, 2))).tolist() == [[7.5]]
    in_memory = onnx.load(path, load_external_data=False)
    with pytest.raises(dt.PredictorError, match="in another file; give the path"):
        as_predictor(in_memory)


def test_external_weights_stay_in_the_folder(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    secret = tmp_path / "secret.bin"
    secret.write_bytes(np.float32([3.0, 4.0]).tobytes())
    os.symlink(secret, folder / "soft.bin")
    os.link(secret, folder / "hard.bin")
    os.symlink(tmp_path, folder / "dir")
    (folder / "pipe").mkdir()
    plain = folder / "plain.bin"
    plain.write_bytes(np.float32([3.0, 4.0]).tobytes())
    for location, culprit in (
        ("../secret.bin", "only files in the model's folder"),
        ("sub/../../secret.bin", "only files in the model's folder"),
        ("..\\secret.bin", "only files in the model's folder"),
        (str(secret), "only files in the model's folder"),
        ("C:\\secret.bin", "only files in the model's folder"),
        ("", "only files in the model's folder"),
        ("a\0b", "only files in the model's folder"),
        ("soft.bin", "behind a link"),
        ("dir/secret.bin", "behind a link"),
        ("hard.bin", "not a plain file of its own"),
        ("pipe", "no such file"),
        ("absent.bin", "no such file"),
    ):
        with pytest.raises(dt.PredictorError, match=culprit):
            as_predictor(external_model(folder, location))
    for entries, culprit in (
        ({"offset": 4, "length": 8}, "beyond the end"),
        ({"offset": -4, "length": 8}, "beyond the end"),
        ({"offset": "x"}, "cannot be read"),
        ({"length": 4}, "cannot be read"),
    ):
        with pytest.raises(dt.PredictorError, match=culprit):
            as_predictor(external_model(folder, "plain.bin", **entries))


def test_weights_have_a_largest_size(tmp_path):
    (tmp_path / "w.bin").write_bytes(np.zeros(1000, np.float32).tobytes())
    path = external_model(tmp_path, "w.bin")
    with pytest.raises(
        dt.PredictorError, match=r"its weights have 4000 bytes; the limit is 3,000 bytes.*limits="
    ):
        dt.load_predictor(path, limits=dt.FileLimits(bytes=3000))
    with pytest.raises(dt.PredictorError, match=r"has \d+ bytes; the limit is 50 bytes"):
        dt.load_predictor(path, limits=dt.FileLimits(bytes=50))


# Files from strangers


def test_a_file_that_is_not_there_or_not_onnx(tmp_path):
    with pytest.raises(dt.PredictorError, match=r"absent\.onnx"):
        as_predictor(tmp_path / "absent.onnx")
    for content in (b"", b"hello, this is no protobuf", b"\0" * 100, b"\x80\x04K\x01."):
        path = tmp_path / "x.onnx"
        path.write_bytes(content)
        with pytest.raises(dt.PredictorError, match=r"x\.onnx"):
            OnnxPredictor(path)


@pytest.mark.parametrize("seed", [2, 4, 7])
def test_mutated_files_end_in_typed_errors(seed, tmp_path):
    content = exported(*random_network(seed), torch.float32).SerializeToString()
    draw = np.random.default_rng(seed)
    path = tmp_path / "net.onnx"
    X = np.zeros((2, 18 if seed == 2 else 12))
    refused = 0
    for trial in range(1000 if FULL else 60):
        mutant = bytearray(content)
        if trial % 3 == 0:
            mutant = mutant[: int(draw.integers(len(mutant)))]
        else:
            for place in draw.integers(len(mutant), size=int(draw.integers(1, 6))):
                mutant[place] = int(draw.integers(256))
        path.write_bytes(mutant)
        try:
            OnnxPredictor(path).predict(X)
        except dt.DovetailError:
            refused += 1
    assert refused > 20


# Imports


def test_without_onnx_the_message_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    model = gemm_model([[1.0, 2.0]], [0.5])
    with pytest.raises(dt.MissingDependencyError, match=r'pip install "dovetail\[onnx\]"'):
        as_predictor(model)


def test_other_predictors_do_not_import_onnx():
    code = (
        "import sys, dovetail as dt; from dovetail.core.predictor import as_predictor; import torch; "
        "as_predictor(torch.nn.Linear(1, 1)); as_predictor(lambda X: X); "
        "import dovetail.predictors.onnx.model; print('onnx' in sys.modules, 'onnxruntime' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_only_one_file_imports_onnx():
    folder = os.path.dirname(onnx_file.__file__)
    for root, _, files in os.walk(os.path.dirname(folder)):
        for name in files:
            if name.endswith(".py") and os.path.join(root, name) != onnx_file.__file__:
                with open(os.path.join(root, name)) as text:
                    lines = [line.split() for line in text if line.split()[:1] in (["import"], ["from"])]
                assert not any(line[1].split(".")[0] in ("onnx", "onnxruntime") for line in lines), name
