"""scikit-learn's transformers beside scalers: of rows, of single values, choices of columns, projections."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import PredictorError, UnsupportedError
from dovetail.predictors.plain_callable import CallablePredictor
from dovetail.predictors.scikit_learn.estimator import way_out
from dovetail.predictors.scikit_learn.modules import Pointwise, Steps, dense, picked, scale, shift
from dovetail.predictors.torch.traced import Traced

FUNCTIONS: dict[Any, Callable[[Tensor], Tensor]] = {
    np.exp: torch.exp,
    np.expm1: torch.expm1,
    np.square: torch.square,
    np.sqrt: torch.sqrt,
    np.log: torch.log,
    np.log1p: torch.log1p,
    np.abs: torch.abs,
    np.tanh: torch.tanh,
    np.sin: torch.sin,
    np.cos: torch.cos,
    np.negative: torch.neg,
    np.reciprocal: torch.reciprocal,
}
"""numpy's functions that torch has, too."""


def normalizer(estimator: Any) -> Iterator[nn.Module]:
    """Each row divided by its length."""
    yield Normalised(estimator.norm)


class Normalised(nn.Module):
    """Rows of length 1 in some norm; a row of zeros stays as it is."""

    def __init__(self, norm: str) -> None:
        super().__init__()
        self._norm = norm

    def forward(self, values: Tensor) -> Tensor:
        """One row per sample."""
        if self._norm == "l2":
            return values / torch.sqrt(_or_one(torch.square(values).sum(dim=1, keepdim=True)))
        sizes = torch.abs(values)
        length = sizes.sum(dim=1, keepdim=True) if self._norm == "l1" else sizes.amax(dim=1, keepdim=True)
        return values / _or_one(length)


def _or_one(length: Tensor) -> Tensor:
    """What may be divided by. Where a bound is asked for, 0 has none: what it cannot exclude is left open."""
    return length if isinstance(length, Traced) else torch.where(length == 0.0, 1.0, length)


def binarizer(estimator: Any) -> Iterator[nn.Module]:
    """1 above a threshold, else 0."""
    yield Steps(partial(_above, float(estimator.threshold)))


def _above(threshold: float, values: FloatArray) -> FloatArray:
    return (values > threshold).astype(np.float64)


def function_transformer(estimator: Any) -> Iterator[nn.Module]:
    """numpy's functions as torch's; any other as it is, with differences for its gradient."""
    options = estimator.kw_args
    if estimator.func is None:
        return
    if estimator.func in FUNCTIONS and not options:
        yield Pointwise(FUNCTIONS[estimator.func])
    else:
        yield Opaque(partial(estimator.func, **(options or {})))


class Opaque(nn.Module):
    """A function that can only be called."""

    def __init__(self, function: Callable[[FloatArray], Any]) -> None:
        super().__init__()
        self._forward = CallablePredictor(function).snapshot("cpu")

    def forward(self, values: Tensor) -> Tensor:
        """One row per sample."""
        if isinstance(values, Traced):
            raise UnsupportedError("a function of numpy arrays has no bound")
        return self._forward(values)


def projection(estimator: Any) -> Iterator[nn.Module]:
    """PCA and truncated singular values: as scikit-learn multiplies before it centres."""
    components = np.asarray(estimator.components_, dtype=np.float64)
    mean = getattr(estimator, "mean_", None)
    yield dense(components, 0.0 if mean is None else -(components @ mean))
    if getattr(estimator, "whiten", False):
        spread = np.sqrt(estimator.explained_variance_)
        yield scale(1.0 / np.maximum(spread, np.finfo(np.float64).eps))


def selector(estimator: Any) -> Iterator[nn.Module]:
    """Some of the columns."""
    yield picked(estimator.get_support(indices=True), estimator.n_features_in_)


def imputer(estimator: Any) -> Iterator[nn.Module]:
    """Numbers are never missing here: what is left is which columns there are."""
    missing = estimator.missing_values
    if estimator.add_indicator or not (isinstance(missing, float) and np.isnan(missing)):
        raise PredictorError(
            "SimpleImputer that looks for anything but NaN, or adds indicators, cannot be written as a "
            f"network; {way_out(estimator)}"
        )
    kept = np.flatnonzero([not _is_nan(value) for value in estimator.statistics_])
    if estimator.keep_empty_features or kept.size == estimator.n_features_in_:
        yield shift(np.zeros(estimator.n_features_in_))
    else:
        yield picked(kept, estimator.n_features_in_)


def _is_nan(value: Any) -> bool:
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))
