"""ONNX models as predictors: name, precision, shapes, outputs, layers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from onnx import TensorProto, helper
from torch import nn

import dovetail as dt
from dovetail.core.predictor import as_predictor
from dovetail.networks.layers import Activation, Dense, evaluate
from dovetail.predictors.onnx.model import OnnxPredictor
from tests.conftest import volume
from tests.predictors.onnx.exported import exported, random_network
from tests.predictors.onnx.oracle import (
    error_of,
    gemm_model,
    ints,
    model_of,
    slope_error,
    truth_of,
)


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


def test_a_squeeze_does_not_take_the_axis_of_a_single_sample_along():
    nodes = [helper.make_node("MatMul", ["x", "W"], ["s"]), helper.make_node("Squeeze", ["s"], ["y"])]
    W = np.arange(6, dtype=np.float32).reshape(3, 2)
    predictor = as_predictor(model_of(nodes, {"W": W}, (3,)))
    for count in (1, 2, 4):
        X = np.random.default_rng(count).uniform(-1.0, 1.0, (count, 3)).astype(np.float32)
        assert np.allclose(predictor.predict(X), X @ W, atol=1e-5)


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


@volume("the exporter takes eight seconds to import; files of the old one have the same layers")
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


def test_a_mask_of_minus_infinity_is_no_damaged_weight():
    mask = np.float32([[0.0, -np.inf, 0.0]])
    nodes = [helper.make_node("Add", ["x", "mask"], ["m"]), helper.make_node("Softmax", ["m"], ["y"])]
    predictor = as_predictor(model_of(nodes, {"mask": mask}, (3,)))
    X = np.random.default_rng(0).uniform(-1, 1, (4, 3))
    assert np.all(predictor.predict(X)[:, 1] == 0.0)
    assert slope_error(predictor, X) < 1e-6
