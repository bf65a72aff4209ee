"""The public functions of gurobi-machinelearning 1.7 and of its next release, one line each."""

from __future__ import annotations

import re
from typing import Any

from dovetail.core.errors import DovetailError
from dovetail_peers.compat.gurobi_ml.constr import GurobiPredictorConstr
from dovetail_peers.compat.peer import Peer, PeerFunction

_SPLIT = ("epsilon", "safety_floor")
"""Options for trees."""

_TWO_CLASSES = re.compile(r"^objective=binary\b.*$", re.MULTILINE)
"""The line of a LightGBM model that applies a function to the sum of its leaves."""


def _margins(booster: Any) -> Any:
    """The booster itself, or a copy without the function applied to its sum.

    dovetail treats a booster that was trained for two classes as a classifier; the peer uses the sum of its
    leaves.
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


PEER = Peer("gp_model", (), GurobiPredictorConstr, "name", FUNCTIONS)

EXCEPTIONS = dict.fromkeys(
    ("GurobiMLError", "PredictorNotSupportedError", "ModelConfigurationError", "NoSolutionError",
     "NotRegistered", "NoModel", "NoSolution", "ParameterError"),
    DovetailError,
)  # fmt: skip
"""The peer's names catch all that dovetail raises on purpose."""
