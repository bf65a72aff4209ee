"""scikit-learn's linear models: coef_ and intercept_, and the link behind them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

from dovetail.core.errors import PredictorError
from dovetail.predictors.scikit_learn.estimator import has_probabilities, way_out
from dovetail.predictors.scikit_learn.modules import Pointwise, RowShares, dense, shift


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
