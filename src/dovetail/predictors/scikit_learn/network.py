"""A trained scikit-learn estimator written once more as torch modules, class by class.

A class of scikit-learn's that is not known yet takes one function here, and one line in `WRITERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import nn

from dovetail.core.errors import PredictorError
from dovetail.predictors.scikit_learn.estimator import is_a, own_classes, steps_of, way_out
from dovetail.predictors.scikit_learn.modules import Pointwise, Shares, dense
from dovetail.predictors.scikit_learn.scalers import (
    inverse,
    max_abs_scaler,
    min_max_scaler,
    standard_scaler,
)


def modules_of(estimator: Any) -> Iterator[nn.Module]:
    """The estimator as torch modules, first to last."""
    for step in steps_of(estimator):
        write = next((WRITERS[name] for name in own_classes(step) if name in WRITERS), None)
        if write is None:
            raise PredictorError(
                f"{type(step).__name__} cannot be written as a network; dovetail takes scikit-learn's MLPs, "
                f"linear models, scalers and pipelines of them. For this one, {way_out(estimator)}"
            )
        check_is_fitted(step)
        yield from write(step)


def with_both_classes(modules: list[nn.Module]) -> Iterator[nn.Module]:
    """(1 - p, p) for p = sigmoid(z) is the softmax of (0, z), whose order can be read off (0, z)."""
    yield from modules[:-1]
    yield dense([[0.0], [1.0]], 0.0)
    yield nn.Softmax(dim=1)


def _linear(estimator: Any) -> nn.Linear:
    """coef_ and intercept_ in all the shapes they have."""
    coefficients = estimator.coef_
    if hasattr(coefficients, "toarray"):  # after sparsify()
        coefficients = coefficients.toarray()
    return dense(coefficients, np.ravel(estimator.intercept_))


def _regression(estimator: Any) -> Iterator[nn.Module]:
    yield _linear(estimator)


def _logistic_regression(estimator: Any) -> Iterator[nn.Module]:
    yield _linear(estimator)
    if len(estimator.classes_) == 2:
        yield nn.Sigmoid()
        return
    multi_class = getattr(estimator, "multi_class", "auto")  # gone since scikit-learn 1.8
    if multi_class == "ovr" or (multi_class in ("auto", "deprecated") and estimator.solver == "liblinear"):
        yield nn.Sigmoid()
        yield Shares()
    else:
        yield nn.Softmax(dim=1)


def _one_against_rest(estimator: Any) -> Iterator[nn.Module]:
    for one in estimator.estimators_:
        if not is_a(one, "LogisticRegression"):
            raise PredictorError(
                f"OneVsRestClassifier of {type(one).__name__} cannot be written as a network, only of "
                f"LogisticRegression; {way_out(estimator)}"
            )
    linear = [_linear(one) for one in estimator.estimators_]
    weight, bias = (torch.cat([getattr(one, what).detach() for one in linear]) for what in ("weight", "bias"))
    yield dense(weight, bias)
    yield nn.Sigmoid()
    if len(linear) > 1 and not estimator.multilabel_:
        yield Shares()


def _mlp(estimator: Any) -> Iterator[nn.Module]:
    last = len(estimator.coefs_) - 1
    for k, (weight, bias) in enumerate(zip(estimator.coefs_, estimator.intercepts_, strict=True)):
        yield dense(np.asarray(weight).T, bias)
        yield from _activation(estimator.out_activation_ if k == last else estimator.activation)


def _activation(name: str) -> Iterator[nn.Module]:
    known: dict[str, nn.Module] = {
        "relu": nn.ReLU(),
        "tanh": nn.Tanh(),
        "logistic": nn.Sigmoid(),
        "softmax": nn.Softmax(dim=1),
        "exp": Pointwise(torch.exp),
    }
    if name not in (*known, "identity"):
        raise PredictorError(f"an MLP with the activation {name!r} is not known to dovetail.")
    if name in known:
        yield known[name]


def _transformed_target(estimator: Any) -> Iterator[nn.Module]:
    yield from modules_of(estimator.regressor_)
    yield from inverse(estimator.transformer_)


WRITERS: dict[str, Callable[[Any], Iterator[nn.Module]]] = {
    "MLPRegressor": _mlp,
    "MLPClassifier": _mlp,
    "LogisticRegression": _logistic_regression,
    "OneVsRestClassifier": _one_against_rest,
    "RidgeClassifier": _regression,
    "RidgeClassifierCV": _regression,
    "LinearSVC": _regression,
    "Perceptron": _regression,
    "LinearModel": _regression,  # all linear regressors: LinearRegression, Ridge, Lasso, ElasticNet, ...
    "StandardScaler": standard_scaler,
    "RobustScaler": standard_scaler,
    "MinMaxScaler": min_max_scaler,
    "MaxAbsScaler": max_abs_scaler,
    "TransformedTargetRegressor": _transformed_target,
}
"""How each class is written; classes derived from these are written like them."""
