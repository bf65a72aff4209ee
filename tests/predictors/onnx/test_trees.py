"""ONNX's tree ensembles against onnxruntime, on every cut and beside it."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from dovetail.core.errors import DovetailError
from dovetail.core.predictor import as_predictor
from dovetail.predictors.trees.agreement import probe_rows

ort = pytest.importorskip("onnxruntime")


def session_answer(model, X, dtype=np.float32):
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"X": X.astype(dtype)})[-1], dtype=np.float64)


def nodes(rng, trees=3, mode=None):
    """Random trees of depth two over three features, as the older operators list them."""
    modes = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"]
    listed = {name: [] for name in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids",
                                    "falsenodeids")}  # fmt: skip
    for t in range(trees):
        one = mode or modes[t % 4]  # onnxruntime wants one mode in all splits of a tree
        for k, (yes, no) in enumerate([(1, 2), (3, 4), (0, 0), (0, 0), (0, 0)]):
            row = (t, k, int(rng.integers(3)), float(np.float32(np.round(rng.normal(), 1))), one, yes, no)
            row = row if yes else (t, k, 0, 0.0, "LEAF", 0, 0)
            for name, value in zip(listed, row, strict=True):
                listed[name].append(value)
    return {f"nodes_{name}": values for name, values in listed.items()}


def leaves(rng, part, trees, ids):
    """Values of the leaves (2, 3, 4) of every tree."""
    rows = [(t, k, o) for t in range(trees) for k in (2, 3, 4) for o in ids]
    return {
        f"{part}_treeids": [t for t, _, _ in rows],
        f"{part}_nodeids": [k for _, k, _ in rows],
        f"{part}_ids": [o for _, _, o in rows],
        f"{part}_weights": rng.uniform(0.1, 0.3, len(rows)).astype(np.float32).tolist(),
    }


def model_of(node, outputs, element=TensorProto.FLOAT):
    graph = helper.make_graph(
        [node],
        "trees",
        [helper.make_tensor_value_info("X", element, [None, 3])],
        outputs,
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9)


def regressor(rng, **attributes):
    node = helper.make_node(
        "TreeEnsembleRegressor", ["X"], ["Y"], domain="ai.onnx.ml", n_targets=2, base_values=[0.5, -1.0],
        **nodes(rng, mode=attributes.pop("mode", None)), **leaves(rng, "target", 3, (0, 1)), **attributes,
    )  # fmt: skip
    return model_of(node, [helper.make_tensor_value_info("Y", TensorProto.FLOAT, [None, 2])])


def classifier(rng, classes, ids, **attributes):
    node = helper.make_node(
        "TreeEnsembleClassifier", ["X"], ["L", "P"], domain="ai.onnx.ml",
        classlabels_int64s=[*range(classes)],
        **nodes(rng, mode="BRANCH_LEQ"), **leaves(rng, "class", 3, ids), **attributes,
    )  # fmt: skip
    infos = [
        helper.make_tensor_value_info("L", TensorProto.INT64, [None]),
        helper.make_tensor_value_info("P", TensorProto.FLOAT, [None, classes]),
    ]
    return model_of(node, infos)


RNG = np.random.default_rng(0)
MODELS = {
    **{mode: regressor(RNG, mode=mode) for mode in ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT")},
    "average": regressor(RNG, mode="BRANCH_LEQ", aggregate_function="AVERAGE", post_transform="NONE"),
    "three classes": classifier(RNG, 3, (0, 1, 2), post_transform="SOFTMAX"),
    "two classes": classifier(RNG, 2, (0, 1)),
    "one of two": classifier(RNG, 2, (1,), post_transform="LOGISTIC"),
    "a probability": classifier(RNG, 2, (1,), post_transform="NONE"),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_runtime_says_the_same_on_every_cut(name):
    model = MODELS[name]
    predictor = as_predictor(model)
    ensemble = predictor.trees()
    rows = np.concatenate([*probe_rows(ensemble, np.random.default_rng(1))])
    truth = session_answer(model, rows)[:, -ensemble.outputs :]
    assert np.max(np.abs(predictor.predict(rows) - truth)) <= 1e-6


def test_the_newer_operator():
    node = helper.make_node(
        "TreeEnsemble", ["X"], ["Y"], domain="ai.onnx.ml", n_targets=1, aggregate_function=1,
        post_transform=0,
        tree_roots=[0], nodes_featureids=[0, 2], nodes_truenodeids=[1, 0], nodes_falsenodeids=[0, 1],
        nodes_trueleafs=[0, 1], nodes_falseleafs=[1, 1],
        nodes_splits=helper.make_tensor("s", TensorProto.FLOAT, [2], [0.1, 1.0]),
        nodes_modes=helper.make_tensor("m", TensorProto.UINT8, [2], [0, 0]),
        leaf_targetids=[0, 0],
        leaf_weights=helper.make_tensor("w", TensorProto.FLOAT, [2], [5.0, 7.0]),
    )  # fmt: skip
    graph = helper.make_graph(
        [node],
        "trees",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, [None, 3])],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, [None, 1])],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 5)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=10)
    with pytest.raises(DovetailError, match="two parents"):  # a leaf that two splits share
        as_predictor(model).trees()
    node.attribute[[a.name for a in node.attribute].index("nodes_falsenodeids")].ints[0] = 2
    fixed = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    fixed |= {"leaf_targetids": [0, 0, 0]}
    fixed |= {"leaf_weights": helper.make_tensor("w", TensorProto.FLOAT, [3], [5.0, 7.0, 9.0])}
    graph.ClearField("node")
    graph.node.append(helper.make_node("TreeEnsemble", ["X"], ["Y"], domain="ai.onnx.ml", **fixed))
    model = helper.make_model(graph, opset_imports=imports, ir_version=10)
    predictor = as_predictor(model)
    rows = np.concatenate([*probe_rows(predictor.trees(), np.random.default_rng(1))])
    assert np.array_equal(predictor.predict(rows), session_answer(model, rows))


def test_a_file_is_read_as_trees(tmp_path):
    onnx.save(MODELS["BRANCH_LEQ"], tmp_path / "trees.onnx")
    assert as_predictor(tmp_path / "trees.onnx").trees().trees == 3


def test_other_splits_and_sums_are_refused_by_name():
    with pytest.raises(DovetailError, match="BRANCH_EQ"):
        as_predictor(regressor(np.random.default_rng(0), mode="BRANCH_EQ"))
    with pytest.raises(DovetailError, match="MAX"):
        as_predictor(regressor(np.random.default_rng(0), mode="BRANCH_LEQ", aggregate_function="MAX"))


def test_scores_behind_a_zip_map():
    """As skl2onnx writes a classifier unless it is told otherwise: labels, and a dictionary per sample."""
    rng = np.random.default_rng(3)
    listed = nodes(rng, mode="BRANCH_LEQ") | leaves(rng, "class", 3, (0, 1, 2))
    floats, labels = (helper.make_tensor_value_info("X", TensorProto.FLOAT, [None, 3]),
                      helper.make_tensor_value_info("label", TensorProto.INT64, [None]))  # fmt: skip
    trees = helper.make_node("TreeEnsembleClassifier", ["X"], ["label", "scores"], domain="ai.onnx.ml",
                             classlabels_int64s=[0, 1, 2], **listed)  # fmt: skip
    zipped = helper.make_node("ZipMap", ["scores"], ["probability"], domain="ai.onnx.ml",
                              classlabels_int64s=[0, 1, 2])  # fmt: skip
    maps = helper.make_value_info(
        "probability",
        helper.make_sequence_type_proto(
            helper.make_map_type_proto(
                TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, [])
            )
        ),
    )
    graph = helper.make_graph([trees, zipped], "trees", [floats], [labels, maps])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    X = rng.normal(size=(20, 3))
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    told = [list(each.values()) for each in session.run(None, {"X": X.astype(np.float32)})[1]]
    assert np.allclose(as_predictor(model).predict(X), told, atol=1e-6)
