"""The public functions of gurobi-machinelearning 1.7 and of its next release, one line each.

`safety_floor`: splits of trees that are nearer to 0 than that, moved away from it.

gurobi-machinelearning has it for thresholds that are smaller than the tolerances of its solver. dovetail has
no need of it, but who asks for it gets it: what is solved and verified is the tree so moved.
"""

from __future__ import annotations

import json
import re
from copy import deepcopy
from typing import Any

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import DovetailError, OptionError, PredictorError
from dovetail.core.mip import INFINITY
from dovetail.models import foreign_model
from dovetail_peers.compat.gurobi_ml.constr import GurobiPredictorConstr, PipelineConstr
from dovetail_peers.compat.peer import Peer, PeerFunction

_THRESHOLDS = re.compile(r"^threshold=(.*)$", re.MULTILINE)
"""Of one tree in LightGBM's text."""


def with_safety_floor(predictor: Any, floor: float) -> Any:
    """The predictor itself where the floor moves nothing; else a copy with its splits moved."""
    if not floor >= 0.0:
        raise OptionError(f"safety_floor is {floor}; give a number >= 0.")
    if floor == 0.0:
        return predictor
    library, name = type(predictor).__module__.split(".")[0], type(predictor).__name__
    if name == "Pipeline":
        copy = deepcopy(predictor)
        copy.steps[-1] = (copy.steps[-1][0], with_safety_floor(copy.steps[-1][1], floor))
        return copy
    if library == "sklearn" and (hasattr(predictor, "tree_") or hasattr(predictor, "estimators_")):
        return _scikit_learn(predictor, floor)
    if library == "lightgbm":
        return _lightgbm(getattr(predictor, "booster_", predictor), floor)
    if library == "xgboost":
        return _xgboost(predictor, floor)
    raise OptionError(f"safety_floor moves the splits of trees, and {name} has none that can be moved.")


def moved(thresholds: FloatArray, floor: float) -> FloatArray:
    """Those between -floor and floor put there; 0 itself stays.

    >>> moved(np.array([-0.5, -0.001, 0.0, 0.002]), 0.01).tolist()
    [-0.5, -0.01, 0.0, 0.01]
    """
    return np.where(np.abs(thresholds) < floor, np.sign(thresholds) * floor, thresholds)


def _scikit_learn(predictor: Any, floor: float) -> Any:
    copy = deepcopy(predictor)
    for one in np.ravel(np.asarray(getattr(copy, "estimators_", [copy]), dtype=object)):
        inner = one.tree_.children_left >= 0
        one.tree_.threshold[inner] = moved(one.tree_.threshold[inner], floor)
    return copy


def _lightgbm(booster: Any, floor: float) -> Any:
    def put(line: re.Match[str]) -> str:
        thresholds = np.array(line[1].split(), dtype=np.float64)
        return "threshold=" + " ".join(repr(float(value)) for value in moved(thresholds, floor))

    return type(booster)(model_str=_THRESHOLDS.sub(put, booster.model_to_string()))


def _xgboost(predictor: Any, floor: float) -> Any:
    copy = deepcopy(predictor)
    booster = copy.get_booster() if hasattr(copy, "get_booster") else copy
    document = json.loads(booster.save_raw(raw_format="json"))
    for tree in document["learner"]["gradient_booster"]["model"]["trees"]:
        inner = np.array(tree["left_children"]) >= 0
        thresholds = np.array(tree["split_conditions"], dtype=np.float64)
        thresholds[inner] = moved(thresholds[inner], floor)
        tree["split_conditions"] = thresholds.tolist()
    booster.load_model(bytearray(json.dumps(document), "utf-8"))
    return copy


_SPLIT = ("epsilon", "safety_floor")
"""Trees: what keeps inputs away from their splits."""

FLAT = ("sklearn", "xgboost", "lightgbm")
"""Libraries whose predictors take rows of features, and nothing that has a shape."""

_TWO_CLASSES = re.compile(r"^objective=binary\b.*$", re.MULTILINE)
"""The line of a LightGBM model that puts a curve behind the sum of its leaves."""


def _margins(booster: Any) -> Any:
    """The booster itself, or a copy without the curve behind its sum.

    dovetail takes a booster that was trained for two classes as a classifier; the peer adds its leaves up.
    """
    text = booster.model_to_string()
    plain = _TWO_CLASSES.sub("objective=regression", text)
    return booster if plain == text else type(booster)(model_str=plain)


GENERAL = PeerFunction("add_predictor_constr", "add_predictor", "predictor", "AbstractPredictorConstr")

FUNCTIONS = (
    PeerFunction(
        "add_linear_regression_constr", "sklearn.linear_regression", "linear_regression",
        "LinearRegressionConstr", ("LinearRegression", "Ridge", "Lasso")),
    PeerFunction(
        "add_logistic_regression_constr", "sklearn.logistic_regression", "logistic_regression",
        "LogisticRegressionConstr", ("LogisticRegression",), ("output_type", "epsilon", "pwl_attributes"),
        "classification"),
    PeerFunction(
        "add_pls_regression_constr", "sklearn.pls_regression", "pls_regression", "PLSRegressionConstr",
        ("PLSRegression", "PLSCanonical")),
    PeerFunction(
        "add_mlp_regressor_constr", "sklearn.mlpregressor", "mlp_regressor", "MLPRegressorConstr",
        ("MLPRegressor",), output_type="regression"),
    PeerFunction(
        "add_decision_tree_regressor_constr", "sklearn.decision_tree_regressor", "decision_tree_regressor",
        "DecisionTreeRegressorConstr", ("DecisionTreeRegressor",), _SPLIT),
    PeerFunction(
        "add_gradient_boosting_regressor_constr", "sklearn.gradient_boosting_regressor",
        "gradient_boosting_regressor", "GradientBoostingRegressorConstr", ("GradientBoostingRegressor",),
        _SPLIT),
    PeerFunction(
        "add_random_forest_regressor_constr", "sklearn.random_forest_regressor", "random_forest_regressor",
        "RandomForestRegressorConstr", ("RandomForestRegressor",), _SPLIT),
    PeerFunction("add_pipeline_constr", "sklearn.pipeline", "pipeline", "PipelineConstr", ("Pipeline",)),
    PeerFunction(
        "add_column_transformer_constr", "sklearn.column_transformer", "column_transformer",
        "ColumnTransformerConstr"),
    PeerFunction(
        "add_standard_scaler_constr", "sklearn.preprocessing", "standard_scaler", "StandardScalerConstr",
        ("StandardScaler",)),
    PeerFunction(
        "add_polynomial_features_constr", "sklearn.preprocessing", "polynomial_features",
        "PolynomialFeaturesConstr", ("PolynomialFeatures",)),
    PeerFunction("add_sequential_constr", "torch.sequential", "sequential_model", "SequentialConstr",
        ("Sequential",)),
    PeerFunction("add_keras_constr", "keras.keras", "keras_model", "KerasNetworkConstr", ("Model",)),
    PeerFunction("add_onnx_constr", "onnx.onnx_model", "onnx_model", "ONNXNetworkConstr",
        ("ModelProto",)),
    PeerFunction("add_onnx_dag_constr", "onnx.onnx_dag_model", "onnx_model", "ONNXDAGNetworkConstr"),
    PeerFunction(
        "add_xgbregressor_constr", "xgboost.xgboost_regressor", "xgboost_regressor",
        "XGBoostRegressorConstr", ("XGBRegressor",), _SPLIT),
    PeerFunction(
        "add_xgboost_regressor_constr", "xgboost.xgboost_regressor", "xgboost_regressor",
        "XGBoostRegressorConstr", ("Booster",), _SPLIT, output_type="regression"),
    PeerFunction(
        "add_lgbmregressor_constr", "lightgbm.lgbm_regressor", "lgbm_regressor", "LGBMConstr",
        ("LGBMRegressor",), _SPLIT),
    PeerFunction(
        "add_lgbm_booster_constr", "lightgbm.lgbm_regressor", "lgbm_booster", "LGBMConstr", ("Booster",),
        _SPLIT, meant=_margins),
)  # fmt: skip


def _asked(model: Any, predictor: Any, inputs: Any, options: dict[str, Any]) -> Any:
    """A floor moves the splits of trees; other activations than the network's own are refused.

    Variables of more than two axes are a network's pictures; elsewhere they are a mistake, as the peer says.
    """
    entry = PEER.entry_of(predictor)
    axes = foreign_model(model).unpack(inputs).ndim
    if axes > 2 and entry is not None and entry.module.split(".")[0] in FLAT:
        raise PredictorError(
            f"input_vars has {axes} axes, and {type(predictor).__name__} takes samples and features: give "
            "it (n_samples, n_features) variables, for instance input_vars.reshape(n_samples, -1)."
        )
    if options.get("formulation") == "bigm" and options.get("bigm") is None:
        _require_bounds(model, inputs)
    if options.pop("activation_models", None):
        raise OptionError(
            "activation_models= is not taken: the network is evaluated with its own activations. Leave it "
            "out; for another activation give a network that has it."
        )
    return with_safety_floor(predictor, options.pop("safety_floor", 0.0))


def _require_bounds(model: Any, inputs: Any) -> None:
    """An `OptionError` names the first input without bounds: with a big M the peer asks for them.

    dovetail needs no big M. But an input without bounds is mostly one whose bounds were forgotten.
    """
    model.update()  # gurobipy shows no bounds of variables before
    variable: Any
    for variable in foreign_model(model).unpack(inputs).flat:
        low, high = getattr(variable, "LB", 0.0), getattr(variable, "UB", 0.0)  # a number in a frame is fixed
        if max(-low, high) >= INFINITY:
            raise OptionError(
                f'{variable.VarName} goes from {low:g} to {high:g}, and formulation="bigm" needs bounds of '
                "all inputs: give them, or bigm=, or leave formulation= out, since dovetail takes the "
                "predictor without a big M."
            )


PEER = Peer("gp_model", (), GurobiPredictorConstr, "name", FUNCTIONS, (PipelineConstr,), asked=_asked)

EXCEPTIONS = dict.fromkeys(
    ("GurobiMLError", "PredictorNotSupportedError", "ModelConfigurationError", "NoSolutionError",
     "NotRegistered", "NoModel", "NoSolution", "ParameterError"),
    DovetailError,
)  # fmt: skip
"""The peer's names catch all that dovetail raises on purpose."""
