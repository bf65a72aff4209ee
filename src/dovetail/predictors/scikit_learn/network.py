"""A trained scikit-learn estimator rewritten as torch modules, class by class.

To support another class of scikit-learn, add one function and one line in a table here: the function returns
the class's `transform` (any step of a pipeline but the last) or its prediction. Estimators made of estimators
(one for each output, in a chain, averaged, stacked) use the modules of the estimators inside them.

Support vector machines of several classes are decided by one vote of each pair of classes. A tie goes to the
first class, unless `break_ties` is set: then to the class with the larger sum of decisions, as in
`decision_function`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import PredictorError
from dovetail.predictors.scikit_learn import transformers
from dovetail.predictors.scikit_learn.answer import nearness
from dovetail.predictors.scikit_learn.estimator import (
    answering_method,
    breaks_ties,
    features_of,
    has_binary_probability,
    has_probabilities,
    is_a,
    is_classifier,
    last_step,
    own_classes,
    steps_of,
    way_out,
)
from dovetail.predictors.scikit_learn.gaussian_process import gaussian_process
from dovetail.predictors.scikit_learn.modules import Pointwise, Steps, dense, joined, row_shares, scale, shift
from dovetail.predictors.scikit_learn.transformers import one_hot_encoder, ordinal_encoder
from dovetail.predictors.scikit_learn.trees_inside import is_trees, trees_inside

KERNELS = ("rbf", "poly", "sigmoid")
"""Kernels of libsvm, besides the linear one."""


def support_vectors(estimator: Any) -> Iterator[nn.Module]:
    """A support vector regressor or classifier."""
    yield from _kernel(estimator)
    classes = len(estimator.classes_) if is_a(estimator, "BaseSVC") else 0
    if classes <= 2:
        yield dense(_dense(estimator.dual_coef_), estimator.intercept_)
        return
    yield dense(_pairs(estimator, classes), estimator.intercept_)
    if breaks_ties(estimator):
        yield Votes(classes)
    else:
        first, second = _for_and_against(classes)
        yield Steps(lambda d: np.eye(classes)[((d > 0.0) @ first + (d <= 0.0) @ second).argmax(axis=1)])


def _kernel(estimator: Any) -> Iterator[nn.Module]:
    support = _dense(estimator.support_vectors_)
    if estimator.kernel == "linear":
        yield dense(support, 0.0)
    elif estimator.kernel in KERNELS:
        yield Kernel(estimator.kernel, support, estimator._gamma, estimator.coef0, estimator.degree)
    else:
        raise PredictorError(
            f"{type(estimator).__name__} with the kernel {estimator.kernel!r} cannot be written as a "
            f"network, only with one of linear, {', '.join(KERNELS)}; {way_out(estimator)}"
        )


class Kernel(nn.Module):
    """A kernel's value of each row with each support vector."""

    def __init__(self, kind: str, support: FloatArray, gamma: float, coef0: float, degree: int) -> None:
        super().__init__()
        self._kind, self._gamma, self._coef0, self._degree = kind, float(gamma), float(coef0), int(degree)
        self.register_buffer("support", torch.tensor(support, dtype=torch.float64))
        self.support: Tensor

    def forward(self, values: Tensor) -> Tensor:
        """One row per sample, one column per support vector."""
        if self._kind == "rbf":
            apart = torch.square(values[:, None, :] - self.support).sum(dim=2)
            return torch.exp(-self._gamma * apart)
        inner = self._gamma * (values @ self.support.T) + self._coef0
        return torch.tanh(inner) if self._kind == "sigmoid" else _power(inner, self._degree)


def _power(values: Tensor, degree: int) -> Tensor:
    """Power by repeated squaring, as libsvm computes it; even powers are squares, whose smallest value is
    known."""
    if degree == 0:
        return torch.ones_like(values)
    if degree % 2:
        return values if degree == 1 else values * _power(values, degree - 1)
    return torch.square(_power(values, degree // 2))


def _pairs(estimator: Any, classes: int) -> FloatArray:
    """(pairs, support vectors) the weights of each pair of classes."""
    ends = np.cumsum(estimator.n_support_)
    of_class = [slice(end - count, end) for end, count in zip(ends, estimator.n_support_, strict=True)]
    coefficients = _dense(estimator.dual_coef_)
    weights = np.zeros((classes * (classes - 1) // 2, ends[-1]))
    for pair, (i, j) in enumerate(itertools.combinations(range(classes), 2)):
        weights[pair, of_class[i]] = coefficients[j - 1, of_class[i]]
        weights[pair, of_class[j]] = coefficients[i, of_class[j]]
    return weights


def _for_and_against(classes: int) -> tuple[FloatArray, FloatArray]:
    """(pairs, classes) the classes that each pair votes for if it is positive, and if it is not."""
    pairs = np.array([*itertools.combinations(range(classes), 2)])
    return np.eye(classes)[pairs[:, 0]], np.eye(classes)[pairs[:, 1]]


class Votes(nn.Module):
    """Votes, plus a fraction of a vote by the sum of decisions: scikit-learn's one-against-rest form."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        first, second = _for_and_against(classes)
        self._votes = Steps(lambda decisions: (decisions >= 0.0) @ first + (decisions < 0.0) @ second)
        self.register_buffer("balance", torch.tensor(first - second))
        self.balance: Tensor

    def forward(self, decisions: Tensor) -> Tensor:
        """One row per sample."""
        votes: Tensor = self._votes(decisions)
        confidence = decisions @ self.balance
        return votes + confidence / (3.0 * (confidence.abs() + 1.0))


def _dense(array: Any) -> FloatArray:
    return np.asarray(array.toarray() if hasattr(array, "toarray") else array, dtype=np.float64)


def linear_map(estimator: Any) -> nn.Linear:
    """coef_ and intercept_ as a linear layer, in all shapes that they have."""
    coefficients = estimator.coef_
    if hasattr(coefficients, "toarray"):  # after sparsify()
        coefficients = coefficients.toarray()
    return dense(coefficients, np.ravel(estimator.intercept_))


def linear(estimator: Any) -> Iterator[nn.Module]:
    """The linear function of a regressor, or the decision function of a classifier."""
    yield linear_map(estimator)


def logistic_regression(estimator: Any) -> Iterator[nn.Module]:
    """A probability, or those of several classes."""
    yield linear_map(estimator)
    if len(estimator.classes_) == 2:
        yield nn.Sigmoid()
        return
    multi_class = getattr(estimator, "multi_class", "auto")  # the attribute was removed in scikit-learn 1.8
    if multi_class == "ovr" or (multi_class in ("auto", "deprecated") and estimator.solver == "liblinear"):
        yield nn.Sigmoid()
        yield Pointwise(row_shares)
    else:
        yield nn.Softmax(dim=1)


def stochastic_gradient_classifier(estimator: Any) -> Iterator[nn.Module]:
    """With the logistic loss it gives probabilities, each class against the rest."""
    yield linear_map(estimator)
    if has_probabilities(estimator):
        yield nn.Sigmoid()
        if len(estimator.classes_) > 2:
            yield Pointwise(row_shares)


def generalised_linear(estimator: Any) -> Iterator[nn.Module]:
    """Poisson, gamma and Tweedie regression: a linear function, with an exponential if the link says so."""
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
    """A probability for two classes, a softmax for several."""
    yield linear_map(estimator)
    yield nn.Sigmoid() if len(estimator.classes_) == 2 else nn.Softmax(dim=1)


def quadratic_discriminants(estimator: Any) -> Iterator[nn.Module]:
    """For each class the distance from its mean in its own directions; then a softmax."""
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
    """The estimator's answer as torch modules, first to last; two columns for two classes if requested."""
    *before, last = steps_of(estimator) or [None]
    for step in before:
        yield from _modules_of(step, TRANSFORMS)
    if last is None:
        return
    if is_trees(last):
        yield from trees_inside(last, both_classes=both_classes)
        return
    modules = [*_modules_of(last, ANSWERS | TRANSFORMS)]
    yield from with_both_classes(modules) if both_classes and has_binary_probability(last) else modules


def transform_of(estimator: Any) -> Iterator[nn.Module]:
    """The module of an estimator's `transform`."""
    for step in steps_of(estimator):
        yield from _modules_of(step, TRANSFORMS)


def _modules_of(step: Any, writers: dict[str, Writer]) -> Iterator[nn.Module]:
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
    """(1 - p, p); for p = sigmoid(z) the softmax of (0, z)."""
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
        yield Pointwise(row_shares)


def _mlp(estimator: Any) -> Iterator[nn.Module]:
    last = len(estimator.coefs_) - 1
    for k, (weight, bias) in enumerate(zip(estimator.coefs_, estimator.intercepts_, strict=True)):
        yield dense(np.asarray(weight).T, bias)
        name = estimator.out_activation_ if k == last else estimator.activation
        if name not in (*MLP_ACTIVATIONS, "identity"):
            raise PredictorError(f"an MLP with the activation {name!r} is not known to dovetail.")
        if name in MLP_ACTIVATIONS:
            yield MLP_ACTIVATIONS[name]()


MLP_ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
    "logistic": nn.Sigmoid,
    "softmax": lambda: nn.Softmax(dim=1),
    "exp": lambda: Pointwise(torch.exp),
}


def _transformed_target(estimator: Any) -> Iterator[nn.Module]:
    yield from modules_of(estimator.regressor_)
    yield from transformers.inverse(estimator.transformer_)


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
    "GaussianProcessRegressor": gaussian_process,
    "KMeans": nearness,
    "MiniBatchKMeans": nearness,
    "NearestCentroid": nearness,
    "TransformedTargetRegressor": _transformed_target,
    "RANSACRegressor": lambda estimator: modules_of(estimator.estimator_),
    "MultiOutputRegressor": lambda estimator: one_for_each_output(estimator),
    "MultiOutputClassifier": lambda estimator: one_for_each_output(estimator),
    "RegressorChain": lambda estimator: chain(estimator),
    "VotingRegressor": lambda estimator: averaged(estimator),
    "VotingClassifier": lambda estimator: (averaged if estimator.voting == "soft" else most_votes)(estimator),
    "BaseBagging": lambda estimator: bagged(estimator),
    "_BaseStacking": lambda estimator: stacked(estimator),
}
"""The modules of each class's answer; derived classes use the same ones."""

TRANSFORMS: dict[str, Writer] = {
    "StandardScaler": transformers.standard_scaler,
    "RobustScaler": transformers.standard_scaler,
    "MinMaxScaler": transformers.min_max_scaler,
    "MaxAbsScaler": transformers.max_abs_scaler,
    "PolynomialFeatures": transformers.polynomial_features,
    "Normalizer": transformers.normalizer,
    "Binarizer": transformers.binarizer,
    "FunctionTransformer": transformers.function_transformer,
    "OneHotEncoder": one_hot_encoder,
    "OrdinalEncoder": ordinal_encoder,
    "SimpleImputer": transformers.imputer,
    "SelectorMixin": transformers.selector,
    "PCA": transformers.projection,
    "TruncatedSVD": transformers.projection,
    "ColumnTransformer": lambda estimator: column_transformer(estimator),
    "FeatureUnion": lambda estimator: feature_union(estimator),
}
"""What the transform of each class computes."""


def column_transformer(estimator: Any) -> Iterator[nn.Module]:
    """Transformers in the order of the list, without dropped columns, the remainder last."""
    # columns by number, even if they were named
    places = {name: estimator._transformer_to_input_indices[name] for name, _, _ in estimator.transformers_}
    listed = [(name, inner, places[name]) for name, inner, _ in estimator.transformers_ if len(places[name])]
    return _branches(estimator, listed)


def feature_union(estimator: Any) -> Iterator[nn.Module]:
    """All read the same features."""
    every = np.arange(estimator.n_features_in_)
    return _branches(estimator, [(name, inner, every) for name, inner in estimator.transformer_list])


def _branches(estimator: Any, listed: list[tuple[str, Any, Any]]) -> Iterator[nn.Module]:
    """Transformers side by side, each times its weight; a string stands for "passthrough"."""
    branches = []
    for name, inner, places in listed:
        if isinstance(inner, str) and inner == "drop":
            continue
        made = [] if isinstance(inner, str) else [*transform_of(inner)]
        weight = (estimator.transformer_weights or {}).get(name)
        if weight is not None and made and all(isinstance(module, nn.Linear) for module in made):
            made.append(scale(np.full(made[-1].out_features, weight)))
        elif weight is not None:
            made.append(Pointwise(partial(torch.mul, torch.tensor(float(weight), dtype=torch.float64))))
        branches.append((places, made))
    return joined(branches, estimator.n_features_in_)


def one_for_each_output(estimator: Any) -> Iterator[nn.Module]:
    """MultiOutputRegressor and MultiOutputClassifier: all read the same features."""
    every = np.arange(features_of(estimator))
    return joined([(every, [*modules_of(one)]) for one in estimator.estimators_], every.size)


def chain(estimator: Any) -> Iterator[nn.Module]:
    """RegressorChain: each estimator reads the features and the answers before it."""
    yield Chain([nn.Sequential(*modules_of(one)) for one in estimator.estimators_], estimator.order_)


class Chain(nn.Module):
    """Each link reads the features and the answers so far; at the end the answers get their own order."""

    def __init__(self, links: Sequence[nn.Module], order: Sequence[int]) -> None:
        super().__init__()
        self._links = nn.ModuleList(links)
        self.register_buffer("_back", torch.tensor(np.argsort(order)))
        self._back: Tensor

    def forward(self, values: Tensor) -> Tensor:
        """One row per sample."""
        seen = values
        for link in self._links:
            seen = torch.cat([seen, link(seen)], dim=1)
        return seen[:, values.shape[1] :][:, self._back]


def averaged(estimator: Any) -> Iterator[nn.Module]:
    """VotingRegressor, and VotingClassifier by probabilities."""
    every = np.arange(features_of(estimator))
    return _mean(estimator, [every] * len(estimator.estimators_), estimator._weights_not_none)


def bagged(estimator: Any) -> Iterator[nn.Module]:
    """Bagging: the mean of members that read some of the features each."""
    for one in estimator.estimators_ if is_classifier(estimator) else ():
        if len(last_step(one).classes_) != len(estimator.classes_):
            raise PredictorError(
                f"{type(estimator).__name__}: one of its estimators has not seen all classes; "
                f"{way_out(estimator)}"
            )
    return _mean(estimator, estimator.estimators_features_, None)


def _mean(estimator: Any, chosen: Sequence[Any], weights: Any) -> Iterator[nn.Module]:
    """The mean of each output over members that read the `chosen` features; for two classes the second one
    only."""
    members, classifies = estimator.estimators_, is_classifier(estimator)
    for one in members:
        if classifies and answering_method(one) != "predict_proba":
            raise PredictorError(
                f"{type(estimator).__name__} of {type(one).__name__} cannot be written as a network: "
                f"probabilities of it are not known; {way_out(estimator)}"
            )
    parts = [[*modules_of(one, both_classes=True)] for one in members]
    yield from joined([*zip(chosen, parts, strict=True)], features_of(estimator))
    share = np.ones(len(members)) if weights is None else np.asarray(weights, dtype=np.float64)
    width = len(estimator.classes_) if classifies else 1
    kept = np.eye(width)[1:] if classifies and width == 2 else np.eye(width)
    yield dense(np.kron(share / share.sum(), kept), 0.0)


def most_votes(estimator: Any) -> Iterator[nn.Module]:
    """VotingClassifier by classes: each estimator has a vote, and the first of equal classes wins."""
    members, every = estimator.estimators_, np.arange(features_of(estimator))
    yield from joined([(every, [*modules_of(one)]) for one in members], every.size)
    classes, given = len(estimator.classes_), estimator._weights_not_none
    shares = np.ones(len(members)) if given is None else np.asarray(given, dtype=np.float64)
    counts = [len(last_step(one).classes_) for one in members]
    single = [answering_method(one) != "nearness" and n == 2 for one, n in zip(members, counts, strict=True)]
    ends = np.cumsum([1 if alone else n for alone, n in zip(single, counts, strict=True)])
    centres = [0.5 if has_binary_probability(one) else 0.0 for one in members]

    def winning_class(values: FloatArray) -> FloatArray:
        """The one-hot of the class with the most votes; for two classes whether it is the second."""
        votes, rows = np.zeros((len(values), classes)), np.arange(len(values))
        for said, centre, share in zip(np.split(values, ends[:-1], axis=1), centres, shares, strict=True):
            chosen = (said[:, 0] > centre).astype(np.int64) if said.shape[1] == 1 else said.argmax(axis=1)
            votes[rows, chosen] += share
        winners = np.eye(classes)[votes.argmax(axis=1)]
        return np.asarray(winners[:, 1:] if classes == 2 else winners)

    yield Steps(winning_class)


def stacked(estimator: Any) -> Iterator[nn.Module]:
    """Answers of the first estimators, and with `passthrough` the features, are features of the last."""
    every, branches = np.arange(features_of(estimator)), []
    for one, method in zip(estimator.estimators_, estimator.stack_method_, strict=True):
        if method != answering_method(one):
            raise PredictorError(
                f"{type(estimator).__name__} reads {method} of {type(one).__name__}, which cannot be written "
                f"as a network; {way_out(estimator)}"
            )
        branches.append((every, [*modules_of(one)]))
    if estimator.passthrough:
        branches.append((every, []))
    yield from joined(branches, every.size)
    yield from modules_of(estimator.final_estimator_)
