"""A trained scikit-learn estimator written once more as torch modules, class by class.

A class of scikit-learn's that is not known yet takes one function, and one line in a table here: what its
`transform` computes (any step of a pipeline but the last), or what its answer is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import nn

from dovetail.core.errors import PredictorError
from dovetail.predictors.scikit_learn.centroids import nearness
from dovetail.predictors.scikit_learn.encoders import one_hot_encoder, ordinal_encoder
from dovetail.predictors.scikit_learn.estimator import (
    has_binary_probability,
    has_probabilities,
    is_a,
    own_classes,
    steps_of,
    way_out,
)
from dovetail.predictors.scikit_learn.kernels import support_vectors
from dovetail.predictors.scikit_learn.modules import (
    Pointwise,
    RowShares,
    column_transformer,
    dense,
    feature_union,
    shift,
)
from dovetail.predictors.scikit_learn.several import (
    averaged,
    bagged,
    chain,
    most_votes,
    one_for_each_output,
    stacked,
)
from dovetail.predictors.scikit_learn.transformers import (
    binarizer,
    function_transformer,
    imputer,
    inverse,
    max_abs_scaler,
    min_max_scaler,
    normalizer,
    polynomial_features,
    projection,
    selector,
    standard_scaler,
)
from dovetail.predictors.scikit_learn.trees_inside import is_trees, trees_inside


def linear_map(estimator: Any) -> nn.Linear:
    """coef_ and intercept_ in all the shapes they have."""
    coefficients = estimator.coef_
    if hasattr(coefficients, "toarray"):  # after sparsify()
        coefficients = coefficients.toarray()
    return dense(coefficients, np.ravel(estimator.intercept_))


def linear(estimator: Any) -> Iterator[nn.Module]:
    """A regressor, or a classifier's decision function."""
    yield linear_map(estimator)


def logistic_regression(estimator: Any) -> Iterator[nn.Module]:
    """A probability, or those of several classes."""
    yield linear_map(estimator)
    if len(estimator.classes_) == 2:
        yield nn.Sigmoid()
        return
    multi_class = getattr(estimator, "multi_class", "auto")  # gone since scikit-learn 1.8
    if multi_class == "ovr" or (multi_class in ("auto", "deprecated") and estimator.solver == "liblinear"):
        yield nn.Sigmoid()
        yield RowShares()
    else:
        yield nn.Softmax(dim=1)


def stochastic_gradient_classifier(estimator: Any) -> Iterator[nn.Module]:
    """With the logistic loss it gives probabilities, each class against the others."""
    yield linear_map(estimator)
    if has_probabilities(estimator):
        yield nn.Sigmoid()
        if len(estimator.classes_) > 2:
            yield RowShares()


def generalised_linear(estimator: Any) -> Iterator[nn.Module]:
    """Poisson, gamma and Tweedie regression: the exponential, or nothing, behind the sum."""
    yield linear_map(estimator)
    link = type(estimator._base_loss.link).__name__
    if link == "LogLink":
        yield Pointwise(torch.exp)
    elif link != "IdentityLink":
        raise PredictorError(f"{type(estimator).__name__} with {link} is not known; {way_out(estimator)}")


def partial_least_squares(estimator: Any) -> Iterator[nn.Module]:
    """Centred, then linear; scales are in the coefficients."""
    yield shift(-estimator._x_mean)
    yield linear_map(estimator)


def linear_discriminants(estimator: Any) -> Iterator[nn.Module]:
    """A probability of two classes, shares of several."""
    yield linear_map(estimator)
    yield nn.Sigmoid() if len(estimator.classes_) == 2 else nn.Softmax(dim=1)


def quadratic_discriminants(estimator: Any) -> Iterator[nn.Module]:
    """Of each class: how far from its mean, in its own directions; then shares."""
    classes, (size,) = len(estimator.classes_), estimator.means_[0].shape
    directions = [
        np.asarray(rotation * np.power(scaling, -0.5)).T
        for rotation, scaling in zip(estimator.rotations_, estimator.scalings_, strict=True)
    ]
    yield dense(np.tile(np.eye(size), (classes, 1)), -np.ravel(estimator.means_))
    blocks = torch.block_diag(*map(torch.tensor, directions)).numpy()  # type: ignore[no-untyped-call]
    yield dense(blocks, 0.0)
    yield Pointwise(torch.square)
    owner = np.repeat(np.arange(classes), [len(one) for one in directions])
    volume = np.array([np.sum(np.log(scaling)) for scaling in estimator.scalings_])
    prior = np.log(estimator.priors_)
    yield dense(-0.5 * np.equal.outer(np.arange(classes), owner), -0.5 * volume + prior)
    if classes == 2:
        yield dense([[-1.0, 1.0]], 0.0)
        yield nn.Sigmoid()
    else:
        yield nn.Softmax(dim=1)


Writer = Callable[[Any], Iterator[nn.Module]]


def modules_of(estimator: Any, *, both_classes: bool = False) -> Iterator[nn.Module]:
    """The estimator's answer as torch modules, first to last; two columns for two classes if meant."""
    *before, last = steps_of(estimator) or [None]
    for step in before:
        yield from _written(step, TRANSFORMS)
    if last is None:
        return
    if is_trees(last):
        yield from trees_inside(last, both_classes=both_classes)
        return
    modules = [*_written(last, ANSWERS | TRANSFORMS)]
    yield from with_both_classes(modules) if both_classes and has_binary_probability(last) else modules


def transform_of(estimator: Any) -> Iterator[nn.Module]:
    """What its `transform` computes."""
    for step in steps_of(estimator):
        yield from _written(step, TRANSFORMS)


def _written(step: Any, writers: dict[str, Writer]) -> Iterator[nn.Module]:
    write = next((writers[name] for name in own_classes(step) if name in writers), None)
    if write is None:
        raise PredictorError(
            f"{type(step).__name__} cannot be written as a network; dovetail takes the classes of "
            "scikit-learn's that its page on predictors lists, and pipelines of them. For this one, "
            f"{way_out(step)}"
        )
    check_is_fitted(step)
    return write(step)


def with_both_classes(modules: list[nn.Module]) -> Iterator[nn.Module]:
    """(1 - p, p); for p = sigmoid(z) the softmax of (0, z), whose order can be read off (0, z)."""
    if isinstance(modules[-1], nn.Sigmoid):
        yield from modules[:-1]
        yield dense([[0.0], [1.0]], 0.0)
        yield nn.Softmax(dim=1)
    else:
        yield from modules
        yield dense([[-1.0], [1.0]], [1.0, 0.0])


def _one_against_rest(estimator: Any) -> Iterator[nn.Module]:
    for one in estimator.estimators_:
        if not is_a(one, "LogisticRegression"):
            raise PredictorError(
                f"OneVsRestClassifier of {type(one).__name__} cannot be written as a network, only of "
                f"LogisticRegression; {way_out(estimator)}"
            )
    each = [linear_map(one) for one in estimator.estimators_]
    weight, bias = (torch.cat([getattr(one, what).detach() for one in each]) for what in ("weight", "bias"))
    yield dense(weight, bias)
    yield nn.Sigmoid()
    if len(each) > 1 and not estimator.multilabel_:
        yield RowShares()


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


def _voting_classifier(estimator: Any) -> Iterator[nn.Module]:
    return (averaged if estimator.voting == "soft" else most_votes)(estimator, modules_of)


ANSWERS: dict[str, Writer] = {
    "MLPRegressor": _mlp,
    "MLPClassifier": _mlp,
    "LogisticRegression": logistic_regression,
    "OneVsRestClassifier": _one_against_rest,
    "RidgeClassifier": linear,
    "RidgeClassifierCV": linear,
    "LinearSVC": linear,
    "SGDClassifier": stochastic_gradient_classifier,
    "BaseSGDClassifier": linear,  # Perceptron, PassiveAggressiveClassifier
    "BaseSGDRegressor": linear,
    "LinearModel": linear,  # all linear regressors: LinearRegression, Ridge, Lasso, ElasticNet, ...
    "_GeneralizedLinearRegressor": generalised_linear,
    "_PLS": partial_least_squares,
    "LinearDiscriminantAnalysis": linear_discriminants,
    "QuadraticDiscriminantAnalysis": quadratic_discriminants,
    "BaseLibSVM": support_vectors,
    "KMeans": nearness,
    "MiniBatchKMeans": nearness,
    "NearestCentroid": nearness,
    "TransformedTargetRegressor": _transformed_target,
    "RANSACRegressor": lambda estimator: modules_of(estimator.estimator_),
    "MultiOutputRegressor": lambda estimator: one_for_each_output(estimator, modules_of),
    "MultiOutputClassifier": lambda estimator: one_for_each_output(estimator, modules_of),
    "RegressorChain": lambda estimator: chain(estimator, modules_of),
    "VotingRegressor": lambda estimator: averaged(estimator, modules_of),
    "VotingClassifier": _voting_classifier,
    "BaseBagging": lambda estimator: bagged(estimator, modules_of),
    "_BaseStacking": lambda estimator: stacked(estimator, modules_of),
}
"""What each class answers; classes derived from these are written like them."""

TRANSFORMS: dict[str, Writer] = {
    "StandardScaler": standard_scaler,
    "RobustScaler": standard_scaler,
    "MinMaxScaler": min_max_scaler,
    "MaxAbsScaler": max_abs_scaler,
    "PolynomialFeatures": polynomial_features,
    "Normalizer": normalizer,
    "Binarizer": binarizer,
    "FunctionTransformer": function_transformer,
    "OneHotEncoder": one_hot_encoder,
    "OrdinalEncoder": ordinal_encoder,
    "SimpleImputer": imputer,
    "SelectorMixin": selector,
    "PCA": projection,
    "TruncatedSVD": projection,
    "ColumnTransformer": lambda estimator: column_transformer(estimator, transform_of),
    "FeatureUnion": lambda estimator: feature_union(estimator, transform_of),
}
"""What the transform of each class computes."""
