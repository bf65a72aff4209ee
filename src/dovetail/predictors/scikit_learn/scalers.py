"""scikit-learn's scalers as torch modules, and the way back from a scaled target."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from torch import nn

from dovetail.core.errors import PredictorError
from dovetail.predictors.scikit_learn.estimator import is_a
from dovetail.predictors.scikit_learn.modules import Pointwise, clip, dense, scale, shift
from dovetail.predictors.scikit_learn.transformers import FUNCTIONS


def standard_scaler(scaler: Any) -> Iterator[nn.Module]:
    """Also of RobustScaler. Shifted before it is scaled, as scikit-learn does: what is close stays exact."""
    if _centre(scaler) is not None:
        yield shift(-_centre(scaler))
    if scaler.scale_ is not None:
        yield scale(1.0 / scaler.scale_)
    if _centre(scaler) is None and scaler.scale_ is None:
        yield shift(np.zeros(scaler.n_features_in_))


def min_max_scaler(scaler: Any) -> Iterator[nn.Module]:
    """Into a range, and cut off there if it was told to."""
    yield dense(np.diag(scaler.scale_), scaler.min_)
    if scaler.clip:
        low, high = scaler.feature_range
        yield from clip(low, high, len(scaler.scale_))


def max_abs_scaler(scaler: Any) -> Iterator[nn.Module]:
    """Into [-1, 1], and cut off there if it was told to."""
    yield scale(1.0 / scaler.scale_)
    if getattr(scaler, "clip", False):  # there since scikit-learn 1.8
        yield from clip(-1.0, 1.0, len(scaler.scale_))


def inverse(transformer: Any) -> Iterator[nn.Module]:
    """The way back from a transformed target."""
    if is_a(transformer, "MinMaxScaler"):
        yield shift(-transformer.min_)
        yield scale(1.0 / transformer.scale_)
    elif is_a(transformer, "StandardScaler", "RobustScaler", "MaxAbsScaler"):
        if transformer.scale_ is not None:
            yield scale(transformer.scale_)
        if _centre(transformer) is not None:
            yield shift(_centre(transformer))
    elif type(transformer).__name__ == "FunctionTransformer" and transformer.inverse_func in FUNCTIONS:
        yield Pointwise(FUNCTIONS[transformer.inverse_func])
    elif type(transformer).__name__ != "FunctionTransformer" or transformer.inverse_func is not None:
        raise PredictorError(
            f"TransformedTargetRegressor with {type(transformer).__name__} cannot be written as a network; "
            "dovetail takes scalers, and numpy's usual functions as inverse_func. Pass its own predict "
            "method as a plain function instead (predictor=estimator.predict)."
        )


def _centre(scaler: Any) -> Any:
    """What a scaler subtracts, if anything."""
    if is_a(scaler, "StandardScaler"):
        return scaler.mean_ if scaler.with_mean else None
    return getattr(scaler, "center_", None)
