"""ONNX's tree ensembles against onnxruntime, on every cut and beside it."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import dovetail as dt
from dovetail.core.errors import DovetailError
from dovetail.core.predictor import as_predictor
from dovetail.predictors.trees.predictor import probe_rows

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
    **{
        mode: regressor(RNG, mode=mode)
        for mode in (
            "BRANCH_LEQ",
            "BRANCH_LT",
            "BRANCH_GTE",
            "BRANCH_GT",
            "BRANCH_EQ",
            "BRANCH_NEQ",
        )
    },
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


def newer(modes, splits, members=None, element=TensorProto.FLOAT):
    """One tree: a chain of splits over the three features in turn, then a tree of one leaf."""
    count = len(modes)
    attributes = {} if members is None else {
        "membership_values": helper.make_tensor("b", element, [len(members)], members)
    }  # fmt: skip
    node = helper.make_node(
        "TreeEnsemble", ["X"], ["Y"], domain="ai.onnx.ml", n_targets=1, aggregate_function=1,
        post_transform=0, tree_roots=[0, count],
        nodes_featureids=[*(k % 3 for k in range(count)), 0],
        nodes_truenodeids=[*range(count), count + 1],
        nodes_trueleafs=[1] * count + [1],
        nodes_falsenodeids=[*range(1, count), count, count + 1],
        nodes_falseleafs=[0] * (count - 1) + [1, 1],
        nodes_splits=helper.make_tensor("s", element, [count + 1], [*splits, 0.0]),
        nodes_modes=helper.make_tensor("m", TensorProto.UINT8, [count + 1], [*modes, 0]),
        leaf_targetids=[0] * (count + 2),
        leaf_weights=helper.make_tensor("w", element, [count + 2], [2.0**k for k in range(count + 2)]),
        **attributes,
    )  # fmt: skip
    graph = helper.make_graph(
        [node],
        "trees",
        [helper.make_tensor_value_info("X", element, [None, 3])],
        [helper.make_tensor_value_info("Y", element, [None, 1])],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 5)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def written_down(modes, splits, sets, X, dtype):
    """What `newer` says, by the words of the operator's documentation."""
    answer, open_rows = np.zeros(len(X)), np.ones(len(X), dtype=bool)
    for k, (mode, split) in enumerate(zip(modes, splits, strict=True)):
        x = X[:, k % 3].astype(dtype)
        split = dtype(split)
        true = [x <= split, x < split, x >= split, x > split, x == split, x != split,
                np.isin(x, np.array(sets.get(k, ()), dtype=dtype))][mode]  # fmt: skip
        answer[open_rows & true] = 2.0**k
        open_rows &= ~true
    answer[open_rows] = 2.0 ** len(modes)
    return answer + 2.0 ** (len(modes) + 1)


@pytest.mark.parametrize(
    ("element", "dtype"), [(TensorProto.FLOAT, np.float32), (TensorProto.DOUBLE, np.float64)]
)
def test_splits_by_numbers_and_sets_of_them(element, dtype):
    """Beside thresholds, in one tree; on every such number and one float64 to each side."""
    modes, splits = [4, 6, 0, 6, 5, 6], [1.0, np.nan, 0.1, np.nan, 0.0, np.nan]
    sets = {1: [2.0, 0.1, 3.0], 3: [-1.5], 5: [0.0, 4.0]}
    members = [number for k in sorted(sets) for number in [*sets[k], np.nan]]
    for listed in (members, members[:-1]):  # with and without a NaN after the last set
        ensemble = as_predictor(newer(modes, splits, listed, element)).trees()
        rows = np.concatenate([*probe_rows(ensemble, np.random.default_rng(1))])
        whole = np.random.default_rng(2).integers(-2, 6, (300, 3)).astype(float)
        X = np.concatenate([rows, whole])
        assert np.array_equal(ensemble.values(X)[:, 0], written_down(modes, splits, sets, X, dtype))


def test_sets_of_numbers_as_the_runtime_has_them():
    """The runtime takes one mode for a tree, and whole numbers as members."""
    sets = {0: [1.0, 3.0], 1: [2.0], 2: [1.0, 2.0, 5.0]}
    members = [number for k in sorted(sets) for number in [*sets[k], np.nan]]
    model = newer([6, 6, 6], [0.0, 0.0, 0.0], members)
    X = np.random.default_rng(0).integers(0, 7, (200, 3)).astype(float)
    assert np.array_equal(as_predictor(model).predict(X), session_answer(model, X))


def test_an_optimum_at_a_number_that_is_asked_for():
    """A continuous column, and one point of it that pays."""
    model = newer([4, 4], [1.25, 2.0])  # the first feature is 1.25: 1; else the second is 2: 2; else 4; and 8
    problem = dt.Problem(dt.Mip([0.0, 0.0, 0.0, 1.0], lower=[0, 0, 0, -9], upper=[3, 3, 3, 99]))
    problem.add_predictor(model, [0, 1, 2], [3])
    result = dt.solve(problem, log=False)
    assert result.status == "optimal" and result.x[0] == 1.25 and result.objective == 9.0


def test_sets_that_do_not_fit_the_splits_are_refused():
    with pytest.raises(DovetailError, match="3 sets of members for 1 splits"):
        as_predictor(newer([6], [0.0], [1.0, np.nan, 2.0, np.nan, 3.0, np.nan]))
    with pytest.raises(DovetailError, match="infinite"):
        as_predictor(newer([4], [np.inf]))


def test_a_file_is_read_as_trees(tmp_path):
    onnx.save(MODELS["BRANCH_LEQ"], tmp_path / "trees.onnx")
    assert as_predictor(tmp_path / "trees.onnx").trees().trees == 3


def test_other_splits_and_sums_are_refused_by_name():
    with pytest.raises(DovetailError, match="BRANCH_MEMBER"):  # the older operator has no sets
        as_predictor(regressor(np.random.default_rng(0), mode="BRANCH_MEMBER"))
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
