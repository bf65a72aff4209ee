"""CatBoost's JSON, written by hand: which leaf, what the loss makes of it, and what is refused."""

import copy
import json

import numpy as np
import pytest

import dovetail as dt
from dovetail.core.errors import PredictorError, UnsupportedError
from dovetail.predictors.trees.catboost import category_hash, numbers_of


def split(column, border, kind="FloatFeature"):
    return {"border": border, "float_feature_index": column, "split_index": 0, "split_type": kind}


def one_hot(value):
    return {"cat_feature_index": 0, "split_type": "OneHotFeature", "value": value}


NUMERIC = [{"feature_index": k, "flat_feature_index": k, "borders": []} for k in range(2)]
DOCUMENT = {
    "model_info": {"params": {"loss_function": {"type": "RMSE"}}},
    "features_info": {
        "float_features": NUMERIC,
        "categorical_features": [{"feature_index": 0, "flat_feature_index": 2, "values": []}],
    },
    "oblivious_trees": [
        {"leaf_values": [1.0, 2.0, 3.0, 4.0], "splits": [split(0, 0.5), split(1, -1.0)]},
        {"leaf_values": [10.0], "splits": []},
    ],
    "scale_and_bias": [2.0, [100.0]],
}
GROWN = {
    "left": {"value": 1.0},
    "right": {"left": {"value": 2.0}, "right": {"value": 3.0}, "split": split(1, 0.25)},
    "split": split(0, 0.5),
}


def loaded(document, folder):
    file = folder / "model.json"
    file.write_text(json.dumps(document))
    return dt.load_predictor(file)


def test_a_leaf_s_number_has_the_answers_for_bits(tmp_path):
    X = np.array([[0.5, -1.0, 0.0], [0.6, -1.0, 0.0], [0.5, -0.9, 0.0], [0.6, -0.9, 0.0]])
    assert loaded(DOCUMENT, tmp_path).predict(X)[:, 0].tolist() == [122.0, 124.0, 126.0, 128.0]


def test_a_border_is_compared_in_float32(tmp_path):
    hair = np.array([[0.5 + 1e-9, -2.0, 0.0], [0.5 + 1e-7, -2.0, 0.0]])  # the first one is 0.5 in float32
    assert loaded(DOCUMENT, tmp_path).predict(hair)[:, 0].tolist() == [122.0, 124.0]


def test_grown_trees_are_nested(tmp_path):
    document = {key: value for key, value in DOCUMENT.items() if key != "oblivious_trees"} | {
        "trees": [GROWN]
    }
    X = np.array([[0.0, 9.0, 0.0], [1.0, 0.25, 0.0], [1.0, 0.3, 0.0]])
    assert loaded(document, tmp_path).predict(X)[:, 0].tolist() == [102.0, 104.0, 106.0]


def test_a_classifier_gives_a_probability(tmp_path):
    document = copy.deepcopy(DOCUMENT)
    document["model_info"]["params"]["loss_function"]["type"] = "Logloss"
    document["scale_and_bias"] = [1.0, [-11.0]]
    X = np.array([[0.0, -2.0, 0.0], [1.0, 0.0, 0.0]])
    assert np.allclose(loaded(document, tmp_path).predict(X)[:, 0], 1.0 / (1.0 + np.exp([0.0, -3.0])))


def test_a_category_goes_right_by_its_hash(tmp_path):
    """The hash of "1", by CatBoost itself."""
    document = copy.deepcopy(DOCUMENT)
    document["oblivious_trees"][0]["splits"][0] = one_hot(1121341681)
    X = np.array([[0.0, -2.0, k] for k in range(-1, 4)])
    assert loaded(document, tmp_path).predict(X)[:, 0].tolist() == [122.0, 122.0, 124.0, 122.0, 122.0]
    assert loaded(document, tmp_path).describe(X).whole_features == (2,)


def test_hashes_are_catboost_s_own():
    """As its export to Python lists them."""
    known = {"0": -1438285038, "2": -1284790409, "5": -1280163355, "4": -78686594, "3": 593172586}
    assert {text: category_hash(text) for text in known} == {k: v % 2**32 for k, v in known.items()}
    assert all(int(text) in numbers_of(value) for text, value in known.items())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d["oblivious_trees"][0]["splits"][0].update(split_type="OnlineCtr"), "OnlineCtr"),
        (lambda d: d["oblivious_trees"][0]["splits"][0].update(one_hot(12345)), "no whole numbers"),
        (lambda d: d["oblivious_trees"][0]["leaf_values"].pop(), "has 3 leaves"),
        (lambda d: d["oblivious_trees"][0]["leaf_values"].__setitem__(0, float("nan")), "NaN"),
        (
            lambda d: d["model_info"]["params"]["loss_function"].update(type="MultiClassOneVsAll"),
            "MultiClassOneVsAll",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(change, words, tmp_path):
    document = copy.deepcopy(DOCUMENT)
    change(document)
    with pytest.raises((PredictorError, UnsupportedError), match=words):
        loaded(document, tmp_path)


def test_limits_hold(tmp_path):
    file = tmp_path / "model.json"
    file.write_text(json.dumps(DOCUMENT))
    with pytest.raises(PredictorError, match="elements"):
        dt.load_predictor(file, limits=dt.FileLimits(elements=10))
    with pytest.raises(PredictorError, match="seconds"):
        dt.load_predictor(file, limits=dt.FileLimits(seconds=1e-9))
