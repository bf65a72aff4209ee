"""Foreign predictors, one file or folder per library; importing this package imports none of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

from dovetail.core.predictor import register
from dovetail.core.recogniser import of_class
from dovetail.core.table import Part, Table


def _is_estimator(foreign: object) -> bool:
    """Of scikit-learn or derived from it; what can be called is a function first."""
    return not callable(foreign) and any(
        cls.__module__.startswith("sklearn.") for cls in type(foreign).__mro__
    )


_is_xgboost = of_class("xgboost.sklearn.XGBModel", "xgboost.core.Booster")
_is_lightgbm = of_class("lightgbm.sklearn.LGBMModel", "lightgbm.basic.Booster")


def _ends_in_trees(foreign: object) -> bool:
    """A pipeline of scikit-learn's whose last step is a tree ensemble, of any library."""
    if not of_class("sklearn.pipeline.Pipeline")(foreign):
        return False
    last = getattr(foreign, "steps", [(None, None)])[-1][1]
    return any(is_one(last) for is_one in (_is_trees, _is_xgboost, _is_lightgbm))


def _is_trees(foreign: object) -> bool:
    """A tree ensemble of scikit-learn's own, or derived from one."""
    names = {cls.__name__ for cls in type(foreign).__mro__ if cls.__module__.startswith("sklearn.")}
    return not names.isdisjoint(
        (
            "BaseDecisionTree",
            "ForestRegressor",
            "ForestClassifier",
            "BaseGradientBoosting",
            "BaseHistGradientBoosting",
            "BaseWeightBoosting",
        )
    ) or ("BaseBagging" in names and _is_trees(getattr(foreign, "estimator_", None)))


def _is_keras(foreign: object) -> bool:
    """Of Keras 3, whatever its backend, or of the Keras that came with tensorflow."""
    return any(
        cls.__name__ == "Layer" and cls.__module__.startswith(("keras.", "tf_keras."))
        for cls in type(foreign).__mro__
    )


def _is_onnx(foreign: object) -> bool:
    if isinstance(foreign, (str, PurePath)):
        return str(foreign).lower().endswith(".onnx")
    return of_class("onnx.onnx_ml_pb2.ModelProto")(foreign)


def _is_path(foreign: object) -> bool:
    """A word that looks like no file and is none is not taken for a path."""
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
        "dovetail.predictors.keras_elsewhere:keras_predictor",
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
        "dovetail.predictors.skorch_net:SkorchPredictor",
        "a trained net, as its torch module",
        library="skorch",
        recognises=of_class("skorch.net.NeuralNet"),
    ),
    Part(
        "XGBoost",
        "dovetail.predictors.trees.xgboost_model:xgboost_trees",
        "gbtree, DART and random forests; estimators and boosters",
        library="xgboost or xgboost-cpu",
        recognises=_is_xgboost,
    ),
    Part(
        "LightGBM",
        "dovetail.predictors.trees.lightgbm_model:lightgbm_trees",
        "gbdt, DART and random forests; estimators and boosters",
        library="lightgbm",
        recognises=_is_lightgbm,
    ),
    Part(
        "scikit-learn searches",
        "dovetail.predictors.scikit_learn.search:best_estimator",
        "GridSearchCV and its like: the best estimator they trained",
        library="scikit-learn",
        extra="sklearn",
        recognises=of_class("sklearn.model_selection._search.BaseSearchCV"),
    ),
    Part(
        "scikit-learn trees",
        "dovetail.predictors.trees.scikit_learn:scikit_learn_trees",
        "decision trees, forests, bagging, AdaBoost and gradient boosting",
        library="scikit-learn",
        extra="sklearn",
        recognises=_is_trees,
    ),
    Part(
        "scalers and trees",
        "dovetail.predictors.trees.pipeline:pipeline_trees",
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
        "dovetail.predictors.plain_callable:CallablePredictor",
        "any f(X) -> Y on numpy batches, gradients by differences",
        recognises=callable,
    ),
)
"""Asked from the top: a Keras model on torch is a module too, a module can be called."""


def _builder(part: Part) -> Callable[[Any], object]:
    def build(foreign: Any) -> object:
        return part.load()(foreign)

    build.__qualname__ = part.name  # how messages call it
    return build


for _part in reversed([*PREDICTORS.values()]):  # what is registered last is asked first
    assert _part.recognises is not None
    register(_part.recognises, _builder(_part))
