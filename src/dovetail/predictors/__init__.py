"""Predictors of other libraries, one file or folder per library; importing this package imports none of
them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

from dovetail.core.predictor import register
from dovetail.core.table import Part, Table, of_class


def _is_estimator(foreign: object) -> bool:
    """Whether an object belongs to scikit-learn or a derived class; callables count as functions first."""
    return not callable(foreign) and any(
        cls.__module__.startswith("sklearn.") for cls in type(foreign).__mro__
    )


_is_xgboost = of_class("xgboost.sklearn.XGBModel", "xgboost.core.Booster")
_is_lightgbm = of_class("lightgbm.sklearn.LGBMModel", "lightgbm.basic.Booster")

_is_catboost = of_class("catboost.core.CatBoost")


SCALERS = ("StandardScaler", "RobustScaler", "MinMaxScaler", "MaxAbsScaler")
"""scikit-learn's scalers that change each feature by itself with an increasing function."""


def _ends_in_trees(foreign: object) -> bool:
    """Whether an object is a pipeline of scalers followed by a tree ensemble of any library. Behind other
    steps trees are part of an ordinary estimator."""
    if not of_class("sklearn.pipeline.Pipeline")(foreign):
        return False
    *before, last = (step for _, step in getattr(foreign, "steps", [(None, None)]))
    ends = any(is_one(last) for is_one in (_is_trees, _is_xgboost, _is_lightgbm, _is_catboost))
    return ends and all(map(_is_scaler, before))


def _is_scaler(step: object) -> bool:
    """Whether a step is a scaler, passes its input on, or is a pipeline of such steps."""
    if step is None or isinstance(step, str):
        return True
    if of_class("sklearn.pipeline.Pipeline")(step):
        return all(_is_scaler(inner) for _, inner in getattr(step, "steps", ()))
    return any(cls.__name__ in SCALERS for cls in type(step).__mro__)


def _is_trees(foreign: object) -> bool:
    if not _is_estimator(foreign):
        return False
    from dovetail.predictors.scikit_learn.estimator import is_a
    from dovetail.predictors.trees.scikit_learn import READERS

    if is_a(foreign, "BaggingRegressor", "BaggingClassifier"):
        return _is_trees(getattr(foreign, "estimator_", None))
    return is_a(foreign, *READERS)


def _is_keras(foreign: object) -> bool:
    """Whether an object belongs to Keras 3 on any backend, or to the Keras of tensorflow."""
    return any(
        cls.__name__ == "Layer" and cls.__module__.startswith(("keras.", "tf_keras."))
        for cls in type(foreign).__mro__
    )


def _is_onnx(foreign: object) -> bool:
    if isinstance(foreign, (str, PurePath)):
        return str(foreign).lower().endswith(".onnx")
    return of_class("onnx.onnx_ml_pb2.ModelProto")(foreign)


def _is_path(foreign: object) -> bool:
    """Whether a string is a path: it looks like a file name, or a file of this name exists."""
    if isinstance(foreign, str):
        return "." in foreign or os.path.exists(foreign)
    return isinstance(foreign, os.PathLike)


PREDICTORS: Table[object] = Table(
    "predictor",
    "predictors",
    Part(
        "file",
        "dovetail.predictors.files:load_predictor",
        "the path of a file that holds one of the others",
        recognises=_is_path,
    ),
    Part(
        "Keras",
        "dovetail.predictors:keras_predictor",
        "models on torch; on other backends by their own predict",
        library="keras",
        recognises=_is_keras,
    ),
    Part(
        "ONNX",
        "dovetail.predictors.onnx.model:onnx_predictor",
        "a .onnx file or a ModelProto, opset 7 to 28",
        library="onnx",
        extra="onnx",
        recognises=_is_onnx,
    ),
    Part(
        "torch.nn.Module",
        "dovetail.predictors.torch.module:TorchPredictor",
        "any module that maps (n, d) to (n, q)",
        library="torch",
        recognises=of_class("torch.nn.modules.module.Module"),
    ),
    Part(
        "skorch",
        "dovetail.predictors.torch.module:SkorchPredictor",
        "a trained net, as its torch module",
        library="skorch",
        recognises=of_class("skorch.net.NeuralNet"),
    ),
    Part(
        "XGBoost",
        "dovetail.predictors.trees.xgboost:XgboostTrees",
        "gbtree, DART and random forests; estimators and boosters",
        library="xgboost or xgboost-cpu",
        recognises=_is_xgboost,
    ),
    Part(
        "LightGBM",
        "dovetail.predictors.trees.lightgbm:LightgbmTrees",
        "gbdt, DART and random forests; estimators and boosters",
        library="lightgbm",
        recognises=_is_lightgbm,
    ),
    Part(
        "CatBoost",
        "dovetail.predictors.trees.catboost:CatboostTrees",
        "models of numbers and of categories one by one, whatever their trees",
        library="catboost",
        recognises=_is_catboost,
    ),
    Part(
        "scikit-learn searches",
        "dovetail.predictors.scikit_learn.estimator:best_estimator",
        "GridSearchCV and its like: the best estimator they trained",
        library="scikit-learn",
        extra="sklearn",
        recognises=of_class("sklearn.model_selection._search.BaseSearchCV"),
    ),
    Part(
        "scikit-learn trees",
        "dovetail.predictors.trees.scikit_learn:ScikitLearnTrees",
        "decision trees, forests, bagging, AdaBoost and gradient boosting",
        library="scikit-learn",
        extra="sklearn",
        recognises=_is_trees,
    ),
    Part(
        "scalers and trees",
        "dovetail.predictors.trees.pipeline:PipelineTrees",
        "pipelines of scikit-learn's that end in a tree ensemble",
        library="scikit-learn",
        extra="sklearn",
        recognises=_ends_in_trees,
    ),
    Part(
        "scikit-learn",
        "dovetail.predictors.scikit_learn.predictor:ScikitLearnPredictor",
        "MLPs, linear models, kernels, centres, votes, stacks, transformers, pipelines",
        library="scikit-learn",
        extra="sklearn",
        recognises=_is_estimator,
    ),
    Part(
        "callable",
        "dovetail.predictors.function:CallablePredictor",
        "any f(X) -> Y on numpy batches, gradients by differences",
        recognises=callable,
    ),
)
"""In the order of the tests: a Keras model on torch is also a module, and a module is callable."""


def _builder(part: Part) -> Callable[[Any], object]:
    def build(foreign: Any) -> object:
        return part.load()(foreign)

    build.__qualname__ = part.name  # the name in messages
    return build


for _part in reversed([*PREDICTORS.values()]):  # the last registration is tested first
    assert _part.recognises is not None
    register(_part.recognises, _builder(_part))


def keras_predictor(model: Any) -> object:
    """The predictor of a Keras model, on any backend; each file imports what it needs of Keras."""
    if of_class("torch.nn.modules.module.Module")(model):
        from dovetail.predictors.keras_model import KerasPredictor

        return KerasPredictor(model)
    from dovetail.predictors.keras_elsewhere import KerasElsewhere

    return KerasElsewhere(model)


def categories_of(predictor: Any) -> dict[int, tuple[Any, ...]]:
    """The category names of each categorical feature, in the order of their numbers; empty for most
    predictors.

    The variable of such a feature holds the position of the category in this list.

    >>> import numpy as np, pandas as pd, dovetail as dt
    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> frame = pd.DataFrame({"wood": pd.Categorical(["oak", "ash"] * 30, categories=["oak", "ash"])})
    >>> trees = HistGradientBoostingRegressor(categorical_features="from_dtype")
    >>> trees = trees.fit(frame, np.tile([2.0, 1.0], 30))
    >>> names = dt.categories_of(trees)[0]
    >>> print(names[1])  # what a column that is 1 stands for
    oak
    """
    return {feature: names for feature, names in text_features(predictor).items() if names}


def text_features(predictor: Any) -> dict[int, tuple[Any, ...]]:
    """The features that may be text: with the names of their categories, or none if the predictor drops the
    feature."""
    from dovetail.predictors.derived import DerivedOutputs
    from dovetail.predictors.ensemble import Ensemble

    if isinstance(predictor, (DerivedOutputs, Ensemble)):
        return _common(*map(text_features, predictor.given))
    kind = PREDICTORS.recognised(predictor)
    if kind == "scikit-learn searches":
        return text_features(getattr(predictor, "best_estimator_", None))
    if kind in ("XGBoost", "LightGBM"):
        return _frame_attributes(kind, predictor)
    if kind not in ("scikit-learn", "scikit-learn trees"):
        return {}
    from dovetail.predictors.scikit_learn.transformers import categories_read, is_numeric, unread_features

    read = {feature: categories for feature, (categories, _) in categories_read(predictor).items()}
    found = {feature: tuple(names) for feature, names in read.items() if not is_numeric(names)}
    return found | dict.fromkeys(unread_features(predictor), ())


def _common(*each: dict[int, tuple[Any, ...]]) -> dict[int, tuple[Any, ...]]:
    """What several predictors of the same features say: a feature counts if those that read it agree."""
    said = {feature: {one[feature] for one in each if feature in one} for found in each for feature in found}
    every = {feature: all(feature in one for one in each) for feature in said}
    read = {feature: names - {()} or {()} for feature, names in said.items() if every[feature]}
    return {feature: names.pop() for feature, names in read.items() if len(names) == 1}


def _frame_attributes(library: str, model: Any) -> dict[int, tuple[Any, ...]]:
    """The attributes in which a library keeps the frame of the training data; empty if unreadable."""
    from dovetail.predictors.trees.lightgbm import lightgbm_categories
    from dovetail.predictors.trees.xgboost import xgboost_categories

    try:
        return (xgboost_categories if library == "XGBoost" else lightgbm_categories)(model)
    except Exception:  # the reason is reported when the predictor is added
        return {}
