"""The public functions of gurobi-machinelearning 1.7 and of its next release, one line each."""

from __future__ import annotations

from typing import Any

from dovetail.compat.gurobi_ml.activations import require_meant
from dovetail.compat.gurobi_ml.big_m import require_bounds
from dovetail.compat.gurobi_ml.constr import GurobiPredictorConstr, PipelineConstr
from dovetail.compat.gurobi_ml.margins import margins
from dovetail.compat.gurobi_ml.safety_floor import with_safety_floor
from dovetail.compat.peer import Peer, PeerFunction
from dovetail.core.errors import DovetailError, PredictorError
from dovetail.models import foreign_model

_SPLIT = ("epsilon", "safety_floor")
"""Trees: what keeps inputs away from their splits."""

FLAT = ("sklearn", "xgboost", "lightgbm")
"""Libraries whose predictors take rows of features, and nothing that has a shape."""

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
        _SPLIT, meant=margins),
)  # fmt: skip


def _asked(model: Any, predictor: Any, inputs: Any, options: dict[str, Any]) -> Any:
    """Activations that mean the network's own change nothing; a floor moves the splits of trees.

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
        require_bounds(model, inputs)
    require_meant(options.pop("activation_models", {}))
    return with_safety_floor(predictor, options.pop("safety_floor", 0.0))


PEER = Peer("gp_model", (), GurobiPredictorConstr, "name", FUNCTIONS, (PipelineConstr,), asked=_asked)

EXCEPTIONS = dict.fromkeys(
    ("GurobiMLError", "PredictorNotSupportedError", "ModelConfigurationError", "NoSolutionError",
     "NotRegistered", "NoModel", "NoSolution", "ParameterError"),
    DovetailError,
)  # fmt: skip
"""The peer's names catch all that dovetail raises on purpose."""
