"""Random trained scikit-learn estimators, with the shapes and options their users give them."""

from __future__ import annotations

import functools
import warnings

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import (
    ElasticNet,
    ElasticNetCV,
    Lasso,
    LassoCV,
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    Ridge,
    RidgeClassifier,
    RidgeCV,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm import LinearSVC, LinearSVR

REGRESSORS = (
    "mlp", "mlp", "mlp", "linear", "ridge", "ridge-cv", "lasso", "lasso-cv", "elastic-net",
    "elastic-net-cv", "linear-svr",
)  # fmt: skip
CLASSIFIERS = ("mlp", "mlp", "mlp", "logistic", "logistic", "logistic-cv", "ovr", "ridge", "linear-svc")


def data(rng, rows=60):
    d = int(rng.integers(1, 7))
    centre, spread = rng.normal(size=d) * 10.0 ** rng.integers(-1, 3), 10.0 ** rng.uniform(-1, 2, d)
    return centre + spread * rng.normal(size=(rows, d)), centre, spread


def scaler(rng):
    return [
        lambda: StandardScaler(
            with_mean=bool(rng.integers(2)),
            with_std=bool(rng.integers(2)),
        ),
        lambda: MinMaxScaler((-1.0, float(rng.uniform(0.5, 2))), clip=bool(rng.integers(2))),
        lambda: MaxAbsScaler(),
        lambda: RobustScaler(with_centering=bool(rng.integers(2))),
        lambda: "passthrough",
    ][int(rng.integers(5))]()


def hidden(rng):
    return tuple(int(width) for width in rng.integers(1, 9, int(rng.integers(1, 3))))


def mlp_options(rng):
    activation = ("relu", "tanh", "logistic", "identity")[int(rng.integers(4))]
    return {
        "hidden_layer_sizes": hidden(rng),
        "activation": activation,
        "max_iter": 8,
        "random_state": int(rng.integers(1000)),
    }


def regressor(rng, kind):
    if kind == "mlp":
        return MLPRegressor(**mlp_options(rng))
    return {
        "linear": lambda: LinearRegression(fit_intercept=bool(rng.integers(2))),
        "ridge": lambda: Ridge(fit_intercept=bool(rng.integers(2))),
        "ridge-cv": RidgeCV,
        "lasso": lambda: Lasso(alpha=0.01),
        "lasso-cv": lambda: LassoCV(alphas=5, cv=2),
        "elastic-net": lambda: ElasticNet(alpha=0.01),
        "elastic-net-cv": lambda: ElasticNetCV(alphas=5, cv=2),
        "linear-svr": lambda: LinearSVR(max_iter=50),
    }[kind]()


def classifier(rng, kind):
    if kind == "mlp":
        return MLPClassifier(**mlp_options(rng))
    return {
        "logistic": lambda: LogisticRegression(C=float(10 ** rng.uniform(-2, 2))),
        "logistic-cv": lambda: LogisticRegressionCV(
            Cs=2, cv=2, l1_ratios=(0.0,), scoring="accuracy", use_legacy_attributes=False
        ),
        "ovr": lambda: OneVsRestClassifier(LogisticRegression()),
        "ridge": RidgeClassifier,
        "linear-svc": lambda: LinearSVC(max_iter=50),
    }[kind]()


def piped(rng, last):
    """The estimator alone, behind scalers, or behind scalers inside an inner pipeline."""
    shape = int(rng.integers(4))
    if shape == 0:
        return last
    first = [(f"scale{k}", scaler(rng)) for k in range(int(rng.integers(1, 3)))]
    if shape == 3:
        return Pipeline([("inner", Pipeline([*first, ("pass", None)])), ("last", last)])
    return Pipeline([*first, ("last", last)])


@functools.cache
def trained(seed):
    """An estimator and 100 points around its training data, inside and outside its range."""
    rng = np.random.default_rng(seed)
    X, centre, spread = data(rng)
    points = centre + 2.0 * spread * rng.normal(size=(100, X.shape[1]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", FutureWarning)
        return _fitted(rng, X, (X - centre) / spread), points


def _fitted(rng, X, Z):
    if rng.integers(2):
        kind = REGRESSORS[int(rng.integers(len(REGRESSORS)))]
        outputs = int(rng.integers(1, 4))
        several = outputs > 1 and kind in ("mlp", "linear", "ridge", "lasso", "elastic-net")
        Y = np.sin(Z @ rng.normal(size=(Z.shape[1], outputs)))
        model = piped(rng, regressor(rng, kind))
        if rng.integers(5) == 0:
            model = TransformedTargetRegressor(model, transformer=StandardScaler())
        return model.fit(X, Y if several else Y[:, 0])
    kind = CLASSIFIERS[int(rng.integers(len(CLASSIFIERS)))]
    classes = int(rng.integers(2, 5))
    labels = np.argmax(Z @ rng.normal(size=(Z.shape[1], classes)) + rng.normal(size=classes), axis=1)
    labels[:classes] = np.arange(classes)  # each class is there
    labels[-2 * classes :] = np.repeat(np.arange(classes), 2)
    names = np.array(["a", "b", "c", "d"])[labels] if rng.integers(2) else labels
    return piped(rng, classifier(rng, kind)).fit(X, names)


def own_answer(model, X):
    """What the library says, in the words of its users."""
    if hasattr(model, "predict_proba"):
        values = model.predict_proba(X)
        return values[:, 1:] if values.shape[1] == 2 else values
    values = model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
    return values[:, None] if values.ndim == 1 else values


def last_of(model):
    """The estimator in a pipeline or around a transformed target that holds the coefficients."""
    while isinstance(model, (Pipeline, TransformedTargetRegressor)):
        model = model.steps[-1][1] if isinstance(model, Pipeline) else model.regressor_
    return model


def gives_shares(model):
    """Whether probabilities are shares of a sum, which is no layer."""
    last = last_of(model)
    return isinstance(last, OneVsRestClassifier) and len(last.classes_) > 2


def trained_again(model):
    """Give a trained estimator other coefficients, in its place; with the other sign sure classes change."""
    last = last_of(model)
    for one in getattr(last, "estimators_", [last]):
        if hasattr(one, "coefs_"):
            one.coefs_[-1] *= -1.5
            one.intercepts_[-1] += np.arange(1, one.intercepts_[-1].size + 1)
        else:
            one.coef_ = -1.5 * one.coef_
            one.intercept_ = one.intercept_ + np.arange(1, np.size(one.intercept_) + 1)
