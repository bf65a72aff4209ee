"""PySCIPOpt-ML's names: `from dovetail.compat.pyscipopt_ml.add_predictor import add_predictor_constr`.

>>> from dovetail.compat.pyscipopt_ml.torch import add_sequential_constr
>>> add_sequential_constr.__name__
'add_sequential_constr'
"""

from __future__ import annotations

from typing import Any, cast

from dovetail.core.errors import DovetailError
from dovetail.modelling.predictor_constr import PredictorConstr
from dovetail.version import __version__
from dovetail_peers.compat.peer import Peer, PeerFunction, publish

_SPLIT, _TYPE = ("epsilon",), ("output_type",)


class ScipPredictorConstr(PredictorConstr):
    """A `PredictorConstr` with the peer's other attributes."""

    @property
    def scip_model(self) -> Any:
        """The model."""
        return self._model

    @property
    def unique_naming_prefix(self) -> str:
        """The name in the log and in messages."""
        return self.name


def _labels(classifier: Any) -> Any:
    """The kind of prediction: a label for each output, independent of the others."""
    return classifier.predict


def _second_of_two(clusters: Any) -> Any:
    """For two clusters whether it is the second; for more clusters the number of the cluster."""
    return clusters.predict if len(clusters.cluster_centers_) == 2 else clusters


GENERAL = PeerFunction("add_predictor_constr", "add_predictor", "predictor", "AbstractPredictorConstr")

FUNCTIONS = (
    PeerFunction(
        "add_linear_regression_constr", "sklearn.linear_regression", "linear_regression",
        "LinearRegressionConstr", ("LinearRegression", "Ridge", "Lasso", "ElasticNet")),
    PeerFunction(
        "add_logistic_regression_constr", "sklearn.logistic_regression", "logistic_regression",
        "LogisticRegressionConstr", ("LogisticRegression",), _TYPE, "classification"),
    PeerFunction(
        "add_pls_regression_constr", "sklearn.pls", "pls_regression", "PLSRegressionConstr",
        ("PLSRegression", "PLSCanonical")),
    PeerFunction(
        "add_mlp_regressor_constr", "sklearn.mlp", "mlp_regressor", "MLPConstr", ("MLPRegressor",),
        output_type="regression"),
    PeerFunction(
        "add_mlp_classifier_constr", "sklearn.mlp", "mlp_classifier", "MLPConstr", ("MLPClassifier",),
        output_type="classification"),
    PeerFunction(
        "add_decision_tree_regressor_constr", "sklearn.decision_tree", "decision_tree_regressor",
        "DecisionTreeConstr", ("DecisionTreeRegressor",), _SPLIT),
    PeerFunction(
        "add_decision_tree_classifier_constr", "sklearn.decision_tree", "decision_tree_classifier",
        "DecisionTreeConstr", ("DecisionTreeClassifier",), _SPLIT, "classification"),
    PeerFunction(
        "add_gradient_boosting_regressor_constr", "sklearn.gradient_boosting", "gradient_boosting_regressor",
        "GradientBoostingConstr", ("GradientBoostingRegressor",)),
    PeerFunction(
        "add_gradient_boosting_classifier_constr", "sklearn.gradient_boosting",
        "gradient_boosting_classifier", "GradientBoostingConstr", ("GradientBoostingClassifier",),
        output_type="classification"),
    PeerFunction(
        "add_random_forest_regressor_constr", "sklearn.random_forest", "random_forest_regressor",
        "RandomForestConstr", ("RandomForestRegressor",)),
    PeerFunction(
        "add_random_forest_classifier_constr", "sklearn.random_forest", "random_forest_classifier",
        "RandomForestConstr", ("RandomForestClassifier",), output_type="classification"),
    PeerFunction(
        "add_support_vector_regressor_constr", "sklearn.support_vector", "support_vector_regressor",
        "SupportVectorConstr", ("LinearSVR", "SVR")),
    PeerFunction(
        "add_support_vector_classifier_constr", "sklearn.support_vector", "support_vector_classifier",
        "SupportVectorConstr", ("LinearSVC", "SVC"), output_type="classification"),
    PeerFunction(
        "add_centroid_cluster_constr", "sklearn.centroid_cluster", "centroid_clusteror",
        "CentroidClusterConstr", ("KMeans", "MiniBatchKMeans"), ("formulation",), meant=_second_of_two),
    PeerFunction(
        "add_multi_output_regressor_constr", "sklearn.multi_output", "multi_output_regressor",
        "MultiOutputConstr", ("MultiOutputRegressor",)),
    PeerFunction(
        "add_multi_output_classifier_constr", "sklearn.multi_output", "multi_output_classifier",
        "MultiOutputConstr", ("MultiOutputClassifier",), meant=_labels),
    PeerFunction("add_pipeline_constr", "sklearn.pipeline", "pipeline", "PipelineConstr", ("Pipeline",)),
    PeerFunction("add_binarizer_constr", "sklearn.preprocessing", "binarizer", "BinarizerConstr"),
    PeerFunction("add_normalizer_constr", "sklearn.preprocessing", "normalizer", "NormalizerConstr"),
    PeerFunction(
        "add_polynomial_features_constr", "sklearn.preprocessing", "polynomial_features",
        "PolynomialFeaturesConstr"),
    PeerFunction(
        "add_standard_scaler_constr", "sklearn.preprocessing", "standard_scaler", "StandardScalerConstr"),
    PeerFunction(
        "add_sequential_constr", "torch.sequential", "sequential_model", "SequentialConstr", (), _TYPE),
    PeerFunction("add_keras_constr", "keras.keras", "keras_model", "KerasNetworkConstr", (), _TYPE),
    PeerFunction("add_onnx_constr", "onnx.neural_net_onnx", "onnx_model", "ONNXConstr", (), _TYPE),
    PeerFunction(
        "add_xgbregressor_constr", "xgboost.xgboost_constr", "xgboost_regressor", "XGBoostConstr",
        ("XGBRegressor",), _SPLIT),
    PeerFunction(
        "add_xgbclassifier_constr", "xgboost.xgboost_constr", "xgboost_classifier", "XGBoostConstr",
        ("XGBClassifier",), _SPLIT, "classification"),
    PeerFunction(
        "add_xgbregressor_rf_constr", "xgboost.xgboost_constr", "xgboost_regressor", "XGBoostConstr",
        ("XGBRFRegressor",), _SPLIT),
    PeerFunction(
        "add_xgbclassifier_rf_constr", "xgboost.xgboost_constr", "xgboost_classifier", "XGBoostConstr",
        ("XGBRFClassifier",), _SPLIT, "classification"),
    PeerFunction(
        "add_lgbregressor_constr", "lightgbm.lightgbm_constr", "lightgbm_regressor", "LightGBMConstr",
        ("LGBMRegressor",), _SPLIT),
    PeerFunction(
        "add_lgbclassifier_constr", "lightgbm.lightgbm_constr", "lightgbm_classifier", "LightGBMConstr",
        ("LGBMClassifier",), _SPLIT, "classification"),
)  # fmt: skip

_PREFIX = "unique_naming_prefix"
PEER = Peer("scip_model", (_PREFIX,), ScipPredictorConstr, _PREFIX, FUNCTIONS)

EXCEPTIONS = dict.fromkeys(("NotRegistered", "NoModel", "NoSolution", "ParameterError"), DovetailError)
"""The peer's names catch all that dovetail raises on purpose."""


_add = PEER.function(GENERAL)


def add_predictor_constr(
    scip_model: Any,
    predictor: Any,
    input_vars: Any,
    output_vars: Any = None,
    unique_naming_prefix: str = "p_",
    **options: Any,
) -> ScipPredictorConstr:
    """Connect outputs with inputs through a predictor, by the function that the peer uses for it."""
    entry = PEER.entry_of(predictor)
    add = _add if entry is None else PEER.functions[entry.name]
    made = add(scip_model, predictor, input_vars, output_vars, unique_naming_prefix, **options)
    return cast(ScipPredictorConstr, made)


def sklearn_convertors() -> dict[str, Any]:
    """The peer's own choice by the class of an estimator; `add_predictor_constr` takes more than these."""
    return dict(PEER.by_class("sklearn."))


publish(__name__, PEER.modules())
publish(
    __name__,
    {
        "add_predictor": {"add_predictor_constr": add_predictor_constr},
        "registered_predictors": {"sklearn_convertors": sklearn_convertors},
        "modelling.base_predictor_constraint": {"AbstractPredictorConstr": ScipPredictorConstr},
        "exceptions": EXCEPTIONS,
    },
)

__all__ = ["__version__", "add_predictor_constr", "sklearn_convertors"]
