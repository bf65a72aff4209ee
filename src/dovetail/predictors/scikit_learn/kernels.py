"""scikit-learn's support vector machines on libsvm: a kernel of the support vectors, and a sum of its values.

Several classes are decided by one vote of each pair of them. A tie goes to the class that comes first, unless
`break_ties` is set: then to the one with the larger sum of decisions, and `decision_function` says which.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import PredictorError
from dovetail.predictors.scikit_learn.estimator import breaks_ties, is_a, way_out
from dovetail.predictors.scikit_learn.modules import Steps, dense

KERNELS = ("rbf", "poly", "sigmoid")
"""Of libsvm's own, beside the linear one."""


def support_vectors(estimator: Any) -> Iterator[nn.Module]:
    """A regressor, or a classifier."""
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
    """By repeated squaring, as libsvm does; each even power is a square, whose least value is known."""
    if degree == 0:
        return torch.ones_like(values)
    if degree % 2:
        return values if degree == 1 else values * _power(values, degree - 1)
    return torch.square(_power(values, degree // 2))


def _pairs(estimator: Any, classes: int) -> FloatArray:
    """(pairs, support vectors) the weights of each pair of classes; those of a class stand together."""
    ends = np.cumsum(estimator.n_support_)
    of_class = [slice(end - count, end) for end, count in zip(ends, estimator.n_support_, strict=True)]
    coefficients = _dense(estimator.dual_coef_)
    weights = np.zeros((classes * (classes - 1) // 2, ends[-1]))
    for pair, (i, j) in enumerate(itertools.combinations(range(classes), 2)):
        weights[pair, of_class[i]] = coefficients[j - 1, of_class[i]]
        weights[pair, of_class[j]] = coefficients[i, of_class[j]]
    return weights


def _for_and_against(classes: int) -> tuple[FloatArray, FloatArray]:
    """(pairs, classes) which class each pair votes for where it is positive, and where it is not."""
    pairs = np.array([*itertools.combinations(range(classes), 2)])
    return np.eye(classes)[pairs[:, 0]], np.eye(classes)[pairs[:, 1]]


class Votes(nn.Module):
    """Votes, and a share of a vote by the sum of decisions: scikit-learn's one-against-rest form."""

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
